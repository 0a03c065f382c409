/* SPDX-License-Identifier: MIT */
/* See hyperfine.h; the files themselves are read by harness/hyperfine.c. */
#include "analysis/hyperfine.h"
#include "base/memory.h"
#include "base/strings.h"
#include "harness/harness.h"

#include <errno.h>

void imported_done(struct imported *i)
{
    for (size_t at = 0; at < i->count; at++) {
        free(i->results[at].name);
        free(i->results[at].command);
        free(i->results[at].parameters);
        free(i->results[at].wall_ns);
        free(i->results[at].rss_bytes);
    }
    free(i->results);
    *i = (struct imported){0};
}

void imported_fill(const struct imported *i, struct dataset *d)
{
    static const struct metric_facts speed = {.better = METRIC_LOWER, .is_speed = true};
    bool has_memory = true;
    size_t wall = dataset_add_metric(d, "wall", "ns", "time", speed);
    for (size_t at = 0; at < i->count; at++) {
        has_memory &= i->results[at].rss_count > 0;
        for (size_t k = 0; k < i->results[at].wall_count; k++)
            dataset_put(d, wall, at, (uint32_t)k, i->results[at].wall_ns[k]);
    }
    size_t rss = has_memory ? dataset_add_metric(d, "peak-rss", "bytes", "time",
                                                 (struct metric_facts){.better = METRIC_LOWER})
                            : DATASET_NONE;
    for (size_t at = 0; has_memory && at < i->count; at++)
        for (size_t k = 0; k < i->results[at].rss_count; k++)
            dataset_put(d, rss, at, (uint32_t)k, i->results[at].rss_bytes[k]);
    d->apart = !i->paired;
    dataset_settle(d);
}

/* Copies the values of a metric; none where the benchmark does not have it. */
static double *copy_values(const struct harness_benchmark *b, const char *name, double factor,
                           size_t *ret_count)
{
    const struct harness_metric *m = NULL;
    for (size_t i = 0; i < b->metric_count && !m; i++)
        if (str_eq(b->metrics[i].name, name) && !b->metrics[i].is_summary)
            m = &b->metrics[i];
    *ret_count = m ? m->count : 0;
    double *values = memory_zalloc(*ret_count + 1, sizeof(*values));
    for (size_t i = 0; i < *ret_count; i++)
        values[i] = m->values[i] * factor;
    return values;
}

static char *describe_parameters(const struct harness_benchmark *b)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    for (size_t i = 0; i < b->param_count; i++)
        strbuf_printf(&out, "%s%s=%s", i ? ", " : "", b->params[i].name, b->params[i].value);
    return memory_strdup(strbuf_text(&out));
}

static int take(struct imported *into, const struct harness_results *read, const char *path,
                struct error *err)
{
    for (size_t i = 0; i < read->count; i++) {
        const struct harness_benchmark *b = &read->benchmarks[i];
        struct imported_result *one = &ARRAY_PUSH(into->results, into->count, into->capacity);
        *one = (struct imported_result){.name = memory_strdup(b->name),
                                        .command = memory_strdup(b->command),
                                        .parameters = describe_parameters(b),
                                        .failed_runs = b->failed_runs};
        one->wall_ns = copy_values(b, "wall", 1e9, &one->wall_count);
        one->rss_bytes = copy_values(b, "peak-rss", 1, &one->rss_count);
        if (!one->wall_count)
            return error_set(err, -EINVAL,
                             "%s: results[%zu]: there are no 'times'; hyperfine writes them to "
                             "JSON, but not to CSV or Markdown",
                             path, i);
    }
    return 0;
}

/* Results that would have the same name are numbered. */
static void make_names_unique(struct imported *i)
{
    for (size_t at = 0; at < i->count; at++) {
        size_t same = 0, before = 0;
        for (size_t other = 0; other < i->count; other++) {
            bool equal = str_eq(i->results[other].command, i->results[at].command) &&
                         str_eq(i->results[other].parameters, i->results[at].parameters);
            same += equal;
            before += equal && other < at;
        }
        if (same < 2)
            continue;
        free(i->results[at].name);
        i->results[at].name = memory_printf("%s #%zu", i->results[at].command, before + 1);
    }
}

int hyperfine_import(const char *const *paths, size_t path_count, struct imported *ret_imported,
                     struct error *err)
{
    struct imported imported = {.paired = path_count == 1};
    int r = 0;
    for (size_t i = 0; i < path_count && r == 0; i++) {
        CLEANUP(harness_results_done) struct harness_results read = {0};
        r = harness_read(&read, paths[i], "hyperfine", err);
        if (r == 0)
            r = take(&imported, &read, paths[i], err);
        imported.paired = imported.paired && read.is_paired;
    }
    for (size_t i = 0; r == 0 && i < imported.count; i++)
        imported.paired &= imported.results[i].wall_count == imported.results[0].wall_count;
    if (r == 0) {
        make_names_unique(&imported);
        *ret_imported = imported;
    } else {
        imported_done(&imported);
    }
    return r;
}
