/* SPDX-License-Identifier: MIT */
/* What the files of measure.h share. */
#ifndef ASSAY_BENCH_MEASURE_INTERNAL_H
#define ASSAY_BENCH_MEASURE_INTERNAL_H

#include "base/clock.h"
#include "bench/measure.h"
#include "numbers/random.h"

/* How long a sample of the slower version takes: 4000 times as long as a look at the clock, and so
 * short that ticks of the kernel and of a host, each millisecond or less often, hit few of them. */
#define SAMPLE_NS (100.0 * NS_PER_US)
#define REWARM_NS (40.0 * NS_PER_US) /* untimed, after the other version had the CPU */

#define BENCH_NO_ROUND SIZE_MAX

struct bench {
    const struct bench_plan *plan;
    struct bench_results *results;
    struct bench_worker workers[BENCH_SIDES_MAX];
    struct rng rng;
    uint64_t started_ns;
    size_t round; /* of whose layout the processes are; BENCH_NO_ROUND while calibrating */
    /* Of each case and side: one iteration, roughly, in ns; and with what is not timed of it, such
     * as the set-up before each. */
    double *costs, *full_costs;
};

static inline double *bench_cost(struct bench *b, size_t index, size_t side)
{
    return &b->costs[index * BENCH_SIDES_MAX + side];
}

static inline double *bench_full_cost(struct bench *b, size_t index, size_t side)
{
    return &b->full_costs[index * BENCH_SIDES_MAX + side];
}

/* Starts the processes that are not there; fails when a program does not start at all. */
int bench_start_workers(struct bench *b, struct error *err);
void bench_stop_workers(struct bench *b);
/* Calls the case in one process, up to its loop.  False when it was skipped or failed, which is
 * then noted; a failure that is assay's (a signal) is in *ret_code. */
bool bench_call_case(struct bench *b, size_t index, size_t side, int *ret_code);
/* Lets it go on for a batch; the same. */
bool bench_batch(struct bench *b, size_t index, size_t side, uint64_t warm, uint64_t iterations,
                 struct bench_sample *ret_sample, int *ret_code);
bool bench_finish_case(struct bench *b, size_t index, size_t side, int *ret_code);
/* Whether the case is still measured: no version failed or left it out. */
bool bench_is_alive(const struct bench *b, size_t index);

/* Finds iterations, warm-up and samples a round of every case. */
int bench_calibrate(struct bench *b, struct error *err);

#endif
