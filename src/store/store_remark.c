/* SPDX-License-Identifier: MIT */
/* What was said of changes: see store_rows.h. */
#include "base/clock.h"
#include "store/store_internal.h"
#include "store/store_rows.h"

int store_add_remark(struct store *store, const struct store_remark *m, bool *ret_added,
                     struct error *err)
{
    int64_t changed = 0;
    int r = sql_run(store->sql, err,
                    "INSERT INTO remark (kind, name, cell, metric, unit, branch, machine_class,"
                    " at_ns, direction, note, written_at_ns)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                    "tttttttiiti", m->kind, m->name, m->cell, m->metric, m->unit, m->branch,
                    m->machine_class, (int64_t)m->at_ns, (int64_t)m->direction, m->note,
                    (int64_t)clock_read_ns(CLOCK_REALTIME));
    if (r == 0)
        r = sql_changed(store->sql, &changed, err);
    *ret_added = changed > 0;
    return r;
}

int store_remove_remark(struct store *store, const struct store_remark *m, struct error *err)
{
    return sql_run(store->sql, err,
                   "DELETE FROM remark WHERE kind = ? AND name = ? AND cell = ? AND metric = ?"
                   " AND unit = ? AND branch = ? AND machine_class = ? AND at_ns = ?"
                   " AND direction = ?",
                   "tttttttii", m->kind, m->name, m->cell, m->metric, m->unit, m->branch,
                   m->machine_class, (int64_t)m->at_ns, (int64_t)m->direction);
}

int store_remarks(struct store *store, const char *metric, struct store_cursor *cursor,
                  struct error *err)
{
    return sql_query(store->sql, &cursor->rows, err,
                     "SELECT kind, name, cell, metric, unit, branch, machine_class, at_ns,"
                     " direction, note FROM remark WHERE metric = ? ORDER BY id",
                     "t", metric);
}

int store_next_remark(struct store_cursor *cursor, struct store_remark *ret_remark,
                      struct error *err)
{
    const struct sql_rows *rows = cursor->rows;
    int r = sql_next(cursor->rows, err);
    if (r > 0)
        *ret_remark = (struct store_remark){.kind = sql_text(rows, 0),
                                            .name = sql_text(rows, 1),
                                            .cell = sql_text(rows, 2),
                                            .metric = sql_text(rows, 3),
                                            .unit = sql_text(rows, 4),
                                            .branch = sql_text(rows, 5),
                                            .machine_class = sql_text(rows, 6),
                                            .at_ns = (uint64_t)sql_i64(rows, 7),
                                            .direction = (int)sql_i64(rows, 8),
                                            .note = sql_text(rows, 9)};
    return r;
}
