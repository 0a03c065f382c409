/* SPDX-License-Identifier: MIT */
/* One benchmark in one process: called, timed, ended, and what goes wrong meanwhile; see
 * measure_internal.h. */
#include "base/memory.h"
#include "bench/measure_internal.h"

#include <errno.h>
#include <sched.h>

static const struct bench_target *target_of(const struct bench *b, size_t side)
{
    if (b->plan->layouts && b->round < b->plan->rounds)
        return &b->plan->layouts[b->round * BENCH_SIDES_MAX + side];
    return b->plan->targets[side];
}

/* Which of them is the host, and starts in front, changes from process to process. */
static int start_one_process(struct bench *b, struct error *err)
{
    if (b->workers[0].pid > 0 && b->workers[1].pid > 0)
        return 0;
    bench_stop_workers(b);
    size_t host = (size_t)rng_below(&b->rng, 2);
    uint64_t before = clock_now_ns();
    int r = bench_worker_start_both(&b->workers[host], &b->workers[!host], target_of(b, host),
                                    target_of(b, !host), &b->plan->start, err);
    double took = (double)(clock_now_ns() - before);
    if (r == 0 && !(b->results->start_ns > 0 && b->results->start_ns < took))
        b->results->start_ns = took;
    return r;
}

int bench_start_workers(struct bench *b, struct error *err)
{
    if (b->plan->one_process)
        return start_one_process(b, err);
    size_t first = (size_t)rng_below(&b->rng, b->plan->side_count);
    for (size_t i = 0; i < b->plan->side_count; i++) {
        size_t side = (first + i) % b->plan->side_count;
        struct bench_worker *w = &b->workers[side];
        if (w->pid > 0)
            continue;
        bench_worker_stop(w);
        uint64_t before = clock_now_ns();
        int r = bench_worker_start(w, target_of(b, side), &b->plan->start, err);
        if (r < 0)
            return r;
        double took = (double)(clock_now_ns() - before);
        if (!(b->results->start_ns > 0 && b->results->start_ns < took))
            b->results->start_ns = took;
    }
    return 0;
}

void bench_stop_workers(struct bench *b)
{
    for (size_t side = 0; side < BENCH_SIDES_MAX; side++)
        bench_worker_stop(&b->workers[side]);
}

bool bench_is_alive(const struct bench *b, size_t index)
{
    const struct bench_result *r = &b->results->items[index];
    for (size_t side = 0; side < b->plan->side_count; side++)
        if (r->sides[side].failed || r->sides[side].skipped)
            return false;
    return true;
}

/* Notes what the benchmark said of itself; true when it goes on. */
static bool take_said(struct bench *b, size_t index, size_t side, const struct bench_said *said)
{
    struct bench_side *s = &b->results->items[index].sides[side];
    if (said->failed && !s->failed)
        s->failed = memory_strdup(said->failed);
    if (said->skipped && !s->skipped)
        s->skipped = memory_strdup(said->skipped);
    return !said->failed && !said->skipped;
}

/* The process is of no use any more. */
static bool give_up(struct bench *b, size_t index, size_t side, int code, const struct error *err,
                    int *ret_code)
{
    struct bench_side *s = &b->results->items[index].sides[side];
    *ret_code = code == -EINTR ? code : 0;
    if (code != -EINTR && !s->failed)
        s->failed = memory_strdup(err->message);
    bench_worker_stop(&b->workers[side]);
    return false;
}

/* Several threads need several CPUs. */
static void set_affinity(struct bench *b, size_t side, bool many)
{
    cpu_set_t set;
    if (b->plan->start.cpu < 0)
        return;
    if (many) {
        if (sched_getaffinity(0, sizeof(set), &set) < 0)
            return;
    } else {
        CPU_ZERO(&set);
        CPU_SET((unsigned)b->plan->start.cpu, &set);
    }
    sched_setaffinity(b->workers[side].pid, sizeof(set), &set);
}

bool bench_call_case(struct bench *b, size_t index, size_t side, int *ret_code)
{
    struct bench_call call = b->plan->cases->items[index].calls[side];
    struct bench_side *s = &b->results->items[index].sides[side];
    CLEANUP(bench_said_done) struct bench_said said = {0};
    struct error err;
    bool ready = false;
    call.stack_bytes = 16 * rng_below(&b->rng, 256);
    call.heap_bytes = 16 * rng_below(&b->rng, 512);
    *ret_code = 0;
    set_affinity(b, side, call.threads > 1);
    uint64_t before = clock_now_ns();
    int r = bench_worker_call(&b->workers[side], &call, &ready, &said, &err);
    double took = (double)(clock_now_ns() - before);
    if (r < 0)
        return give_up(b, index, side, r, &err, ret_code);
    if (!(s->setup_ns > 0 && s->setup_ns < took))
        s->setup_ns = took;
    return take_said(b, index, side, &said) && ready;
}

bool bench_batch(struct bench *b, size_t index, size_t side, uint64_t warm, uint64_t iterations,
                 struct bench_sample *ret_sample, int *ret_code)
{
    CLEANUP(bench_said_done) struct bench_said said = {0};
    struct error err;
    bool more = false;
    *ret_code = 0;
    int r = bench_worker_go(&b->workers[side], warm, iterations, ret_sample, &more, &said, &err);
    if (r < 0)
        return give_up(b, index, side, r, &err, ret_code);
    if (more && ret_sample->pauses) { /* each with a look at the clock in it */
        double clocks = (double)ret_sample->pauses * b->results->clock_ns;
        b->results->items[index].sides[side].by_call = true;
        ret_sample->wall_ns = ret_sample->wall_ns > clocks ? ret_sample->wall_ns - clocks : 0;
    }
    return take_said(b, index, side, &said) && more;
}

bool bench_finish_case(struct bench *b, size_t index, size_t side, int *ret_code)
{
    struct bench_side *s = &b->results->items[index].sides[side];
    struct bench_said said = {0};
    struct error err;
    *ret_code = 0;
    int r = bench_worker_finish(&b->workers[side], &said, &err);
    bool fine =
        r < 0 ? give_up(b, index, side, r, &err, ret_code) : take_said(b, index, side, &said);
    bench_said_done(&s->said);
    s->said = said;
    return fine;
}
