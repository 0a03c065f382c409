/* SPDX-License-Identifier: MIT */
/*
 * See keep_harness.h.  A benchmark is a cell; its name and parameters are the factors.  Repetition
 * k is its run in round k, with the values of all its metrics.  Such runs were not interleaved,
 * unless the file says so: the experiment's environment keeps that, and what is compared within it
 * is not paired.
 */
#include "session/keep_harness.h"
#include "base/json.h"
#include "base/memory.h"
#include "session/session_internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

enum { RUNS_AT_ONCE = 16384, FAILED_STATUS = 1 << 8 /* exit code 1, as wait4 gives it */ };

struct keeping {
    struct store *store;
    const struct harness_results *r;
    const char **factors; /* "benchmark", then the parameters' names */
    size_t factor_count, factor_capacity;
    int64_t *cells;
    struct store_new_run *runs; /* that wait to be written, each with room for its values */
    struct store_value *values;
    size_t run_count, value_count, value_room;
    uint64_t at_ns;
    struct keep_harness_tally *tally;
};

static void find_factors(struct keeping *k)
{
    ARRAY_PUSH(k->factors, k->factor_count, k->factor_capacity) = "benchmark";
    for (size_t b = 0; b < k->r->count; b++)
        for (size_t p = 0; p < k->r->benchmarks[b].param_count; p++) {
            const char *name = k->r->benchmarks[b].params[p].name;
            size_t at = 0;
            while (at < k->factor_count && !str_eq(k->factors[at], name))
                at++;
            if (at == k->factor_count)
                ARRAY_PUSH(k->factors, k->factor_count, k->factor_capacity) = name;
        }
}

/* "-" where a benchmark does not have a parameter that another one has. */
static const char *level_of(const struct harness_benchmark *b, const char *factor)
{
    for (size_t p = 0; p < b->param_count; p++)
        if (str_eq(b->params[p].name, factor))
            return b->params[p].value;
    return "-";
}

static void put_label(struct strbuf *out, const struct harness_benchmark *b, size_t same)
{
    strbuf_printf(out, "benchmark=%s", b->name);
    for (size_t p = 0; p < b->param_count; p++)
        strbuf_printf(out, " %s=%s", b->params[p].name, b->params[p].value);
    if (same)
        strbuf_printf(out, " #%zu", same + 1);
}

struct labelled {
    char *label;
    size_t index;
};

static int compare_labelled(const void *a, const void *b)
{
    const struct labelled *x = a, *y = b;
    int order = strcmp(x->label, y->label);
    return order ? order : x->index < y->index ? -1 : 1;
}

/* A label for each benchmark; those of the same name and parameters are numbered from #2 on. */
static void make_labels(char **labels, const struct harness_results *r)
{
    struct labelled *all = memory_zalloc(r->count + 1, sizeof(*all));
    for (size_t b = 0; b < r->count; b++) {
        CLEANUP(strbuf_done) struct strbuf label = {0};
        put_label(&label, &r->benchmarks[b], 0);
        all[b] = (struct labelled){memory_strdup(strbuf_text(&label)), b};
    }
    qsort(all, r->count, sizeof(*all), compare_labelled);
    for (size_t i = 0, same = 0; i < r->count; i++) {
        CLEANUP(strbuf_done) struct strbuf label = {0};
        same = i && str_eq(all[i].label, all[i - 1].label) ? same + 1 : 0;
        put_label(&label, &r->benchmarks[all[i].index], same);
        labels[all[i].index] = memory_strdup(strbuf_text(&label));
    }
    for (size_t i = 0; i < r->count; i++)
        free(all[i].label);
    free(all);
}

static void put_headline(struct strbuf *out, const struct harness_results *r)
{
    for (size_t b = 0; b < r->count; b++) {
        const struct harness_benchmark *one = &r->benchmarks[b];
        if (!one->metric_count)
            continue;
        const char *name = one->metrics[0].name;
        CLEANUP(memory_freep) char *line = memory_printf("%s\n", name);
        if (out->length < 4096 && !strstr(strbuf_text(out), line))
            strbuf_puts(out, line);
    }
}

