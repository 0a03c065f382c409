/* SPDX-License-Identifier: MIT */
/* See table.h. */
#include "bench/table.h"
#include "base/memory.h"
#include "run/metrics.h"

#include <math.h>

/* ---- factors and cells ---- */

/* "n=64, threads=2": the next name and value; false at the end.  The caller frees both. */
static bool next_parameter(const char **text, char **ret_name, char **ret_value)
{
    size_t word = strcspn(*text, ","), name = strcspn(*text, "=,");
    if (!word || name == word)
        return false;
    *ret_name = memory_strndup(*text, name);
    *ret_value = memory_strndup(*text + name + 1, word - name - 1);
    *text += word;
    *text += strspn(*text, ", ");
    return true;
}

static void add_factors(struct dataset *d, const struct bench_cases *cases, size_t side_count)
{
    dataset_add_factor(d, "benchmark");
    for (size_t i = 0; i < cases->count; i++) {
        const char *rest = cases->items[i].parameters;
        char *name, *value;
        while (next_parameter(&rest, &name, &value)) {
            if (dataset_factor(d, name) == DATASET_NONE)
                dataset_add_factor(d, name);
            free(name);
            free(value);
        }
    }
    if (side_count > 1)
        dataset_add_factor(d, "version");
}

static void add_cell(struct dataset *d, const struct bench_case *c, const char *version,
                     const char *path)
{
    CLEANUP(memory_freep) char **levels = memory_zalloc(d->factor_count + 1, sizeof(*levels));
    CLEANUP(strbuf_done) struct strbuf label = {0};
    const char *rest = c->parameters;
    char *name, *value;
    levels[0] = memory_strdup(c->name);
    while (next_parameter(&rest, &name, &value)) {
        size_t factor = dataset_factor(d, name);
        if (!levels[factor])
            levels[factor] = value;
        else
            free(value);
        free(name);
    }
    for (size_t f = 0; f < d->factor_count; f++) {
        bool is_version = version && f + 1 == d->factor_count;
        if (!levels[f])
            levels[f] = memory_strdup(is_version ? version : "");
        if (*levels[f])
            strbuf_printf(&label, "%s%s=%s", f ? " " : "", d->factors[f], levels[f]);
    }
    CLEANUP(memory_freep)
    char *command = memory_printf("assay bench --bench '%s' %s", c->label, path);
    dataset_add_cell(d, strbuf_text(&label), command, (const char *const *)levels);
    for (size_t f = 0; f < d->factor_count; f++)
        free(levels[f]);
}

/* ---- values ---- */

static double counter_of(const struct bench_kept *s, size_t index)
{
    return s->counters[index];
}

static double cpu_of(const struct bench_kept *s, size_t index)
{
    (void)index;
    return s->cpu_ns;
}

enum { OF_TIME = -1, OF_MEAN = -2, OF_CPU = -3 }; /* besides the numbers of counters */

struct filler {
    struct dataset *d;
    const struct bench_results *results;
};

static double value_of(const struct filler *f, size_t index, size_t side, uint32_t round, int which)
{
    const struct bench_result *r = &f->results->items[index];
    if (which == OF_TIME)
        return bench_round_time(r, side, f->results->side_count, round);
    if (which == OF_MEAN)
        return bench_round_mean(r, side, round);
    if (which == OF_CPU)
        return bench_round_value(r, side, round, cpu_of, 0);
    return bench_round_value(r, side, round, counter_of, (size_t)which);
}

/* Of each round: the counter of this number, or the time. */
static void add_values(const struct filler *f, size_t metric, int which)
{
    size_t sides = f->results->side_count;
    for (size_t i = 0; i < f->results->count; i++)
        for (size_t side = 0; side < sides; side++)
            for (uint32_t round = 0; round < f->results->round_count; round++)
                dataset_put(f->d, metric, bench_cell(i, side, sides), round,
                            value_of(f, i, side, round, which));
}

static void add_constant(struct dataset *d, const char *name, const char *unit,
                         struct metric_facts facts, size_t cell, double value, size_t round_count)
{
    size_t metric = dataset_add_metric(d, name, unit, "counter", facts);
    for (size_t round = 0; round < round_count; round++)
        dataset_put(d, metric, cell, (uint32_t)round, value);
}

/* What the passes counted. */
static void add_counted(const struct filler *f, size_t index, size_t side)
{
    static const struct metric_facts count = {METRIC_LOWER, .is_count = true};
    static const struct metric_facts amount = {.better = METRIC_LOWER};
    const struct bench_side *s = &f->results->items[index].sides[side];
    size_t cell = bench_cell(index, side, f->results->side_count);
    size_t rounds = f->results->items[index].round_count;
    if (s->has_instructions)
        add_constant(f->d, "sim:instructions", "", count, cell, s->instructions, rounds);
    if (s->has_allocations) {
        add_constant(f->d, "allocations", "", count, cell, s->allocations, rounds);
        add_constant(f->d, "allocated", "bytes", amount, cell, s->allocated_bytes, rounds);
    }
}

