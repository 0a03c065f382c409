/* SPDX-License-Identifier: MIT */
/* A table of `assay ab` whose columns are as wide as they need to be, with words at the end of each
 * row. */
#ifndef ASSAY_REPORT_TEXT_AB_TABLE_H
#define ASSAY_REPORT_TEXT_AB_TABLE_H

#include "base/strings.h"

enum { AB_COLUMNS_MAX = 5 };

struct ab_row {
    struct strbuf cells[AB_COLUMNS_MAX], verdict;
    const char *colour; /* of the words; "" for none */
};

/*
 * The first row is the head.  The first column is left-aligned, as is the one of number `left`.
 * Where the rows are wider than a narrow terminal, the column `optional` is left out; where they
 * still are, each cell gets a line of its own, behind the head of its column.
 */
struct ab_table {
    struct ab_row *rows;
    size_t count, capacity;
    size_t left;
    size_t optional; /* 0: none */
};

struct ab_row *ab_table_add(struct ab_table *t);
void ab_table_put(struct strbuf *out, const struct ab_table *t, size_t columns);
void ab_table_done(struct ab_table *t);

#endif
