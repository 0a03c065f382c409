/* SPDX-License-Identifier: MIT */
/* Opening a store, and what its writers share: metrics' ids and documents. */
#include "store/store.h"
#include "base/memory.h"
#include "base/sha256.h"
#include "base/strings.h"
#include "store/store_internal.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

const char *store_place(const char *option)
{
    const char *place = option && *option ? option : getenv("ASSAY_DB");
    return place && *place ? place : STORE_DEFAULT;
}

bool store_is_address(const char *place)
{
    return str_has_prefix(place, "postgresql://") || str_has_prefix(place, "postgres://");
}

int store_open(struct store **ret_store, const char *place, enum store_mode mode, struct error *err)
{
    struct sql *sql = NULL;
    struct stat st;
    if (!store_is_address(place) && stat(place, &st) == 0 && S_ISDIR(st.st_mode))
        return error_set(err, -EISDIR, "%s is a directory, not a store; name a file: %s/assay.db",
                         place, place);
    int r = sql_open(&sql, place, mode, err);
    if (r == -ENOENT && mode != STORE_CREATE && mode != STORE_EXPORT)
        return error_set(
            err, r,
            "there is no store %s; 'assay run' creates one; --db PATH or ASSAY_DB names another",
            place);
    if (r < 0)
        return r;
    r = store_migrate(sql, mode != STORE_READ, err);
    if (r < 0) {
        sql_close(sql);
        return str_has_prefix(err ? err->message : place, place) ? r
                                                                 : error_wrap(err, r, "%s", place);
    }
    struct store *store = memory_zalloc(1, sizeof(*store));
    store->sql = sql;
    store->place = memory_strdup(place);
    *ret_store = store;
    struct store_delivery ignored; /* what cannot be delivered now stays where it is */
    if (mode == STORE_CREATE)
        store_deliver(store, &ignored, NULL);
    return 0;
}

int store_check_place(const char *place, struct error *err)
{
    CLEANUP(store_closep) struct store *store = NULL;
    if (store_is_address(place))
        return store_open(&store, place, STORE_CREATE, err);
    if (access(place, F_OK) == 0)
        return access(place, W_OK) < 0 ? error_errno(err, -errno, "%s: cannot be written", place)
                                       : store_open(&store, place, STORE_CREATE, err);
    const char *slash = strrchr(place, '/');
    CLEANUP(memory_freep)
    char *parent = slash ? memory_strndup(place, (size_t)(slash - place) + 1) : memory_strdup(".");
    return access(parent, W_OK | X_OK) < 0
               ? error_errno(err, -errno, "%s: cannot be created", place)
               : 0;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    for (size_t i = 0; i < store->metric_count; i++) {
        free(store->metrics[i].name);
        free(store->metrics[i].unit);
        free(store->metrics[i].kind);
    }
    free(store->metrics);
    if (store->has_spool)
        spool_close(&store->spool);
    free(store->place);
    sql_close(store->sql);
    free(store);
}

void store_hash(const char *text, char ret_hash[static 65])
{
    struct sha256 h;
    sha256_start(&h);
    sha256_add(&h, text, strlen(text));
    sha256_end(&h, ret_hash);
}

enum { TRAIT_SPEED = 1, TRAIT_COUNT = 2, TRAIT_TOTAL = 4 };

int64_t store_traits_number(struct metric_facts facts)
{
    return (facts.is_speed ? TRAIT_SPEED : 0) | (facts.is_count ? TRAIT_COUNT : 0) |
           (facts.is_total ? TRAIT_TOTAL : 0);
}

struct metric_facts store_facts_of(int64_t better, int64_t traits)
{
    return (struct metric_facts){.better = better == METRIC_LOWER || better == METRIC_HIGHER
                                               ? (enum metric_better)better
                                               : METRIC_NEITHER,
                                 .is_speed = traits & TRAIT_SPEED,
                                 .is_count = traits & TRAIT_COUNT,
                                 .is_total = traits & TRAIT_TOTAL};
}

