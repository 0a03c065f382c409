/* SPDX-License-Identifier: MIT */
/* What `assay ab --json` wrote, as an experiment: the commands are a factor, and so is each
 * parameter. */
#include "analysis/outcome.h"
#include "base/memory.h"
#include "config.h"
#include "report/page/embedded.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

#if HAVE_JANSSON
#include <jansson.h>

static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static int wrong(struct error *err, const char *what)
{
    return error_set(err, -EINVAL,
                     "not written by assay ab --json: %s; a page reads recordings, reports of "
                     "assay html, and JSON of assay ab, gate or explain",
                     what);
}

static void free_participants(struct participant **participants)
{
    free(*participants);
}

/* The texts stay the document's. */
static struct participant *read_participants(const json_t *commands)
{
    size_t count = json_array_size(commands);
    struct participant *people = memory_zalloc(count + 1, sizeof(*people));
    for (size_t i = 0; i < count; i++) {
        const json_t *command = json_array_get(commands, i);
        people[i] = (struct participant){
            .name = (char *)text_at(command, "name"),
            .command = (char *)text_at(command, "command"),
            .parameters = (char *)text_at(command, "parameters"),
            .variant = (char *)json_string_value(json_object_get(command, "variant")),
            .group = (size_t)json_integer_value(json_object_get(command, "group")),
            .is_reference = json_is_true(json_object_get(command, "is_reference"))};
    }
    return people;
}

static size_t add_metric(struct dataset *d, const json_t *metric)
{
    const char *better = text_at(metric, "better"), *source = text_at(metric, "source");
    const char *name = text_at(metric, "name"), *unit = text_at(metric, "unit");
    const char *kind = str_eq(source, "program") ? "metric"
                       : str_eq(source, "event") ? "counter"
                                                 : "time";
    enum metric_better way = str_eq(better, "lower")    ? METRIC_LOWER
                             : str_eq(better, "higher") ? METRIC_HIGHER
                                                        : METRIC_NEITHER;
    unit = str_eq(unit, "count") ? "" : unit;
    const json_t *is_speed = json_object_get(metric, "is_speed");
    struct metric_facts facts = store_facts_before_traits(name, unit, way, kind);
    if (is_speed) {
        facts.is_speed = json_is_true(is_speed);
        facts.is_count = json_is_true(json_object_get(metric, "is_count"));
    }
    return dataset_add_metric(d, name, unit, kind, facts);
}

static int add_values(struct dataset *d, const json_t *metric, size_t index, struct error *err)
{
    const json_t *commands = json_object_get(metric, "commands");
    for (size_t c = 0; c < json_array_size(commands) && c < d->cell_count; c++) {
        const json_t *command = json_array_get(commands, c), *value;
        bool is_bound = json_is_true(json_object_get(command, "is_bound"));
        size_t i;
        json_array_foreach(json_object_get(command, "values"), i, value)
        {
            if (json_is_null(value))
                continue;
            if (!json_is_number(value) || i > UINT32_MAX)
                return wrong(err, "a value is not a number");
            size_t before = d->loose_count;
            dataset_put(d, index, c, (uint32_t)i, json_number_value(value));
            if (d->loose_count > before)
                d->loose[before].is_bound = is_bound;
        }
    }
    return 0;
}

/* As wait4 gives it. */
static int status_of(json_int_t exit_code, json_int_t signal)
{
    return signal > 0 && signal < 0x7f ? (int)signal : (int)(exit_code & 0xff) << 8;
}

/* What a command that failed said last, and how many of its runs did, warm-ups included: `runs` has
 * neither, and may have none of a command that was given up. */
static void add_failures(struct dataset *d, const json_t *commands)
{
    for (size_t c = 0; c < d->cell_count; c++) {
        const json_t *command = json_array_get(commands, c);
        const json_t *failure = json_object_get(command, "failure");
        size_t tries = (size_t)json_integer_value(json_object_get(command, "tries"));
        size_t failed = (size_t)json_integer_value(json_object_get(command, "tries_failed"));
        struct dataset_cell *cell = &d->cells[c];
        if (!json_is_object(failure) || failed > tries || tries > UINT32_MAX)
            continue;
        const char *words = text_at(failure, "last_words");
        int signal = 0;
        sscanf(text_at(failure, "end"), "signal %d", &signal);
        cell->last_status =
            status_of(json_integer_value(json_object_get(failure, "exit_code")), signal);
        free(cell->last_words);
        cell->last_words = *words ? memory_strdup(words) : NULL;
        if (failed < cell->failed_count || tries < cell->run_count)
            continue;
        d->experiment.failed_count += failed - cell->failed_count;
        d->experiment.run_count += tries - cell->run_count;
        cell->failed_count = failed;
        cell->run_count = tries;
    }
}

