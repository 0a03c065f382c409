/* SPDX-License-Identifier: MIT */
/* The terminal: its width, whether colour is wanted, and one line of progress. */
#ifndef ASSAY_BASE_TERM_H
#define ASSAY_BASE_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* TERM is not set, empty or "dumb": nothing but plain lines may be written. */
bool term_is_dumb(void);
/* Colour only on a terminal, and not when NO_COLOR is set or TERM is dumb or
 * empty. */
bool term_has_colour(int fd);
/* A terminal whose locale is UTF-8. */
bool term_has_utf8(int fd);
/* The width in columns; 80 where the descriptor is no terminal. */
size_t term_columns(int fd);

/*
 * A line on standard error that is written over again.  Nothing appears unless standard error is
 * a terminal that is not dumb and two seconds have passed since progress_start; progress_end wipes
 * it.  Elsewhere, what takes hours may write a line a minute, for a log.
 */
struct progress {
    uint64_t start_ns;
    uint64_t shown_ns; /* when the line was last drawn, 0 for never */
    bool enabled;
    const char *log_as; /* who says so in a log, as "assay run"; NULL: nothing goes to one */
};

void progress_start(struct progress *p);
void progress_show(struct progress *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void progress_end(struct progress *p);

#endif
