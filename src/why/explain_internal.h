/* SPDX-License-Identifier: MIT */
/* What the files of explain share. */
#ifndef ASSAY_WHY_EXPLAIN_INTERNAL_H
#define ASSAY_WHY_EXPLAIN_INTERNAL_H

#include "counters/event.h"
#include "counters/simulated.h"
#include "timeline/timeline.h"
#include "why/explain.h"
#include "why/explain_parts.h"

/* Events counted in some runs of both sides. */
struct explain_counts {
    struct event_list events;
    size_t rounds;
    double *values[SIDE_COUNT]; /* [event × rounds + round], per unit of work; NAN: not counted */
    double work[SIDE_COUNT];    /* of a run */
    /* Of functions, per run; a side that does not have one has zeros. */
    struct explain_simulated {
        char *function;
        struct simulated_function values[SIDE_COUNT];
    } * simulated;
    size_t simulated_count, simulated_capacity;
};

/* Faults, migrations, hardware events, and the system calls that the profiles show. */
void explain_choose_counts(struct explain_counts *c, const struct parts *parts);
void explain_counts_done(struct explain_counts *c);
/* The median of an event's counts on a side; NAN when it was not counted. */
double explain_count(const struct explain_counts *c, const char *event, unsigned side);

/* Caches and branches by cachegrind, unless the machine counts them; adds facts. */
void explain_simulate(struct explain *e, const struct explain_runs *runs, struct explain_counts *c,
                      uint64_t timeout_ns);

/* Whether the profiled runs show what the measured ones do, or a change of waits: sets the outcome.
 */
void explain_confirm(struct explain *e, const struct parts *parts);

/* Whether threads wait longer on one side than the profiles can explain: then one run of that side,
 * with every wake-up traced, finds the functions in which threads wait while nothing waits for
 * them, and those in which a thread waits for another until its time limit. */
void explain_look_at_waits(struct parts_waits *found, const struct explain *e,
                           const struct explain_settings *settings, const struct explain_runs *runs,
                           const struct parts *parts);
void parts_waits_done(struct parts_waits *waits);

/* One run of a side with every wake-up traced; negative where it cannot be traced. */
int explain_trace(const struct explain *e, const struct explain_settings *settings,
                  const struct explain_runs *runs, unsigned side, struct timeline *t,
                  struct profile **ret_profile);

/* Who ended the waits that are among the reasons, by one traced run: adds it to their evidence. */
void explain_find_wakers(struct explain *e, const struct explain_settings *settings,
                         const struct explain_runs *runs);

/* "called by Square::area, from main, …": who is between a part and a caller that has no call of
 * it. False, and nothing put, where that is not known. */
bool explain_put_jumps(struct strbuf *out, const struct explain *e, const struct parts *parts,
                       const struct part *part, const char *caller);

/* Which programs the change of CPU time is in, where the command starts others. */
void explain_find_programs(struct explain *e, const struct attribution *cpu);
/* After the reasons. */
void explain_find_owners(struct explain *e, const struct parts *parts,
                         const struct attribution *cpu);

/* Reasons and facts from all that is known. */
void explain_conclude(struct explain *e, struct parts *parts, const struct explain_counts *counts);

#endif
