/* SPDX-License-Identifier: MIT */
/*
 * Counting the system calls of a task, exactly, between its first and its last operation.
 *
 * One tracepoint event (raw_syscalls:sys_enter) for each call that a test may make, told apart by
 * a filter in the kernel, and one for all.  The ioctl that ends the counting is left out.
 */
#ifndef SCALE_CALLS_H
#define SCALE_CALLS_H

#include "base/error.h"
#include "stage.h"

#include <stdbool.h>

struct calls;

/* For the calling thread; it is not inherited by what the task starts. */
int calls_open(struct calls **ret_calls, struct error *err);
void calls_enable(struct calls *c);
void calls_disable(struct calls *c);
int calls_read(struct calls *c, uint64_t counts[CALLS_MAX], struct error *err);
void calls_close(struct calls *c);

/* The calls that are told apart: "read", …; NULL behind the last.  Index 0 is "other". */
const char *calls_name(unsigned index);

/* What a test announces (see scale.h) for a call: once in so many operations, 0 for never; may_be:
 * allowed in any number.  Names are those of calls_name, or their old forms (poll for ppoll). */
unsigned calls_announced(const char *announced, unsigned index, bool *ret_may_be);
/* The number of operations after which all that is announced has happened a whole number of times,
 * and some thousand times at least. */
uint64_t calls_whole_ops(const char *announced);
/* Whether the counts are those announced for so many operations; else words on the first that is
 * not. */
bool calls_match(const char *announced, const uint64_t counts[CALLS_MAX], uint64_t ops,
                 struct error *ret_difference);

#endif
