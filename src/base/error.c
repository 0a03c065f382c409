/* SPDX-License-Identifier: MIT */
/* Errors as values: see error.h. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static size_t set_message(struct error *err, int code, const char *format, va_list args)
{
    vsnprintf(err->message, sizeof(err->message), format, args);
    err->code = code;
    return strlen(err->message);
}

int error_set(struct error *err, int code, const char *format, ...)
{
    if (!err)
        return code;
    va_list args;
    va_start(args, format);
    set_message(err, code, format, args);
    va_end(args);
    return code;
}

int error_errno(struct error *err, int code, const char *format, ...)
{
    if (!err)
        return code;
    va_list args;
    va_start(args, format);
    size_t used = set_message(err, code, format, args);
    va_end(args);
    snprintf(err->message + used, sizeof(err->message) - used, ": %s",
             strerror(code < 0 ? -code : code));
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
    size_t used = set_message(err, code, format, args);
    va_end(args);
    snprintf(err->message + used, sizeof(err->message) - used, ": %.*s",
             (int)(sizeof(err->message) - used), inner);
    return code;
}
