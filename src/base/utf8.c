/* SPDX-License-Identifier: MIT */
/* See utf8.h. */
#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

size_t str_utf8_length(const unsigned char *text, size_t length)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t size = text[0] < 0x80             ? 1
                  : (text[0] & 0xe0) == 0xc0 ? 2
                  : (text[0] & 0xf0) == 0xe0 ? 3
                  : (text[0] & 0xf8) == 0xf0 ? 4
                                             : 0;
    if (size < 2 || size > length)
        return size == 1;
    uint32_t code = text[0] & (0xffu >> (size + 1));
    for (size_t i = 1; i < size; i++) {
        if (!utf8_continues((char)text[i]))
            return 0;
        code = code << 6 | (text[i] & 0x3f);
    }
    bool valid = code >= smallest[size] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
    return valid ? size : 0;
}

size_t str_columns_n(const char *text, size_t length)
{
    size_t columns = 0;
    for (size_t i = 0; i < length; i++)
        columns += !utf8_continues(text[i]);
    return columns;
}

size_t str_columns(const char *text)
{
    return str_columns_n(text, strlen(text));
}

size_t str_column_bytes(const char *text, size_t columns)
{
    size_t at = 0;
    while (text[at] && (utf8_continues(text[at]) || columns-- > 0))
        at++;
    return at;
}
