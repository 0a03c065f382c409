/* SPDX-License-Identifier: MIT */
/*
 * What is done with a model, a group of scenarios of one name: it must hold, in a strong and in a
 * weak memory, and by chance; and each ordering that it uses is taken away, one at a time, to see
 * whether a search of some scenario fails then (chance does not count).  When all models have been
 * run, every ordering that stands in the queues' sources must have been used by one and been seen
 * to be needed.  There are no exceptions.
 *
 * QUEUE_DEEP=1 searches deeper, for some minutes; QUEUE_ONLY=spsc,mpmc some models alone,
 * QUEUE_HOLDS=1 without weakening; QUEUE_VERBOSE=1 shows how each weakened ordering fails;
 * QUEUE_SITE=reclaim_ weakens only in functions whose names begin so.
 */
#ifndef ASSAY_TESTS_QUEUE_WEAKEN_H
#define ASSAY_TESTS_QUEUE_WEAKEN_H

#include "explore.h"

#define WEAKEN_STATES_MAX 60000000

/* The model `name` of the scenarios; the last ones are tried first. */
void weaken_check(const struct explore_scenario *scenarios, size_t count, const char *name);
/* Only that it holds, and only when QUEUE_ONLY names it: for what takes minutes. */
void weaken_check_long(const struct explore_scenario *scenarios, size_t count, const char *name);

#endif
