/* SPDX-License-Identifier: MIT */
/*
 * When the connection to the store is lost in the middle of an experiment: the runs go to a spool
 * and are delivered as soon as the store can be reached again, by this process or by any later one.
 *
 * Delivered exactly once: a run is known by its cell, its round and the nanosecond at which it
 * started.  Only the process that owns an experiment adds runs to it, so no two runs have the same
 * three; and whether a run is there already is looked up in the transaction that would add it.  So
 * a commit whose answer was lost, a delivery that was cut short and a file that was delivered but
 * not removed all do no harm.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/strings.h"
#include "store/store_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

/* Between two tries to connect: short at first, so that a cut connection is soon forgotten, then
 * rare, because each can take seconds and delays the experiment. */
#define PAUSE_FIRST_NS (NS_PER_S / 2)
#define PAUSE_LONGEST_NS (30 * NS_PER_S)
/* At the end of an experiment it is worth a wait. */
#define LAST_WAIT_NS (5 * NS_PER_S)

enum { RECORD_RUN = 1, RECORD_DOCUMENT, RECORD_FINISH };

/* ---- runs as records ---- */

static const struct store_metric *metric_of(const struct store *store, int64_t id)
{
    size_t i = 0;
    while (i < store->metric_count && store->metrics[i].id != id)
        i++;
    assert(i < store->metric_count); /* else an id that the store did not give out */
    return &store->metrics[i];
}

static void put_metric(struct strbuf *record, const struct store *store, int64_t id)
{
    const struct store_metric *m = metric_of(store, id);
    record_put_text(record, m->name);
    record_put_text(record, m->unit);
    /* The traits stand above the two bits of `better`: a spool of version 0.1 has none. */
    record_put_i64(record, (int64_t)m->facts.better | store_traits_number(m->facts) << 2);
    record_put_text(record, m->kind);
}

static void put_run(struct strbuf *record, const struct store *store,
                    const struct store_new_run *run)
{
    const int64_t numbers[] = {run->cell,
                               (int64_t)run->round,
                               (int64_t)run->position,
                               (int64_t)run->started_at_ns,
                               (int64_t)run->wall_ns,
                               run->status};
    record_put_i64(record, RECORD_RUN);
    record_put_text(record, store->uuid);
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++)
        record_put_i64(record, numbers[i]);
    record_put_text(record, run->layout);
    record_put_text(record, run->output);
    record_put_i64(record, (int64_t)run->value_count);
    for (size_t i = 0; i < run->value_count; i++) {
        put_metric(record, store, run->values[i].metric);
        record_put_double(record, run->values[i].value);
        record_put_i64(record, (int64_t)run->values[i].enabled_ns);
        record_put_i64(record, (int64_t)run->values[i].running_ns);
    }
    record_put_bytes(record, run->tick_count ? run->tick_ns : NULL,
                     run->tick_count * sizeof(*run->tick_ns));
    record_put_i64(record, (int64_t)run->series_count);
    for (size_t i = 0; i < run->series_count; i++) {
        put_metric(record, store, run->series[i].metric);
        record_put_bytes(record, run->series[i].values, run->tick_count * sizeof(double));
    }
    record_put_i64(record, (int64_t)run->disturbance_count);
    for (size_t i = 0; i < run->disturbance_count; i++) {
        record_put_text(record, run->disturbances[i].kind);
        record_put_double(record, run->disturbances[i].amount);
        record_put_text(record, run->disturbances[i].words);
    }
}

/* The store's number for the metric that stands in the record. */
static int get_metric(struct record_reader *from, struct store *store, int64_t *ret_id,
                      struct error *err)
{
    const char *name = record_text(from), *unit = record_text(from);
    int64_t number = record_i64(from);
    const char *kind = record_text(from);
    if (from->bad || !name || !unit || !kind)
        return error_set(err, -EBADMSG, "a metric in the spool is damaged");
    return store_metric_number(store, name, unit, store_facts_of(number & 3, number >> 2), kind,
                               ret_id, err);
}

/* What a run in a record consists of, in memory of its own. */
struct parts {
    struct store_value *values;
    struct store_series *series;
    struct store_disturbance *disturbances;
    uint64_t *ticks;
    double **points;
    size_t series_count;
};

