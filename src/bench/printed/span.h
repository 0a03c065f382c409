/* SPDX-License-Identifier: MIT */
/* What the readers of text share: lines, and numbers in them. */
#ifndef ASSAY_BENCH_PRINTED_SPAN_H
#define ASSAY_BENCH_PRINTED_SPAN_H

#include <stdbool.h>
#include <stddef.h>

/* A part of a text, not terminated. */
struct span {
    const char *at;
    size_t length;
};

/* The next line without its end; false at the end of the text. */
bool span_line(struct span *text, struct span *ret_line);
/* Without blanks at both ends. */
struct span span_trim(struct span s);
/* The next word, separated by blanks; false when there is none. */
bool span_word(struct span *s, struct span *ret_word);
/* A decimal number at the beginning, which is taken off; thousands may have commas. */
bool span_number(struct span *s, double *ret_number);
bool span_is(struct span s, const char *text);
bool span_starts(struct span s, const char *text);
/* Where the text begins in it; NULL when it is not there. */
const char *span_find(struct span s, const char *text);

#endif
