/* SPDX-License-Identifier: MIT */
/* How many iterations make a sample, how many samples go by until they are steady, and how many
 * make a round: see measure.h. */
#include "base/memory.h"
#include "bench/measure_internal.h"
#include "stats/summary.h"

#include <errno.h>
#include <math.h>

#define SAMPLE_LEAST_NS (50.0 * NS_PER_US) /* of the quicker version */
#define SAMPLE_MOST_NS (50.0 * NS_PER_MS)  /* of the slower one, for the quicker one's sake */
#define SERIES_NS (60.0 * NS_PER_MS)       /* for looking when samples are steady */
#define SWITCH_NS (40.0 * NS_PER_US)       /* from one process to the other */
#define LONG_NS (300.0 * NS_PER_MS)        /* an iteration that is its own warm-up */
#define ROUNDS_WANTED 40
#define SAMPLES_LEAST 4.0 /* of a round, unless they are long */
enum { SERIES_MAX = 96, SERIES_MIN = 4, ROUND_SAMPLES_MAX = 200 };

/* How long a sample may take with what is not timed of it, so that a round has some. */
static double full_most_ns(const struct bench *b)
{
    double sides = (double)b->plan->side_count;
    return fmax((double)b->plan->time_ns / (ROUNDS_WANTED * SAMPLES_LEAST * sides), 2 * SAMPLE_NS);
}

/* What a sample took by itself: without the time that others had the CPU. */
static double own_ns(const struct bench_sample *s, double cpu_ns)
{
    bool preempted = s->involuntary > 0 && !s->voluntary && !s->pauses;
    return preempted ? fmin(s->wall_ns, cpu_ns) : s->wall_ns;
}

/* The same with what is not timed.  How long assay waited says little beside other work; it counts
 * where the set-up sleeps. */
static double full_ns(const struct bench_sample *s, double cpu_ns, double waited_ns)
{
    if (!s->pauses)
        return own_ns(s, cpu_ns);
    return fmax(fmax(s->wall_ns, cpu_ns), s->voluntary > 0 ? waited_ns : 0);
}

/* More and more iterations, until they take long enough to be timed, or too long with their set-up.
 * That is seen three times: other work may have stood between. */
static bool find_cost(struct bench *b, size_t index, size_t side, int *ret_code)
{
    const struct bench_call *call = &b->plan->cases->items[index].calls[side];
    struct bench_sample s;
    double threads = call->threads > 1 ? (double)call->threads : 1;
    double iterations = 1, *full = bench_full_cost(b, index, side), most = full_most_ns(b);
    *full = INFINITY;
    for (int attempt = 0; attempt < 40; attempt++) {
        uint64_t before = clock_now_ns();
        if (!bench_batch(b, index, side, 0, (uint64_t)iterations, &s, ret_code))
            return false;
        double waited = (double)(clock_now_ns() - before), cpu = s.cpu_ns / threads;
        double own = own_ns(&s, cpu);
        *bench_cost(b, index, side) = own / iterations;
        *full = fmin(*full, full_ns(&s, cpu, waited) / iterations);
        if (own >= SAMPLE_NS / 2 || iterations > 0x1p40 ||
            (attempt >= 2 && *full * iterations >= most / 2))
            break;
        double factor = own > 0 ? fmin(fmax(SAMPLE_NS / own, 2), 1000) : 1000;
        iterations = ceil(fmax(iterations, fmin(iterations * factor, most / fmax(*full, 1e-6))));
    }
    *full = fmax(*full, *bench_cost(b, index, side));
    return true;
}

static void choose_iterations(struct bench *b, size_t index)
{
    double slow = *bench_cost(b, index, 0), quick = slow, full = *bench_full_cost(b, index, 0);
    for (size_t side = 1; side < b->plan->side_count; side++) {
        slow = fmax(slow, *bench_cost(b, index, side));
        quick = fmin(quick, *bench_cost(b, index, side));
        full = fmax(full, *bench_full_cost(b, index, side));
    }
    double count = SAMPLE_NS / fmax(slow, 1e-6);
    if (count * quick < SAMPLE_LEAST_NS)
        count = fmin(SAMPLE_LEAST_NS / fmax(quick, 1e-6), SAMPLE_MOST_NS / fmax(slow, 1e-6));
    if (full > slow)
        count = fmin(count, full_most_ns(b) / full);
    b->results->items[index].iterations = count < 1 ? 1 : (uint64_t)count;
}

