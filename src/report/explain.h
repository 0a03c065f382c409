/* SPDX-License-Identifier: MIT */
/* What `assay explain` found, as text, Markdown, CSV and JSON. */
#ifndef ASSAY_REPORT_EXPLAIN_H
#define ASSAY_REPORT_EXPLAIN_H

#include "base/json.h"
#include "experiment/explain.h"

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
const char *report_reason_kind(enum reason_kind kind);

#endif
