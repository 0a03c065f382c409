/* SPDX-License-Identifier: MIT */
/* What one experiment consists of, row by row. */
#include "store/store_rows.h"
#include "base/memory.h"
#include "store/sql.h"
#include "store/store_internal.h"

#include <errno.h>

void store_cursor_done(struct store_cursor *cursor)
{
    if (cursor->rows)
        sql_rows_done(cursor->rows);
    cursor->rows = NULL;
}

int store_next_text(struct store_cursor *cursor, const char **ret_text, struct error *err)
{
    int r = sql_next(cursor->rows, err);
    if (r > 0)
        *ret_text = sql_text(cursor->rows, 0);
    return r;
}

int store_factors(struct store *store, int64_t experiment, struct store_cursor *cursor,
                  struct error *err)
{
    return sql_query(store->sql, &cursor->rows, err,
                     "SELECT name FROM factor WHERE experiment = ? ORDER BY ordinal", "i",
                     experiment);
}

int store_cells(struct store *store, int64_t experiment, struct store_cursor *cursor,
                struct error *err)
{
    return sql_query(store->sql, &cursor->rows, err,
                     "SELECT id, label, command, build_id FROM cell WHERE experiment = ?"
                     " ORDER BY ordinal",
                     "i", experiment);
}

int store_next_cell(struct store_cursor *cursor, struct store_cell_row *ret_row, struct error *err)
{
    const struct sql_rows *rows = cursor->rows;
    int r = sql_next(cursor->rows, err);
    if (r > 0)
        *ret_row = (struct store_cell_row){.id = sql_i64(rows, 0),
                                           .label = sql_text(rows, 1),
                                           .command = sql_text(rows, 2),
                                           .build_id = sql_text(rows, 3)};
    return r;
}

int store_levels(struct store *store, int64_t experiment, struct store_cursor *cursor,
                 struct error *err)
{
    return sql_query(store->sql, &cursor->rows, err,
                     "SELECT l.cell, l.ordinal, l.value FROM cell c JOIN level l ON l.cell = c.id"
                     " WHERE c.experiment = ?",
                     "i", experiment);
}

int store_next_level(struct store_cursor *cursor, struct store_level_row *ret_row,
                     struct error *err)
{
    const struct sql_rows *rows = cursor->rows;
    int r = sql_next(cursor->rows, err);
    if (r > 0)
        *ret_row = (struct store_level_row){
            .cell = sql_i64(rows, 0), .factor = sql_i64(rows, 1), .value = sql_text(rows, 2)};
    return r;
}

int store_runs(struct store *store, int64_t experiment, struct store_cursor *cursor,
               struct error *err)
{
    return sql_query(store->sql, &cursor->rows, err,
                     "SELECT id, cell, round, attempt, position, started_at_ns, wall_ns, status,"
                     " disturbed, layout FROM run WHERE experiment = ? ORDER BY id",
                     "i", experiment);
}

int store_next_run(struct store_cursor *cursor, struct store_run_row *ret_row, struct error *err)
{
    const struct sql_rows *rows = cursor->rows;
    int r = sql_next(cursor->rows, err);
    if (r > 0)
        *ret_row = (struct store_run_row){
            .id = sql_i64(rows, 0),
            .cell = sql_i64(rows, 1),
            .round = (uint64_t)sql_i64(rows, 2),
            .attempt = (uint64_t)sql_i64(rows, 3),
            .position = (uint64_t)sql_i64(rows, 4),
            .started_at_ns = (uint64_t)sql_i64(rows, 5),
            .wall_ns = (uint64_t)sql_i64(rows, 6),
            .status = (int)sql_i64(rows, 7),
            .disturbed = sql_i64(rows, 8) != 0,
            .layout = sql_text(rows, 9),
        };
    return r;
}

int store_failures(struct store *store, int64_t experiment, struct store_cursor *cursor,
                   struct error *err)
{
    return sql_query(
        store->sql, &cursor->rows, err,
        "SELECT cell, status, output FROM run WHERE id IN"
        " (SELECT MAX(id) FROM run WHERE experiment = ? AND status <> 0 GROUP BY cell)",
        "i", experiment);
}

