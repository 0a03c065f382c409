/* SPDX-License-Identifier: MIT */
/* What `assay explain` found, as text, Markdown, CSV and JSON. */
#ifndef ASSAY_REPORT_TEXT_EXPLAIN_H
#define ASSAY_REPORT_TEXT_EXPLAIN_H

#include "base/json.h"
#include "why/explain.h"

struct explain_view {
    const struct explain *e;
    bool all; /* every reason, not only those that matter */
    bool colour;
};

void report_explain_text(struct strbuf *out, const struct explain_view *v);
void report_explain_markdown(struct strbuf *out, const struct explain_view *v);
/* The head once, then the rows of each cell. */
void report_explain_csv_head(struct strbuf *out);
void report_explain_csv(struct strbuf *out, const struct explain_view *v);
/* One object of the array `explanations`. */
void report_explain_json(struct json *j, const struct explain_view *v);

/* "memcpy +3.1 ±0.8 ns/op, 72 % of the +4.3 ns/op" */
void report_reason_line(struct strbuf *out, const struct explain *e, const struct reason *reason);
/* The reasons that have no line of their own, and what is unattributed. */
void report_reasons_others(struct strbuf *out, const struct explain *e, size_t count,
                           double change);
/* "CPU time and own waits per op: 4.2 → 8.5, +4.3 ±0.1 ns/op" */
void report_explain_whole(struct strbuf *out, const struct explain *e);
/* What no reason carries: "+0.1 ns/op, 2 %" */
void report_explain_rest(struct strbuf *out, const struct explain *e);

#endif
