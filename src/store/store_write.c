/* SPDX-License-Identifier: MIT */
/* Writing experiments and runs.  Each function here is one transaction. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/strings.h"
#include "store/store_internal.h"

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

/* A random (version 4) UUID, RFC 9562. */
static int make_uuid(char text[static 37], struct error *err)
{
    unsigned char b[16];
    if (getrandom(b, sizeof(b), 0) != sizeof(b))
        return error_errno(err, -errno, "getting random numbers");
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    snprintf(text, 37, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
             b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
             b[14], b[15]);
    return 0;
}

static int insert_experiment(struct store *store, const struct store_new *new, int64_t *ret_id,
                             const char *uuid, struct error *err)
{
    char hash[65], owner[256];
    store_hash(new->spec_text, hash);
    store_owner_self(owner, sizeof(owner));
    int64_t now = (int64_t)clock_read_ns(CLOCK_REALTIME);
    int64_t started = new->started_at_ns ? (int64_t) new->started_at_ns : now;
    return sql_insert(store->sql, ret_id, err,
                      "INSERT INTO experiment (uuid, name, question, state, selection, baseline,"
                      " headline, spec_path, spec_hash, git_commit, seed, started_at_ns,"
                      " updated_at_ns, owner, cell_count, run_count, failed_count, disturbed_count,"
                      " adaptive, branch, machine_class)"
                      " VALUES (?, ?, ?, 'running', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, ?, ?,"
                      " ?) RETURNING id",
                      "tttttttttiiitiitt", uuid, new->name, new->question, new->selection,
                      new->baseline, new->headline, new->spec_path, hash, new->git_commit,
                      (int64_t) new->seed, started, now, owner, (int64_t) new->cell_count,
                      (int64_t) new->adaptive, new->branch ? new->branch : "",
                      new->machine_class ? new->machine_class : "");
}

static int insert_cells(struct store *store, int64_t experiment, const struct store_new *new,
                        int64_t *ret_cells, struct error *err)
{
    int r = 0;
    for (size_t f = 0; r == 0 && f < new->factor_count; f++)
        r = sql_run(store->sql, err,
                    "INSERT INTO factor (experiment, ordinal, name) VALUES (?, ?, ?)", "iit",
                    experiment, (int64_t)f, new->factors[f]);
    for (size_t c = 0; r == 0 && c < new->cell_count; c++) {
        const struct store_new_cell *cell = &new->cells[c];
        r = sql_insert(store->sql, &ret_cells[c], err,
                       "INSERT INTO cell (experiment, ordinal, label, command, build_id)"
                       " VALUES (?, ?, ?, ?, ?) RETURNING id",
                       "iittt", experiment, (int64_t)c, cell->label, cell->command, cell->build_id);
        for (size_t f = 0; r == 0 && f < new->factor_count; f++)
            r = sql_run(store->sql, err,
                        "INSERT INTO level (cell, ordinal, value) VALUES (?, ?, ?)", "iit",
                        ret_cells[c], (int64_t)f, cell->values[f]);
    }
    return r;
}

static int begin_once(struct store *store, const struct store_new *new, const char *uuid,
                      int64_t *ret_id, int64_t *ret_cells, struct error *err)
{
    int r = sql_begin(store->sql, SQL_WRITING, err);
    if (r < 0)
        return r;
    int64_t id = 0;
    r = insert_experiment(store, new, &id, uuid, err);
    if (r == 0)
        r = store_document_now(store, id, "spec", new->spec_text, err);
    if (r == 0)
        r = store_document_now(store, id, "environment", new->environment, err);
    if (r == 0)
        r = store_document_now(store, id, "machine", new->machine, err);
    if (r == 0 && new->subject &&*new->subject)
        r = store_document_now(store, id, "subject", new->subject, err);
    if (r == 0)
        r = insert_cells(store, id, new, ret_cells, err);
    if (r < 0) {
        sql_rollback(store->sql);
        return r;
    }
    r = sql_commit(store->sql, err);
    if (r == 0)
        *ret_id = id;
    return r;
}

int store_begin(struct store *store, const struct store_new *new, int64_t *ret_id,
                int64_t *ret_cells, struct error *err)
{
    char uuid[37];
    int r = make_uuid(uuid, err);
    if (r < 0)
        return r;
    r = -EAGAIN;
    for (int tries = 0; r == -EAGAIN && tries < STORE_TRIES; tries++)
        r = begin_once(store, new, uuid, ret_id, ret_cells, err);
    if (r == 0) {
        store->experiment = *ret_id;
        memcpy(store->uuid, uuid, sizeof(uuid));
    }
    return r;
}

