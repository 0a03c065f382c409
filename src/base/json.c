/* SPDX-License-Identifier: MIT */
/* A JSON writer: see json.h. */
#include "base/json.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void strbuf_put_json(struct strbuf *b, const char *text, size_t length)
{
    strbuf_putc(b, '"');
    for (size_t at = 0; at < length;) {
        unsigned char c = (unsigned char)text[at];
        size_t size = str_utf8_length((const unsigned char *)text + at, length - at);
        if (c == '"' || c == '\\') {
            strbuf_putc(b, '\\');
            strbuf_putc(b, (char)c);
        } else if (c == '\n') {
            strbuf_puts(b, "\\n");
        } else if (c == '\t') {
            strbuf_puts(b, "\\t");
        } else if (c < 0x20 || c == 0x7f) {
            strbuf_printf(b, "\\u%04x", c);
        } else if (size) {
            strbuf_append(b, text + at, size);
        } else {
            strbuf_puts(b, "\\ufffd");
        }
        at += size ? size : 1;
    }
    strbuf_putc(b, '"');
}

void strbuf_put_csv(struct strbuf *b, const char *text)
{
    if (!text[strcspn(text, ",\"\n\r")]) {
        strbuf_puts(b, text);
        return;
    }
    strbuf_putc(b, '"');
    for (; *text; text++) {
        if (*text == '"')
            strbuf_putc(b, '"');
        strbuf_putc(b, *text);
    }
    strbuf_putc(b, '"');
}

static void new_line(struct json *j)
{
    if (j->compact)
        return;
    strbuf_putc(j->out, '\n');
    strbuf_pad(j->out, ' ', 2 * (size_t)j->depth);
}

/* What stands before every value: the comma, the line's start, the key. */
static void lead(struct json *j, const char *key)
{
    if (j->depth) {
        if (j->filled[j->depth])
            strbuf_putc(j->out, ',');
        j->filled[j->depth] = true;
        new_line(j);
    }
    if (key) {
        strbuf_put_json(j->out, key, strlen(key));
        strbuf_puts(j->out, j->compact ? ":" : ": ");
    }
}

static void open_level(struct json *j, const char *key, bool is_array)
{
    lead(j, key);
    assert(j->depth + 1 < JSON_DEPTH_MAX);
    strbuf_putc(j->out, is_array ? '[' : '{');
    j->depth++;
    j->filled[j->depth] = false;
    j->is_array[j->depth] = is_array;
}

void json_object(struct json *j, const char *key)
{
    open_level(j, key, false);
}

void json_array(struct json *j, const char *key)
{
    open_level(j, key, true);
}

void json_end(struct json *j)
{
    assert(j->depth > 0);
    bool filled = j->filled[j->depth], is_array = j->is_array[j->depth];
    j->depth--;
    if (filled)
        new_line(j);
    strbuf_putc(j->out, is_array ? ']' : '}');
    if (!j->depth)
        strbuf_putc(j->out, '\n');
}

void json_raw(struct json *j, const char *key, const char *text)
{
    lead(j, key);
    strbuf_puts(j->out, text);
}

void json_string_n(struct json *j, const char *key, const char *value, size_t length)
{
    lead(j, key);
    strbuf_put_json(j->out, value, length);
}

void json_string(struct json *j, const char *key, const char *value)
{
    if (value)
        json_string_n(j, key, value, strlen(value));
    else
        json_null(j, key);
}

void json_u64(struct json *j, const char *key, uint64_t value)
{
    lead(j, key);
    strbuf_printf(j->out, "%llu", (unsigned long long)value);
}

void json_i64(struct json *j, const char *key, int64_t value)
{
    lead(j, key);
    strbuf_printf(j->out, "%lld", (long long)value);
}

void json_double(struct json *j, const char *key, double value)
{
    if (!isfinite(value)) {
        json_null(j, key);
        return;
    }
    lead(j, key);
    /* The shortest of the two forms that reads back as the same number. */
    char text[40];
    snprintf(text, sizeof(text), "%.15g", value);
    if (strtod(text, NULL) != value)
        snprintf(text, sizeof(text), "%.17g", value);
    strbuf_puts(j->out, text);
}

void json_bool(struct json *j, const char *key, bool value)
{
    lead(j, key);
    strbuf_puts(j->out, value ? "true" : "false");
}

void json_null(struct json *j, const char *key)
{
    lead(j, key);
    strbuf_puts(j->out, "null");
}
