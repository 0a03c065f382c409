/* SPDX-License-Identifier: MIT */
/*
 * Monitors: what the machine did during a run, read from /proc and /sys by a thread of assay itself
 * at an interval.  Names and reductions are those of the kernel test robot (lkp-tests), so that
 * its readers find what they know.
 *
 *   monitors_open(&m, names, count, interval_ns, &err);
 *   monitors_start(&m);        first reading, then one at each interval
 *   … the run …
 *   monitors_stop(&m);         last reading
 *   m.columns[i]: name, unit, the values of all ticks, and the one number for the run
 *
 * Files stay open from one reading to the next and nothing is started, so that watching costs
 * little; what it did cost is in cpu_ns.
 */
#ifndef ASSAY_MONITORS_MONITORS_H
#define ASSAY_MONITORS_MONITORS_H

#include "base/error.h"
#include "base/strings.h"
#include "stats/metric.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MONITORS_MAX = 32,
    MONITOR_TICKS_MAX =
        20000, /* of one run; a longer run's later ticks are left out but the last */
};

/*
 * What watching does to the run.  Reading files now and then costs next to nothing and is done
 * during the measured run.  Tracing and sampling change what they watch: each class has a run of
 * its own, right after the measured one of the same cell and round.
 */
enum monitor_class {
    MONITOR_READS,    /* files, at an interval */
    MONITOR_TRACES,   /* tracepoints of the run's processes */
    MONITOR_PROFILES, /* samples of the run's processes, taken by `assay record` */
};

/* How the readings of a run become one number. */
enum column_mode {
    COLUMN_MEAN,  /* a state: the mean of all readings */
    COLUMN_DELTA, /* an ever-growing count: last minus first */
    COLUMN_RATE,  /* the same for each second */
    COLUMN_LAST,  /* computed from totals so far: the last reading */
};

struct monitor_column {
    char *name; /* "vmstat.system.cs" */
    const char *unit;
    enum column_mode mode;
    double *values; /* one per tick; NAN where nothing was read */
    size_t capacity;
    double value; /* of the run; NAN when it is not known */
};

static inline struct metric_facts monitor_facts(const struct monitor_column *column)
{
    return (struct metric_facts){.better = METRIC_NEITHER,
                                 .is_count = column->mode == COLUMN_DELTA && !*column->unit,
                                 .is_total =
                                     column->mode == COLUMN_DELTA || column->mode == COLUMN_RATE};
}

struct monitor_instance;

/* Reads a file where the runs are, if that is not this machine.  Returns 0 or a negative errno. */
typedef int monitor_read_fn(void *context, const char *path, struct strbuf *ret_text);

struct monitors {
    struct monitor_instance *instances;
    size_t instance_count;
    struct strbuf missing;  /* "numastat: no such file; …" for what this machine lacks */
    struct strbuf troubles; /* what went wrong when a run began */
    enum monitor_class class;
    uint64_t interval_ns;
    struct monitor_column *columns;
    size_t column_count, column_capacity;
    uint64_t *tick_ns; /* since monitors_start */
    size_t tick_count, tick_capacity;
    uint64_t cpu_ns; /* that reading took during the run */
    uint64_t start_ns;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    uint64_t due_ns;
    bool has_thread, active, quit;   /* the last two are guarded by the lock */
    monitor_read_fn *read_elsewhere; /* NULL: on this machine */
    void *read_context;
};

struct monitor; /* see monitor.h */

enum monitor_class monitor_class(const struct monitor *monitor);

const struct monitor *monitor_find(const char *name);
/* All names; returns how many. */
size_t monitor_names(const char *ret_names[MONITORS_MAX]);
const char *monitor_what(const struct monitor *monitor);

/* Opens those of the names that are of the class.  A monitor that this machine does not have is
 * noted in `missing`, no failure.  To be called before events are opened, which would count the
 * monitors' thread; m must not move in memory. */
int monitors_open(struct monitors *m, const char *const *names, size_t count,
                  enum monitor_class class, uint64_t interval_ns, struct error *err);
/* The same for runs on another machine, such as an emulated one: monitors that read files at fixed
 * paths, once when a run begins and once when it has ended.  Others are noted in `missing`. */
int monitors_open_elsewhere(struct monitors *m, const char *const *names, size_t count,
                            monitor_read_fn *read, void *context, struct error *err);
/* Monitors none of whose files could be read in the last run, as "slabinfo, sched_debug". */
void monitors_put_unread(const struct monitors *m, struct strbuf *out);
void monitors_done(struct monitors *m);

/* In the thread that starts the run. */
void monitors_start(struct monitors *m);
void monitors_stop(struct monitors *m);

#endif
