/* SPDX-License-Identifier: MIT */
/* The bill of one command, for people and as data. */
#ifndef ASSAY_REPORT_BILL_BILL_H
#define ASSAY_REPORT_BILL_BILL_H

#include "base/json.h"
#include "bill/bill_run.h"
#include "bill/whatif.h"

struct bill_view {
    const struct bill *b;
    const struct whatifs *whatifs;
    const struct bill_doubts *doubts;
    const char *command;
    bool all, colour; /* every line, however small */
    size_t columns;   /* of the terminal */
};

void report_bill_text(struct strbuf *out, const struct bill_view *v);
/* The keys of the object `bill`. */
void report_bill_json(struct json *j, const struct bill_view *v);

/* "xz: lzma_encode, called by main", as much as is known. */
void report_bill_name(struct strbuf *out, const struct bill_view *v, const struct bill_line *line);

/* "31.40 ±0.62 ms". */
void report_bill_time(struct strbuf *out, const struct bill_estimate *e);
/* What to know of the runs, one sentence a line. */
void report_bill_notes(struct strbuf *out, const struct bill_view *v);

/* One page: the bill, what would help, the threads over time, a flame graph. */
void report_bill_html(struct strbuf *out, const struct bill_view *v);
/* The threads of one run over time. */
void report_bill_timeline(struct strbuf *out, const struct bill *b, const struct bill_run *run);

#endif