/* Figures of the benchmarks' own.  They are of one call, and so the same in every round. */
static void add_figures(const struct filler *f)
{
    for (size_t i = 0; i < f->results->count; i++)
        for (size_t side = 0; side < f->results->side_count; side++) {
            const struct bench_said *said = &f->results->items[i].sides[side].said;
            for (size_t k = 0; k < said->figure_count; k++) {
                const struct bench_figure *figure = &said->figures[k];
                if (!str_eq(figure->name, "items") && !str_eq(figure->name, "bytes"))
                    add_constant(f->d, figure->name, figure->unit,
                                 metric_facts_of(figure->name, figure->unit),
                                 bench_cell(i, side, f->results->side_count), figure->value,
                                 f->results->items[i].round_count);
            }
            add_counted(f, i, side);
        }
}

/* A run for each case, version and round, as the store and reports know it. */
static void add_runs(const struct filler *f)
{
    struct dataset *d = f->d;
    for (size_t i = 0; i < f->results->count; i++) {
        const struct bench_result *r = &f->results->items[i];
        for (size_t k = 0; k < r->sample_count;) {
            uint32_t round = r->samples[k].round;
            double total[BENCH_SIDES_MAX] = {0};
            size_t calm[BENCH_SIDES_MAX] = {0};
            for (; k < r->sample_count && r->samples[k].round == round; k++) {
                total[r->samples[k].side] += r->samples[k].ns * (double)r->iterations;
                calm[r->samples[k].side] += !r->samples[k].disturbed;
            }
            for (size_t side = 0; side < f->results->side_count; side++) {
                size_t cell = bench_cell(i, side, f->results->side_count);
                ARRAY_PUSH(d->runs, d->run_count, d->run_capacity) =
                    (struct dataset_run){.id = (int64_t)d->run_count + 1,
                                         .cell = cell,
                                         .round = round,
                                         .started_at_ns = d->experiment.started_at_ns,
                                         .wall_ns = (uint64_t)total[side],
                                         .disturbed = !calm[side],
                                         .node = DATASET_NO_NODE};
                d->cells[cell].run_count++;
                d->cells[cell].disturbed_count += !calm[side];
                d->experiment.disturbed_count += !calm[side];
            }
        }
    }
    d->experiment.run_count = d->run_count;
}

static void describe(struct dataset *d, const char *const *names, size_t side_count, uint64_t seed,
                     uint64_t started_at_ns)
{
    struct store_experiment *e = &d->experiment;
    outcome_describe(d, "assay bench", BENCH_METRIC, seed, started_at_ns);
    free(e->question);
    e->question = memory_strdup(side_count > 1 ? "which version is faster?"
                                               : "how long does each benchmark take?");
    if (side_count > 1) {
        free(e->baseline);
        e->baseline = memory_printf("version=%s", names[0]);
    }
}

/* Another harness that tells the CPU time of its samples. */
static bool tell_cpu(const struct bench_results *results)
{
    bool tells = false;
    for (size_t i = 0; i < results->count && results->loop_ns <= 0; i++)
        for (size_t k = 0; k < results->items[i].sample_count && !tells; k++)
            tells = isfinite(results->items[i].samples[k].cpu_ns);
    return tells;
}

void bench_table_make(struct dataset *d, const struct bench_cases *cases,
                      const struct bench_results *results, const char *const *names,
                      const char *const *paths, const char *const *counters, uint64_t seed,
                      uint64_t started_at_ns)
{
    const struct filler f = {d, results};
    dataset_start(d, "assay bench");
    add_factors(d, cases, results->side_count);
    for (size_t i = 0; i < cases->count; i++)
        for (size_t side = 0; side < results->side_count; side++) {
            bool pair = results->side_count > 1;
            add_cell(d, &cases->items[i], pair ? names[side] : NULL, paths[side]);
            if (side)
                d->cells[bench_cell(i, side, 2)].baseline = bench_cell(i, 0, 2);
        }
    d->round_seconds =
        results->round_count ? (double)results->elapsed_ns / 1e9 / (double)results->round_count : 0;
    size_t metric =
        dataset_add_metric(d, BENCH_METRIC, "ns", "time",
                           (struct metric_facts){.better = METRIC_LOWER, .is_speed = true});
    add_values(&f, metric, OF_TIME);
    if (results->loop_ns > 0) { /* other harnesses have one sample a round, which is both */
        metric =
            dataset_add_metric(d, BENCH_MEAN_METRIC, "ns", "time",
                               (struct metric_facts){.better = METRIC_LOWER, .is_speed = true});
        add_values(&f, metric, OF_MEAN);
    }
    /* Beside other work it tells what elapsed time cannot.  Samples of assay.h leave out what
     * others took. */
    if (tell_cpu(results)) {
        metric = dataset_add_metric(d, "cpu", "ns", "time",
                                    (struct metric_facts){.better = METRIC_LOWER});
        add_values(&f, metric, OF_CPU);
    }
    for (size_t k = 0; counters && counters[k]; k++) {
        metric = dataset_add_metric(d, counters[k], "", "counter",
                                    (struct metric_facts){METRIC_LOWER, .is_count = true});
        add_values(&f, metric, (int)k);
    }
    add_figures(&f);
    dataset_settle(d);
    /* How many rounds there are is decided by how long they take, and so by what disturbs them: the
     * interval of two versions has to hold whenever that ends. */
    bool by_time = results->side_count > 1 && results->loop_ns > 0; /* not of another harness */
    d->experiment.adaptive = results->signal != 0 || by_time;
    describe(d, names, results->side_count, seed, started_at_ns);
    add_runs(&f);
    dataset_index(d);
}
