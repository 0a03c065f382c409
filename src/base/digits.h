/* SPDX-License-Identifier: MIT */
/* Numbers as text where millions are written: a fraction of the time of strbuf_printf. */
#ifndef ASSAY_BASE_DIGITS_H
#define ASSAY_BASE_DIGITS_H

#include "base/strings.h"

/* Appends a number in base 10 or 16 with at least `width` places (64 at most), filled up from the
 * left. */
static inline void strbuf_put_number(struct strbuf *b, uint64_t number, unsigned base, size_t width,
                                     char fill)
{
    char digits[64];
    size_t at = sizeof(digits);
    do {
        digits[--at] = "0123456789abcdef"[base == 16 ? number & 15 : number % 10];
        number = base == 16 ? number >> 4 : number / 10;
    } while (number);
    while (sizeof(digits) - at < width && at)
        digits[--at] = fill;
    strbuf_append(b, digits + at, sizeof(digits) - at);
}

#endif
