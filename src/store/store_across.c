/* SPDX-License-Identifier: MIT */
/* What is asked about many experiments at once, and lists that are read a page at a time. */
#include "base/clock.h"
#include "base/memory.h"
#include "store/sql.h"
#include "store/store_internal.h"
#include "store/store_rows.h"

#include <errno.h>
#include <math.h>

int store_newest_with_factor(struct store *store, const char *factor, int64_t *ret_id,
                             struct error *err)
{
    struct sql_rows *rows;
    int r = sql_query(store->sql, &rows, err, "SELECT max(experiment) FROM factor WHERE name = ?",
                      "t", factor);
    if (r < 0)
        return r;
    r = sql_next(rows, err);
    *ret_id = r > 0 && !sql_is_null(rows, 0) ? sql_i64(rows, 0) : 0;
    sql_rows_done(rows);
    return r < 0 ? r : 0;
}

int store_mean_run_ns(struct store *store, const char *name, uint64_t *ret_ns, struct error *err)
{
    struct sql_rows *rows;
    int r = sql_query(store->sql, &rows, err,
                      "SELECT avg(CAST(wall_ns AS DOUBLE PRECISION)) FROM run WHERE experiment ="
                      " (SELECT max(id) FROM experiment WHERE name = ?)",
                      "t", name);
    if (r < 0)
        return r;
    r = sql_next(rows, err);
    *ret_ns = r > 0 && !sql_is_null(rows, 0) ? (uint64_t)sql_double(rows, 0) : 0;
    sql_rows_done(rows);
    return r < 0 ? r : 0;
}

/* With a name of its own statement: a condition that may be empty would hide the index. */
#define HISTORY(OF_NAME)                                                                       \
    "SELECT e.id, e.name, e.selection LIKE 'quick%', c.label, m.unit, m.better, e.git_commit," \
    " e.started_at_ns, v.value, (SELECT d.text FROM attachment a JOIN document d"              \
    "  ON d.hash = a.hash WHERE a.experiment = e.id AND a.kind = 'subject'),"                  \
    " e.branch, e.machine_class"                                                               \
    " FROM run r JOIN experiment e ON e.id = r.experiment JOIN cell c ON c.id = r.cell"        \
    " JOIN metric m ON m.name = ?1 JOIN value v ON v.run = r.id AND v.metric = m.id"           \
    " WHERE r.status = 0 AND v.value IS NOT NULL"                                              \
    " AND (?2 = '' OR replace(c.label, ?2, '') <> c.label)" OF_NAME                            \
    " ORDER BY e.name, 3, c.label, m.unit, e.branch, e.machine_class, e.started_at_ns, e.id"

int store_history(struct store *store, const char *metric, const char *cell, const char *name,
                  struct store_cursor *cursor, struct error *err)
{
    if (name && *name)
        return sql_query(store->sql, &cursor->rows, err, HISTORY(" AND e.name = ?3"), "ttt", metric,
                         cell ? cell : "", name);
    return sql_query(store->sql, &cursor->rows, err, HISTORY(""), "tt", metric, cell ? cell : "");
}

int store_next_history(struct store_cursor *cursor, struct store_history_row *ret_row,
                       struct error *err)
{
    const struct sql_rows *rows = cursor->rows;
    int r = sql_next(cursor->rows, err);
    if (r <= 0)
        return r;
    int64_t better = sql_i64(rows, 5);
    *ret_row = (struct store_history_row){
        .experiment = sql_i64(rows, 0),
        .name = sql_text(rows, 1),
        .quick = sql_i64(rows, 2) != 0,
        .cell = sql_text(rows, 3),
        .unit = sql_text(rows, 4),
        .better = better == METRIC_LOWER || better == METRIC_HIGHER ? (enum metric_better)better
                                                                    : METRIC_NEITHER,
        .commit = sql_text(rows, 6),
        .started_at_ns = (uint64_t)sql_i64(rows, 7),
        .value = sql_double(rows, 8),
        .subject = sql_text(rows, 9),
        .branch = sql_text(rows, 10),
        .machine_class = sql_text(rows, 11),
    };
    return r;
}

/* replace() takes the text as it is: nothing in it means anything special. */
#define MATCHES                                                                            \
    " FROM experiment WHERE ?1 = '' OR replace(lower(name), lower(?1), '') <> lower(name)" \
    " OR replace(lower(question), lower(?1), '') <> lower(question)"                       \
    " OR substr(git_commit, 1, length(?1)) = ?1"

