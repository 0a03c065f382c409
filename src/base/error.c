/* SPDX-License-Identifier: MIT */
/* Errors as values: see error.h. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Keeps the text whole where it fits; else its middle goes, where a long name stands: the start
 * tells what failed, the end why and what to do. */
static void fit(struct error *err, const char *text)
{
    const size_t size = sizeof(err->message), tail = size / 2;
    size_t length = strlen(text);
    if (length < size)
        memcpy(err->message, text, length + 1);
    else
        snprintf(err->message, size, "%.*s…%s", (int)(size - tail - sizeof("…")), text,
                 text + length - tail + 1);
}

/* Sets code and message: the formatted text, then the two words, which may be "". */
static void set_message(struct error *err, int code, const char *format, va_list args,
                        const char *separator, const char *behind)
{
    char *text = NULL, *whole = NULL;
    err->code = code;
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    if (asprintf(&whole, "%s%s%s", text ? text : "", separator, behind) < 0)
        whole = NULL;
    fit(err, whole ? whole : "out of memory");
    free(text);
    free(whole);
}

int error_set(struct error *err, int code, const char *format, ...)
{
    if (!err)
        return code;
    va_list args;
    va_start(args, format);
    set_message(err, code, format, args, "", "");
    va_end(args);
    return code;
}

int error_errno(struct error *err, int code, const char *format, ...)
{
    if (!err)
        return code;
    va_list args;
    va_start(args, format);
    set_message(err, code, format, args, ": ", strerror(code < 0 ? -code : code));
    va_end(args);
    return code;
}

int error_wrap(struct error *err, int code, const char *format, ...)
{
    if (!err)
        return code;
    char inner[sizeof(err->message)];
    memcpy(inner, err->message, sizeof(inner));
    va_list args;
    va_start(args, format);
    set_message(err, code, format, args, ": ", inner);
    va_end(args);
    return code;
}
