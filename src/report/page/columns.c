/* SPDX-License-Identifier: MIT */
#include "report/page/columns.h"
#include "base/memory.h"

enum { BASE = 91, FIRST = '#', DIGITS_MAX = 10 };

static char digit_char(uint64_t digit)
{
    return (char)(FIRST + (int)digit + (FIRST + (int)digit >= '\\'));
}

/* -1: no digit. */
static int digit_of(char c)
{
    if (c < FIRST || c > '~' || c == '\\')
        return -1;
    return c - FIRST - (c > '\\');
}

void column_put(struct strbuf *out, const uint64_t *values, size_t count)
{
    uint64_t most = 0;
    unsigned digits = 1;
    for (size_t i = 0; i < count; i++)
        most = values[i] > most ? values[i] : most;
    while ((most /= BASE) > 0)
        digits++;
    CLEANUP(memory_freep) uint64_t *left = memory_zalloc(count + 1, sizeof(*left));
    if (count)
        memcpy(left, values, count * sizeof(*left));
    strbuf_putc(out, (char)('0' + digits));
    for (size_t d = 0; d < digits; d++)
        for (size_t i = 0; i < count; i++) {
            strbuf_putc(out, digit_char(left[i] % BASE));
            left[i] /= BASE;
        }
}

bool column_read(struct column *c, const char *text, size_t length)
{
    size_t digits = length && *text > '0' ? (size_t)(*text - '0') : 0;
    *c = (struct column){0};
    if (digits < 1 || digits > DIGITS_MAX || (length - 1) % digits)
        return false;
    c->count = (length - 1) / digits;
    c->values = memory_zalloc(c->count + 1, sizeof(*c->values));
    for (size_t d = digits; d-- > 0;)
        for (size_t i = 0; i < c->count; i++) {
            int digit = digit_of(text[1 + d * c->count + i]);
            if (digit < 0 || c->values[i] > (INT64_MAX - (uint64_t)digit) / BASE)
                return false;
            c->values[i] = c->values[i] * BASE + (uint64_t)digit;
        }
    return true;
}

void column_done(struct column *c)
{
    free(c->values);
}