static void put_environment(struct strbuf *out, const struct keeping *k, const char *path)
{
    struct json j = {.out = out, .compact = true};
    json_object(&j, NULL);
    json_string(&j, "imported", k->r->format->name);
    json_string(&j, "file", path);
    json_string(&j, "version", k->r->version);
    json_string(&j, "machine", k->r->machine);
    json_bool(&j, "apart", !k->r->is_paired);
    json_array(&j, "summaries"); /* metrics whose values the tool computed */
    for (size_t b = 0; b < k->r->count; b++)
        for (size_t m = 0; m < k->r->benchmarks[b].metric_count; m++)
            if (k->r->benchmarks[b].metrics[m].is_summary && b == 0)
                json_string(&j, NULL, k->r->benchmarks[b].metrics[m].name);
    json_end(&j);
    json_end(&j);
}

/* What stands in the place of a spec: the same benchmarks give the same text. */
static void put_text(struct strbuf *out, const struct harness_results *r, const char *name)
{
    strbuf_printf(out, "# assay import: %s\nname: %s\n", r->format->title, name);
    for (size_t b = 0; b < r->count; b++) {
        strbuf_puts(out, "# ");
        put_label(out, &r->benchmarks[b], 0);
        strbuf_putc(out, '\n');
    }
}

/* Labels, commands and levels of the cells, which `begin` hands to the store. */
struct cell_texts {
    struct store_new_cell *cells;
    const char **levels;
    char **labels;
    size_t count;
};

static void cell_texts_make(struct cell_texts *t, const struct keeping *k)
{
    t->count = k->r->count;
    t->cells = memory_zalloc(t->count + 1, sizeof(*t->cells));
    t->labels = memory_zalloc(t->count + 1, sizeof(*t->labels));
    t->levels = memory_zalloc(t->count * k->factor_count + 1, sizeof(*t->levels));
    make_labels(t->labels, k->r);
    for (size_t b = 0; b < t->count; b++) {
        const struct harness_benchmark *one = &k->r->benchmarks[b];
        const char **own = t->levels + b * k->factor_count;
        own[0] = one->name;
        for (size_t f = 1; f < k->factor_count; f++)
            own[f] = level_of(one, k->factors[f]);
        t->cells[b] =
            (struct store_new_cell){.label = t->labels[b], .command = one->command, .values = own};
    }
}

static void cell_texts_done(struct cell_texts *t)
{
    for (size_t b = 0; b < t->count; b++)
        free(t->labels[b]);
    free(t->labels);
    free(t->levels);
    free(t->cells);
}

static int begin(struct keeping *k, const struct keep_harness_options *o, struct error *err)
{
    const struct harness_results *r = k->r;
    CLEANUP(strbuf_done) struct strbuf text = {0}, environment = {0}, headline = {0};
    CLEANUP(cell_texts_done) struct cell_texts texts = {0};
    CLEANUP(memory_freep)
    char *commit = memory_printf("%s%s", o->commit ? o->commit : r->commit,
                                 !o->commit && *r->commit && r->is_dirty ? "-dirty" : "");
    snprintf(k->tally->name, sizeof(k->tally->name), "%s",
             o->name     ? o->name
             : *r->suite ? r->suite
                         : r->format->name);
    put_text(&text, r, k->tally->name);
    put_environment(&environment, k, o->path);
    put_headline(&headline, r);
    cell_texts_make(&texts, k);
    struct store_new new = {.name = k->tally->name,
                            .question = "",
                            .spec_text = strbuf_text(&text),
                            .spec_path = "assay import",
                            .selection = "",
                            .baseline = "",
                            .headline = strbuf_text(&headline),
                            .git_commit = commit,
                            .subject = "",
                            .environment = strbuf_text(&environment),
                            .machine = "{}",
                            .branch = o->branch ? o->branch : r->branch,
                            .machine_class = o->machine ? o->machine : r->machine,
                            .started_at_ns = k->at_ns,
                            .factors = k->factors,
                            .factor_count = k->factor_count,
                            .cells = texts.cells,
                            .cell_count = r->count};
    return store_begin(k->store, &new, &k->tally->id, k->cells, err);
}