struct metric_facts store_facts_before_traits(const char *name, const char *unit,
                                              enum metric_better better, const char *kind)
{
    bool is_time = str_eq(kind, "time"), is_own = str_eq(kind, "metric");
    bool speed =
        (is_time && str_eq(name, "wall")) ||
        (is_own && (better == METRIC_HIGHER || (better == METRIC_LOWER && str_eq(unit, "ns"))));
    return (struct metric_facts){
        .better = better,
        .is_speed = speed,
        .is_count = unit[0] == '\0' && (is_time || str_eq(kind, "counter")),
    };
}

/* Where the metric stands in the sorted list, or would stand. */
static size_t metric_place(const struct store *store, const char *name, const char *unit,
                           struct metric_facts facts, const char *kind, bool *ret_found)
{
    size_t low = 0, high = store->metric_count;
    *ret_found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct store_metric *m = &store->metrics[middle];
        int order = strcmp(m->name, name);
        order = order ? order : strcmp(m->unit, unit);
        order = order ? order : (int)m->facts.better - (int)facts.better;
        order = order ? order : strcmp(m->kind, kind);
        if (order == 0) {
            *ret_found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int find_metric(struct store *store, const char *name, const char *unit,
                       struct metric_facts facts, const char *kind, int64_t *ret_id,
                       struct error *err)
{
    struct sql_rows *rows;
    int r = sql_query(store->sql, &rows, err,
                      "SELECT id FROM metric WHERE name = ? AND unit = ? AND better = ?"
                      " AND kind = ?",
                      "ttit", name, unit, (int64_t)facts.better, kind);
    if (r < 0)
        return r;
    r = sql_next(rows, err);
    if (r > 0)
        *ret_id = sql_i64(rows, 0);
    sql_rows_done(rows);
    return r;
}

/* Looked for first: an INSERT that finds its row there uses a number up in PostgreSQL. */
static int find_or_make(struct store *store, const char *name, const char *unit,
                        struct metric_facts facts, const char *kind, int64_t *ret_id,
                        struct error *err)
{
    int r = find_metric(store, name, unit, facts, kind, ret_id, err);
    if (r == 0)
        r = sql_run(store->sql, err,
                    "INSERT INTO metric (name, unit, better, kind, traits) VALUES (?, ?, ?, ?, ?)"
                    " ON CONFLICT DO NOTHING",
                    "ttiti", name, unit, (int64_t)facts.better, kind, store_traits_number(facts));
    if (r == 0)
        r = find_metric(store, name, unit, facts, kind, ret_id, err);
    return r > 0 ? 0 : r < 0 ? r : error_set(err, -EIO, "metric %s could not be stored", name);
}

/* Keeps an id that belongs at that place of the sorted list. */
static void remember_metric(struct store *store, size_t place, const char *name, const char *unit,
                            struct metric_facts facts, const char *kind, int64_t id)
{
    store->metrics = memory_grow(store->metrics, &store->metric_capacity, store->metric_count + 1,
                                 sizeof(*store->metrics));
    memmove(&store->metrics[place + 1], &store->metrics[place],
            (store->metric_count - place) * sizeof(*store->metrics));
    store->metrics[place] = (struct store_metric){.id = id,
                                                  .name = memory_strdup(name),
                                                  .unit = memory_strdup(unit),
                                                  .facts = facts,
                                                  .kind = memory_strdup(kind)};
    store->metric_count++;
}

int store_metric_number(struct store *store, const char *name, const char *unit,
                        struct metric_facts facts, const char *kind, int64_t *ret_id,
                        struct error *err)
{
    bool found;
    size_t place = metric_place(store, name, unit, facts, kind, &found);
    if (found) {
        *ret_id = store->metrics[place].id;
        return 0;
    }
    int64_t id = 0;
    int r = find_or_make(store, name, unit, facts, kind, &id, err);
    if (r < 0)
        return r;
    remember_metric(store, place, name, unit, facts, kind, id);
    *ret_id = id;
    return 0;
}

int store_metric_id(struct store *store, const char *name, const char *unit,
                    struct metric_facts facts, const char *kind, int64_t *ret_id, struct error *err)
{
    if (!store->has_spool) {
        int r = store_metric_number(store, name, unit, facts, kind, ret_id, err);
        if (!store_lost(store, r))
            return r;
        r = store_spool_start(store, err);
        if (r < 0)
            return r;
    }
    bool found;
    size_t place = metric_place(store, name, unit, facts, kind, &found);
    if (!found)
        remember_metric(store, place, name, unit, facts, kind, -1 - (int64_t)store->metric_count);
    *ret_id = store->metrics[place].id;
    return 0;
}

int store_document_now(struct store *store, int64_t experiment, const char *kind, const char *text,
                       struct error *err)
{
    char hash[65];
    store_hash(text, hash);
    int r = sql_run(store->sql, err,
                    "INSERT INTO document (hash, text) VALUES (?, ?) ON CONFLICT DO NOTHING", "tt",
                    hash, text);
    if (r == 0)
        r = sql_run(store->sql, err,
                    "INSERT INTO attachment (experiment, kind, hash) VALUES (?, ?, ?)"
                    " ON CONFLICT (experiment, kind) DO UPDATE SET hash = excluded.hash",
                    "itt", experiment, kind, hash);
    return r;
}

int store_add_document(struct store *store, int64_t experiment, const char *kind, const char *text,
                       struct error *err)
{
    bool own = experiment == store->experiment;
    int r = own && store->has_spool ? -ENOTCONN
                                    : store_document_now(store, experiment, kind, text, err);
    return own && store_lost(store, r) ? store_spool_document(store, kind, text, err) : r;
}

int store_document(struct store *store, int64_t experiment, const char *kind, char **ret_text,
                   struct error *err)
{
    struct sql_rows *rows;
    int r = sql_query(store->sql, &rows, err,
                      "SELECT d.text FROM attachment a JOIN document d ON d.hash = a.hash"
                      " WHERE a.experiment = ? AND a.kind = ?",
                      "it", experiment, kind);
    if (r < 0)
        return r;
    r = sql_next(rows, err);
    if (r > 0)
        *ret_text = memory_strdup(sql_text(rows, 0));
    sql_rows_done(rows);
    if (r == 0)
        return error_set(err, -ENOENT, "experiment %lld has no %s", (long long)experiment, kind);
    return r < 0 ? r : 0;
}

static int remove_once(struct store *store, int64_t experiment, struct error *err)
{
    int r = sql_begin(store->sql, SQL_WRITING, err);
    if (r < 0)
        return r;
    r = sql_run(store->sql, err, "DELETE FROM run WHERE experiment = ?", "i", experiment);
    if (r == 0)
        r = sql_run(store->sql, err, "DELETE FROM experiment WHERE id = ?", "i", experiment);
    int64_t removed = 0;
    if (r == 0)
        r = sql_changed(store->sql, &removed, err);
    if (r == 0)
        r = sql_run(store->sql, err,
                    "DELETE FROM document WHERE NOT EXISTS"
                    " (SELECT 1 FROM attachment WHERE attachment.hash = document.hash)",
                    NULL);
    if (r == 0 && !removed)
        r = error_set(err, -ENOENT, "there is no experiment %lld", (long long)experiment);
    if (r < 0) {
        sql_rollback(store->sql);
        return r;
    }
    return sql_commit(store->sql, err);
}

int store_remove(struct store *store, int64_t experiment, struct error *err)
{
    int r = -EAGAIN;
    for (int tries = 0; r == -EAGAIN && tries < STORE_TRIES; tries++)
        r = remove_once(store, experiment, err);
    return r;
}