static void parts_done(struct parts *p)
{
    for (size_t i = 0; i < p->series_count; i++)
        free(p->points[i]);
    free(p->points);
    free(p->values);
    free(p->series);
    free(p->disturbances);
    free(p->ticks);
}

static int get_series(struct record_reader *from, struct store *store, struct parts *p,
                      struct store_new_run *run, struct error *err)
{
    size_t size;
    const void *ticks = record_bytes(from, &size);
    run->tick_count = size / sizeof(*run->tick_ns);
    p->ticks = memory_zalloc(run->tick_count + 1, sizeof(*p->ticks));
    if (ticks)
        memcpy(p->ticks, ticks, run->tick_count * sizeof(*p->ticks));
    run->tick_ns = ticks ? p->ticks : NULL;
    run->series_count = record_count(from, sizeof(int64_t));
    p->series = memory_zalloc(run->series_count + 1, sizeof(*p->series));
    p->points = memory_zalloc(run->series_count + 1, sizeof(*p->points));
    p->series_count = run->series_count;
    for (size_t i = 0; i < run->series_count; i++) {
        int r = get_metric(from, store, &p->series[i].metric, err);
        if (r < 0)
            return r;
        const void *points = record_bytes(from, &size);
        if (!points || size != run->tick_count * sizeof(double))
            return error_set(err, -EBADMSG, "a series in the spool is damaged");
        p->points[i] = memory_zalloc(run->tick_count + 1, sizeof(double));
        memcpy(p->points[i], points, size);
        p->series[i].values = p->points[i];
    }
    run->series = p->series;
    return 0;
}

static int get_run(struct record_reader *from, struct store *store, struct parts *p,
                   struct store_new_run *run, struct error *err)
{
    *run = (struct store_new_run){.cell = record_i64(from)};
    run->round = (uint64_t)record_i64(from);
    run->position = (uint64_t)record_i64(from);
    run->started_at_ns = (uint64_t)record_i64(from);
    run->wall_ns = (uint64_t)record_i64(from);
    run->status = (int)record_i64(from);
    run->layout = record_text(from);
    run->output = record_text(from);
    run->value_count = record_count(from, 4 * sizeof(int64_t));
    p->values = memory_zalloc(run->value_count + 1, sizeof(*p->values));
    int r = 0;
    for (size_t i = 0; r == 0 && i < run->value_count; i++) {
        r = get_metric(from, store, &p->values[i].metric, err);
        p->values[i].value = record_double(from);
        p->values[i].enabled_ns = (uint64_t)record_i64(from);
        p->values[i].running_ns = (uint64_t)record_i64(from);
    }
    run->values = p->values;
    if (r == 0)
        r = get_series(from, store, p, run, err);
    if (r < 0)
        return r;
    run->disturbance_count = record_count(from, 3 * sizeof(int64_t));
    p->disturbances = memory_zalloc(run->disturbance_count + 1, sizeof(*p->disturbances));
    for (size_t i = 0; i < run->disturbance_count; i++) {
        p->disturbances[i].kind = record_text(from);
        p->disturbances[i].amount = record_double(from);
        p->disturbances[i].words = record_text(from);
    }
    run->disturbances = p->disturbances;
    return from->bad ? error_set(err, -EBADMSG, "a run in the spool is damaged") : 0;
}

struct spooled_run {
    struct strbuf record;
    struct parts parts;
    struct store_new_run run;
};

int spooled_run_read(struct store *store, const struct strbuf *record, const char *uuid,
                     struct spooled_run **ret_run, struct error *err)
{
    struct spooled_run *own = memory_zalloc(1, sizeof(*own));
    strbuf_append(&own->record, record->data, record->length);
    struct record_reader reader = {.at = own->record.data,
                                   .end = own->record.data + own->record.length};
    int64_t kind = record_i64(&reader);
    const char *of = record_text(&reader);
    bool wanted = kind == RECORD_RUN && of && str_eq(of, uuid);
    int r = wanted ? get_run(&reader, store, &own->parts, &own->run, err) : 0;
    if (r < 0 || !wanted)
        spooled_run_free(own);
    else
        *ret_run = own;
    return r;
}

struct store_new_run *spooled_run_get(struct spooled_run *run)
{
    return &run->run;
}

void spooled_run_free(struct spooled_run *run)
{
    if (!run)
        return;
    parts_done(&run->parts);
    strbuf_done(&run->record);
    free(run);
}

/* ---- delivering ---- */

