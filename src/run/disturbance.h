/* SPDX-License-Identifier: MIT */
/*
 * What disturbed a run from outside: time that the host took away, other processes that wanted the
 * same CPUs, forced switches and moves between CPUs.  A disturbed run is marked and kept; whoever
 * reads the result decides.
 */
#ifndef ASSAY_RUN_DISTURBANCE_H
#define ASSAY_RUN_DISTURBANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct disturbance {
    bool has_steal, has_pressure, has_migrations, has_throttles, has_others;
    bool no_storage;               /* the run itself read and wrote none */
    uint64_t steal_ns;             /* by the host, from all CPUs (counted in 10 ms steps) */
    uint64_t pressure_cpu_ns;      /* PSI some: a task that could run had no CPU */
    uint64_t others_ns;            /* CPU time of other processes, on all CPUs */
    uint64_t pressure_io_ns;       /* PSI some: a task waited for storage */
    uint64_t pressure_memory_ns;   /* PSI some: a task waited for memory */
    uint64_t involuntary_switches; /* the run's own tasks were taken off a CPU */
    uint64_t migrations;           /* the run's own tasks were moved to another CPU */
    uint64_t throttles;            /* times that a CPU was slowed down because it was hot */
    uint64_t stalled_ns;           /* assay itself stood still (stopped, or the whole machine) */
};

/* Reads the totals of the whole machine; the files stay open from one reading to the next. */
struct disturbance_meter {
    int stat_fd, cpu_fd, io_fd, memory_fd; /* -1 where the kernel has no such file */
    int *throttle_fds;                     /* of each CPU that counts them */
    size_t throttle_count;
};

struct disturbance_totals {
    uint64_t steal_ns, busy_ns, pressure_cpu_ns, pressure_io_ns, pressure_memory_ns, throttles;
};

/* cpu_folder is /sys/devices/system/cpu, but in tests. */
void disturbance_meter_open(struct disturbance_meter *m, const char *cpu_folder);
void disturbance_meter_done(struct disturbance_meter *m);
void disturbance_read(const struct disturbance_meter *m, struct disturbance_totals *ret_totals);
/* Sets the machine's part of d to what came between two readings, in which the run itself used
 * own_ns of CPU time. */
void disturbance_between(const struct disturbance_meter *m, const struct disturbance_totals *early,
                         const struct disturbance_totals *late, uint64_t own_ns,
                         struct disturbance *d);

/* Whether a run of that length is to be marked, and why: a word for people, NULL for undisturbed.
 */
const char *disturbance_reason(const struct disturbance *d, uint64_t wall_ns);

#endif
