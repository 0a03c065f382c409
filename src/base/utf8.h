/* SPDX-License-Identifier: MIT */
/* Texts as people see them: each character of UTF-8 counts as one column. */
#ifndef ASSAY_BASE_UTF8_H
#define ASSAY_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the byte is one of a character but not its first. */
static inline bool utf8_continues(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* The length of the valid UTF-8 character at text, 0 when there is none. */
size_t str_utf8_length(const unsigned char *text, size_t length);
/* How many columns a text takes, or the first `length` bytes of one. */
size_t str_columns(const char *text);
size_t str_columns_n(const char *text, size_t length);
/* The length of its first `columns` characters, in bytes; less when it has fewer. */
size_t str_column_bytes(const char *text, size_t columns);

#endif