static void add_runs(struct dataset *d, const json_t *runs)
{
    size_t i;
    const json_t *run;
    json_array_foreach(runs, i, run)
    {
        uint64_t cell = (uint64_t)json_integer_value(json_object_get(run, "command"));
        if (cell >= d->cell_count)
            continue;
        bool disturbed = *text_at(json_object_get(run, "disturbance"), "reason") != '\0';
        int status = status_of(json_integer_value(json_object_get(run, "exit_code")),
                               json_integer_value(json_object_get(run, "signal")));
        ARRAY_PUSH(d->runs, d->run_count, d->run_capacity) = (struct dataset_run){
            .id = (int64_t)i + 1,
            .cell = cell,
            .round = (uint64_t)json_integer_value(json_object_get(run, "round")),
            .position = (uint64_t)json_integer_value(json_object_get(run, "position")),
            .started_at_ns = d->experiment.started_at_ns +
                             (uint64_t)json_integer_value(json_object_get(run, "start_ns")),
            .wall_ns = (uint64_t)json_integer_value(json_object_get(run, "wall_ns")),
            .status = status,
            .disturbed = disturbed,
        };
        d->cells[cell].run_count++;
        d->cells[cell].failed_count += status != 0;
        d->cells[cell].ignored_count += status && json_is_true(json_object_get(run, "is_counted"));
        if (status)
            d->cells[cell].last_status = status;
        d->cells[cell].disturbed_count += disturbed;
        d->experiment.failed_count += status != 0;
        d->experiment.disturbed_count += disturbed;
    }
    d->experiment.run_count = d->run_count;
}

static uint64_t moment_of(const char *text)
{
    struct tm tm = {0};
    return strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) ? (uint64_t)timegm(&tm) * 1000000000u : 0;
}

static int read_root(struct embedded *e, const json_t *root, const char *name, struct error *err)
{
    const json_t *commands = json_object_get(root, "commands");
    const json_t *metrics = json_object_get(root, "metrics");
    const char *format = text_at(root, "format");
    if (!str_eq(format, "assay-ab-1"))
        return wrong(err, *format ? "it has a different format" : "it does not name its format");
    if (!json_array_size(commands) || !json_array_size(metrics))
        return wrong(err, "there are no commands or metrics");
    struct embedded_documents *t = &ARRAY_PUSH(e->documents, e->set_count, e->document_capacity);
    e->sets = memory_grow(e->sets, &e->set_capacity, e->set_count, sizeof(*e->sets));
    struct dataset *d = &e->sets[e->set_count - 1];
    CLEANUP(free_participants) struct participant *people = read_participants(commands);
    outcome_start(d, people, json_array_size(commands));
    char *machine = json_dumps(json_object_get(root, "machine"), JSON_INDENT(2));
    *t = (struct embedded_documents){memory_strdup(machine ? machine : ""), memory_strdup(""),
                                     memory_strdup("")};
    free(machine);
    const char *headline = "wall", *base = strrchr(name, '/');
    int r = 0;
    for (size_t i = 0; r == 0 && i < json_array_size(metrics); i++) {
        const json_t *metric = json_array_get(metrics, i);
        r = add_values(d, metric, add_metric(d, metric), err);
        if (json_is_true(json_object_get(metric, "is_headline")))
            headline = text_at(metric, "name");
    }
    d->apart = json_is_false(json_object_get(root, "paired"));
    d->experiment.adaptive = json_is_true(json_object_get(root, "adaptive"));
    double rounds = json_number_value(json_object_get(root, "rounds"));
    double elapsed_ns = json_number_value(json_object_get(root, "elapsed_ns"));
    d->round_seconds = rounds > 0 && elapsed_ns > 0 ? elapsed_ns / 1e9 / rounds : 0;
    outcome_describe(
        d, base ? base + 1 : name, headline,
        (uint64_t)json_integer_value(json_object_get(json_object_get(root, "settings"), "seed")),
        moment_of(text_at(root, "started")));
    dataset_settle(d);
    dataset_index(d);
    add_runs(d, json_object_get(root, "runs"));
    add_failures(d, commands);
    return r;
}

int embedded_read_ab(struct embedded *e, const char *text, size_t length, const char *name,
                     struct error *err)
{
    json_error_t where;
    json_t *root = json_loadb(text, length, 0, &where);
    if (!root)
        return error_set(
            err, -EINVAL,
            "%s is not a recording, a report of assay html, or JSON of assay ab, gate or "
            "explain (%s at byte %d); check that this is the right file",
            name, where.text, where.position);
    int r = read_root(e, root, name, err);
    json_decref(root);
    return r < 0 ? error_wrap(err, r, "%s", name) : 0;
}

#else

int embedded_read_ab(struct embedded *e, const char *text, size_t length, const char *name,
                     struct error *err)
{
    (void)e, (void)text, (void)length;
    return error_set(err, -ENOTSUP, "%s: assay was built without jansson and cannot read JSON",
                     name);
}

#endif
