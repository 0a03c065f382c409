/* SPDX-License-Identifier: MIT */
/* What a bisect found: the robot's mail, as text and Markdown, and JSON. */
#ifndef ASSAY_REPORT_TEXT_BISECT_H
#define ASSAY_REPORT_TEXT_BISECT_H

#include "base/strings.h"
#include "bisect/bisect.h"
#include "machine/machine.h"

struct bisect_view {
    const struct bisect *b;
    const struct machine *machine;
};

void report_bisect_text(struct strbuf *out, const struct bisect_view *v);
void report_bisect_markdown(struct strbuf *out, const struct bisect_view *v);
void report_bisect_json(struct strbuf *out, const struct bisect_view *v);

/* Whether more than one commit may be the one, because those between cannot be built. */
bool bisect_is_range(const struct bisection_change *c);
/* One sentence for each case: what came out where no commit did. */
void bisect_put_verdict(struct strbuf *out, const struct bisect *b);

/* "+3.1 % [+2.9, +3.3]", or a difference in the unit where there is no ratio. */
void strbuf_put_change(struct strbuf *out, const struct comparison *c, const char *unit);

#endif