static int flush(struct keeping *k, struct error *err)
{
    if (!k->run_count)
        return 0;
    /* The values lie one behind the other; they may have moved while they were gathered. */
    struct store_value *at = k->values;
    for (size_t i = 0; i < k->run_count; i++) {
        k->runs[i].values = at;
        at += k->runs[i].value_count;
    }
    int code = store_add_runs(k->store, k->tally->id, k->runs, k->run_count, err);
    k->tally->runs += k->run_count;
    k->tally->values += k->value_count;
    k->run_count = k->value_count = 0;
    return code;
}

static int add_run(struct keeping *k, size_t benchmark, size_t repetition, const int64_t *ids,
                   struct error *err)
{
    const struct harness_benchmark *b = &k->r->benchmarks[benchmark];
    struct store_new_run *run = &k->runs[k->run_count++];
    *run = (struct store_new_run){.cell = k->cells[benchmark],
                                  .round = repetition,
                                  .position = benchmark,
                                  .started_at_ns = k->at_ns,
                                  .layout = "",
                                  .status = b->failure ? FAILED_STATUS : 0,
                                  .output = b->failure};
    for (size_t m = 0; m < b->metric_count; m++) {
        const struct harness_metric *metric = &b->metrics[m];
        if (repetition >= metric->count || !isfinite(metric->values[repetition]))
            continue;
        ARRAY_PUSH(k->values, k->value_count, k->value_room) =
            (struct store_value){.metric = ids[m], .value = metric->values[repetition]};
        run->value_count++;
    }
    return k->run_count == RUNS_AT_ONCE ? flush(k, err) : 0;
}

static int add_benchmark(struct keeping *k, size_t index, struct error *err)
{
    const struct harness_benchmark *b = &k->r->benchmarks[index];
    CLEANUP(memory_freep) int64_t *ids = memory_zalloc(b->metric_count + 1, sizeof(*ids));
    size_t repetitions = b->failure != NULL;
    int code = 0;
    for (size_t m = 0; m < b->metric_count && code == 0; m++) {
        const struct harness_metric *metric = &b->metrics[m];
        if (metric->count > repetitions)
            repetitions = metric->count;
        code = store_metric_id(k->store, metric->name, metric->unit, metric->facts, "metric",
                               &ids[m], err);
    }
    for (size_t i = 0; i < repetitions && code == 0; i++)
        code = add_run(k, index, i, ids, err);
    k->tally->failed += b->failure != NULL;
    k->tally->failed_runs += b->failed_runs;
    return code;
}

int keep_harness(struct store *store, const struct harness_results *r,
                 const struct keep_harness_options *o, struct keep_harness_tally *ret_tally,
                 struct error *err)
{
    *ret_tally = (struct keep_harness_tally){.cells = r->count};
    struct keeping k = {.store = store,
                        .r = r,
                        .at_ns = o->measured_at_ns ? o->measured_at_ns : r->measured_at_ns,
                        .cells = memory_zalloc(r->count + 1, sizeof(int64_t)),
                        .runs = memory_zalloc(RUNS_AT_ONCE, sizeof(struct store_new_run)),
                        .tally = ret_tally};
    find_factors(&k);
    int code = begin(&k, o, err);
    bool began = code == 0;
    for (size_t b = 0; b < r->count && code == 0; b++)
        code = add_benchmark(&k, b, err);
    if (code == 0)
        code = flush(&k, err);
    if (code == 0)
        code = store_finish(store, ret_tally->id, "done", err);
    struct error ignored;
    if (code < 0 && began)
        store_remove(store, ret_tally->id, &ignored);
    free(k.factors);
    free(k.cells);
    free(k.runs);
    free(k.values);
    return code;
}
