/* SPDX-License-Identifier: MIT */
/*
 * Jobs that do not depend on each other, divided among threads.  Not for use beside a measurement:
 * events are inherited by threads, and their work competes for processors.
 */
#ifndef ASSAY_BASE_PARALLEL_H
#define ASSAY_BASE_PARALLEL_H

#include <stddef.h>

#define PARALLEL_WIDTH_MAX 64

/* How many threads this process may really run at once, from 1 to PARALLEL_WIDTH_MAX. */
size_t parallel_width(void);

/* Calls the job once for each index below count, and returns when all are done.  `width` is how
 * many threads take part, the caller's included; jobs are told which of these runs them.  Where no
 * further thread can be had, the caller does the work. */
void parallel_each(size_t count, size_t width, void (*job)(void *context, size_t index, size_t who),
                   void *context);

#endif
