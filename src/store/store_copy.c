/* SPDX-License-Identifier: MIT */
/* Rows are read from one store and written to the other with new numbers; metrics are found or
 * made by their names. */
#include "store/store_copy.h"
#include "base/memory.h"
#include "base/strings.h"
#include "store/store_internal.h"

#include <errno.h>

/* When another writer was in the way. */
enum { COPY_TRIES = 8 };

struct id_pair {
    int64_t from, to;
};

struct id_map {
    struct id_pair *pairs; /* ascending in `from` */
    size_t count, capacity;
};

struct copier {
    struct store *from_store, *to_store;
    struct sql *from, *to;
    int64_t old_id, new_id;
    struct id_map cells, runs, metrics;
};

static int64_t mapped(const struct id_map *map, int64_t from)
{
    size_t low = 0, high = map->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (map->pairs[middle].from < from)
            low = middle + 1;
        else
            high = middle;
    }
    return low < map->count && map->pairs[low].from == from ? map->pairs[low].to : 0;
}

static void add_pair(struct id_map *map, int64_t from, int64_t to)
{
    ARRAY_PUSH(map->pairs, map->count, map->capacity) = (struct id_pair){from, to};
}

/* Runs copy_row for each row of a query over the experiment. */
static int each_row(struct copier *c, const char *query,
                    int (*copy_row)(struct copier *c, const struct sql_rows *rows,
                                    struct error *err),
                    struct error *err)
{
    struct sql_rows *rows;
    int r = sql_query(c->from, &rows, err, query, "i", c->old_id);
    if (r < 0)
        return r;
    while ((r = sql_next(rows, err)) > 0) {
        r = copy_row(c, rows, err);
        if (r < 0)
            break;
    }
    sql_rows_done(rows);
    return r;
}

static int copy_experiment(struct copier *c, const struct sql_rows *rows, struct error *err)
{
    const char *state = sql_text(rows, 3);
    return sql_insert(
        c->to, &c->new_id, err,
        "INSERT INTO experiment (uuid, name, question, state, selection, baseline, headline,"
        " spec_path, spec_hash, git_commit, seed, started_at_ns, updated_at_ns, ended_at_ns, owner,"
        " cell_count, run_count, failed_count, disturbed_count, adaptive, branch, machine_class)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, nullif(?, 0), '', ?, ?, ?, ?, ?, ?, ?)"
        " RETURNING id",
        "ttttttttttiiiiiiiiitt", sql_text(rows, 0), sql_text(rows, 1), sql_text(rows, 2),
        str_eq(state, "running") ? "stopped" : state, sql_text(rows, 4), sql_text(rows, 5),
        sql_text(rows, 6), sql_text(rows, 7), sql_text(rows, 8), sql_text(rows, 9),
        sql_i64(rows, 10), sql_i64(rows, 11), sql_i64(rows, 12), sql_i64(rows, 13),
        sql_i64(rows, 14), sql_i64(rows, 15), sql_i64(rows, 16), sql_i64(rows, 17),
        sql_i64(rows, 18), sql_text(rows, 19), sql_text(rows, 20));
}

static int copy_document(struct copier *c, const struct sql_rows *rows, struct error *err)
{
    return store_add_document(c->to_store, c->new_id, sql_text(rows, 0), sql_text(rows, 1), err);
}

static int copy_factor(struct copier *c, const struct sql_rows *rows, struct error *err)
{
    return sql_run(c->to, err, "INSERT INTO factor (experiment, ordinal, name) VALUES (?, ?, ?)",
                   "iit", c->new_id, sql_i64(rows, 0), sql_text(rows, 1));
}

static int copy_cell(struct copier *c, const struct sql_rows *rows, struct error *err)
{
    int64_t id = 0;
    int r = sql_insert(c->to, &id, err,
                       "INSERT INTO cell (experiment, ordinal, label, command, build_id)"
                       " VALUES (?, ?, ?, ?, ?) RETURNING id",
                       "iittt", c->new_id, sql_i64(rows, 1), sql_text(rows, 2), sql_text(rows, 3),
                       sql_is_null(rows, 4) ? NULL : sql_text(rows, 4));
    if (r == 0)
        add_pair(&c->cells, sql_i64(rows, 0), id);
    return r;
}

