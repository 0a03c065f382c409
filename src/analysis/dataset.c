/* SPDX-License-Identifier: MIT */
/*
 * Loading: values come in the order of the runs and are dealt into their columns by counting, so
 * that a million of them take about a second, most of it in the database.
 */
#include "analysis/dataset.h"
#include "analysis/sparse.h"
#include "base/json_read.h"
#include "base/memory.h"
#include "base/strings.h"
#include "stats/summary.h"
#include "store/store_rows.h"

#include <assert.h>
#include <errno.h>
#include <math.h>

struct loader {
    struct dataset *d;
    struct dataset_value *values;
    size_t count, capacity;
    uint32_t *metric_of_id; /* index + 1 of the metric with that id, 0 for none */
    size_t metric_id_count;
};

static int load_factors(struct dataset *d, struct store *store, struct error *err)
{
    CLEANUP(store_cursor_done) struct store_cursor rows = {0};
    size_t capacity = 0;
    const char *name;
    int r = store_factors(store, d->experiment.id, &rows, err);
    if (r < 0)
        return r;
    while ((r = store_next_text(&rows, &name, err)) > 0)
        ARRAY_PUSH(d->factors, d->factor_count, capacity) = memory_strdup(name);
    return r;
}

static int load_cells(struct dataset *d, struct store *store, struct error *err)
{
    CLEANUP(store_cursor_done) struct store_cursor rows = {0};
    struct store_cell_row row;
    int r = store_cells(store, d->experiment.id, &rows, err);
    if (r < 0)
        return r;
    while ((r = store_next_cell(&rows, &row, err)) > 0)
        ARRAY_PUSH(d->cells, d->cell_count, d->cell_capacity) = (struct dataset_cell){
            .id = row.id,
            .label = memory_strdup(row.label),
            .command = memory_strdup(row.command),
            .build_id = memory_strdup(row.build_id),
            .levels = memory_zalloc(d->factor_count + 1, sizeof(char *)),
        };
    return r;
}

