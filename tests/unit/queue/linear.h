/* SPDX-License-Identifier: MIT */
/*
 * Linearizability of histories of a queue: is there an order of the operations that respects which
 * came before which, and in which each does what a queue does?
 *
 * linear_check      exact, for short histories: tries the orders, remembering what it has seen
 *                   (Wing & Gong 1993, Lowe 2017).
 * linear_check_long for recorded histories of any length with distinct values: looks for the four
 *                   ways in which a history of a queue can be wrong (Henzinger, Sezgin, Vafeiadis,
 *                   CONCUR 2013): a value out of nothing, a value twice, two values in the wrong
 *                   order, and empty when it was not.  It needs times.
 */
#ifndef ASSAY_TESTS_QUEUE_LINEAR_H
#define ASSAY_TESTS_QUEUE_LINEAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINEAR_THREADS 8
#define LINEAR_FAILED 0 /* the value of a pop that found nothing or a push that found no room */

struct linear_operation {
    unsigned thread, index; /* the index-th of its thread */
    bool is_push, failed;
    uint64_t value;                       /* distinct for pushes, not 0 */
    unsigned char before[LINEAR_THREADS]; /* that many operations of each thread came before */
    uint64_t start, end;                  /* times, for the long check and linear_order */
};

/* Sets `before` of all by their times. */
void linear_order(struct linear_operation *operations, size_t count);
/* capacity 0: unbounded.  At most 64 operations. */
bool linear_check(const struct linear_operation *operations, size_t count, uint64_t capacity);
/* The same of those that succeeded with each failed one by itself. */
bool linear_check_apart(const struct linear_operation *operations, size_t count, uint64_t capacity);
/* The operations in words, as many as there is room for; returns `text`. */
const char *linear_describe(const struct linear_operation *operations, size_t count, char *text,
                            size_t size);
/* NULL when nothing is wrong, else what, in a static text.  Sorts the operations. */
const char *linear_check_long(struct linear_operation *operations, size_t count);

#endif
