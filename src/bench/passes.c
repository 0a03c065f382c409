/* SPDX-License-Identifier: MIT */
/* See passes.h. */
#include "bench/passes.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "counters/simulated.h"

#include <errno.h>
#include <sys/mman.h>

enum { COUNTED_MAX = 10000 };

char *bench_once_text(const struct bench_call *call, uint64_t iterations)
{
    struct strbuf text = {0};
    /* Always as many digits: to read them takes the same instructions then. */
    strbuf_printf(&text, "%020llu %zu %llu 0 0", (unsigned long long)iterations, call->index,
                  (unsigned long long)call->threads);
    for (size_t i = 0; i < ARRAY_COUNT(call->values); i++)
        strbuf_printf(&text, " %lld", (long long)call->values[i]);
    return text.data;
}

/* Calls back for every case and version that was measured. */
static int each(const struct bench_plan *plan, struct bench_results *results,
                int (*count)(const struct bench_plan *, size_t, size_t, struct bench_result *,
                             void *, struct error *),
                void *context, struct error *err)
{
    int r = 0;
    process_signals_catch();
    for (size_t i = 0; i < results->count && r == 0; i++)
        for (size_t side = 0; side < plan->side_count && r == 0; side++) {
            if (!results->items[i].sample_count)
                continue;
            if (plan->on_progress)
                plan->on_progress(results->round_count, 1, plan->cases->items[i].label,
                                  plan->context);
            r = count(plan, i, side, &results->items[i], context, err);
            if (r < 0 && r != -EINTR)
                error_wrap(err, r, "%s", plan->cases->items[i].label);
        }
    if (process_signals_caught())
        results->signal = process_signals_caught();
    process_signals_restore();
    return r == -EINTR ? 0 : r;
}

static uint64_t few(uint64_t iterations)
{
    return iterations / 4 < 1 ? 1 : iterations / 4 > COUNTED_MAX ? COUNTED_MAX : iterations / 4;
}

/* ---- instructions ---- */

static int simulate_once(const struct bench_plan *plan, size_t index, size_t side,
                         uint64_t iterations, struct simulator *s, uint64_t *ret, struct error *err)
{
    const struct bench_call *call = &plan->cases->items[index].calls[side];
    CLEANUP(memory_freep) char *once = bench_once_text(call, iterations);
    struct bench_start how = plan->start;
    how.before = s->words;
    how.once = once;
    int r = bench_worker_once(plan->targets[side], &how, err);
    return r < 0 ? r : simulator_take(s, ret, err);
}

static int count_instructions(const struct bench_plan *plan, size_t index, size_t side,
                              struct bench_result *result, void *context, struct error *err)
{
    uint64_t few_of_them = few(result->iterations), first = 0, second = 0;
    int r = simulate_once(plan, index, side, few_of_them, context, &first, err);
    if (r == 0)
        r = simulate_once(plan, index, side, 2 * few_of_them, context, &second, err);
    if (r == 0) {
        struct bench_side *s = &result->sides[side];
        s->has_instructions = true;
        s->instructions = ((double)second - (double)first) / (double)few_of_them;
    }
    return r;
}

int bench_count_instructions(const struct bench_plan *plan, struct bench_results *results,
                             struct error *err)
{
    struct simulator s;
    int r = simulator_open(&s, err);
    if (r < 0)
        return r;
    r = each(plan, results, count_instructions, &s, err);
    simulator_done(&s);
    return r;
}

/* ---- allocations ---- */

static int count_allocations(const struct bench_plan *plan, size_t index, size_t side,
                             struct bench_result *result, void *context, struct error *err)
{
    CLEANUP(bench_said_done) struct bench_said said = {0};
    CLEANUP(bench_worker_stop) struct bench_worker w = {0};
    struct bench_start how = plan->start;
    struct bench_sample sample;
    bool more = false;
    how.preload_fd = context;
    int r = bench_worker_start(&w, plan->targets[side], &how, err);
    if (r == 0)
        r = bench_worker_call(&w, &plan->cases->items[index].calls[side], &more, &said, err);
    if (r == 0 && more)
        r = bench_worker_go(&w, 1, few(result->iterations), &sample, &more, &said, err);
    if (r < 0)
        return error_wrap(err, r, "counting allocations");
    if (!more)
        return 0;
    if (sample.counter_count < 2)
        return error_set(err, -ENOTSUP,
                         "allocations cannot be counted in %s: is it linked statically?",
                         plan->targets[side]->path);
    struct bench_side *s = &result->sides[side];
    s->has_allocations = true;
    s->allocations = sample.counters[0] / (double)sample.iterations;
    s->allocated_bytes = sample.counters[1] / (double)sample.iterations;
    return 0;
}

int bench_count_allocations(const struct bench_plan *plan, struct bench_results *results,
                            struct error *err)
{
    CLEANUP(fd_closep) int fd = memfd_create("assay-allocations", MFD_CLOEXEC);
    if (!bench_interposer_size)
        return error_set(err, -ENOTSUP,
                         "this assay is linked statically and cannot count "
                         "allocations");
    if (fd < 0 || fd_write_all(fd, bench_interposer, bench_interposer_size) < 0)
        return error_errno(err, -errno, "preparing to count allocations");
    return each(plan, results, count_allocations, &fd, err);
}
