/* SPDX-License-Identifier: MIT */
/*
 * Measuring benchmarks, of one version or of two side by side.
 *
 * In each round every version gets a new process, so that addresses (stack, heap, libraries, the
 * pages behind them) are drawn anew and no lucky layout decides.  In a round each benchmark, in
 * shuffled order, is called once in each process; both wait in their loops, and assay lets them do
 * one batch after the other on the same core: old new, new old, old new, …  A round gives one value
 * for each version (pairs.c); rounds are what the judge compares.
 *
 * How many iterations make a sample, how long it takes until samples are steady (the warm-up), and
 * how many samples make a round is found out first, with both versions, and the same for both.
 */
#ifndef ASSAY_BENCH_MEASURE_H
#define ASSAY_BENCH_MEASURE_H

#include "bench/cases.h"

enum { BENCH_ROUNDS_MIN = 10, BENCH_SIDES_MAX = 2 };

struct bench_plan {
    const struct bench_target *targets[BENCH_SIDES_MAX];
    size_t side_count;
    const struct bench_cases *cases;
    struct bench_start start;           /* cpu is where single threads run */
    bool one_process;                   /* both versions, which are shared objects */
    uint64_t time_ns;                   /* for each benchmark */
    uint64_t rounds;                    /* exactly so many; 0: as the time allows */
    const struct bench_target *layouts; /* for round k from k * BENCH_SIDES_MAX on; NULL: targets */
    uint64_t seed;
    void (*on_progress)(size_t done, double share, const char *label, void *context);
    void *context;
};

/* A sample of a case, as it is kept. */
struct bench_kept {
    double ns, cpu_ns; /* of one iteration */
    uint32_t round;
    uint16_t position; /* within the round */
    uint8_t side;
    bool disturbed; /* the kernel took the CPU away meanwhile, or moved the thread */
    uint32_t minor_faults, major_faults, voluntary, involuntary;
    bool migrated;
    uint32_t khz;                        /* of the CPU, right after the round; 0: not known */
    double counters[BENCH_COUNTERS_MAX]; /* of one iteration */
};

/* One case of one version. */
struct bench_side {
    char *failed, *skipped; /* why; NULL for neither */
    struct bench_said said; /* of the first round */
    double setup_ns;        /* the call without its loop */
    uint64_t warmup;        /* samples until they are steady */
    bool still_warming;     /* they never were */
    bool by_call;           /* timed one by one */
    /* The least of the samples that were about as quick as an empty loop, and of empty loops that
     * ran right after them; 0: there were none. */
    double least_ns, empty_ns;
    bool has_instructions, has_allocations; /* they were counted (passes.h), of one iteration: */
    double instructions, allocations, allocated_bytes;
};

struct bench_result {
    uint64_t iterations;    /* of a sample; 0: there is none */
    size_t samples_a_round; /* of each version */
    size_t round_count;
    struct bench_side sides[BENCH_SIDES_MAX];
    struct bench_kept *samples;
    size_t sample_count, sample_capacity;
};

struct bench_results {
    struct bench_result *items; /* one for each case */
    size_t count, side_count;
    size_t round_count;
    uint64_t elapsed_ns;
    double loop_ns, clock_ns; /* an empty iteration, and a look at the clock */
    double start_ns;          /* until a process answers */
    int cpu;
    int signal; /* that ended it; 0 for none */
};

/* Fails only when nothing could be measured at all: a benchmark that fails is a result.  The
 * results are to be given to bench_results_done in any case. */
int bench_measure(const struct bench_plan *plan, struct bench_results *results, struct error *err);
void bench_results_done(struct bench_results *r);

/* The median of a round's undisturbed samples, or of all where there are none.  NAN when the side
 * has no sample in it. */
double bench_round_value(const struct bench_result *r, size_t side, uint32_t round,
                         double (*of)(const struct bench_kept *sample, size_t index), size_t index);
/* The mean of the same samples: what iterations cost that are seldom and slow, which no median
 * shows. */
double bench_round_mean(const struct bench_result *r, size_t side, uint32_t round);
/* The logarithm of new to base in one round: the median over samples that follow each other; with
 * `half` 0 or 1 over every other pair only. */
double bench_round_ratio(const struct bench_result *r, uint32_t round, int half);
/* The time of an iteration that the round gives for one side.  With two sides their ratio is that
 * of bench_round_ratio. */
double bench_round_time(const struct bench_result *r, size_t side, size_t side_count,
                        uint32_t round);

/* The CPU, of those that this process may use, that did least in the last moment. */
int bench_idle_cpu(void);
/* Whether a process can run on it: it is there, and not forbidden. */
bool bench_can_use_cpu(int cpu);
/* How fast it runs at the moment, in kHz; 0 where the kernel does not say, or for no CPU (-1). */
uint32_t bench_cpu_khz(int cpu);

#endif
