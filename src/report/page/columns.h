/* SPDX-License-Identifier: MIT */
/*
 * Columns of whole numbers as text, for a page's data.  The first character says how many digits a
 * number has; then comes the lowest digit of all numbers, then the next one of all, and so on.
 * Digits are to the base of 91, written as the characters that JSON does not escape.  Deflate makes
 * a sixth less of it than of numbers in decimal, and a browser reads one string instead of a
 * hundred thousand numbers (web/data.js: columnOf).
 */
#ifndef ASSAY_REPORT_PAGE_COLUMNS_H
#define ASSAY_REPORT_PAGE_COLUMNS_H

#include "base/strings.h"

#include <stdbool.h>
#include <stdint.h>

struct column {
    uint64_t *values;
    size_t count;
};

void column_put(struct strbuf *out, const uint64_t *values, size_t count);
/* Whether it is one, of which no number is above INT64_MAX.  The caller frees it either way. */
bool column_read(struct column *c, const char *text, size_t length);
void column_done(struct column *c);

#endif
