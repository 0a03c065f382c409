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

#endif