int store_next_failure(struct store_cursor *cursor, struct store_failure_row *ret_row,
                       struct error *err)
{
    const struct sql_rows *rows = cursor->rows;
    int r = sql_next(cursor->rows, err);
    if (r > 0) {
        const char *output = sql_text(rows, 2);
        *ret_row = (struct store_failure_row){.cell = sql_i64(rows, 0),
                                              .status = (int)sql_i64(rows, 1),
                                              .output = output ? output : ""};
    }
    return r;
}

int store_values(struct store *store, int64_t experiment, struct store_cursor *cursor,
                 struct error *err)
{
    return sql_query(store->sql, &cursor->rows, err,
                     "SELECT v.run, v.metric, v.value FROM run r"
                     " JOIN value v ON v.run = r.id"
                     " WHERE r.experiment = ? AND r.status = 0 AND v.value IS NOT NULL"
                     " ORDER BY r.id, v.metric",
                     "i", experiment);
}

int store_next_value(struct store_cursor *cursor, struct store_value_row *ret_row,
                     struct error *err)
{
    const struct sql_rows *rows = cursor->rows;
    int r = sql_next(cursor->rows, err);
    if (r > 0)
        *ret_row = (struct store_value_row){
            .run = sql_i64(rows, 0), .metric = sql_i64(rows, 1), .value = sql_double(rows, 2)};
    return r;
}

int store_documents(struct store *store, int64_t experiment, const char *prefix,
                    struct store_cursor *cursor, struct error *err)
{
    return sql_query(store->sql, &cursor->rows, err,
                     "SELECT d.text FROM attachment a JOIN document d ON d.hash = a.hash"
                     " WHERE a.experiment = ?1 AND substr(a.kind, 1, length(?2)) = ?2"
                     " ORDER BY a.kind",
                     "it", experiment, prefix);
}

int store_series(struct store *store, int64_t run, struct store_cursor *cursor, struct error *err)
{
    return sql_query(store->sql, &cursor->rows, err,
                     "SELECT m.name, m.unit, s.points, r.ticks, m.traits FROM series s"
                     " JOIN metric m ON m.id = s.metric JOIN run r ON r.id = s.run"
                     " WHERE s.run = ? ORDER BY m.id",
                     "i", run);
}

int store_next_series(struct store_cursor *cursor, struct store_series_row *ret_row,
                      struct error *err)
{
    const struct sql_rows *rows = cursor->rows;
    int r = sql_next(cursor->rows, err);
    if (r <= 0)
        return r;
    size_t point_bytes = 0, tick_bytes = 0;
    *ret_row = (struct store_series_row){
        .metric = sql_text(rows, 0),
        .unit = sql_text(rows, 1),
        .points = sql_bytes(rows, 2, &point_bytes),
        .ticks = sql_bytes(rows, 3, &tick_bytes),
        .is_total = store_facts_of(METRIC_NEITHER, sql_i64(rows, 4)).is_total};
    ret_row->point_count = point_bytes / sizeof(double);
    ret_row->tick_count = tick_bytes / sizeof(uint64_t);
    return r;
}

int store_read_metric(struct store *store, int64_t id, struct store_metric *ret_metric,
                      struct error *err)
{
    struct sql_rows *rows;
    int r = sql_query(store->sql, &rows, err,
                      "SELECT name, unit, better, kind, traits FROM metric WHERE id = ?", "i", id);
    if (r < 0)
        return r;
    r = sql_next(rows, err);
    if (r > 0)
        *ret_metric = (struct store_metric){
            .id = id,
            .name = memory_strdup(sql_text(rows, 0)),
            .unit = memory_strdup(sql_text(rows, 1)),
            .facts = store_facts_of(sql_i64(rows, 2), sql_i64(rows, 4)),
            .kind = memory_strdup(sql_text(rows, 3)),
        };
    else if (r == 0)
        r = error_set(err, -EINVAL, "the store is damaged: no metric %lld", (long long)id);
    sql_rows_done(rows);
    return r < 0 ? r : 0;
}

int store_metric_names(struct store *store, struct store_cursor *cursor, struct error *err)
{
    return sql_query(store->sql, &cursor->rows, err, "SELECT DISTINCT name FROM metric", NULL);
}
