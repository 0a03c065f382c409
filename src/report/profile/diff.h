/* SPDX-License-Identifier: MIT */
/* What `assay diff` found, as text, Markdown, CSV and JSON. */
#ifndef ASSAY_REPORT_PROFILE_DIFF_H
#define ASSAY_REPORT_PROFILE_DIFF_H

#include "base/json.h"
#include "base/strings.h"
#include "profile/diff.h"

struct diff_view {
    const struct diff *d;
    const char *names[SIDE_COUNT]; /* what A and B are */
    const char *label;             /* of the cell, "" for none */
    const char *emulated;          /* what is to be said of emulated machines; NULL for others */
    bool all;                      /* every row */
    size_t row_limit;              /* 0 for the default */
    bool colour;
    size_t columns; /* of the terminal; 0 for no limit */
};

void report_diff_text(struct strbuf *out, const struct diff_view *v);
void report_diff_markdown(struct strbuf *out, const struct diff_view *v);
/* The head once, then the rows of each diff. */
void report_diff_csv_head(struct strbuf *out);
void report_diff_csv(struct strbuf *out, const struct diff_view *v);
/* One object of the array `diffs`. */
void report_diff_json(struct json *j, const struct diff_view *v);
/* The fields of one change, for other reports as well. */
void report_attributed_json(struct json *j, const char *key, const struct attributed *a);

#endif
