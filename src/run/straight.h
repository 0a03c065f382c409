/* SPDX-License-Identifier: MIT */
/*
 * Whether a command never waits: it runs in one thread and leaves the CPU of its own will at its
 * end only.  Such a command takes as long as its CPU time, plus what others took from it, so that
 * on a busy machine CPU time says the same with less noise.  The runs are looked at for whether
 * they wait, not for how long they take: who chooses by this cannot favour a result.
 */
#ifndef ASSAY_RUN_STRAIGHT_H
#define ASSAY_RUN_STRAIGHT_H

#include <stdbool.h>
#include <stddef.h>

/* Begins with {0}. */
struct straight {
    size_t run_count, straight_count;
    bool in_threads; /* some run used more than one CPU */
};

static inline void straight_note(struct straight *s, double cpu_ns, double wall_ns,
                                 double voluntary_switches)
{
    s->run_count++;
    s->straight_count += voluntary_switches <= 1;
    s->in_threads |= cpu_ns > 1.02 * wall_ns;
}

/* Most of its runs did not wait. */
static inline bool straight_never_waits(const struct straight *s)
{
    return !s->in_threads && 2 * s->straight_count > s->run_count;
}

#endif
