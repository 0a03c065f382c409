/* SPDX-License-Identifier: MIT */
/*
 * What is searched for when nobody said: wall time, or CPU time where that is the same with less
 * noise.  A command that runs in one thread and never waits takes as long as its CPU time, plus
 * whatever others took from it; on a busy machine that is most of the noise, and none of it is the
 * commit's.  So some rounds of both ends are looked at for whether they wait, not for how long
 * they take: the choice cannot favour a result.
 */
#include "base/memory.h"
#include "bisect/bisect_internal.h"
#include "run/metrics.h"
#include "run/straight.h"

#include <errno.h>

enum { PILOT_ROUNDS = 5 };

/* Of a run's time: a round in which the host took more than this from a run is made again. */
#define STEAL_SHARE 0.02

static bool never_waits(const struct rounds *r, size_t contestant)
{
    struct straight straight = {0};
    for (size_t i = 0; i < r->count; i++) {
        const struct run_record *run = &r->items[i].runs[contestant];
        straight_note(&straight, (double)(run->user_ns + run->sys_ns), (double)run->wall_ns,
                      (double)run->voluntary_switches);
    }
    return straight_never_waits(&straight);
}

int bisect_choose_metric(struct bisect *b, const struct rounds_spec *like, struct error *err)
{
    struct rounds_spec spec = *like;
    struct rounds rounds;
    spec.rounds_min = spec.rounds_max = PILOT_ROUNDS;
    int r = rounds_run(&spec, &rounds, err);
    /* Commands that fail do so again in the first round, where it is told. */
    bool cpu = r == 0 && rounds.end == ROUNDS_DONE;
    for (size_t i = 0; i < rounds.contestant_count && cpu; i++)
        cpu = never_waits(&rounds, i);
    bool stopped = r == 0 && rounds.signal;
    rounds_done(&rounds);
    if (stopped)
        return error_set(err, -EINTR, "stopped");
    free(b->settings.metric);
    b->settings.metric = memory_strdup(cpu ? "cpu" : "wall");
    b->metric_chosen = true;
    return 0;
}

bool bisect_counts_in_machine(const struct bisect *b)
{
    return str_has_prefix(b->settings.metric, METRICS_OF_MACHINE);
}

const char *bisect_only(const struct bisect *b)
{
    if (bisect_counts_in_machine(b))
        return METRICS_OF_MACHINE;
    if (!*b->settings.exact)
        return NULL;
    return str_has_prefix(b->settings.metric, "sim:") ? "sim:" : "exact:";
}

bool bisect_was_stolen(const struct rounds *r)
{
    for (size_t i = 0; i < r->count; i++)
        for (size_t k = 0; k < r->contestant_count; k++) {
            const struct run_record *run = &r->items[i].runs[k];
            if (run->disturbance.stalled_ns ||
                (double)run->disturbance.steal_ns > STEAL_SHARE * (double)run->wall_ns)
                return true;
        }
    return false;
}