int store_search(struct store *store, const char *text, uint64_t skip, uint64_t most,
                 struct store_list *ret_list, uint64_t *ret_count, struct error *err)
{
    struct sql_rows *rows;
    int r = sql_query(store->sql, &rows, err, "SELECT count(*)" MATCHES, "t", text);
    if (r < 0)
        return r;
    r = sql_next(rows, err);
    uint64_t count = r > 0 ? (uint64_t)sql_i64(rows, 0) : 0;
    sql_rows_done(rows);
    if (r >= 0)
        r = sql_query(store->sql, &rows, err,
                      "SELECT " STORE_EXPERIMENT_COLUMNS MATCHES
                      " ORDER BY id DESC LIMIT ?2 OFFSET ?3",
                      "tii", text, (int64_t)most, (int64_t)skip);
    if (r == 0)
        r = store_read_list(rows, ret_list, err);
    if (r == 0)
        *ret_count = count;
    return r;
}

int store_run_lines(struct store *store, int64_t experiment, const char *metric, int64_t first,
                    uint64_t most, struct store_cursor *cursor, struct error *err)
{
    return sql_query(
        store->sql, &cursor->rows, err,
        "SELECT r.id, c.label, r.round, r.started_at_ns, r.wall_ns, r.status, r.disturbed,"
        " (SELECT v.value FROM value v JOIN metric m ON m.id = v.metric"
        "  WHERE v.run = r.id AND m.name = ?2),"
        " (SELECT m.unit FROM value v JOIN metric m ON m.id = v.metric"
        "  WHERE v.run = r.id AND m.name = ?2)"
        " FROM run r JOIN cell c ON c.id = r.cell"
        " WHERE r.experiment = ?1 AND r.id >= ?4 ORDER BY r.id LIMIT ?3",
        "itii", experiment, metric, (int64_t)most, first);
}

int store_run_ids(struct store *store, int64_t experiment, int64_t from,
                  struct store_cursor *cursor, struct error *err)
{
    return sql_query(store->sql, &cursor->rows, err,
                     "SELECT id FROM run WHERE experiment = ?1 AND id >= ?2 ORDER BY id", "ii",
                     experiment, from);
}

int store_next_id(struct store_cursor *cursor, int64_t *ret_id, struct error *err)
{
    int r = sql_next(cursor->rows, err);
    if (r > 0)
        *ret_id = sql_i64(cursor->rows, 0);
    return r;
}

int store_pace(struct store *store, int64_t experiment, uint64_t newest, double *ret_seconds,
               struct error *err)
{
    struct sql_rows *rows;
    int r = sql_query(store->sql, &rows, err,
                      "SELECT count(*), min(started_at_ns), max(started_at_ns) FROM"
                      " (SELECT started_at_ns FROM run WHERE experiment = ?1"
                      "  ORDER BY id DESC LIMIT ?2) AS newest",
                      "ii", experiment, (int64_t)newest);
    if (r < 0)
        return r;
    *ret_seconds = NAN;
    r = sql_next(rows, err);
    if (r > 0 && sql_i64(rows, 0) > 1)
        *ret_seconds = (double)(sql_i64(rows, 2) - sql_i64(rows, 1)) / NS_PER_S /
                       (double)(sql_i64(rows, 0) - 1);
    sql_rows_done(rows);
    return r < 0 ? r : 0;
}

int store_next_run_line(struct store_cursor *cursor, struct store_run_line *ret_line,
                        struct error *err)
{
    const struct sql_rows *rows = cursor->rows;
    int r = sql_next(cursor->rows, err);
    if (r > 0)
        *ret_line = (struct store_run_line){.id = sql_i64(rows, 0),
                                            .cell = sql_text(rows, 1),
                                            .round = (uint64_t)sql_i64(rows, 2),
                                            .started_at_ns = (uint64_t)sql_i64(rows, 3),
                                            .wall_ns = (uint64_t)sql_i64(rows, 4),
                                            .status = (int)sql_i64(rows, 5),
                                            .disturbed = sql_i64(rows, 6) != 0,
                                            .value = sql_double(rows, 7),
                                            .unit = sql_text(rows, 8)};
    return r;
}

/* SQLite's counter of other connections' commits. */
int64_t store_version(struct store *store)
{
    struct error ignored;
    struct sql_rows *rows;
    int64_t version = -1;
    if (store_is_address(store->place) ||
        sql_query(store->sql, &rows, &ignored, "PRAGMA data_version", NULL) < 0)
        return version;
    if (sql_next(rows, &ignored) > 0)
        version = sql_i64(rows, 0);
    sql_rows_done(rows);
    return version;
}
