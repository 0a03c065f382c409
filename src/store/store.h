/* SPDX-License-Identifier: MIT */
/*
 * The store: every raw value of every experiment, with what is needed to judge it later.
 *
 * An experiment is one execution of a spec: it has cells (one combination of factor values each),
 * and every cell has runs, one for each round (more when one failed and was tried again).  A run is
 * written in one transaction when it has ended, so that whatever is killed loses at most the run in
 * flight.  docs/FORMATS.md describes the tables.
 *
 * A store belongs to one thread; any number of processes may use one.
 *
 * A store on a server can get out of reach while an experiment runs.  Its runs are then kept in a
 * local file and delivered later, each once (store_spool.c): the functions that an experiment uses
 * between store_begin or store_claim and store_finish succeed meanwhile.
 */
#ifndef ASSAY_STORE_STORE_H
#define ASSAY_STORE_STORE_H

#include "base/error.h"
#include "stats/metric.h"
#include "store/store_place.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store;

/* Opens and, unless it is for reading, brings the schema up to date. */
int store_open(struct store **ret_store, const char *place, enum store_mode mode,
               struct error *err);
void store_close(struct store *store);
/* Whether STORE_CREATE would work, without creating anything: for those who measure first. */
int store_check_place(const char *place, struct error *err);
static inline void store_closep(struct store **store)
{
    store_close(*store);
}

struct store_metric {
    int64_t id;
    char *name, *unit;
    char *kind; /* "time", "counter", "metric" (the program's own), "monitor" */
    struct metric_facts facts;
};

/* The metric's id, made at its first use.  It is good until the next run was added: without a
 * connection it is provisional. */
int store_metric_id(struct store *store, const char *name, const char *unit,
                    struct metric_facts facts, const char *kind, int64_t *ret_id,
                    struct error *err);

/* How the table `metric` has them: better as 0, 1, 2; the traits as bits. */
int64_t store_traits_number(struct metric_facts facts);
struct metric_facts store_facts_of(int64_t better, int64_t traits);
/* Of a metric that version 0.1 wrote, which kept no traits; the third schema does the same. */
struct metric_facts store_facts_before_traits(const char *name, const char *unit,
                                              enum metric_better better, const char *kind);

struct store_factor {
    const char *name;
};

struct store_new_cell {
    const char *label;         /* "size=64 variant=send" */
    const char *command;       /* with all holes filled */
    const char *build_id;      /* what the program's content was, or NULL */
    const char *const *values; /* one per factor */
};

struct store_new {
    const char *name, *question;
    const char *spec_text, *spec_path;
    const char *selection;   /* what of the spec was chosen: "quick", cells; part of its identity */
    const char *baseline;    /* "factor=value …", "" for none */
    const char *headline;    /* metric names, separated by newlines */
    const char *git_commit;  /* "" when not in a repository; ends in "-dirty" with changes */
    const char *subject;     /* the commit's first line, "" when there is none */
    const char *environment; /* JSON */
    const char *machine;     /* the capability record, JSON */
    const char *branch;      /* of git; NULL or "" when not known */
    const char *machine_class; /* machines whose results may be compared have the same; as branch */
    uint64_t started_at_ns;    /* since 1970; 0 for now */
    uint64_t seed;
    bool adaptive; /* how many rounds there will be depends on what they say */
    const char *const *factors;
    size_t factor_count;
    const struct store_new_cell *cells;
    size_t cell_count;
};

/* Writes the experiment and its cells, owned by this process, in one transaction.  ret_cells gets
 * the cells' ids. */
int store_begin(struct store *store, const struct store_new *new, int64_t *ret_id,
                int64_t *ret_cells, struct error *err);

struct store_value {
    int64_t metric;
    double value;
    uint64_t enabled_ns, running_ns; /* both 0 where it was not a counter */
};

struct store_series {
    int64_t metric;
    const double *values; /* one per tick of the run */
};

struct store_disturbance {
    const char *kind; /* "steal", "pressure", "migrations", … */
    double amount;
    const char *words;
};

struct store_new_run {
    int64_t cell;
    uint64_t round, position; /* position: of the cell within its round */
    uint64_t started_at_ns;   /* since 1970 */
    uint64_t wall_ns;
    int status;         /* as wait4 gives it */
    const char *layout; /* environment padding, ASLR, CPU: "" when nothing was varied */
    const char *output; /* the end of what a failed command said, NULL else */
    const struct store_value *values;
    size_t value_count;
    const uint64_t *tick_ns; /* of the monitors, since the run's start */
    size_t tick_count;
    const struct store_series *series;
    size_t series_count;
    const struct store_disturbance *disturbances;
    size_t disturbance_count;
};