static int copy_level(struct copier *c, const struct sql_rows *rows, struct error *err)
{
    return sql_run(c->to, err, "INSERT INTO level (cell, ordinal, value) VALUES (?, ?, ?)", "iit",
                   mapped(&c->cells, sql_i64(rows, 0)), sql_i64(rows, 1), sql_text(rows, 2));
}

static int copy_metric(struct copier *c, const struct sql_rows *rows, struct error *err)
{
    int64_t id = 0;
    int r = store_metric_id(c->to_store, sql_text(rows, 1), sql_text(rows, 2),
                            store_facts_of(sql_i64(rows, 3), sql_i64(rows, 5)), sql_text(rows, 4),
                            &id, err);
    if (r == 0)
        add_pair(&c->metrics, sql_i64(rows, 0), id);
    return r;
}

static int copy_run(struct copier *c, const struct sql_rows *rows, struct error *err)
{
    int64_t id = 0;
    size_t tick_size;
    const void *ticks = sql_bytes(rows, 11, &tick_size);
    int r = sql_insert(c->to, &id, err,
                       "INSERT INTO run (experiment, cell, round, attempt, position, started_at_ns,"
                       " wall_ns, status, disturbed, layout, output, ticks)"
                       " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
                       "iiiiiiiiittb", c->new_id, mapped(&c->cells, sql_i64(rows, 1)),
                       sql_i64(rows, 2), sql_i64(rows, 3), sql_i64(rows, 4), sql_i64(rows, 5),
                       sql_i64(rows, 6), sql_i64(rows, 7), sql_i64(rows, 8), sql_text(rows, 9),
                       sql_is_null(rows, 10) ? NULL : sql_text(rows, 10), ticks, tick_size);
    if (r == 0)
        add_pair(&c->runs, sql_i64(rows, 0), id);
    return r;
}

static int copy_value(struct copier *c, const struct sql_rows *rows, struct error *err)
{
    return sql_run(c->to, err,
                   "INSERT INTO value (run, metric, value, enabled_ns, running_ns)"
                   " VALUES (?, ?, ?, nullif(?, -1), nullif(?, -1))",
                   "iidii", mapped(&c->runs, sql_i64(rows, 0)),
                   mapped(&c->metrics, sql_i64(rows, 1)), sql_double(rows, 2),
                   sql_is_null(rows, 3) ? (int64_t)-1 : sql_i64(rows, 3),
                   sql_is_null(rows, 4) ? (int64_t)-1 : sql_i64(rows, 4));
}

static int copy_series(struct copier *c, const struct sql_rows *rows, struct error *err)
{
    size_t size;
    const void *points = sql_bytes(rows, 2, &size);
    return sql_run(c->to, err, "INSERT INTO series (run, metric, points) VALUES (?, ?, ?)", "iib",
                   mapped(&c->runs, sql_i64(rows, 0)), mapped(&c->metrics, sql_i64(rows, 1)),
                   points ? points : "", size);
}

static int copy_disturbance(struct copier *c, const struct sql_rows *rows, struct error *err)
{
    return sql_run(c->to, err,
                   "INSERT INTO disturbance (run, kind, amount, words) VALUES (?, ?, ?, ?)", "itdt",
                   mapped(&c->runs, sql_i64(rows, 0)), sql_text(rows, 1), sql_double(rows, 2),
                   sql_text(rows, 3));
}

static const struct {
    const char *query;
    int (*copy_row)(struct copier *c, const struct sql_rows *rows, struct error *err);
} steps[] = {
    {"SELECT uuid, name, question, state, selection, baseline, headline, spec_path, spec_hash,"
     " git_commit, seed, started_at_ns, updated_at_ns, ended_at_ns, cell_count, run_count,"
     " failed_count, disturbed_count, adaptive, branch, machine_class FROM experiment WHERE id = ?",
     copy_experiment},
    {"SELECT a.kind, d.text FROM attachment a JOIN document d ON d.hash = a.hash"
     " WHERE a.experiment = ?",
     copy_document},
    {"SELECT ordinal, name FROM factor WHERE experiment = ? ORDER BY ordinal", copy_factor},
    {"SELECT id, ordinal, label, command, build_id FROM cell WHERE experiment = ? ORDER BY id",
     copy_cell},
    {"SELECT l.cell, l.ordinal, l.value FROM cell c JOIN level l ON l.cell = c.id"
     " WHERE c.experiment = ?",
     copy_level},
    {"SELECT id, cell, round, attempt, position, started_at_ns, wall_ns, status, disturbed, layout,"
     " output, ticks FROM run WHERE experiment = ? ORDER BY id",
     copy_run},
    {"SELECT v.run, v.metric, v.value, v.enabled_ns, v.running_ns FROM run r"
     " JOIN value v ON v.run = r.id WHERE r.experiment = ?",
     copy_value},
    {"SELECT s.run, s.metric, s.points FROM run r JOIN series s ON s.run = r.id"
     " WHERE r.experiment = ?",
     copy_series},
    {"SELECT x.run, x.kind, x.amount, x.words FROM run r JOIN disturbance x ON x.run = r.id"
     " WHERE r.experiment = ?",
     copy_disturbance},
};

