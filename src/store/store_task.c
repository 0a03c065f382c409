/* SPDX-License-Identifier: MIT */
/*
 * What tasks on other nodes measure: they write records into a file of their own, in a folder that
 * they share with the process that owns the experiment, and that process brings them into the
 * store.  So there is one writer, however many nodes there are; a store in a file will do, and a
 * server sees one connection.
 *
 * A unit (see ledger.h) is delivered as a whole, in one transaction: after whatever end of the
 * owner it is there or it is not, and the next owner reads the same files again.
 */
#include "base/memory.h"
#include "base/strings.h"
#include "store/store_internal.h"

#include <errno.h>
#include <stdio.h>

int store_open_task(struct store **ret_store, const char *path, const char *uuid, struct error *err)
{
    struct store *store = memory_zalloc(1, sizeof(*store));
    int r = spool_create_at(&store->spool, path, uuid, err);
    if (r < 0) {
        free(store);
        return r;
    }
    store->place = memory_strdup("");
    store->has_spool = store->only_spools = true;
    store->experiment = 1;
    snprintf(store->uuid, sizeof(store->uuid), "%s", uuid);
    *ret_store = store;
    return 0;
}

int store_reconnect(struct store *store, struct error *err)
{
    return sql_reconnect(store->sql, err);
}

const char *store_uuid(const struct store *store)
{
    return store->uuid;
}

/* The runs of the unit that is being read. */
struct unit {
    uint64_t number;
    struct spooled_run **runs;
    size_t count, capacity;
    size_t good; /* cells with a run that counts; runs of a cell follow each other */
    int64_t last_good;
};

static void unit_clear(struct unit *u)
{
    for (size_t i = 0; i < u->count; i++)
        spooled_run_free(u->runs[i]);
    u->count = u->good = 0;
    u->last_good = 0;
}

static void unit_done(struct unit *u)
{
    unit_clear(u);
    free(u->runs);
}

static int add_unit(struct store *store, int64_t experiment, const struct unit *u,
                    struct error *err)
{
    int r = sql_begin(store->sql, SQL_WRITING, err);
    if (r < 0)
        return r;
    for (size_t i = 0; r == 0 && i < u->count; i++) {
        const struct store_new_run *run = spooled_run_get(u->runs[i]);
        r = store_has_run(store, run, err);
        if (r == 0)
            r = store_insert_run(store, experiment, run, err);
        r = r > 0 ? 0 : r; /* it is there: its commit's answer was lost */
    }
    if (r < 0) {
        sql_rollback(store->sql);
        return error_wrap(err, r, "storing runs");
    }
    return sql_commit(store->sql, err);
}

static int flush(struct store *store, int64_t experiment, const struct store_units *units,
                 struct unit *u, struct error *err)
{
    int r = 0;
    if (u->count && u->number != UINT64_MAX &&
        u->good == units->size_of(units->context, u->number)) {
        r = -EAGAIN;
        for (int tries = 0; r == -EAGAIN && tries < STORE_TRIES; tries++)
            r = add_unit(store, experiment, u, err);
        if (r == 0)
            units->on_delivered(units->context, u->number);
    }
    unit_clear(u);
    return r;
}

static int take_record(struct store *store, int64_t experiment, const struct strbuf *record,
                       const struct store_units *units, struct unit *u, struct error *err)
{
    struct spooled_run *own = NULL;
    int r = spooled_run_read(store, record, store->uuid, &own, err);
    if (r < 0 || !own)
        return r;
    struct store_new_run *run = spooled_run_get(own);
    uint64_t number = units->unit_of(units->context, run->cell, run->round);
    if (u->count && number != u->number)
        r = flush(store, experiment, units, u, err);
    if (r < 0 || number == UINT64_MAX) {
        spooled_run_free(own);
        return r;
    }
    u->number = number;
    if (units->is_good(units->context, run->status) && run->cell != u->last_good) {
        u->last_good = run->cell;
        u->good++;
    }
    run->cell = units->id_of(units->context, run->cell);
    ARRAY_PUSH(u->runs, u->count, u->capacity) = own;
    return 0;
}

int store_deliver_task(struct store *store, int64_t experiment, const char *path,
                       const struct store_units *units, struct error *err)
{
    struct spool spool;
    int r = spool_open(&spool, path, err);
    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return r;
    CLEANUP(strbuf_done) struct strbuf content = {0}, record = {0};
    CLEANUP(unit_done) struct unit u = {0};
    size_t position = 0;
    r = spool_read(&spool, &content, &position, err);
    spool_close(&spool);
    while (r == 0 && (r = spool_next(&content, &position, &record, err)) > 0)
        r = take_record(store, experiment, &record, units, &u, err);
    if (r == 0)
        r = flush(store, experiment, units, &u, err);
    return r < 0 ? error_wrap(err, r, "delivering %s", path) : 0;
}
