/* SPDX-License-Identifier: MIT */
/*
 * The names by which reasons call functions: one for both sides, with what tells that it changed.
 *
 * A function that only one side has may stand where another stood: the same callers call it, and it
 * calls the same functions.  Those two are one place, "b in place of a", whether b is a's new name
 * or does its work in another way.
 */
#ifndef ASSAY_WHY_EXPLAIN_NAMES_H
#define ASSAY_WHY_EXPLAIN_NAMES_H

#include "analysis/profiles.h"

struct explain_names {
    const struct diff *diff;
    char **labels;    /* of each item of the match */
    uint32_t *places; /* the item that stands for it: itself, or the base's of two */
    size_t count;
};

void explain_names_init(struct explain_names *n, const struct profile_loads *loads,
                        const struct diff *diff);
void explain_names_done(struct explain_names *n);

/* The name of a symbol of a side's run; NULL where it has none. */
const char *explain_name(const struct explain_names *n, unsigned side, size_t run, uint32_t symbol);

/* The system call of a function of the C library that does nothing but make it; else NULL. */
const char *explain_wrapped_call(const char *name);

#endif
