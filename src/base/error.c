/* SPDX-License-Identifier: MIT */
/* Errors as values: see error.h. */
#include "base/error.h"

#include <errno.h>
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
    err->exit_code = 0;
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
    err->exit_code = 0;
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

int error_end_with(struct error *err, int exit_code, int code)
{
    if (err)
        err->exit_code = exit_code;
    return code;
}

#define NAMED(name) [name] = #name

static const char *const errors[] = {
    NAMED(EPERM),
    NAMED(ENOENT),
    NAMED(ESRCH),
    NAMED(EINTR),
    NAMED(EIO),
    NAMED(ENXIO),
    NAMED(E2BIG),
    NAMED(ENOEXEC),
    NAMED(EBADF),
    NAMED(ECHILD),
    NAMED(EAGAIN),
    NAMED(ENOMEM),
    NAMED(EACCES),
    NAMED(EFAULT),
    NAMED(ENOTBLK),
    NAMED(EBUSY),
    NAMED(EEXIST),
    NAMED(EXDEV),
    NAMED(ENODEV),
    NAMED(ENOTDIR),
    NAMED(EISDIR),
    NAMED(EINVAL),
    NAMED(ENFILE),
    NAMED(EMFILE),
    NAMED(ENOTTY),
    NAMED(ETXTBSY),
    NAMED(EFBIG),
    NAMED(ENOSPC),
    NAMED(ESPIPE),
    NAMED(EROFS),
    NAMED(EMLINK),
    NAMED(EPIPE),
    NAMED(EDOM),
    NAMED(ERANGE),
    NAMED(EDEADLK),
    NAMED(ENAMETOOLONG),
    NAMED(ENOLCK),
    NAMED(ENOSYS),
    NAMED(ENOTEMPTY),
    NAMED(ELOOP),
    NAMED(ENOMSG),
    NAMED(EIDRM),
    NAMED(ECHRNG),
    NAMED(EL2NSYNC),
    NAMED(EL3HLT),
    NAMED(EL3RST),
    NAMED(ELNRNG),
    NAMED(EUNATCH),
    NAMED(ENOCSI),
    NAMED(EL2HLT),
    NAMED(EBADE),
    NAMED(EBADR),
    NAMED(EXFULL),
    NAMED(ENOANO),
    NAMED(EBADRQC),
    NAMED(EBADSLT),
    NAMED(EBFONT),
    NAMED(ENOSTR),
    NAMED(ENODATA),
    NAMED(ETIME),
    NAMED(ENOSR),
    NAMED(ENONET),
    NAMED(ENOPKG),
    NAMED(EREMOTE),
    NAMED(ENOLINK),
    NAMED(EADV),
    NAMED(ESRMNT),
    NAMED(ECOMM),
    NAMED(EPROTO),
    NAMED(EMULTIHOP),
    NAMED(EDOTDOT),
    NAMED(EBADMSG),
    NAMED(EOVERFLOW),
    NAMED(ENOTUNIQ),
    NAMED(EBADFD),
    NAMED(EREMCHG),
    NAMED(ELIBACC),
    NAMED(ELIBBAD),
    NAMED(ELIBSCN),
    NAMED(ELIBMAX),
    NAMED(ELIBEXEC),
    NAMED(EILSEQ),
    NAMED(ERESTART),
    NAMED(ESTRPIPE),
    NAMED(EUSERS),
    NAMED(ENOTSOCK),
    NAMED(EDESTADDRREQ),
    NAMED(EMSGSIZE),
    NAMED(EPROTOTYPE),
    NAMED(ENOPROTOOPT),
    NAMED(EPROTONOSUPPORT),
    NAMED(ESOCKTNOSUPPORT),
    NAMED(EOPNOTSUPP),
    NAMED(EPFNOSUPPORT),
    NAMED(EAFNOSUPPORT),
    NAMED(EADDRINUSE),
    NAMED(EADDRNOTAVAIL),
    NAMED(ENETDOWN),
    NAMED(ENETUNREACH),
    NAMED(ENETRESET),
    NAMED(ECONNABORTED),
    NAMED(ECONNRESET),
    NAMED(ENOBUFS),
    NAMED(EISCONN),
    NAMED(ENOTCONN),
    NAMED(ESHUTDOWN),
    NAMED(ETOOMANYREFS),
    NAMED(ETIMEDOUT),
    NAMED(ECONNREFUSED),
    NAMED(EHOSTDOWN),
    NAMED(EHOSTUNREACH),
    NAMED(EALREADY),
    NAMED(EINPROGRESS),
    NAMED(ESTALE),
    NAMED(EUCLEAN),
    NAMED(ENOTNAM),
    NAMED(ENAVAIL),
    NAMED(EISNAM),
    NAMED(EREMOTEIO),
    NAMED(EDQUOT),
    NAMED(ENOMEDIUM),
    NAMED(EMEDIUMTYPE),
    NAMED(ECANCELED),
    NAMED(ENOKEY),
    NAMED(EKEYEXPIRED),
    NAMED(EKEYREVOKED),
    NAMED(EKEYREJECTED),
    NAMED(EOWNERDEAD),
    NAMED(ENOTRECOVERABLE),
    NAMED(ERFKILL),
    NAMED(EHWPOISON),
};

const char *errno_name(int code)
{
    return code > 0 && (size_t)code < sizeof(errors) / sizeof(*errors) ? errors[code] : NULL;
}
