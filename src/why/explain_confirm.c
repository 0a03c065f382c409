/* SPDX-License-Identifier: MIT */
/*
 * Is there something to explain?  The measured runs say whether CPU or wall time changed, once in
 * twenty by chance alone.  The profiled runs are others, in rounds of their own: what they do not
 * confirm is not explained.  And they know what no clock tells on a busy machine: how long the
 * program itself waited.
 */
#include "base/memory.h"
#include "numbers/distributions.h"
#include "why/explain_internal.h"

#include <math.h>

/* What the profiles show has to be a part of what was measured: 0.1 ms of CPU time, whatever its
 * sign, does not explain 300 ms of waiting. */
#define SHARE_LEAST 0.1
/* So small a p-value of the measured runs needs no certainty of the profiled ones as well, if these
 * show the same direction and more of the size. */
#define P_PLAIN 0.002
#define SHARE_LEAST_PLAIN 0.25
/* Waits are looked at when nothing else changed: a second look has to be surer than the first. */
#define WAITS_TIMES 2.0
#define WAITS_LEAST_SHARE 0.01

static bool is_cpu(const struct part *p)
{
    return !p->is_wait;
}

static bool is_own_cost(const struct part *p)
{
    return !p->is_wait || part_is_own_wait(p);
}

static double run_cost(const struct parts *p, const struct profile_loads *loads, unsigned side,
                       size_t run, bool (*counts)(const struct part *))
{
    double sum = counts == is_cpu || counts == is_own_cost ? p->cpu_weights[side][run] : 0;
    for (size_t i = 0; i < p->count; i++)
        if (p->items[i].is_wait && counts(&p->items[i]))
            sum += p->items[i].weights[side][run];
    return sum / loads->runs[side][run].work;
}

/* The change within the profiled rounds, as the profiles have it. */
static struct attributed change_within_rounds(const struct parts *p,
                                              const struct profile_loads *loads,
                                              bool (*counts)(const struct part *))
{
    size_t rounds = p->run_counts[SIDE_A] < p->run_counts[SIDE_B] ? p->run_counts[SIDE_A]
                                                                  : p->run_counts[SIDE_B];
    struct attributed found = {.half_width = NAN, .share = NAN};
    double n = (double)rounds, squares = 0;
    for (size_t run = 0; run < rounds; run++) {
        found.a += run_cost(p, loads, SIDE_A, run, counts) / n;
        found.b += run_cost(p, loads, SIDE_B, run, counts) / n;
    }
    found.change = found.b - found.a;
    for (size_t run = 0; run < rounds; run++) {
        double off = run_cost(p, loads, SIDE_B, run, counts) -
                     run_cost(p, loads, SIDE_A, run, counts) - found.change;
        squares += off * off;
    }
    if (rounds > 1)
        found.half_width = dist_t_quantile(0.975, n - 1) * sqrt(squares / (n - 1) / n);
    found.significant = fabs(found.change) > found.half_width;
    return found;
}

static int direction(const struct verdict *verdict)
{
    return (verdict->kind == VERDICT_WORSE) - (verdict->kind == VERDICT_BETTER);
}

/* Two profiled rounds have hardly an interval: then direction and size have to do. */
static bool agrees(const struct attributed *profiled, const struct verdict *verdict,
                   const struct comparison *c)
{
    double way = direction(verdict), measured = fabs(c->new_median - c->base_median);
    double least = profiled->significant ? SHARE_LEAST
                   : c->p < P_PLAIN      ? SHARE_LEAST_PLAIN
                                         : INFINITY;
    return way * profiled->change > 0 && way * profiled->change >= least * measured;
}

static bool waits_moved(const struct explain *e, const struct attributed *waits)
{
    const struct comparison *wall = &e->measured.wall_comparison;
    double typical = e->measured.wall[SIDE_A] ? fmin(wall->base_median, wall->new_median) : 0;
    return e->has_waits && fabs(waits->change) > WAITS_TIMES * waits->half_width &&
           fabs(waits->change) > WAITS_LEAST_SHARE * typical;
}

void explain_confirm(struct explain *e, const struct parts *parts)
{
    const struct explain_measured *m = &e->measured;
    struct attributed cpu = change_within_rounds(parts, &e->loads, is_cpu);
    struct attributed waits = change_within_rounds(parts, &e->loads, part_is_own_wait);
    struct attributed both = change_within_rounds(parts, &e->loads, is_own_cost);
    bool cpu_moved = verdict_is_difference(&m->cpu_verdict);
    e->others = change_within_rounds(parts, &e->loads, part_is_others);
    e->own_peers = change_within_rounds(parts, &e->loads, part_is_peers);
    e->profiled_change = cpu_moved ? cpu : both;
    e->waits_moved = waits_moved(e, &waits);
    bool confirmed = agrees(&cpu, &m->cpu_verdict, &m->cpu_comparison) ||
                     (m->wall[SIDE_A] && agrees(&both, &m->wall_verdict, &m->wall_comparison));
    if (confirmed || e->waits_moved)
        e->outcome = EXPLAIN_EXPLAINED;
    else
        e->outcome = m->moved ? EXPLAIN_UNCONFIRMED : EXPLAIN_SAME;
}
