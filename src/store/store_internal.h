/* SPDX-License-Identifier: MIT */
/* What the store's own files share. */
#ifndef ASSAY_STORE_STORE_INTERNAL_H
#define ASSAY_STORE_STORE_INTERNAL_H

#include "store/spool.h"
#include "store/sql.h"
#include "store/store.h"

/* Transactions that were in each other's way are tried again so often. */
enum { STORE_TRIES = 8 };

struct store {
    struct sql *sql;
    char *place;
    /* The experiment that this process runs; "" for none. */
    int64_t experiment;
    char uuid[37];
    /* While the store is out of reach: what is to be delivered. */
    bool has_spool;
    struct spool spool;
    size_t waiting, spooled_count;
    char lost_why[sizeof(((struct error *)0)->message)]; /* what the first failure said */
    uint64_t next_try_ns, pause_ns;
    bool only_spools; /* there is no connection and never will be: see store_open_task */
    struct store_metric *metrics; /* ids that were asked for, ordered by name */
    size_t metric_count, metric_capacity;
};

/* Brings the tables up to date; -EPROTO when a newer assay wrote them. */
int store_migrate(struct sql *sql, bool may_write, struct error *err);

/* As store_metric_id, but the store is asked, spool or not. */
int store_metric_number(struct store *store, const char *name, const char *unit,
                        struct metric_facts facts, const char *kind, int64_t *ret_id,
                        struct error *err);
int store_document_now(struct store *store, int64_t experiment, const char *kind, const char *text,
                       struct error *err);
/* The columns of an experiment that store_read_list reads; it is done with the rows. */
#define STORE_EXPERIMENT_COLUMNS                                                              \
    "id, uuid, name, question, state, git_commit, selection, baseline, headline, spec_path, " \
    "spec_hash, seed, started_at_ns, ended_at_ns, cell_count, run_count, failed_count, "      \
    "disturbed_count, owner, updated_at_ns, adaptive"
int store_read_list(struct sql_rows *rows, struct store_list *ret_list, struct error *err);
/* Adds a run unless it is there already. */
int store_add_run_once(struct store *store, int64_t experiment, const struct store_new_run *run,
                       bool *ret_added, struct error *err);

/* Whether the code says that the connection is lost, and a spool can stand in for it. */
bool store_lost(struct store *store, int code);
int store_spool_start(struct store *store, struct error *err);
int store_spool_run(struct store *store, const struct store_new_run *run, struct error *err);
int store_spool_document(struct store *store, const char *kind, const char *text,
                         struct error *err);
int store_spool_finish(struct store *store, const char *state, struct error *err);

/* A run in the memory of a record, and in some of its own. */
struct spooled_run;
/* Reads a record; *ret_run stays NULL for one that is no run of the experiment of that uuid. */
int spooled_run_read(struct store *store, const struct strbuf *record, const char *uuid,
                     struct spooled_run **ret_run, struct error *err);
struct store_new_run *spooled_run_get(struct spooled_run *run);
void spooled_run_free(struct spooled_run *run);

/* The two halves of store_add_run_once, for a transaction of the caller's. */
int store_has_run(struct store *store, const struct store_new_run *run, struct error *err);
int store_insert_run(struct store *store, int64_t experiment, const struct store_new_run *run,
                     struct error *err);

/* A run of numbers only, of which many are inserted at once: as many of them as fill groups, which
 * *ret_done tells.  Their rounds have no run yet. */
bool store_is_plain(const struct store_new_run *run);
int store_insert_plain(struct store *store, int64_t experiment, const struct store_new_run *runs,
                       size_t count, size_t *ret_done, struct error *err);

/* The process that runs an experiment, as a text that tells it from every other. */
void store_owner_self(char *text, size_t size);
/* Whether that process still runs; updated_at_ns is when it last wrote. */
bool store_owner_alive(const char *owner, uint64_t updated_at_ns);

#endif
