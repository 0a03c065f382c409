/* SPDX-License-Identifier: MIT */
/* What `assay ab --json` wrote, as an experiment: the commands are a factor, and so is each
 * parameter. */
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
                     "not what assay ab --json writes: %s; a page takes recordings, reports of "
                     "assay html, and JSON of assay ab or explain",
                     what);
}

/* Value of a parameter in "size=64, n=2"; "" when it is not there.  The caller frees it. */
static char *parameter(const char *parameters, const char *name)
{
    size_t length = strlen(name);
    for (const char *p = parameters; *p;) {
        size_t word = strcspn(p, ",");
        if (word > length && strncmp(p, name, length) == 0 && p[length] == '=')
            return memory_strndup(p + length + 1, word - length - 1);
        p += word;
        p += strspn(p, ", ");
    }
    return memory_strdup("");
}

/* "command", then the names of the parameters of the first command. */
static void find_factors(struct dataset *d, const json_t *commands)
{
    size_t capacity = 0;
    ARRAY_PUSH(d->factors, d->factor_count, capacity) = memory_strdup("command");
    const char *p = text_at(json_array_get(commands, 0), "parameters");
    while (*p) {
        size_t word = strcspn(p, ","), name = strcspn(p, "=,");
        if (name < word && name > 0)
            ARRAY_PUSH(d->factors, d->factor_count, capacity) = memory_strndup(p, name);
        p += word;
        p += strspn(p, ", ");
    }
}

static void add_cell(struct dataset *d, const json_t *command, struct strbuf *baseline)
{
    const char *name = text_at(command, "name"), *parameters = text_at(command, "parameters");
    struct dataset_cell *c = &ARRAY_PUSH(d->cells, d->cell_count, d->cell_capacity);
    *c = (struct dataset_cell){
        .id = (int64_t)d->cell_count,
        .label = memory_printf("%s%s%s", name, *parameters ? ", " : "", parameters),
        .command = memory_strdup(text_at(command, "command")),
        .build_id = memory_strdup(""),
        .levels = memory_zalloc(d->factor_count + 1, sizeof(char *))};
    c->levels[0] = memory_strdup(name);
    for (size_t f = 1; f < d->factor_count; f++)
        c->levels[f] = parameter(parameters, d->factors[f]);
    if (json_is_true(json_object_get(command, "is_reference")) && !baseline->length)
        strbuf_printf(baseline, "command=%s", name);
}

static void add_metric(struct dataset *d, const json_t *metric, struct strbuf *headline)
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
    ARRAY_PUSH(d->metrics, d->metric_count, d->metric_capacity) =
        (struct store_metric){.id = (int64_t)d->metric_count + 1,
                              .name = memory_strdup(name),
                              .unit = memory_strdup(unit),
                              .kind = memory_strdup(kind),
                              .facts = facts};
    if (json_is_true(json_object_get(metric, "is_headline")) || str_eq(source, "program"))
        strbuf_printf(headline, "%s%s", headline->length ? "\n" : "", name);
}

static int add_values(struct dataset *d, const json_t *metric, size_t index,
                      struct dataset_value **values, size_t *count, size_t *capacity,
                      struct error *err)
{
    const json_t *commands = json_object_get(metric, "commands");
    for (size_t c = 0; c < json_array_size(commands) && c < d->cell_count; c++) {
        size_t i;
        const json_t *value;
        json_array_foreach(json_object_get(json_array_get(commands, c), "values"), i, value)
        {
            if (json_is_null(value))
                continue;
            if (!json_is_number(value) || i > UINT32_MAX)
                return wrong(err, "a value is no number");
            ARRAY_PUSH(*values, *count, *capacity) =
                (struct dataset_value){.value = json_number_value(value),
                                       .metric = (uint32_t)index,
                                       .cell = (uint32_t)c,
                                       .round = (uint32_t)i};
        }
    }
    return 0;
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
        int status = (int)json_integer_value(json_object_get(run, "exit_code")) << 8;
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
        return wrong(err, *format ? "it has another format" : "it names no format");
    if (!json_array_size(commands) || !json_array_size(metrics))
        return wrong(err, "there are no commands or metrics");
    struct embedded_documents *t = &ARRAY_PUSH(e->documents, e->set_count, e->document_capacity);
    e->sets = memory_grow(e->sets, &e->set_capacity, e->set_count, sizeof(*e->sets));
    struct dataset *d = &e->sets[e->set_count - 1];
    *d = (struct dataset){0};
    char *machine = json_dumps(json_object_get(root, "machine"), JSON_INDENT(2));
    *t = (struct embedded_documents){memory_strdup(machine ? machine : ""), memory_strdup(""),
                                     memory_strdup("")};
    free(machine);
    CLEANUP(strbuf_done) struct strbuf baseline = {0}, headline = {0};
    find_factors(d, commands);
    for (size_t i = 0; i < json_array_size(commands); i++)
        add_cell(d, json_array_get(commands, i), &baseline);
    struct dataset_value *values = NULL;
    size_t count = 0, capacity = 0;
    int r = 0;
    for (size_t i = 0; i < json_array_size(metrics); i++)
        add_metric(d, json_array_get(metrics, i), &headline);
    for (size_t i = 0; r == 0 && i < json_array_size(metrics); i++)
        r = add_values(d, json_array_get(metrics, i), i, &values, &count, &capacity, err);
    dataset_deal(d, values, r == 0 ? count : 0);
    free(values);
    const char *base = strrchr(name, '/');
    d->experiment = (struct store_experiment){
        .uuid = memory_strdup(""),
        .name = memory_printf("%s", base ? base + 1 : name),
        .question = memory_strdup("which of the commands is faster?"),
        .state = memory_strdup("done"),
        .git_commit = memory_strdup(""),
        .selection = memory_strdup(""),
        .baseline = memory_strdup(strbuf_text(&baseline)),
        .headline = memory_strdup(strbuf_text(&headline)),
        .spec_path = memory_strdup(""),
        .spec_hash = memory_strdup(""),
        .seed = (uint64_t)json_integer_value(
            json_object_get(json_object_get(root, "settings"), "seed")),
        .started_at_ns = moment_of(text_at(root, "started")),
        .cell_count = d->cell_count,
    };
    add_runs(d, json_object_get(root, "runs"));
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
            "%s is no recording, no report of assay html and no JSON of assay ab or explain (%s at "
            "byte %d); look whether it is the file that is meant",
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
    return error_set(err, -ENOTSUP, "%s: assay was built without jansson and reads no JSON", name);
}

#endif
