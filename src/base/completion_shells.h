/* SPDX-License-Identifier: MIT */
/* What the shells' scripts share; only completion*.c includes this. */
#ifndef ASSAY_BASE_COMPLETION_SHELLS_H
#define ASSAY_BASE_COMPLETION_SHELLS_H

#include "base/completion.h"

bool option_is_end(const struct option *o);
bool option_has_value(const struct option *o);

void completion_put_fish(struct strbuf *out, const struct completion *c);

#endif