static int experiment_of(struct store *store, const char *uuid, int64_t *ret_id, struct error *err)
{
    struct sql_rows *rows;
    int r = sql_query(store->sql, &rows, err, "SELECT id FROM experiment WHERE uuid = ?", "t",
                      uuid ? uuid : "");
    if (r < 0)
        return r;
    r = sql_next(rows, err);
    if (r > 0)
        *ret_id = sql_i64(rows, 0);
    sql_rows_done(rows);
    return r > 0   ? 0
           : r < 0 ? r
                   : error_set(err, -ESTALE, "its experiment, %s, is no longer in the store", uuid);
}

static int deliver_document(struct record_reader *from, struct store *store, int64_t experiment,
                            struct error *err)
{
    const char *kind = record_text(from), *text = record_text(from);
    if (from->bad || !kind || !text)
        return error_set(err, -EBADMSG, "a document in the spool is damaged");
    return store_document_now(store, experiment, kind, text, err);
}

static int deliver_finish(struct record_reader *from, struct store *store, int64_t experiment,
                          struct error *err)
{
    const char *state = record_text(from), *owner = record_text(from);
    int64_t at_ns = record_i64(from);
    if (from->bad || !state || !owner)
        return error_set(err, -EBADMSG, "an end in the spool is damaged");
    /* Not when another process has taken the experiment over since. */
    return sql_run(store->sql, err,
                   "UPDATE experiment SET state = ?, owner = '', updated_at_ns = ?,"
                   " ended_at_ns = ? WHERE id = ? AND owner = ?",
                   "tiiit", state, at_ns, at_ns, experiment, owner);
}

static int deliver_record(struct store *store, const struct strbuf *record,
                          struct store_delivery *tally, struct error *err)
{
    struct record_reader reader = {.at = record->data, .end = record->data + record->length};
    int64_t kind = record_i64(&reader), experiment = 0;
    int r = experiment_of(store, record_text(&reader), &experiment, err);
    if (r < 0)
        return r;
    if (kind == RECORD_DOCUMENT)
        return deliver_document(&reader, store, experiment, err);
    if (kind == RECORD_FINISH)
        return deliver_finish(&reader, store, experiment, err);
    CLEANUP(parts_done) struct parts parts = {0};
    struct store_new_run run;
    bool added = false;
    r = kind == RECORD_RUN ? get_run(&reader, store, &parts, &run, err)
                           : error_set(err, -EBADMSG, "a record of unknown kind");
    if (r == 0)
        r = store_add_run_once(store, experiment, &run, &added, err);
    if (r == 0)
        ++*(added ? &tally->runs : &tally->already);
    return r;
}

static int deliver_spool(struct store *store, struct spool *spool, struct store_delivery *tally,
                         struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf content = {0}, record = {0};
    size_t position = 0;
    int r = spool_read(spool, &content, &position, err);
    if (r < 0)
        return r;
    while ((r = spool_next(&content, &position, &record, err)) > 0) {
        r = deliver_record(store, &record, tally, err);
        for (int tries = 0; r == -EAGAIN && tries < STORE_TRIES; tries++)
            r = deliver_record(store, &record, tally, err);
        if (r < 0)
            break;
    }
    return r < 0 ? error_wrap(err, r, "delivering %s", spool->path) : 0;
}

int store_deliver(struct store *store, struct store_delivery *ret_tally, struct error *err)
{
    char **paths = NULL;
    size_t count = 0;
    *ret_tally = (struct store_delivery){0};
    int r = store_is_address(store->place) ? spool_list(store->place, &paths, &count, err) : 0;
    for (size_t i = 0; i < count; i++) {
        struct spool spool;
        struct error why;
        int one = r == -ENOTCONN ? r : spool_take(&spool, paths[i], &why);
        if (one == -EBUSY)
            ret_tally->busy++;
        if (one == 0) {
            one = deliver_spool(store, &spool, ret_tally, &why);
            if (one == 0) {
                ret_tally->files++;
                spool_remove(&spool);
            } else {
                ret_tally->failed++;
                spool_close(&spool);
                if (err)
                    *err = why;
                r = one;
            }
        }
        free(paths[i]);
    }
    free(paths);
    return r;
}

/* ---- the spool of this process ---- */

bool store_lost(struct store *store, int code)
{
    return code == -ENOTCONN && store->uuid[0] &&
           (store->only_spools || store_is_address(store->place));
}

