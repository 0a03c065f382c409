/* SPDX-License-Identifier: MIT */
/*
 * Which functions of two builds are the same one, where symbols do not tell?
 *
 * First come those that have a name on both sides, then those whose code is the same but for
 * addresses, then those that a function and its twin call at the same place, and then those that
 * stand between the same two neighbours and are alike.  Each step finds more for the next round.
 * What is left has no twin: it was added, removed, or changed beyond recognition.
 */
#ifndef ASSAY_PROFILE_CODE_TWINS_H
#define ASSAY_PROFILE_CODE_TWINS_H

#include "profile/code/fingerprint.h"
#include "symbols/symbols.h"

#define TWINS_NONE UINT32_MAX

struct twin {
    const struct function *function;
    uint64_t address; /* as objdump counts */
    struct fingerprint print;
    uint32_t partner; /* number in the other side's list, or TWINS_NONE */
    uint32_t pair;    /* the same number for both partners, from 1 */
};

struct twins {
    struct twin *items[2]; /* by address */
    size_t counts[2], capacities[2];
    uint32_t pair_count;
};

/* -ENOTSUP when code cannot be compared here, -E2BIG when there is too much of it: then nobody has
 * a partner. */
int twins_find(struct twins *t, struct module *const modules[2], const char *arch,
               struct error *err);
void twins_done(struct twins *t);

/* The function of a side that starts there, as functions count; TWINS_NONE. */
uint32_t twins_at(const struct twins *t, unsigned side, uint64_t start);

#endif
