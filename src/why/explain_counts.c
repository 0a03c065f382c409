/* SPDX-License-Identifier: MIT */
/* What is counted for an explanation, and what cachegrind says where nothing can be counted. */
#include "base/memory.h"
#include "base/process.h"
#include "counters/simulated.h"
#include "stats/summary.h"
#include "why/explain_internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

enum { SYSCALLS_MOST = 24 };

/* An event that this machine does not know is left out. */
static void want(struct explain_counts *c, const char *text)
{
    struct error ignored;
    event_list_parse(&c->events, text, &ignored);
}

static double weight_of(const struct parts *parts, const struct part *part)
{
    double weight = 0;
    for (unsigned s = 0; s < SIDE_COUNT; s++)
        for (size_t run = 0; run < parts->run_counts[s]; run++)
            weight += part->weights[s][run] / (double)parts->run_counts[s];
    return weight;
}

/* The next system call by its time, after those of the list; NULL when there is none. */
static const struct part *next_call(const struct parts *parts, const struct part *const *taken,
                                    size_t count)
{
    const struct part *next = NULL;
    for (size_t i = 0; i < parts->count; i++) {
        const struct part *part = &parts->items[i];
        bool is_taken = part->kind != PART_SYSCALL || strchr(part->name, '.');
        for (size_t k = 0; k < count; k++)
            is_taken |= taken[k] == part;
        if (!is_taken && (!next || weight_of(parts, part) > weight_of(parts, next)))
            next = part;
    }
    return next;
}

void explain_choose_counts(struct explain_counts *c, const struct parts *parts)
{
    static const char *const always[] = {
        "page-faults",    "major-faults",           "context-switches",
        "cpu-migrations", "raw_syscalls:sys_enter", "instructions",
        "cache-misses",   "branch-misses"};
    for (size_t i = 0; i < ARRAY_COUNT(always); i++)
        want(c, always[i]);
    const struct part *calls[SYSCALLS_MOST];
    for (size_t count = 0; count < SYSCALLS_MOST; count++) {
        calls[count] = next_call(parts, calls, count);
        if (!calls[count])
            return;
        CLEANUP(memory_freep)
        char *event = memory_printf("syscalls:sys_enter_%s", calls[count]->name);
        want(c, event);
    }
}

void explain_counts_done(struct explain_counts *c)
{
    event_list_done(&c->events);
    free(c->values[SIDE_A]);
    free(c->values[SIDE_B]);
    for (size_t i = 0; i < c->simulated_count; i++)
        free(c->simulated[i].function);
    free(c->simulated);
    *c = (struct explain_counts){0};
}

double explain_count(const struct explain_counts *c, const char *event, unsigned side)
{
    for (size_t i = 0; i < c->events.count; i++) {
        if (!str_eq(c->events.items[i].name, event))
            continue;
        const double *values = c->values[side] + i * c->rounds;
        CLEANUP(memory_freep) double *scratch = memory_zalloc(c->rounds + 1, sizeof(*scratch));
        for (size_t k = 0; k < c->rounds; k++)
            if (!isfinite(values[k]))
                return NAN;
        return stats_median(values, c->rounds, scratch);
    }
    return NAN;
}

/* Takes what each function did from cachegrind's text. */
struct function_reader {
    struct explain_counts *counts;
    unsigned side;
};

static struct explain_simulated *find_function(struct explain_counts *c, const char *name,
                                               size_t length)
{
    for (size_t i = 0; i < c->simulated_count; i++)
        if (strlen(c->simulated[i].function) == length &&
            strncmp(c->simulated[i].function, name, length) == 0)
            return &c->simulated[i];
    ARRAY_PUSH(c->simulated, c->simulated_count, c->simulated_capacity) =
        (struct explain_simulated){.function = memory_strndup(name, length)};
    return &c->simulated[c->simulated_count - 1];
}

static void read_function(const char *function, size_t length, const struct simulated_function *f,
                          void *context)
{
    struct function_reader *r = context;
    CLEANUP(memory_freep) char *linkage = memory_strndup(function, length);
    CLEANUP(strbuf_done) struct strbuf name = {0};
    bool is_alias;
    match_name(linkage, false, &name, &is_alias);
    struct simulated_function *sum =
        &find_function(r->counts, strbuf_text(&name), name.length)->values[r->side];
    sum->instructions += f->instructions;
    sum->mispredicted += f->mispredicted;
    sum->first_level += f->first_level;
    sum->last_level += f->last_level;
}

static void add_fact(struct explain *e, const char *name, double a, double b)
{
    ARRAY_PUSH(e->facts, e->fact_count, e->fact_capacity) = (struct explain_fact){
        .name = memory_strdup(name), .values = {a, b}, .changed = a != b, .simulated = true};
}

void explain_simulate(struct explain *e, const struct explain_runs *runs, struct explain_counts *c,
                      uint64_t timeout_ns)
{
    static const char *const wanted[] = {"sim:instructions", "sim:branch-misses",
                                         "sim:L1-dcache-load-misses", "sim:LLC-misses"};
    struct simulation s[SIDE_COUNT] = {0};
    struct error err = {0};
    int r = 0, start_code;
    if (isfinite(explain_count(c, "cache-misses", SIDE_A)))
        return; /* counted ones are better */
    for (unsigned side = 0; side < SIDE_COUNT && r == 0; side++) {
        char *const *argv = runs->argv ? runs->argv(runs->context, side) : NULL;
        if (!argv) {
            strbuf_puts(&e->notes, "caches were not simulated: a cell with its own steps cannot "
                                   "be run under cachegrind\n");
            simulation_done(&s[SIDE_A]);
            return;
        }
        runs->progress(runs->context, EXPLAIN_SIMULATE, side, SIDE_COUNT);
        struct function_reader reader = {c, side};
        r = simulate(&(struct simulate_spec){.argv = argv,
                                             .full = true,
                                             .repeat_count = 1,
                                             .discard_output = true,
                                             .timeout_ns = timeout_ns,
                                             .on_function = read_function,
                                             .context = &reader},
                     &s[side], &start_code, &err);
        if (r == 0 && !s[side].run_count)
            r = error_set(&err, -1, "it was interrupted");
    }
    if (r < 0)
        strbuf_printf(&e->notes, "caches were not simulated: %s%s\n", err.message,
                      r == -ETIMEDOUT ? "; --sim waits until it is done" : "");
    else
        snprintf(e->simulator, sizeof(e->simulator), "%s", s[SIDE_A].tool);
    for (size_t i = 0; r == 0 && i < s[SIDE_A].event_count; i++)
        for (size_t w = 0; w < ARRAY_COUNT(wanted); w++)
            if (str_eq(simulated_event(i)->name, wanted[w]))
                add_fact(e, wanted[w], (double)s[SIDE_A].runs[0].values[i] / c->work[SIDE_A],
                         (double)s[SIDE_B].runs[0].values[i] / c->work[SIDE_B]);
    simulation_done(&s[SIDE_A]);
    simulation_done(&s[SIDE_B]);
}
