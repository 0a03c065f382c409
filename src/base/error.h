/* SPDX-License-Identifier: MIT */
/*
 * Errors as values.
 *
 * A function that can fail returns 0 or a negative errno and describes the failure in a
 * struct error that the caller placed.  Each caller may wrap the message outwards, so that a
 * person reads "opening counters: cycles: no hardware PMU on this machine; try --sim".
 * Library code never prints and never exits: main() prints the message once.
 */
#ifndef ASSAY_BASE_ERROR_H
#define ASSAY_BASE_ERROR_H

struct error {
    int code;           /* the negative errno that was returned, 0 when nothing failed */
    int exit_code;      /* that a verb ends with in the place of its own; 0 for none */
    char message[1024]; /* always terminated; cut in its middle when too long */
};

/* Sets the message and returns code, so that "return error_set(err, -EINVAL, ...)" reads well.
 * err may be NULL: the caller then wants the code only. */
int error_set(struct error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As error_set, with ": " and the system's words for the errno behind the message. */
int error_errno(struct error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "context: " in front of the message that is there and returns code. */
int error_wrap(struct error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A failure that has an exit code of its own: error_set and error_errno forget it, error_wrap keeps
 * it.  Returns code, so that "return error_end_with(err, 111, error_set(err, …))" reads well. */
int error_end_with(struct error *err, int exit_code, int code);

/* "ENOENT"; NULL for a number without a name. */
const char *errno_name(int code);

#endif
