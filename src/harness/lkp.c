/* SPDX-License-Identifier: MIT */
/*
 * LKP's results: matrix.json has each metric's values over the runs of one job, stats.json those of
 * one run.  A result root holds them at TESTCASE/PARAMETERS/TBOX/ROOTFS/KCONFIG/COMPILER/COMMIT,
 * with a directory 0, 1, … for each run; these names become the factors, so that two commits can be
 * compared.
 */
#include "base/fd.h"
#include "base/memory.h"
#include "base/strings.h"
#include "harness/formats.h"
#include "harness/json.h"
#include "harness/walk.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

enum { AXIS_COUNT = 7 };
static const char *const axes[AXIS_COUNT] = {"testcase", "params",   "tbox",  "rootfs",
                                             "kconfig",  "compiler", "commit"};

/* A benchmark's own result: throughput where its name says so. */
static struct metric_facts facts_of(const char *name)
{
    static const char *const rates[] = {"_ops",    "throughput", "MBps",     "score",
                                        "per_sec", "_rate",      ".workload"};
    static const char *const times[] = {"latency", "runtime", "elapsed_time"};
    if (str_has_prefix(name, "perf-profile") || str_has_prefix(name, "proc-vmstat"))
        return HARNESS_PLAIN;
    for (size_t i = 0; i < ARRAY_COUNT(rates); i++)
        if (strstr(name, rates[i]))
            return HARNESS_RATE;
    for (size_t i = 0; i < ARRAY_COUNT(times); i++)
        if (strstr(name, times[i]))
            return HARNESS_TIME;
    return HARNESS_PLAIN;
}

static int put_matrix(void *context, const char *key, const struct json_t *value)
{
    struct harness_benchmark *b = context;
    for (size_t i = 0; i < harness_length(value); i++)
        harness_put_at(harness_metric(b, key, "", facts_of(key)), i,
                       harness_value(harness_item(value, i)));
    return 0;
}

struct one_run {
    struct harness_benchmark *b;
    size_t number;
};

static int put_stats(void *context, const char *key, const struct json_t *value)
{
    struct one_run *run = context;
    double number = harness_value(value);
    if (number == number)
        harness_put_at(harness_metric(run->b, key, "", facts_of(key)), run->number, number);
    return 0;
}

static bool is_matrix(const struct json_t *document)
{
    return harness_length(harness_get(document, "stats_source")) > 0;
}

/* Only the form "monitor.metric" tells: a name with a dot and numbers. */
struct shape {
    size_t dotted, others;
};

static int look_at(void *context, const char *key, const struct json_t *value)
{
    struct shape *s = context;
    bool is_number = harness_value(value) == harness_value(value) ||
                     harness_value(harness_item(value, 0)) == harness_value(harness_item(value, 0));
    if (strchr(key, '.') && is_number)
        s->dotted++;
    else
        s->others++;
    return 0;
}

bool lkp_json_is(const struct json_t *document)
{
    struct shape s = {0};
    if (is_matrix(document))
        return true;
    harness_each(document, look_at, &s);
    return s.dotted > 0 && s.dotted > s.others;
}

int lkp_json_read(struct harness_results *r, const struct json_t *document, struct error *err)
{
    (void)err;
    struct harness_benchmark *b = harness_add(r, "lkp");
    struct one_run run = {.b = b};
    harness_each(document, put_matrix, b);
    harness_each(document, put_stats, &run);
    return 0;
}

static char *file_in(const char *directory, const char *name)
{
    return memory_printf("%s/%s", directory, name);
}

/* The numbers of the runs that have results, in order; a run that failed may have none. */
struct run_numbers {
    size_t *numbers;
    size_t count, capacity;
};

static void run_numbers_done(struct run_numbers *r)
{
    free(r->numbers);
}