static size_t cell_of_id(const struct dataset *d, int64_t id)
{
    size_t low = 0, high = d->cell_count; /* ids ascend with the ordinals */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (d->cells[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < d->cell_count && d->cells[low].id == id ? low : DATASET_NONE;
}

static int compare_labels(const void *a, const void *b, void *context)
{
    const struct dataset *d = context;
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    int order = strcmp(d->cells[x].label, d->cells[y].label);
    return order ? order : (x > y) - (x < y);
}

void dataset_index(struct dataset *d)
{
    free(d->by_label);
    d->by_label = memory_zalloc(d->cell_count + 1, sizeof(*d->by_label));
    for (size_t c = 0; c < d->cell_count; c++)
        d->by_label[c] = c;
    qsort_r(d->by_label, d->cell_count, sizeof(*d->by_label), compare_labels, d);
}

static int load_levels(struct dataset *d, struct store *store, struct error *err)
{
    CLEANUP(store_cursor_done) struct store_cursor rows = {0};
    struct store_level_row row;
    int r = store_levels(store, d->experiment.id, &rows, err);
    if (r < 0)
        return r;
    while ((r = store_next_level(&rows, &row, err)) > 0) {
        size_t cell = cell_of_id(d, row.cell);
        if (cell != DATASET_NONE && row.factor >= 0 && (size_t)row.factor < d->factor_count &&
            !d->cells[cell].levels[row.factor])
            d->cells[cell].levels[row.factor] = memory_strdup(row.value);
    }
    for (size_t c = 0; c < d->cell_count; c++)
        for (size_t f = 0; f < d->factor_count; f++)
            if (!d->cells[c].levels[f])
                d->cells[c].levels[f] = memory_strdup("");
    return r;
}

/* "node=NAME" among the words of a run's layout. */
static uint32_t node_of_layout(struct dataset *d, const char *layout)
{
    static const char key[] = "node=";
    const char *found = str_has_prefix(layout, key) ? layout : NULL;
    if (!found)
        return DATASET_NO_NODE;
    const char *name = found + sizeof(key) - 1;
    size_t length = strcspn(name, " ");
    for (size_t n = d->node_count; n-- > 0;)
        if (strlen(d->nodes[n].name) == length && memcmp(d->nodes[n].name, name, length) == 0)
            return (uint32_t)n;
    ARRAY_PUSH(d->nodes, d->node_count, d->node_capacity) =
        (struct dataset_node){.name = memory_strndup(name, length)};
    return (uint32_t)d->node_count - 1;
}

static int load_runs(struct dataset *d, struct store *store, struct error *err)
{
    CLEANUP(store_cursor_done) struct store_cursor rows = {0};
    struct store_run_row row;
    int r = store_runs(store, d->experiment.id, &rows, err);
    if (r < 0)
        return r;
    while ((r = store_next_run(&rows, &row, err)) > 0) {
        size_t cell = cell_of_id(d, row.cell);
        if (cell == DATASET_NONE)
            continue;
        struct dataset_run *run = &ARRAY_PUSH(d->runs, d->run_count, d->run_capacity);
        *run = (struct dataset_run){
            .id = row.id,
            .cell = cell,
            .round = row.round,
            .attempt = row.attempt,
            .position = row.position,
            .started_at_ns = row.started_at_ns,
            .wall_ns = row.wall_ns,
            .status = row.status,
            .disturbed = row.disturbed,
            .node = node_of_layout(d, row.layout),
        };
        d->cells[cell].run_count++;
        d->cells[cell].failed_count += run->status != 0;
        d->cells[cell].disturbed_count += run->disturbed;
    }
    return r;
}

static int load_failures(struct dataset *d, struct store *store, struct error *err)
{
    CLEANUP(store_cursor_done) struct store_cursor rows = {0};
    struct store_failure_row row;
    if (!d->experiment.failed_count)
        return 0;
    int r = store_failures(store, d->experiment.id, &rows, err);
    if (r < 0)
        return r;
    while ((r = store_next_failure(&rows, &row, err)) > 0) {
        size_t cell = cell_of_id(d, row.cell);
        if (cell == DATASET_NONE)
            continue;
        d->cells[cell].last_status = row.status;
        free(d->cells[cell].last_words);
        d->cells[cell].last_words = *row.output ? memory_strdup(row.output) : NULL;
    }
    return r;
}

/* The metric's index, loading it at its first use. */
static int metric_index(struct loader *l, struct store *store, int64_t id, uint32_t *ret_index,
                        struct error *err)
{
    struct dataset *d = l->d;
    if (id > 0 && (size_t)id < l->metric_id_count && l->metric_of_id[id]) {
        *ret_index = l->metric_of_id[id] - 1;
        return 0;
    }
    if (id <= 0 || id > 100000000)
        return error_set(err, -EINVAL, "the store is damaged: metric %lld", (long long)id);
    struct store_metric metric;
    int r = store_read_metric(store, id, &metric, err);
    if (r < 0)
        return r;
    ARRAY_PUSH(d->metrics, d->metric_count, d->metric_capacity) = metric;
    if ((size_t)id >= l->metric_id_count) {
        size_t count = (size_t)id * 2 + 16;
        l->metric_of_id = memory_resize(l->metric_of_id, count, sizeof(*l->metric_of_id));
        memset(l->metric_of_id + l->metric_id_count, 0,
               (count - l->metric_id_count) * sizeof(*l->metric_of_id));
        l->metric_id_count = count;
    }
    l->metric_of_id[id] = (uint32_t)d->metric_count;
    *ret_index = (uint32_t)d->metric_count - 1;
    return 0;
}

static int load_values(struct loader *l, struct store *store, struct error *err)
{
    CLEANUP(store_cursor_done) struct store_cursor rows = {0};
    struct store_value_row row;
    int r = store_values(store, l->d->experiment.id, &rows, err);
    if (r < 0)
        return r;
    size_t run = 0; /* both come in the order of the runs' ids */
    while ((r = store_next_value(&rows, &row, err)) > 0) {
        uint32_t metric = 0;
        while (run < l->d->run_count && l->d->runs[run].id < row.run)
            run++;
        if (run == l->d->run_count || l->d->runs[run].id != row.run)
            continue; /* kept since the runs were read, or of no cell */
        const struct dataset_run *of = &l->d->runs[run];
        r = metric_index(l, store, row.metric, &metric, err);
        if (r < 0)
            break;
        ARRAY_PUSH(l->values, l->count, l->capacity) =
            (struct dataset_value){.value = row.value,
                                   .metric = metric,
                                   .cell = (uint32_t)of->cell,
                                   .node = of->node,
                                   .round = (uint32_t)of->round};
    }
    return r;
}

/* The sparse metrics that a watched run does not have are zeros; see sparse.h.  Values come run by
 * run. */
static void add_zeros(struct loader *l)
{
    const struct dataset *d = l->d;
    CLEANUP(memory_freep) uint32_t *sparse = memory_zalloc(d->metric_count + 1, sizeof(*sparse));
    CLEANUP(memory_freep) size_t *markers = memory_zalloc(d->metric_count + 1, sizeof(*markers));
    CLEANUP(memory_freep) size_t *seen = memory_zalloc(d->metric_count + 1, sizeof(*seen));
    size_t sparse_count = 0, count = l->count;
    for (size_t m = 0; m < d->metric_count; m++) {
        const char *name = sparse_marker(d->metrics[m].name);
        size_t marker = name ? dataset_metric(d, name) : DATASET_NONE;
        if (marker == DATASET_NONE)
            continue;
        markers[sparse_count] = marker;
        sparse[sparse_count++] = (uint32_t)m;
    }
    for (size_t first = 0, end; sparse_count && first < count; first = end) {
        const struct dataset_value run = l->values[first];
        for (end = first;
             end < count && l->values[end].cell == run.cell && l->values[end].round == run.round;
             end++)
            seen[l->values[end].metric] = end + 1;
        for (size_t i = 0; i < sparse_count; i++)
            if (seen[markers[i]] > first && seen[sparse[i]] <= first)
                ARRAY_PUSH(l->values, l->count, l->capacity) = (struct dataset_value){
                    .metric = sparse[i], .cell = run.cell, .round = run.round, .node = run.node};
    }
}

void dataset_take_environment(struct dataset *d, const char *json)
{
    free(d->emulated);
    free(d->environment);
    d->environment = json ? memory_strdup(json) : NULL;
    d->emulated = json_member_text(json, "emulated");
    CLEANUP(memory_freep) char *layouts = json_member_text(json, "layouts");
    d->has_layouts = layouts && str_eq(layouts, "rounds");
    CLEANUP(memory_freep) char *apart = json_member_text(json, "apart");
    d->apart = apart && str_eq(apart, "true");
}

int dataset_load(struct dataset *d, struct store *store, int64_t experiment, struct error *err)
{
    *d = (struct dataset){0};
    struct loader l = {.d = d};
    int r = store_experiment(store, experiment, &d->experiment, err);
    if (r == 0)
        r = load_factors(d, store, err);
    if (r == 0)
        r = load_cells(d, store, err);
    if (r == 0)
        dataset_index(d);
    if (r == 0)
        r = load_levels(d, store, err);
    if (r == 0)
        r = load_runs(d, store, err);
    if (r == 0)
        r = load_failures(d, store, err);
    if (r == 0)
        r = load_values(&l, store, err);
    if (r == 0)
        store_document(store, experiment, "subject", &d->subject, NULL);
    CLEANUP(memory_freep) char *environment = NULL;
    if (r == 0 && store_document(store, experiment, "environment", &environment, NULL) == 0)
        dataset_take_environment(d, environment);
    for (size_t n = 0; r == 0 && n < d->node_count; n++) {
        CLEANUP(memory_freep) char *kind = memory_printf("node:%s", d->nodes[n].name);
        store_document(store, experiment, kind, &d->nodes[n].text, NULL);
    }
    if (r == 0) {
        add_zeros(&l);
        dataset_deal(d, l.values, l.count);
        dataset_find_baselines(d);
    }
    free(l.values);
    free(l.metric_of_id);
    if (r < 0)
        dataset_done(d);
    return r;
}

void dataset_done(struct dataset *d)
{
    store_experiment_done(&d->experiment);
    free(d->subject);
    free(d->environment);
    free(d->emulated);
    free(d->by_label);
    for (size_t c = 0; c < d->cell_count; c++) {
        free(d->cells[c].label);
        free(d->cells[c].command);
        free(d->cells[c].build_id);
        free(d->cells[c].last_words);
        for (size_t f = 0; f < d->factor_count; f++)
            free(d->cells[c].levels[f]);
        free(d->cells[c].levels);
    }
    for (size_t f = 0; f < d->factor_count; f++)
        free(d->factors[f]);
    for (size_t m = 0; m < d->metric_count; m++) {
        free(d->metrics[m].name);
        free(d->metrics[m].unit);
        free(d->metrics[m].kind);
    }
    for (size_t n = 0; n < d->node_count; n++) {
        free(d->nodes[n].name);
        free(d->nodes[n].text);
    }
    free(d->nodes);
    free(d->value_nodes);
    free(d->cells);
    free(d->factors);
    free(d->metrics);
    free(d->runs);
    free(d->values);
    free(d->rounds);
    free(d->starts);
    free(d->bounds);
    free(d->loose);
    *d = (struct dataset){0};
}

struct dataset_column dataset_column(const struct dataset *d, size_t metric, size_t cell)
{
    size_t c = metric * d->cell_count + cell;
    return (struct dataset_column){.values = d->values + d->starts[c],
                                   .rounds = d->rounds + d->starts[c],
                                   .nodes = d->value_nodes ? d->value_nodes + d->starts[c] : NULL,
                                   .count = d->starts[c + 1] - d->starts[c]};
}

double dataset_median(const struct dataset *d, size_t metric, size_t cell)
{
    struct dataset_column column = dataset_column(d, metric, cell);
    CLEANUP(memory_freep) double *scratch = memory_zalloc(column.count + 1, sizeof(double));
    return stats_median(column.values, column.count, scratch);
}

size_t dataset_metric(const struct dataset *d, const char *name)
{
    for (size_t m = 0; m < d->metric_count; m++)
        if (str_eq(d->metrics[m].name, name))
            return m;
    return DATASET_NONE;
}

size_t dataset_factor(const struct dataset *d, const char *name)
{
    for (size_t f = 0; f < d->factor_count; f++)
        if (str_eq(d->factors[f], name))
            return f;
    return DATASET_NONE;
}

/* Whether a name and "=" begin here: of a factor or, behind a comma, of anything that could be one.
 */
static bool begins_level(const struct dataset *d, const char *text, bool behind_comma)
{
    size_t length = strcspn(text, "=, ");
    bool could_be = behind_comma && length && *text != '-' && *text != '.';
    for (size_t f = 0; f < d->factor_count && !could_be; f++)
        could_be = strlen(d->factors[f]) == length && !strncmp(d->factors[f], text, length);
    return text[length] == '=' && could_be;
}

/* Where the next name begins, or the text ends; what separates them is cut off. */
static char *cut_value(const struct dataset *d, char *value)
{
    for (char *at = value; (at = strpbrk(at, ", ")) != NULL; at++) {
        char *next = at + strspn(at, ", ");
        if (*next && !begins_level(d, next, memchr(at, ',', (size_t)(next - at)) != NULL))
            continue;
        *at = '\0';
        return next;
    }
    return value + strlen(value);
}

int dataset_parse_levels(const struct dataset *d, char *text, const char **levels,
                         struct error *err)
{
    text += strspn(text, ", ");
    while (*text) {
        char *equals = strchr(text, '=');
        if (!equals)
            return error_set(err, -EINVAL, "'%s' is not factor=value", text);
        *equals = '\0';
        size_t factor = dataset_factor(d, text);
        if (factor == DATASET_NONE)
            return error_set(err, -ENOENT, "experiment %lld has no factor '%s'",
                             (long long)d->experiment.id, text);
        levels[factor] = equals + 1;
        text = cut_value(d, equals + 1);
    }
    return 0;
}

bool dataset_has_rivals(const struct dataset *d, size_t factor)
{
    bool is_imported = str_eq(d->experiment.spec_path, "assay import");
    if (!is_imported || !str_eq(d->factors[factor], "benchmark"))
        return true;
    for (size_t c = 0; c < d->cell_count; c++)
        if (*d->cells[c].command)
            return true;
    return false;
}

size_t dataset_cell(const struct dataset *d, const char *label)
{
    for (size_t c = 0; !d->by_label && c < d->cell_count; c++)
        if (str_eq(d->cells[c].label, label))
            return c;
    size_t low = 0, high = d->by_label ? d->cell_count : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(d->cells[d->by_label[middle]].label, label) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return d->by_label && low < d->cell_count && str_eq(d->cells[d->by_label[low]].label, label)
               ? d->by_label[low]
               : DATASET_NONE;
}

/* Whether the name at `at` stands in the list before, too. */
static bool is_repeated(const char *list, size_t at, size_t length)
{
    for (size_t i = 0, one; i < at; i += one + 1) {
        one = strcspn(list + i, "\n");
        if (one == length && memcmp(list + i, list + at, length) == 0)
            return true;
    }
    return false;
}

/* The position is the place of a name in the list, and above it the metric to look at next: one
 * name may stand for several metrics, which differ in their units. */
size_t dataset_headline(const struct dataset *d, size_t *position)
{
    enum { NAME_BITS = 32 };
    static_assert(sizeof(size_t) * 8 > NAME_BITS, "a position holds two numbers");
    const char *list = d->experiment.headline;
    size_t at = *position & (((size_t)1 << NAME_BITS) - 1), m = *position >> NAME_BITS;
    while (list[at]) {
        const char *name = list + at;
        size_t length = strcspn(name, "\n");
        bool skip = m == 0 && is_repeated(list, at, length);
        for (; m < d->metric_count && !skip; m++)
            if (strlen(d->metrics[m].name) == length &&
                memcmp(d->metrics[m].name, name, length) == 0) {
                *position = (m + 1) << NAME_BITS | at;
                return m;
            }
        at += length + (name[length] == '\n');
        m = 0;
    }
    *position = at;
    return DATASET_NONE;
}

size_t dataset_cell_with(const struct dataset *d, size_t like, size_t factor, const char *level)
{
    for (size_t c = 0; c < d->cell_count; c++) {
        bool same = str_eq(d->cells[c].levels[factor], level);
        for (size_t f = 0; same && f < d->factor_count; f++)
            same = f == factor || str_eq(d->cells[c].levels[f], d->cells[like].levels[f]);
        if (same)
            return c;
    }
    return DATASET_NONE;
}

bool dataset_level_number(const char *text, double *ret_number)
{
    uint64_t bytes;
    if (parse_double(text, ret_number, NULL) == 0)
        return isfinite(*ret_number);
    if (parse_size_bytes(text, &bytes, NULL) == 0) {
        *ret_number = (double)bytes;
        return true;
    }
    size_t length = strlen(text);
    if (length < 2 || text[length - 1] != '%')
        return false;
    CLEANUP(memory_freep) char *number = memory_strndup(text, length - 1);
    return parse_double(number, ret_number, NULL) == 0 && isfinite(*ret_number);
}

bool dataset_counts_workers(const char *factor)
{
    static const char *const words[] = {"thread", "core",   "cpu", "task",      "worker",
                                        "proc",   "client", "job", "connection"};
    for (size_t i = 0; i < ARRAY_COUNT(words); i++)
        if (strcasestr(factor, words[i]))
            return true;
    return false;
}
