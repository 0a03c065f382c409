/* SPDX-License-Identifier: MIT */
/* See base64.h. */
#include "base/base64.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void strbuf_put_base64(struct strbuf *out, const void *bytes, size_t length)
{
    const uint8_t *b = bytes;
    for (size_t i = 0; i < length; i += 3) {
        uint32_t word = (uint32_t)b[i] << 16 | (i + 1 < length ? (uint32_t)b[i + 1] << 8 : 0) |
                        (i + 2 < length ? b[i + 2] : 0);
        char quad[4] = {digits[word >> 18], digits[word >> 12 & 63],
                        i + 1 < length ? digits[word >> 6 & 63] : '=',
                        i + 2 < length ? digits[word & 63] : '='};
        strbuf_append(out, quad, 4);
    }
}

bool strbuf_get_base64(struct strbuf *out, const char *text, size_t length)
{
    uint32_t word = 0;
    int bits = 0;
    size_t i = 0;
    for (; i < length && text[i] != '='; i++) {
        const char *digit = text[i] ? strchr(digits, text[i]) : NULL;
        if (!digit)
            break;
        word = word << 6 | (uint32_t)(digit - digits);
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            strbuf_putc(out, (char)(word >> bits & 255));
        }
    }
    return i == length || text[i] == '=' || text[i] == '<';
}
