/* SPDX-License-Identifier: MIT */
/* What `assay top` shows, as lines of text and as JSON. */
#ifndef ASSAY_REPORT_LIVE_TOP_TEXT_H
#define ASSAY_REPORT_LIVE_TOP_TEXT_H

#include "base/json.h"
#include "top/top.h"

/* "functions", "threads", "calls", "waits". */
const char *top_view_name(enum view view);
const char *top_sort_name(enum view_sort sort);

/* The first line: what is looked at, how busy it is, what was lost. */
void top_put_title(const struct top *t, const struct view_rows *rows, struct strbuf *out);
/* The names of the columns. */
void top_put_heading(enum view view, size_t columns, struct strbuf *out);
/* One row, without a line's end, in at most so many columns. */
void top_put_row(const struct recent *w, enum view view, const struct view_row *row, size_t columns,
                 struct strbuf *out);
/* What a zoom shows only: "function memcpy", "thread 12 (sh)". */
void top_put_zoom(const struct recent *w, const struct view_zoom *zoom, struct strbuf *out);
/* What is not among the rows: "12 threads slept all the time."; nothing when all is. */
void top_put_rest(const struct view_rows *rows, const struct view_options *o, struct strbuf *out);

/* A whole frame: title, heading, up to so many rows. */
void top_put_frame(struct top *t, const struct view_options *o, size_t columns, size_t row_limit,
                   struct strbuf *out);
/* All views as one object on one line. */
void top_put_json(struct top *t, const struct view_options *o, size_t row_limit,
                  struct strbuf *out);

#endif
