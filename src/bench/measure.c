/* SPDX-License-Identifier: MIT */
/* See measure.h. */
#include "base/memory.h"
#include "base/process.h"
#include "bench/measure_internal.h"
#include "numbers/order.h"

#include <errno.h>
#include <math.h>

enum { OVERHEAD_ROUNDS = 8, EMPTY_LOOPS = 6, EMPTY_LOOKS = 4 };

/* ---- one round ---- */

static void keep(struct bench_result *r, const struct bench_sample *s, size_t side, size_t round,
                 size_t position)
{
    double n = (double)s->iterations;
    struct bench_kept kept = {.ns = s->wall_ns / n,
                              .cpu_ns = s->cpu_ns / n,
                              .round = (uint32_t)round,
                              .position = (uint16_t)position,
                              .side = (uint8_t)side,
                              .disturbed = s->involuntary > 0 || s->migrated,
                              .minor_faults = (uint32_t)s->minor_faults,
                              .major_faults = (uint32_t)s->major_faults,
                              .voluntary = (uint32_t)s->voluntary,
                              .involuntary = (uint32_t)s->involuntary,
                              .migrated = s->migrated};
    for (size_t i = 0; i < s->counter_count; i++)
        kept.counters[i] = s->counters[i] / n;
    ARRAY_PUSH(r->samples, r->sample_count, r->sample_capacity) = kept;
}

/* After the other process ran, caches and predictors are its own: some iterations go by untimed. */
static uint64_t warm_iterations(struct bench *b, size_t index, size_t side, size_t position)
{
    const struct bench_result *r = &b->results->items[index];
    double cost = *bench_full_cost(b, index, side);
    double count = fmax(REWARM_NS / fmax(cost, 1e-6), *bench_cost(b, index, side) < REWARM_NS);
    uint64_t again = (uint64_t)fmin(count, (double)r->iterations);
    if (position == 0)
        return r->sides[side].warmup * r->iterations + again;
    return b->plan->side_count > 1 ? again : 0;
}

/* Batches in turn: old new, new old, … */
static bool take_turns(struct bench *b, size_t index, size_t round, int *ret_code)
{
    struct bench_result *r = &b->results->items[index];
    size_t sides = b->plan->side_count, flip = round_first_of_two(b->plan->seed + index, round);
    for (size_t k = 0; k < r->samples_a_round; k++)
        for (size_t turn = 0; turn < sides; turn++) {
            size_t side = sides > 1 ? turn ^ ((k + flip) & 1) : 0;
            struct bench_sample s;
            if (!bench_batch(b, index, side, warm_iterations(b, index, side, k), r->iterations, &s,
                             ret_code))
                return false;
            keep(r, &s, side, round, k * sides + turn);
        }
    return true;
}

/* Times an empty loop right after a case that is about as quick: what slows the CPU for a while
 * slows both. */
static void look_whether_empty(struct bench *b, size_t index, size_t first_sample)
{
    struct bench_result *r = &b->results->items[index];
    for (size_t side = 0; side < b->plan->side_count; side++) {
        double least = INFINITY, loop_ns, clock_ns;
        for (size_t i = first_sample; i < r->sample_count; i++)
            if (r->samples[i].side == side)
                least = fmin(least, r->samples[i].ns);
        double empty = INFINITY;
        for (int i = 0; i < EMPTY_LOOKS && least <= EMPTY_LOOPS * b->results->loop_ns; i++)
            if (bench_worker_overhead(&b->workers[side], &loop_ns, &clock_ns, NULL) == 0)
                empty = fmin(empty, loop_ns);
        if (!isfinite(empty))
            continue;
        struct bench_side *s = &r->sides[side];
        b->results->loop_ns = fmin(b->results->loop_ns, empty);
        s->least_ns = s->least_ns > 0 ? fmin(s->least_ns, least) : least;
        s->empty_ns = s->empty_ns > 0 ? fmin(s->empty_ns, empty) : empty;
    }
}

/* One case in both processes.  A negative errno is assay's own trouble. */
static int run_case(struct bench *b, size_t index, size_t round, struct error *err)
{
    struct bench_result *r = &b->results->items[index];
    size_t kept = r->sample_count;
    int code = 0, started = bench_start_workers(b, err);
    bool fine = started == 0;
    if (started < 0)
        return started;
    size_t first = (size_t)rng_below(&b->rng, b->plan->side_count);
    for (size_t i = 0; i < b->plan->side_count && fine; i++)
        fine = bench_call_case(b, index, (first + i) % b->plan->side_count, &code);
    fine = fine && take_turns(b, index, round, &code);
    uint32_t khz = fine ? bench_cpu_khz(b->plan->start.cpu) : 0;
    for (size_t i = kept; i < r->sample_count; i++)
        r->samples[i].khz = khz;
    for (size_t side = 0; side < b->plan->side_count && fine; side++)
        fine = bench_finish_case(b, index, side, &code);
    if (fine) {
        r->round_count++;
        look_whether_empty(b, index, kept);
        return 0;
    }
    r->sample_count = kept; /* a round is whole or not there */
    bench_stop_workers(b);
    return code == -EINTR ? error_set(err, code, "interrupted") : 0;
}