static int insert_values(struct store *store, int64_t id, const struct store_new_run *run,
                         struct error *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < run->value_count; i++) {
        const struct store_value *v = &run->values[i];
        if (v->enabled_ns)
            r = sql_run(store->sql, err,
                        "INSERT INTO value (run, metric, value, enabled_ns, running_ns)"
                        " VALUES (?, ?, ?, ?, ?)",
                        "iidii", id, v->metric, v->value, (int64_t)v->enabled_ns,
                        (int64_t)v->running_ns);
        else
            r = sql_run(store->sql, err, "INSERT INTO value (run, metric, value) VALUES (?, ?, ?)",
                        "iid", id, v->metric, v->value);
    }
    for (size_t i = 0; r == 0 && i < run->series_count; i++)
        r = sql_run(store->sql, err, "INSERT INTO series (run, metric, points) VALUES (?, ?, ?)",
                    "iib", id, run->series[i].metric, run->series[i].values,
                    run->tick_count * sizeof(double));
    for (size_t i = 0; r == 0 && i < run->disturbance_count; i++)
        r = sql_run(store->sql, err,
                    "INSERT INTO disturbance (run, kind, amount, words) VALUES (?, ?, ?, ?)",
                    "itdt", id, run->disturbances[i].kind, run->disturbances[i].amount,
                    run->disturbances[i].words);
    return r;
}

static int insert_run(struct store *store, int64_t experiment, const struct store_new_run *run,
                      struct error *err)
{
    int64_t id = 0, disturbed = run->disturbance_count > 0;
    int r = sql_insert(store->sql, &id, err,
                       "INSERT INTO run (experiment, cell, round, attempt, position, started_at_ns,"
                       " wall_ns, status, disturbed, layout, output, ticks)"
                       " VALUES (?, ?, ?, (SELECT count(*) FROM run WHERE cell = ? AND round = ?),"
                       " ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
                       "iiiiiiiiiittb", experiment, run->cell, (int64_t)run->round, run->cell,
                       (int64_t)run->round, (int64_t)run->position, (int64_t)run->started_at_ns,
                       (int64_t)run->wall_ns, (int64_t)run->status, disturbed,
                       run->layout ? run->layout : "", run->output, run->tick_ns,
                       run->tick_count * sizeof(uint64_t));
    return r == 0 ? insert_values(store, id, run, err) : r;
}

/* Brings the experiment's own counts up to date. */
static int count_runs(struct store *store, int64_t experiment, const struct store_new_run *runs,
                      size_t count, struct error *err)
{
    int64_t failed = 0, disturbed = 0;
    for (size_t i = 0; i < count; i++) {
        failed += runs[i].status != 0;
        disturbed += runs[i].disturbance_count > 0;
    }
    return sql_run(store->sql, err,
                   "UPDATE experiment SET run_count = run_count + ?,"
                   " failed_count = failed_count + ?, disturbed_count = disturbed_count + ?,"
                   " updated_at_ns = ? WHERE id = ?",
                   "iiiii", (int64_t)count, failed, disturbed,
                   (int64_t)clock_read_ns(CLOCK_REALTIME), experiment);
}

int store_insert_run(struct store *store, int64_t experiment, const struct store_new_run *run,
                     struct error *err)
{
    int r = insert_run(store, experiment, run, err);
    return r == 0 ? count_runs(store, experiment, run, 1, err) : r;
}

int store_add_runs(struct store *store, int64_t experiment, const struct store_new_run *runs,
                   size_t count, struct error *err)
{
    int r = sql_begin(store->sql, SQL_WRITING, err);
    if (r < 0)
        return r;
    for (size_t i = 0, done; i < count && r == 0; i += done) {
        size_t plain = 0;
        while (i + plain < count && store_is_plain(&runs[i + plain]))
            plain++;
        r = store_insert_plain(store, experiment, runs + i, plain, &done, err);
        if (r == 0 && !done) {
            r = insert_run(store, experiment, &runs[i], err);
            done = 1;
        }
    }
    if (r == 0)
        r = count_runs(store, experiment, runs, count, err);
    if (r < 0) {
        sql_rollback(store->sql);
        return error_wrap(err, r, "storing runs");
    }
    return sql_commit(store->sql, err);
}

/* Whether a run of that cell and round that started at that nanosecond is there. */
int store_has_run(struct store *store, const struct store_new_run *run, struct error *err)
{
    struct sql_rows *rows;
    int r = sql_query(store->sql, &rows, err,
                      "SELECT id FROM run WHERE cell = ? AND round = ? AND started_at_ns = ?",
                      "iii", run->cell, (int64_t)run->round, (int64_t)run->started_at_ns);
    if (r < 0)
        return r;
    r = sql_next(rows, err);
    sql_rows_done(rows);
    return r;
}

