/* SPDX-License-Identifier: MIT */
/* An annotated function as text and JSON: what `assay annotate` prints. */
#ifndef ASSAY_REPORT_PROFILE_ANNOTATE_REPORT_H
#define ASSAY_REPORT_PROFILE_ANNOTATE_REPORT_H

#include "profile/annotate.h"

struct annotate_view {
    bool no_source, no_assembly;
    bool colour;
    size_t columns; /* 0: whole lines */
};

void annotate_put_text(const struct annotation *a, const struct profile *profile,
                       const struct annotate_view *view, struct strbuf *out);
void annotate_put_json(const struct annotation *a, const struct profile *profile,
                       struct strbuf *out);

#endif