static int run_round(struct bench *b, size_t round, size_t *order, struct error *err)
{
    double loop_ns, clock_ns;
    bench_stop_workers(b);
    b->round = round;
    int r = bench_start_workers(b, err);
    if (r == 0 && round < OVERHEAD_ROUNDS &&
        bench_worker_overhead(&b->workers[0], &loop_ns, &clock_ns, NULL) == 0)
        b->results->loop_ns = fmin(b->results->loop_ns, loop_ns);
    round_order(b->plan->seed, round, order, b->results->count);
    for (size_t i = 0; r == 0 && i < b->results->count; i++) {
        if (!bench_is_alive(b, order[i]))
            continue;
        if (b->plan->on_progress) {
            double total = (double)b->plan->time_ns * (double)b->results->count;
            double share = b->plan->rounds ? (double)round / (double)b->plan->rounds
                                           : (double)(clock_now_ns() - b->started_ns) / total;
            b->plan->on_progress(round, share, b->plan->cases->items[order[i]].label,
                                 b->plan->context);
        }
        r = run_case(b, order[i], round, err);
    }
    return r;
}

static bool is_enough(const struct bench *b, size_t rounds)
{
    size_t alive = 0;
    for (size_t i = 0; i < b->results->count; i++)
        alive += bench_is_alive(b, i);
    if (!alive)
        return true;
    if (b->plan->rounds)
        return rounds >= b->plan->rounds;
    return rounds >= BENCH_ROUNDS_MIN &&
           clock_now_ns() - b->started_ns >= b->plan->time_ns * b->results->count;
}

static int measure(struct bench *b, struct error *err)
{
    CLEANUP(memory_freep) size_t *order = memory_zalloc(b->results->count + 1, sizeof(*order));
    for (size_t i = 0; i < b->results->count; i++)
        order[i] = i;
    int r = bench_calibrate(b, err);
    for (size_t round = 0; r == 0 && !is_enough(b, round); round++) {
        r = run_round(b, round, order, err);
        b->results->round_count = r == 0 ? round + 1 : round;
    }
    return r;
}

/* An empty loop that was slowed down whenever it was looked at accuses nobody. */
static void settle_empty(struct bench_results *results)
{
    for (size_t i = 0; i < results->count; i++)
        for (size_t side = 0; side < results->side_count; side++) {
            double *empty = &results->items[i].sides[side].empty_ns;
            *empty = fmin(*empty, results->loop_ns);
        }
}

int bench_measure(const struct bench_plan *plan, struct bench_results *results, struct error *err)
{
    size_t count = plan->cases->count;
    struct bench b = {
        .plan = plan, .results = results, .started_ns = clock_now_ns(), .round = BENCH_NO_ROUND};
    *results = (struct bench_results){.items = memory_zalloc(count + 1, sizeof(*results->items)),
                                      .count = count,
                                      .side_count = plan->side_count,
                                      .cpu = plan->start.cpu};
    b.costs = memory_zalloc(count * BENCH_SIDES_MAX + 1, sizeof(*b.costs));
    b.full_costs = memory_zalloc(count * BENCH_SIDES_MAX + 1, sizeof(*b.full_costs));
    rng_seed(&b.rng, plan->seed);
    process_signals_catch();
    int r = measure(&b, err);
    settle_empty(results);
    results->signal = process_signals_caught();
    bench_stop_workers(&b);
    process_signals_restore();
    results->elapsed_ns = clock_now_ns() - b.started_ns;
    free(b.costs);
    free(b.full_costs);
    return r == -EINTR && results->signal ? 0 : r;
}

void bench_results_done(struct bench_results *r)
{
    for (size_t i = 0; i < r->count; i++) {
        for (size_t side = 0; side < BENCH_SIDES_MAX; side++) {
            free(r->items[i].sides[side].failed);
            free(r->items[i].sides[side].skipped);
            bench_said_done(&r->items[i].sides[side].said);
        }
        free(r->items[i].samples);
    }
    free(r->items);
    *r = (struct bench_results){0};
}