static int compare_numbers(const void *a, const void *b)
{
    const size_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static void find_runs(const char *directory, struct run_numbers *ret_runs)
{
    DIR *dir = opendir(directory);
    const struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        size_t length = strlen(entry->d_name);
        CLEANUP(memory_freep)
        char *path = memory_printf("%s/%s/stats.json", directory, entry->d_name);
        if (strspn(entry->d_name, "0123456789") == length && length < 9 && access(path, F_OK) == 0)
            ARRAY_PUSH(ret_runs->numbers, ret_runs->count, ret_runs->capacity) =
                strtoul(entry->d_name, NULL, 10);
    }
    if (dir)
        closedir(dir);
    if (ret_runs->count)
        qsort(ret_runs->numbers, ret_runs->count, sizeof(*ret_runs->numbers), compare_numbers);
}

static bool has_results(const char *directory)
{
    CLEANUP(memory_freep) char *matrix = file_in(directory, "matrix.json");
    CLEANUP(run_numbers_done) struct run_numbers runs = {0};
    if (access(matrix, F_OK) == 0)
        return true;
    find_runs(directory, &runs);
    return runs.count > 0;
}

bool lkp_is(const char *path)
{
    return walk_has(path, has_results);
}

/* The last seven names of the path, where it lies in a result root; else the path itself names it.
 */
static void name_benchmark(struct harness_benchmark *b, const char *directory, const char *root)
{
    char whole[PATH_MAX], *names[256] = {0};
    size_t count = 0;
    if (!realpath(directory, whole))
        snprintf(whole, sizeof(whole), "%s", directory);
    char *rest = NULL;
    for (char *name = strtok_r(whole, "/", &rest); name && count < ARRAY_COUNT(names);
         name = strtok_r(NULL, "/", &rest))
        names[count++] = name;
    size_t below = 0;
    for (const char *at = directory + strlen(root); *at; at++)
        below += *at == '/' && at[1] && at[1] != '/';
    bool in_root = count > AXIS_COUNT &&
                   (below >= AXIS_COUNT || str_eq(names[count - AXIS_COUNT - 1], "result"));
    if (!in_root) {
        harness_set(&b->name, below ? directory + strlen(root) + 1 : names[count ? count - 1 : 0]);
        return;
    }
    harness_set(&b->name, names[count - AXIS_COUNT]);
    for (size_t i = 0; i < AXIS_COUNT; i++)
        harness_param(b, axes[i], names[count - AXIS_COUNT + i]);
}

struct tree_reading {
    struct harness_results *r;
    const char *root;
};

static int load(const char *path, struct json_t **ret_document, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    int code = file_read(path, &text, err);
    if (code == 0)
        code = harness_json_load(strbuf_text(&text), text.length, ret_document, err);
    return code < 0 ? error_wrap(err, code, "%s", path) : 0;
}

static int read_runs(struct harness_benchmark *b, const char *directory, struct error *err)
{
    CLEANUP(run_numbers_done) struct run_numbers runs = {0};
    int code = 0;
    find_runs(directory, &runs);
    for (size_t i = 0; i < runs.count && code == 0; i++) {
        CLEANUP(memory_freep)
        char *path = memory_printf("%s/%zu/stats.json", directory, runs.numbers[i]);
        CLEANUP(harness_json_freep) struct json_t *document = NULL;
        struct one_run run = {b, i};
        code = load(path, &document, err);
        if (code == 0)
            harness_each(document, put_stats, &run);
    }
    return code;
}

static int read_job(void *context, const char *directory, struct error *err)
{
    const struct tree_reading *reading = context;
    if (!has_results(directory))
        return 0;
    CLEANUP(memory_freep) char *matrix = file_in(directory, "matrix.json");
    CLEANUP(harness_json_freep) struct json_t *document = NULL;
    struct harness_benchmark *b = harness_add(reading->r, "lkp");
    name_benchmark(b, directory, reading->root);
    if (access(matrix, F_OK) < 0)
        return read_runs(b, directory, err);
    int code = load(matrix, &document, err);
    if (code == 0)
        harness_each(document, put_matrix, b);
    return code;
}

int lkp_read(struct harness_results *r, const char *path, struct error *err)
{
    struct tree_reading reading = {r, path};
    return walk(path, read_job, &reading, err);
}
