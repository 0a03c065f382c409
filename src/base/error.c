/* SPDX-License-Identifier: MIT */
/* Errors as values: see error.h. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int error_set(struct error *err, int code, const char *format, ...)
{
    if (!err)
        return code;
    va_list args;
    va_start(args, format);
    vsnprintf(err->message, sizeof(err->message), format, args);
    va_end(args);
    err->code = code;
    return code;
}

int error_errno(struct error *err, int code, const char *format, ...)
{
    if (!err)
        return code;
    va_list args;
    va_start(args, format);
    vsnprintf(err->message, sizeof(err->message), format, args);
    va_end(args);
    size_t used = strlen(err->message);
    snprintf(err->message + used, sizeof(err->message) - used, ": %s",
             strerror(code < 0 ? -code : code));
    err->code = code;
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
    vsnprintf(err->message, sizeof(err->message), format, args);
    va_end(args);
    size_t used = strlen(err->message);
    snprintf(err->message + used, sizeof(err->message) - used, ": %.*s",
             (int)(sizeof(err->message) - used), inner);
    err->code = code;
    return code;
}