/* One pass over all cases in the processes that are there. */
static int each_case(struct bench *b, bool (*what)(struct bench *, size_t, size_t, int *),
                     struct error *err)
{
    for (size_t i = 0; i < b->results->count; i++)
        for (size_t side = 0; side < b->plan->side_count && bench_is_alive(b, i); side++) {
            int code = 0, r = bench_start_workers(b, err);
            if (r < 0)
                return r;
            if (b->plan->on_progress)
                b->plan->on_progress(0, 0, b->plan->cases->items[i].label, b->plan->context);
            bool fine = bench_call_case(b, i, side, &code) && what(b, i, side, &code) &&
                        bench_finish_case(b, i, side, &code);
            if (code == -EINTR)
                return error_set(err, -EINTR, "interrupted");
            if (!fine)
                bench_worker_stop(&b->workers[side]); /* it may stand in its loop */
        }
    return 0;
}

/* The number of samples before they are as those at the end. */
static uint64_t steady_from(const double *samples, size_t count, bool *ret_never)
{
    double scratch[SERIES_MAX], distances[SERIES_MAX];
    size_t half = count / 2, late = count - half;
    double centre = stats_median(samples + half, late, scratch);
    for (size_t i = 0; i < late; i++)
        distances[i] = fabs(samples[half + i] - centre);
    double spread = stats_median(distances, late, scratch);
    double limit = centre * 1.02 + 4 * spread;
    size_t from = 0;
    while (from < half && samples[from] > limit)
        from++;
    *ret_never = from == half && count >= SERIES_MIN * 2;
    return from;
}

static bool find_warmup(struct bench *b, size_t index, size_t side, int *ret_code)
{
    struct bench_result *result = &b->results->items[index];
    struct bench_side *s = &result->sides[side];
    double series[SERIES_MAX], total = 0;
    size_t count = 0;
    if (*bench_full_cost(b, index, side) > LONG_NS)
        return true;
    while (count < SERIES_MAX && (count < SERIES_MIN || total < SERIES_NS)) {
        struct bench_sample sample;
        if (!bench_batch(b, index, side, 0, result->iterations, &sample, ret_code))
            return false;
        series[count++] = sample.wall_ns;
        total +=
            fmax(sample.wall_ns, *bench_full_cost(b, index, side) * (double)result->iterations);
    }
    s->warmup = steady_from(series, count, &s->still_warming);
    return true;
}

/* So many samples that the time is used well, and as many rounds as judging likes. */
static void choose_samples(struct bench *b)
{
    double cases = (double)b->results->count;
    double spent = (double)(clock_now_ns() - b->started_ns) / cases;
    double time = fmax((double)b->plan->time_ns - spent, (double)b->plan->time_ns / 2);
    for (size_t i = 0; i < b->results->count; i++) {
        struct bench_result *r = &b->results->items[i];
        double fixed = 0, one = 0;
        uint64_t warmup = 0;
        for (size_t side = 0; side < b->plan->side_count; side++)
            warmup = r->sides[side].warmup > warmup ? r->sides[side].warmup : warmup;
        for (size_t side = 0; side < b->plan->side_count; side++) {
            double sample = *bench_full_cost(b, i, side) * (double)r->iterations;
            r->sides[side].warmup = warmup; /* the same for both */
            fixed += r->sides[side].setup_ns + (double)warmup * sample +
                     b->results->start_ns / cases + SWITCH_NS;
            one += sample + (b->plan->side_count > 1 ? REWARM_NS : 0) + SWITCH_NS;
        }
        double rounds = b->plan->rounds ? (double)b->plan->rounds : ROUNDS_WANTED;
        double count = (time / rounds - fixed) / one;
        /* Where starting takes most of it: fewer rounds, which measure as long as they start. */
        double most = (time / BENCH_ROUNDS_MIN - fixed) / one;
        double least = SAMPLES_LEAST * one < time / BENCH_ROUNDS_MIN ? SAMPLES_LEAST : 1;
        count = fmax(count, fmax(fmin(fixed / one, most), least));
        r->samples_a_round = (size_t)fmin(count, ROUND_SAMPLES_MAX);
    }
}

int bench_calibrate(struct bench *b, struct error *err)
{
    int r = bench_start_workers(b, err);
    for (size_t side = 0; r == 0 && side < b->plan->side_count; side++) {
        double loop_ns, clock_ns;
        r = bench_worker_overhead(&b->workers[side], &loop_ns, &clock_ns, err);
        if (r < 0)
            return error_wrap(err, r, "%s", b->plan->targets[side]->path);
        b->results->loop_ns = side ? fmin(loop_ns, b->results->loop_ns) : loop_ns;
        b->results->clock_ns = side ? fmin(clock_ns, b->results->clock_ns) : clock_ns;
    }
    if (r == 0)
        r = each_case(b, find_cost, err);
    for (size_t i = 0; i < b->results->count; i++)
        if (bench_is_alive(b, i))
            choose_iterations(b, i);
    bench_stop_workers(b); /* when samples are steady is a matter of new processes */
    if (r == 0)
        r = each_case(b, find_warmup, err);
    choose_samples(b);
    return r;
}
