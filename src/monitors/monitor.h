/* SPDX-License-Identifier: MIT */
/* What a monitor is made of.  Each is a small file with a table and a parser of texts. */
#ifndef ASSAY_MONITORS_MONITOR_H
#define ASSAY_MONITORS_MONITOR_H

#include "monitors/monitors.h"

enum { MONITOR_PREVIOUS_MAX = 24 };

struct monitor_file {
    int fd;           /* -1 where it is read elsewhere */
    const char *path; /* then */
    char label[64];   /* the part of the path where the pattern has its stars: "node0", "cpu0.C1" */
};

struct monitor_instance {
    const struct monitor *monitor;
    struct monitor_file *files;
    size_t file_count, file_capacity;
    struct strbuf text;                    /* of the file that is read */
    double previous[MONITOR_PREVIOUS_MAX]; /* of the last tick, for monitors that need it */
    bool has_previous;
    bool was_read;  /* some file of it, in the last run */
    double seconds; /* since the last tick; 0 at the first */
    void *extra;    /* of monitors that read no text */
};

/* Where a reading goes.  Names are prefix + key. */
struct monitor_sink {
    struct monitors *m;
    char prefix[96];
    size_t prefix_length;
    size_t cursor; /* the column that is expected next: names come in the same order each time */
};

struct monitor {
    const char *name, *what;
    unsigned every; /* read only at every so manieth tick and the last, where reading costs much */
    /* Patterns as glob(3) knows them, ends with NULL; with `open`, for machines elsewhere only. */
    const char *const *paths;
    void (*parse)(struct monitor_instance *i, const struct monitor_file *file,
                  struct monitor_sink *sink); /* i->text holds the file's text */
    void (*finish)(struct monitor_instance *i, struct monitor_sink *sink); /* after all files */
    /* Instead of files: */
    int (*open)(struct monitor_instance *i, struct error *err);
    void (*read)(struct monitor_instance *i, struct monitor_sink *sink);
    void (*done)(struct monitor_instance *i);
    /* Of a monitor that watches runs of its own (see enum monitor_class): events are opened by
     * start, emptied by drain, and read gives the columns once the run has ended. */
    enum monitor_class class;
    int (*start)(struct monitor_instance *i, struct error *err);
    void (*drain)(struct monitor_instance *i);
};

void sink_prefix(struct monitor_sink *sink, const char *first, const char *second);
void sink_put(struct monitor_sink *sink, const char *key, size_t key_length, double value,
              enum column_mode mode, const char *unit);
static inline void sink_put_text(struct monitor_sink *sink, const char *key, double value,
                                 enum column_mode mode, const char *unit)
{
    sink_put(sink, key, strlen(key), value, mode, unit);
}

/* A scanner of lines and numbers that never runs over the end of the text. */
struct scan {
    const char *at;
};

/* The next line's start, NULL at the end; the scanner stands behind it. */
bool scan_line(struct scan *s, const char **ret_line, size_t *ret_length);
/* The next word of the line (blanks skipped); false at its end. */
bool scan_word(const char **line, const char **ret_word, size_t *ret_length);
/* The next number of the line; false when something else (or nothing) comes. */
bool scan_number(const char **line, double *ret_number);

extern const struct monitor monitor_mpstat, monitor_vmstat, monitor_proc_vmstat,
    monitor_numa_vmstat, monitor_numastat, monitor_numa_meminfo, monitor_meminfo,
    monitor_interrupts, monitor_softirqs, monitor_slabinfo, monitor_diskstats, monitor_pressure,
    monitor_schedstat, monitor_cpuidle, monitor_thermal, monitor_turbostat, monitor_perf_stat,
    monitor_sched_debug, monitor_perf_sched, monitor_lock_contention, monitor_syscalls,
    monitor_perf_profile;

#endif
