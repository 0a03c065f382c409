/* SPDX-License-Identifier: MIT */
/*
 * Many runs at once, e.g. of an import: rows of one statement.  What a statement costs by itself
 * (SQLite: the cursors and the next number; PostgreSQL: the way to the server and back) is then
 * paid once for a group.  Runs with more than a few numbers go the way of single ones.
 */
#include "base/memory.h"
#include "store/sql_engine.h"
#include "store/store_internal.h"

#include <assert.h>
#include <errno.h>
#include <math.h>

enum { GROUP = 32, RUN_PARAMETERS = 7, VALUE_PARAMETERS = 3, VALUES_AT_ONCE = 64 };

static_assert(GROUP * RUN_PARAMETERS <= SQL_PARAMETERS_MAX, "a group of runs is one statement");
static_assert(VALUES_AT_ONCE * VALUE_PARAMETERS <= SQL_PARAMETERS_MAX, "and so are values");

#define FOUR(row) row ", " row ", " row ", " row
#define ROWS_32(row) FOUR(FOUR(row)) ", " FOUR(FOUR(row))
#define ROWS_64(row) FOUR(FOUR(FOUR(row)))

static const char insert_runs[] =
    "INSERT INTO run (experiment, cell, round, attempt, position, started_at_ns, wall_ns, status,"
    " disturbed, layout) VALUES " ROWS_32("(?, ?, ?, 0, ?, ?, ?, ?, 0, '')") " RETURNING id, cell,"
                                                                             " round";
static const char insert_values[] =
    "INSERT INTO value (run, metric, value) VALUES " ROWS_64("(?, ?, ?)");

static struct sql_value number(int64_t value)
{
    return (struct sql_value){.type = 'i', .number = value};
}

bool store_is_plain(const struct store_new_run *run)
{
    for (size_t i = 0; i < run->value_count; i++)
        if (run->values[i].enabled_ns)
            return false;
    return !run->output && !run->tick_count && !run->series_count && !run->disturbance_count &&
           (!run->layout || !*run->layout);
}

/* In which order a database gives the new rows is not promised: they are told by cell and round. */
static int take_ids(struct sql_rows *rows, const struct store_new_run *runs, int64_t *ids,
                    struct error *err)
{
    int more = 0;
    for (size_t i = 0; i < GROUP && (more = sql_next(rows, err)) > 0; i++) {
        size_t at = i, tries = 0;
        while (tries < GROUP &&
               (runs[at].cell != sql_i64(rows, 1) || (int64_t)runs[at].round != sql_i64(rows, 2))) {
            at = (at + 1) % GROUP;
            tries++;
        }
        if (tries == GROUP)
            return error_set(err, -EIO, "the store gave back a run that was not written");
        ids[at] = sql_i64(rows, 0);
    }
    return more > 0 ? 0 : more < 0 ? more : error_set(err, -EIO, "an inserted run has no number");
}

static int insert_group(struct store *store, int64_t experiment, const struct store_new_run *runs,
                        int64_t *ids, struct error *err)
{
    struct sql_value values[GROUP * RUN_PARAMETERS], *v = values;
    for (size_t i = 0; i < GROUP; i++) {
        *v++ = number(experiment);
        *v++ = number(runs[i].cell);
        *v++ = number((int64_t)runs[i].round);
        *v++ = number((int64_t)runs[i].position);
        *v++ = number((int64_t)runs[i].started_at_ns);
        *v++ = number((int64_t)runs[i].wall_ns);
        *v++ = number(runs[i].status);
    }
    struct sql_rows *rows;
    int r = sql_query_values(store->sql, &rows, insert_runs, values, ARRAY_COUNT(values), err);
    if (r < 0)
        return r;
    r = take_ids(rows, runs, ids, err);
    sql_rows_done(rows);
    return r;
}

/* Values of a group, written when as many have come together as one statement takes. */
struct gathering {
    struct sql_value values[VALUES_AT_ONCE * VALUE_PARAMETERS];
    size_t count;
};

static int gather(struct gathering *g, struct store *store, int64_t run,
                  const struct store_value *value, struct error *err)
{
    g->values[g->count++] = number(run);
    g->values[g->count++] = number(value->metric);
    g->values[g->count++] =
        (struct sql_value){.type = 'd', .real = value->value, .is_null = !isfinite(value->value)};
    if (g->count < ARRAY_COUNT(g->values))
        return 0;
    g->count = 0;
    return sql_run_values(store->sql, insert_values, g->values, ARRAY_COUNT(g->values), err);
}

static int write_rest(const struct gathering *g, struct store *store, struct error *err)
{
    int r = 0;
    for (size_t i = 0; i < g->count && r == 0; i += VALUE_PARAMETERS)
        r = sql_run_values(store->sql, "INSERT INTO value (run, metric, value) VALUES (?, ?, ?)",
                           g->values + i, VALUE_PARAMETERS, err);
    return r;
}

int store_insert_plain(struct store *store, int64_t experiment, const struct store_new_run *runs,
                       size_t count, size_t *ret_done, struct error *err)
{
    struct gathering g = {.count = 0};
    int64_t ids[GROUP];
    size_t done = 0;
    int r = 0;
    for (; r == 0 && done + GROUP <= count; done += r == 0 ? GROUP : 0) {
        r = insert_group(store, experiment, runs + done, ids, err);
        for (size_t i = 0; i < GROUP && r == 0; i++)
            for (size_t v = 0; v < runs[done + i].value_count && r == 0; v++)
                r = gather(&g, store, ids[i], &runs[done + i].values[v], err);
    }
    if (r == 0)
        r = write_rest(&g, store, err);
    if (r == 0)
        *ret_done = done;
    return r;
}