int store_add_run(struct store *store, int64_t experiment, const struct store_new_run *run,
                  struct error *err);

/* Many runs in one transaction: all of them or none.  They are not spooled, and each is the first
 * of its cell in its round. */
int store_add_runs(struct store *store, int64_t experiment, const struct store_new_run *runs,
                   size_t count, struct error *err);

/* How many things wait for the store to be in reach again, and the file they are in. */
size_t store_waiting(const struct store *store, const char **ret_path);
/* How many runs had to wait since the store was opened, and why at first. */
size_t store_spooled(const struct store *store, const char **ret_why);

struct store_delivery {
    size_t files, runs, already; /* already: runs that turned out to be there */
    size_t busy, failed;         /* files: their writer still runs; not delivered */
};

/* Delivers what earlier processes could not.  On failure err tells of the last file that failed. */
int store_deliver(struct store *store, struct store_delivery *ret_tally, struct error *err);

/*
 * A store for a task of an experiment that another process owns: it knows nothing and only writes
 * runs into the file, for the owner to deliver.  Its runs' cells are those of the spec, from 1 on.
 */
int store_open_task(struct store **ret_store, const char *path, const char *uuid,
                    struct error *err);

/* Says which unit a task's run belongs to. */
struct store_units {
    /* The unit's number of a cell (from 1) in a round; UINT64_MAX: of none that is wanted. */
    uint64_t (*unit_of)(void *context, int64_t cell, uint64_t round);
    /* How many cells it has. */
    size_t (*size_of)(void *context, uint64_t unit);
    int64_t (*id_of)(void *context, int64_t cell); /* the cell's in the store */
    bool (*is_good)(void *context, int status);    /* a run that ended so counts */
    /* Its runs are in the store. */
    void (*on_delivered)(void *context, uint64_t unit);
    void *context;
};

/* Brings into the store what a task measured, unit by unit: one of which a cell is missing is left
 * out.  Each unit is one transaction, and one that is there is not added again.  A file that is not
 * there has nothing. */
int store_deliver_task(struct store *store, int64_t experiment, const char *path,
                       const struct store_units *units, struct error *err);

/* The experiment's owner is alive, though it writes nothing. */
int store_touch(struct store *store, int64_t experiment, struct error *err);
/* After the connection was lost. */
int store_reconnect(struct store *store, struct error *err);
/* The experiment that this process began or claimed. */
const char *store_uuid(const struct store *store);

/* Takes an experiment over whose process has ended; -EBUSY when it still runs. */
int store_claim(struct store *store, int64_t experiment, bool adaptive, struct error *err);
/* state: "done", "stopped" (can be resumed), "failed". */
int store_finish(struct store *store, int64_t experiment, const char *state, struct error *err);

/* One line of `assay list`. */
struct store_experiment {
    int64_t id;
    char *uuid, *name, *question, *state, *git_commit, *selection, *baseline, *headline;
    char *spec_path, *spec_hash;
    uint64_t seed, started_at_ns, ended_at_ns;
    uint64_t cell_count, run_count, failed_count, disturbed_count;
    bool alive;    /* its process is running it now */
    bool adaptive; /* how many rounds there are depended on what they said */
};

struct store_list {
    struct store_experiment *items;
    size_t count, capacity;
};

struct store_filter {
    const char *name;      /* only of that name */
    const char *spec_hash; /* only of that spec */
    const char *git;       /* only of commits that begin so */
    int64_t id;            /* only this one, 0 for any */
    uint64_t most;         /* 0 for all */
};

/* Newest first. */
int store_list(struct store *store, const struct store_filter *filter, struct store_list *ret_list,
               struct error *err);
void store_list_done(struct store_list *list);
void store_experiment_done(struct store_experiment *e);

/* What a person wrote for an experiment: its number, "last", its name (the newest of it), the
 * beginning of its uuid or of a commit. */
int store_find(struct store *store, const char *word, int64_t *ret_id, struct error *err);
int store_experiment(struct store *store, int64_t id, struct store_experiment *ret,
                     struct error *err);

/* A text kept with the experiment: "spec", "environment", "machine". The caller frees it. */
int store_document(struct store *store, int64_t experiment, const char *kind, char **ret_text,
                   struct error *err);
int store_add_document(struct store *store, int64_t experiment, const char *kind, const char *text,
                       struct error *err);

int store_remove(struct store *store, int64_t experiment, struct error *err);

/* 64 hexadecimal digits of SHA-256 for a spec's text: the same text, the same hash. */
void store_hash(const char *text, char ret_hash[static 65]);

#endif