int store_spool_start(struct store *store, struct error *err)
{
    if (store->has_spool)
        return 0;
    struct error why = {0};
    char before[sizeof(why.message)];
    snprintf(before, sizeof(before), "%s", err ? err->message : "");
    if (spool_create(&store->spool, store->place, &why) < 0)
        return error_set(err, -ENOTCONN, "%s; and it cannot be kept in a local file until then: %s",
                         err && err->message[0] ? before : "the store cannot be reached",
                         why.message);
    store->has_spool = true;
    if (!store->spooled_count)
        snprintf(store->lost_why, sizeof(store->lost_why), "%s",
                 before[0] ? before : "it cannot be reached");
    store->next_try_ns = 0;
    store->pause_ns = PAUSE_FIRST_NS;
    return 0;
}

/* Ids that were given out without asking the store end with the spool. */
static void forget_provisional(struct store *store)
{
    size_t kept = 0;
    for (size_t i = 0; i < store->metric_count; i++) {
        struct store_metric *m = &store->metrics[i];
        if (m->id > 0) {
            store->metrics[kept++] = *m;
            continue;
        }
        free(m->name);
        free(m->unit);
        free(m->kind);
    }
    store->metric_count = kept;
}

static int try_now(struct store *store, struct error *err)
{
    struct store_delivery tally = {0};
    int r = sql_reconnect(store->sql, err);
    if (r == 0) {
        /* Numbers of metrics that are not known yet are asked for while delivering. */
        forget_provisional(store);
        r = deliver_spool(store, &store->spool, &tally, err);
    }
    if (r == 0) {
        spool_remove(&store->spool);
        store->has_spool = false;
        store->waiting = 0;
    }
    return r;
}

/* Another try, when it is time for one; its failure is no error: the runs are safe. */
static void try_again(struct store *store)
{
    uint64_t now = clock_now_ns();
    struct error ignored;
    if (now < store->next_try_ns || try_now(store, &ignored) == 0)
        return;
    store->next_try_ns = clock_now_ns() + store->pause_ns;
    store->pause_ns =
        store->pause_ns * 2 < PAUSE_LONGEST_NS ? store->pause_ns * 2 : PAUSE_LONGEST_NS;
}

static int keep(struct store *store, const struct strbuf *record, struct error *err)
{
    int r = store_spool_start(store, err);
    if (r == 0)
        r = spool_add(&store->spool, record, err);
    if (r < 0)
        return r;
    store->waiting++;
    if (!store->only_spools)
        try_again(store);
    return 0;
}

int store_spool_run(struct store *store, const struct store_new_run *run, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf record = {0};
    put_run(&record, store, run);
    int r = keep(store, &record, err);
    store->spooled_count += r == 0;
    return r;
}

int store_spool_document(struct store *store, const char *kind, const char *text, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf record = {0};
    record_put_i64(&record, RECORD_DOCUMENT);
    record_put_text(&record, store->uuid);
    record_put_text(&record, kind);
    record_put_text(&record, text);
    return keep(store, &record, err);
}

int store_spool_finish(struct store *store, const char *state, struct error *err)
{
    char owner[256];
    store_owner_self(owner, sizeof(owner));
    CLEANUP(strbuf_done) struct strbuf record = {0};
    record_put_i64(&record, RECORD_FINISH);
    record_put_text(&record, store->uuid);
    record_put_text(&record, state);
    record_put_text(&record, owner);
    record_put_i64(&record, (int64_t)clock_read_ns(CLOCK_REALTIME));
    int r = keep(store, &record, err);
    uint64_t end_ns = clock_now_ns() + LAST_WAIT_NS;
    while (r == 0 && store->has_spool && !store->only_spools && clock_now_ns() < end_ns &&
           !process_signals_caught()) {
        nanosleep(&(struct timespec){.tv_nsec = (long)(NS_PER_S / 4)}, NULL);
        store->next_try_ns = 0;
        try_again(store);
    }
    return r;
}

size_t store_waiting(const struct store *store, const char **ret_path)
{
    if (ret_path)
        *ret_path = store->has_spool ? store->spool.path : NULL;
    return store->has_spool ? store->waiting : 0;
}

size_t store_spooled(const struct store *store, const char **ret_why)
{
    *ret_why = store->lost_why;
    return store->spooled_count;
}
