/* SPDX-License-Identifier: MIT */
/*
 * Tracepoints of a run's own processes, in the order of time.
 *
 *   trace_open(&t, &spec, &err);
 *   trace_start(&t, &err);     just before the run, in the thread that starts it
 *   trace_drain(&t, f, ctx);   often: gives each record to f
 *   trace_stop(&t, f, ctx);    the rest
 *   t.lost                     what did not fit
 *   trace_close(&t);
 *
 * The events follow what the calling thread starts from its exec on, on every CPU, so that nothing
 * but the run is traced; only `everywhere` are those of all that the machine does, for what others
 * do to the run.  They are opened for one run only: what is measured otherwise is left alone.
 * Records of different CPUs come in any order; they wait for one drain and are then given in order.
 */
#ifndef ASSAY_MONITORS_TRACE_H
#define ASSAY_MONITORS_TRACE_H

#include "base/error.h"
#include "machine/tracefs.h"
#include "profile/idtable.h"
#include "sampler/sampling.h"
#include "symbols/symbols.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace_spec {
    const char *events; /* of the run's processes, as -e takes them */
    const char *filter; /* of these events from filter_from on, as counters/filter.h says */
    size_t filter_from;
    const char *first_filter; /* of those before */
    const char *everywhere;   /* of all CPUs, without call chains; NULL for none */
    bool stacks;              /* with the kernel's part of the call chain */
    bool switches;            /* and a record of every arrival at a CPU and leaving */
    bool user_stacks;         /* and the user's part of the call chain, by frame pointers */
    /* Instead of what the calling thread starts: */
    const pid_t *tasks; /* these threads and what they start, at once */
    size_t task_count;
    bool on_exec; /* from their exec on */
    bool whole_machine;
};

enum trace_kind { TRACE_EVENT, TRACE_ARRIVES, TRACE_LEAVES };

struct trace_record {
    enum trace_kind kind;
    uint64_t time_ns;
    uint32_t pid, tid, cpu;
    size_t event; /* of TRACE_EVENT: its place in the list; those of everywhere come behind */
    const unsigned char *raw;
    size_t raw_size;
    bool is_preempted;     /* of TRACE_LEAVES: still runnable */
    const uint64_t *chain; /* addresses in the kernel, the innermost first */
    size_t chain_count;
};

typedef void trace_fn(void *context, const struct trace_record *record);

struct trace_waiting {
    uint64_t time_ns;
    size_t offset; /* in bytes */
    size_t source;
};

enum { TRACE_RUN, TRACE_EVERYWHERE, TRACE_SOURCES };

struct trace_source {
    struct event_list events;
    bool stacks;
    struct sampling sampling;
    bool is_sampling;
};

struct trace {
    struct trace_spec spec;
    struct trace_source sources[TRACE_SOURCES];
    size_t reading; /* the source that is read just now */
    int *cpus;
    size_t cpu_count;
    unsigned char *bytes; /* records that wait for their turn */
    size_t byte_count, byte_capacity;
    unsigned char *spare; /* where those go that wait on */
    size_t spare_capacity;
    struct trace_waiting *waiting;
    size_t waiting_count, waiting_capacity;
    uint64_t horizon_ns; /* what is older has all been seen */
    uint64_t lost, records;
};

/* Also tries whether the events can be opened at all, and closes them again. */
int trace_open(struct trace *t, const struct trace_spec *spec, struct error *err);
void trace_close(struct trace *t);
int trace_start(struct trace *t, struct error *err);
void trace_drain(struct trace *t, trace_fn *f, void *context);
void trace_stop(struct trace *t, trace_fn *f, void *context);

/* Where a field of the event (by its place in the list) stands. */
int trace_field(const struct trace *t, size_t event, const char *name,
                struct trace_field *ret_field, struct error *err);
/* The field of a record as a number; 0 when the record is too short for it. */
int64_t trace_number(const struct trace_record *record, const struct trace_field *field);

/* Cuts a record of the kernel into its parts; false for one that means nothing here.  For tests,
 * too: the bytes are not trusted. */
bool trace_parse(const struct trace *t, size_t source, const struct perf_event_header *head,
                 struct trace_record *ret_record);

/* Durations added up. */
struct trace_sums {
    uint64_t count, total_ns, max_ns;
};
void trace_sums_add(struct trace_sums *s, uint64_t ns);
void trace_sums_merge(struct trace_sums *s, const struct trace_sums *other);

/*
 * Call chains by number, and their names: "futex_wait.do_futex.do_syscall_64", the innermost first.
 * A chain ends where an interrupt began.  Frames of tracing itself, and those that `skips` lists
 * (it ends with NULL), are left out at the inner end.
 */
struct chains {
    uint64_t *addresses;
    size_t address_count, address_capacity;
    struct chain_place {
        size_t first;
        uint32_t count;
        uint64_t hash;
    } * items;
    size_t count, capacity;
    struct idtable table;
    struct symbols *symbols; /* made when names are first wanted */
};

void chains_init(struct chains *c);
void chains_done(struct chains *c);
/* Forgets the chains; the symbols stay. */
void chains_clear(struct chains *c);
uint32_t chains_intern(struct chains *c, const uint64_t *chain, size_t count);
/* Sets names[0..c->count), which the caller frees; equal names are equal functions. */
void chains_name(struct chains *c, const char *const *skips, char **names);
/* The first name that equals names[index]: chains of equal names differ only in the places within
 * their functions. */
size_t chains_first(char *const *names, size_t index);
/* Whether the kernel gives the names of its functions; else err says what to change. */
int chains_check(struct error *err);

#endif
