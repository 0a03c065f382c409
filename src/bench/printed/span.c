/* SPDX-License-Identifier: MIT */
/* See span.h. */
#include "bench/printed/span.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool span_line(struct span *text, struct span *ret_line)
{
    if (!text->length)
        return false;
    const char *end = memchr(text->at, '\n', text->length);
    size_t length = end ? (size_t)(end - text->at) : text->length, used = length + (end != NULL);
    *ret_line = (struct span){text->at, length};
    text->at += used;
    text->length -= used;
    return true;
}

struct span span_trim(struct span s)
{
    while (s.length && isspace((unsigned char)s.at[0])) {
        s.at++;
        s.length--;
    }
    while (s.length && isspace((unsigned char)s.at[s.length - 1]))
        s.length--;
    return s;
}

bool span_word(struct span *s, struct span *ret_word)
{
    *s = span_trim(*s);
    size_t length = 0;
    while (length < s->length && !isspace((unsigned char)s->at[length]))
        length++;
    *ret_word = (struct span){s->at, length};
    s->at += length;
    s->length -= length;
    return length > 0;
}

bool span_number(struct span *s, double *ret_number)
{
    char digits[64];
    size_t used = 0, length = 0;
    while (
        used < s->length && length + 1 < sizeof(digits) &&
        (isdigit((unsigned char)s->at[used]) || (s->at[used] && strchr(".,eE+-", s->at[used])))) {
        if (s->at[used] != ',')
            digits[length++] = s->at[used];
        used++;
    }
    digits[length] = '\0';
    char *end;
    double number = strtod(digits, &end);
    if (!length || *end || !isfinite(number))
        return false;
    *ret_number = number;
    s->at += used;
    s->length -= used;
    return true;
}

bool span_is(struct span s, const char *text)
{
    return s.length == strlen(text) && memcmp(s.at, text, s.length) == 0;
}

bool span_starts(struct span s, const char *text)
{
    size_t length = strlen(text);
    return s.length >= length && memcmp(s.at, text, length) == 0;
}

const char *span_find(struct span s, const char *text)
{
    return s.length ? memmem(s.at, s.length, text, strlen(text)) : NULL;
}