static const char metrics_query[] =
    "SELECT id, name, unit, better, kind, traits FROM metric WHERE id IN"
    " (SELECT v.metric FROM run r JOIN value v ON v.run = r.id WHERE r.experiment = ?1"
    "  UNION SELECT s.metric FROM run r JOIN series s ON s.run = r.id WHERE r.experiment = ?1)"
    " ORDER BY id";

/* What the target has of that uuid: its id, 0 for nothing. */
static int find_twin(struct copier *c, const char *uuid, int64_t *ret_id, uint64_t *ret_runs,
                     struct error *err)
{
    struct sql_rows *rows;
    int r = sql_query(c->to, &rows, err, "SELECT id, run_count FROM experiment WHERE uuid = ?", "t",
                      uuid);
    if (r < 0)
        return r;
    r = sql_next(rows, err);
    *ret_id = r > 0 ? sql_i64(rows, 0) : 0;
    *ret_runs = r > 0 ? (uint64_t)sql_i64(rows, 1) : 0;
    sql_rows_done(rows);
    return r < 0 ? r : 0;
}

static int copy_all(struct copier *c, int64_t twin, struct error *err)
{
    int r = 0;
    if (twin)
        r = sql_run(c->to, err, "DELETE FROM experiment WHERE id = ?", "i", twin);
    for (size_t i = 0; r == 0 && i < ARRAY_COUNT(steps); i++)
        r = each_row(c, steps[i].query, steps[i].copy_row, err);
    return r;
}

/* One consistent view of the source, although others may write to it meanwhile. */
static int copy_in_transactions(struct copier *c, int64_t twin, struct error *err)
{
    int r = sql_begin(c->from, SQL_ONE_VIEW, err);
    if (r < 0)
        return r;
    /* Before the transaction: others who use the same metrics need not wait for its end. */
    r = each_row(c, metrics_query, copy_metric, err);
    if (r == 0)
        r = sql_begin(c->to, SQL_WRITING, err);
    if (r == 0) {
        r = copy_all(c, twin, err);
        if (r == 0)
            r = sql_commit(c->to, err);
        else
            sql_rollback(c->to);
    }
    sql_rollback(c->from);
    return r;
}

int store_copy(struct store *from, struct store *to, int64_t experiment, int64_t *ret_id,
               enum copy_outcome *ret_outcome, struct error *err)
{
    struct copier c = {
        .from_store = from, .to_store = to, .from = from->sql, .to = to->sql, .old_id = experiment};
    CLEANUP(store_experiment_done) struct store_experiment e = {0};
    int64_t twin = 0;
    uint64_t twin_runs = 0;
    int r = store_experiment(from, experiment, &e, err);
    if (r == 0)
        r = find_twin(&c, e.uuid, &twin, &twin_runs, err);
    if (r < 0)
        return r;
    if (twin && twin_runs >= e.run_count) {
        *ret_id = twin;
        *ret_outcome = COPY_ALREADY_THERE;
        return 0;
    }
    r = -EAGAIN;
    for (int tries = 0; r == -EAGAIN && tries < COPY_TRIES; tries++) {
        c.cells.count = c.runs.count = c.metrics.count = 0;
        r = copy_in_transactions(&c, twin, err);
    }
    free(c.cells.pairs);
    free(c.runs.pairs);
    free(c.metrics.pairs);
    if (r < 0)
        return error_wrap(err, r, "copying experiment %lld", (long long)experiment);
    *ret_id = c.new_id;
    *ret_outcome = twin ? COPY_REPLACED : COPY_DONE;
    return 0;
}
