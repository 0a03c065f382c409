/* SPDX-License-Identifier: MIT */
/* See foreign.h. */
#include "bench/foreign.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "bench/foreign_run.h"
#include "numbers/order.h"
#include "stats/summary.h"

#include <errno.h>
#include <math.h>

const struct program_harness *bench_foreign_detect(const char *path)
{
    CLEANUP(strbuf_done) struct strbuf bytes = {0};
    if (str_has_suffix(path, ".py"))
        return program_harness_find("pytest-benchmark");
    if (file_read(path, &bytes, NULL) < 0 || !bytes.length)
        return NULL;
    return program_harness_of(bytes.data, bytes.length);
}

static int list_sides(const struct bench_plan *plan, const struct program_harness *h,
                      struct program_results *lists, struct error *err)
{
    int r = 0;
    for (size_t side = 0; r == 0 && side < plan->side_count; side++) {
        struct foreign_run run = {plan->targets[side]->path, h, NULL, &plan->start};
        program_results_done(&lists[side]);
        r = foreign_run(&run, &lists[side], err);
    }
    return r;
}

static bool is_there(const struct program_harness *h)
{
    CLEANUP(memory_freep) char *path = NULL;
    return !h->runner || process_find(h->runner, &path, NULL) == 0;
}

int bench_foreign_list(const struct bench_plan *plan, const struct program_harness **h,
                       struct program_results *lists, struct error *err)
{
    process_signals_catch();
    int r = list_sides(plan, *h, lists, err);
    if ((r == -ECHILD || r == -EINVAL) && (*h)->instead && is_there((*h)->instead)) {
        *h = (*h)->instead;
        r = list_sides(plan, *h, lists, err);
    }
    process_signals_restore();
    return r;
}

/* The names as if they were declared with assay.h. */
static void as_entries(struct bench_entries *entries, const struct program_results *list)
{
    for (size_t i = 0; i < list->count; i++) {
        struct bench_entry entry = {
            .name = memory_strdup(list->items[i].name), .file = memory_strdup(""), .index = i};
        ARRAY_PUSH(entries->items, entries->count, entries->capacity) = entry;
    }
}

int bench_foreign_cases(struct bench_cases *cases, const struct program_results *lists,
                        size_t side_count, const char *const *filters, size_t filter_count,
                        struct error *err)
{
    CLEANUP(bench_entries_done) struct bench_entries base = {0}, new = {0};
    as_entries(&base, &lists[0]);
    if (side_count > 1)
        as_entries(&new, &lists[1]);
    return bench_cases_make(cases, &base, side_count > 1 ? &new : NULL, filters, filter_count, err);
}

struct foreign {
    const struct bench_plan *plan;
    const struct program_harness *harness;
    struct bench_results *results;
    uint64_t started_ns;
};

static bool is_alive(const struct foreign *f, size_t index)
{
    const struct bench_result *r = &f->results->items[index];
    return !r->sides[0].failed && !r->sides[1].failed;
}

static void fail(struct foreign *f, size_t index, size_t side, const char *why)
{
    struct bench_side *s = &f->results->items[index].sides[side];
    if (!s->failed)
        s->failed = memory_strdup(why);
}

static void take(struct foreign *f, const struct program_results *found, size_t index, size_t side,
                 size_t round)
{
    struct bench_result *r = &f->results->items[index];
    const char *name = f->plan->cases->items[index].name;
    const struct program_result *mine = NULL;
    for (size_t i = 0; i < found->count && !mine; i++)
        mine = str_eq(found->items[i].name, name) ? &found->items[i] : NULL;
    if (!mine || !mine->count) {
        fail(f, index, side, mine && mine->failed ? mine->failed : "the program did not report it");
        return;
    }
    CLEANUP(memory_freep) double *scratch = memory_zalloc(mine->count, sizeof(*scratch));
    ARRAY_PUSH(r->samples, r->sample_count, r->sample_capacity) = (struct bench_kept){
        .ns = stats_median(mine->ns, mine->count, scratch),
        .cpu_ns = isnan(mine->cpu_ns[0]) ? NAN : stats_median(mine->cpu_ns, mine->count, scratch),
        .round = (uint32_t)round,
        .side = (uint8_t)side};
}

/* Both versions of one case, or of all where the harness cannot choose. */
static int run_sides(struct foreign *f, size_t index, size_t round, bool flip, struct error *err)
{
    const char *name = f->harness->one ? f->plan->cases->items[index].name : NULL;
    for (size_t turn = 0; turn < f->plan->side_count; turn++) {
        size_t side = f->plan->side_count > 1 ? turn ^ flip : 0;
        CLEANUP(program_results_done) struct program_results found = {0};
        struct foreign_run run = {f->plan->targets[side]->path, f->harness, name, &f->plan->start};
        int r = foreign_run(&run, &found, err);
        if (r == -EINTR)
            return r;
        if (r < 0 && !name)
            return r;
        if (r < 0)
            fail(f, index, side, err->message);
        for (size_t i = 0; r == 0 && i < f->results->count; i++)
            if (is_alive(f, i) && (!name || i == index))
                take(f, &found, i, side, round);
    }
    return 0;
}

static int run_round(struct foreign *f, size_t *order, size_t round, struct error *err)
{
    if (!f->harness->one)
        return run_sides(f, 0, round, round_first_of_two(f->plan->seed, round), err);
    round_order(f->plan->seed, round, order, f->results->count);
    for (size_t i = 0; i < f->results->count; i++) {
        if (!is_alive(f, order[i]))
            continue;
        if (f->plan->on_progress)
            f->plan->on_progress(round, 0.5, f->plan->cases->items[order[i]].label,
                                 f->plan->context);
        bool flip = round_first_of_two(f->plan->seed + order[i], round);
        int r = run_sides(f, order[i], round, flip, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static bool is_enough(const struct foreign *f, size_t rounds)
{
    size_t alive = 0;
    for (size_t i = 0; i < f->results->count; i++)
        alive += is_alive(f, i);
    if (!alive)
        return true;
    if (f->plan->rounds)
        return rounds >= f->plan->rounds;
    return rounds >= BENCH_ROUNDS_MIN &&
           clock_now_ns() - f->started_ns >= f->plan->time_ns * f->results->count;
}

int bench_foreign_measure(const struct bench_plan *plan, const struct program_harness *h,
                          struct bench_results *results, struct error *err)
{
    size_t count = plan->cases->count;
    int r = 0;
    *results = (struct bench_results){.items = memory_zalloc(count + 1, sizeof(*results->items)),
                                      .count = count,
                                      .side_count = plan->side_count,
                                      .cpu = plan->start.cpu};
    struct foreign f = {plan, h, results, .started_ns = clock_now_ns()};
    CLEANUP(memory_freep) size_t *order = memory_zalloc(count + 1, sizeof(*order));
    for (size_t i = 0; i < count; i++) {
        order[i] = i;
        results->items[i].iterations = 1;
        results->items[i].samples_a_round = 1;
    }
    process_signals_catch();
    for (size_t round = 0; r == 0 && !is_enough(&f, round); round++) {
        r = run_round(&f, order, round, err);
        results->round_count = r == 0 ? round + 1 : round;
    }
    results->signal = process_signals_caught();
    process_signals_restore();
    for (size_t i = 0; i < count; i++)
        results->items[i].round_count = results->round_count;
    results->elapsed_ns = clock_now_ns() - f.started_ns;
    return r == -EINTR && results->signal ? 0 : r;
}
