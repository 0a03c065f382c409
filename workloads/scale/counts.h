/* SPDX-License-Identifier: MIT */
/* How many tasks: what -t means on a machine with so many CPUs. */
#ifndef SCALE_COUNTS_H
#define SCALE_COUNTS_H

#include "base/error.h"

#include <stddef.h>

struct counts {
    unsigned *items; /* ascending, each once */
    size_t count, capacity;
};

/*
 * "4", "50%" and "100%" of the CPUs (at least one), "N" for all of them, "1..8" and "1..N" for
 * every number between, and lists of these: "1,2,50%,N".  A count above most is refused.
 */
int counts_parse(const char *text, unsigned cpu_count, unsigned most, struct counts *ret_counts,
                 struct error *err);
void counts_done(struct counts *c);

#endif