/* once: not when it is there already. */
static int add_run(struct store *store, int64_t experiment, const struct store_new_run *run,
                   bool once, bool *ret_added, struct error *err)
{
    int r = sql_begin(store->sql, SQL_WRITING, err);
    if (r < 0)
        return r;
    r = once ? store_has_run(store, run, err) : 0;
    *ret_added = r == 0;
    if (r == 0)
        r = store_insert_run(store, experiment, run, err);
    if (r < 0) {
        sql_rollback(store->sql);
        return error_wrap(err, r, "storing a run");
    }
    return sql_commit(store->sql, err);
}

int store_add_run_once(struct store *store, int64_t experiment, const struct store_new_run *run,
                       bool *ret_added, struct error *err)
{
    return add_run(store, experiment, run, true, ret_added, err);
}

int store_add_run(struct store *store, int64_t experiment, const struct store_new_run *run,
                  struct error *err)
{
    bool added;
    bool own = experiment == store->experiment;
    int r = -ENOTCONN;
    if (!own || !store->has_spool)
        r = add_run(store, experiment, run, false, &added, err);
    return own && store_lost(store, r) ? store_spool_run(store, run, err) : r;
}

static int take_over(struct store *store, int64_t experiment, bool adaptive, struct error *err)
{
    struct sql_rows *rows;
    char before[256] = "", uuid[37] = "";
    int r = sql_query(store->sql, &rows, err,
                      "SELECT owner, updated_at_ns, uuid FROM experiment WHERE id = ?", "i",
                      experiment);
    if (r < 0)
        return r;
    r = sql_next(rows, err);
    if (r > 0) {
        snprintf(before, sizeof(before), "%s", sql_text(rows, 0));
        snprintf(uuid, sizeof(uuid), "%s", sql_text(rows, 2));
    }
    if (r == 0)
        r = error_set(err, -ENOENT, "there is no experiment %lld", (long long)experiment);
    else if (r > 0)
        r = store_owner_alive(sql_text(rows, 0), (uint64_t)sql_i64(rows, 1))
                ? error_set(err, -EBUSY, "experiment %lld is still running in another process",
                            (long long)experiment)
                : 0;
    sql_rows_done(rows);
    if (r < 0)
        return r;
    char owner[256];
    store_owner_self(owner, sizeof(owner));
    /* The old owner is named, because another process may have been quicker. */
    r = sql_run(store->sql, err,
                "UPDATE experiment SET owner = ?, state = 'running', updated_at_ns = ?,"
                " ended_at_ns = NULL, adaptive = adaptive | ? WHERE id = ? AND owner = ?",
                "tiiit", owner, (int64_t)clock_read_ns(CLOCK_REALTIME), (int64_t)adaptive,
                experiment, before);
    int64_t changed = 0;
    if (r == 0)
        r = sql_changed(store->sql, &changed, err);
    if (r == 0 && !changed)
        r = error_set(err, -EBUSY, "experiment %lld has just been resumed by another process",
                      (long long)experiment);
    if (r == 0) {
        store->experiment = experiment;
        memcpy(store->uuid, uuid, sizeof(uuid));
    }
    return r;
}

int store_claim(struct store *store, int64_t experiment, bool adaptive, struct error *err)
{
    int r = sql_begin(store->sql, SQL_WRITING, err);
    if (r < 0)
        return r;
    r = take_over(store, experiment, adaptive, err);
    if (r < 0) {
        sql_rollback(store->sql);
        return r;
    }
    return sql_commit(store->sql, err);
}

int store_touch(struct store *store, int64_t experiment, struct error *err)
{
    return sql_run(store->sql, err, "UPDATE experiment SET updated_at_ns = ? WHERE id = ?", "ii",
                   (int64_t)clock_read_ns(CLOCK_REALTIME), experiment);
}

int store_finish(struct store *store, int64_t experiment, const char *state, struct error *err)
{
    bool own = experiment == store->experiment;
    int64_t now = (int64_t)clock_read_ns(CLOCK_REALTIME);
    int r = -ENOTCONN;
    if (!own || !store->has_spool)
        r = sql_run(store->sql, err,
                    "UPDATE experiment SET state = ?, owner = '', updated_at_ns = ?,"
                    " ended_at_ns = ? WHERE id = ?",
                    "tiii", state, now, now, experiment);
    return own && store_lost(store, r) ? store_spool_finish(store, state, err) : r;
}
