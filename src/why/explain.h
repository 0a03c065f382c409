/* SPDX-License-Identifier: MIT */
/*
 * Why is the new one slower or faster?  After the measured runs, which stay unprofiled, both sides
 * run again, interleaved: some times under the sampler, with every wait, and some times with system
 * calls and faults counted.  The change of a unit of work is then taken apart into reasons.
 *
 * What is taken apart is CPU time and waits of the program's own making: locks, sleeps, storage.  A
 * wait for another thread or process of the same command (join, wait, an empty pipe) repeats what
 * that one's time says already, and the time in which others had the CPU is no doing of the
 * program: both are told beside, not added.
 *
 * CPU time is divided into: user functions (the innermost, inlined or not), system calls with all
 * that the kernel does in them, page faults, and the kernel's other work.
 */
#ifndef ASSAY_WHY_EXPLAIN_H
#define ASSAY_WHY_EXPLAIN_H

#include "analysis/judge.h"
#include "analysis/profiles.h"
#include "run/runner.h"

enum reason_kind {
    REASON_FUNCTION,
    REASON_SYSCALL,
    REASON_FAULTS,
    REASON_KERNEL, /* interrupts, scheduling, whatever else */
    REASON_WAIT,
};

struct reason {
    enum reason_kind kind;
    char *name;             /* "memcpy", "pread64", "page faults", "a lock: futex in …" */
    char *where;            /* "in work inlined there"; "" for none */
    struct attributed cost; /* per unit of work; share of explain.whole */
    char *evidence;         /* lines; "" for none */
    char *waiter;           /* of a wait: the function that waits; NULL where it is not known */
};

/* A count that changed, or that could not be had. */
struct explain_fact {
    char *name;
    double values[SIDE_COUNT]; /* per unit of work, medians */
    bool changed;              /* beyond what differs from run to run */
    bool simulated;
    char *words; /* instead of numbers, where there are none */
};

/* One of the programs whose processes the command consists of. */
struct explain_program {
    char *name;
    bool is_itself;            /* the process that was started, whatever its name */
    double counts[SIDE_COUNT]; /* processes per unit of work; not of the command itself */
    bool count_changed;
    struct attributed cost; /* CPU time */
};

/* A function of the program whose CPU time certainly changed, with all that it calls in libraries
 * and the kernel. */
struct explain_owner {
    char *name;
    struct attributed cost;
    bool is_scattered; /* no reason alone has most of it */
};

/* What the measured runs say, per unit of work. */
struct explain_measured {
    double *wall[SIDE_COUNT], *cpu[SIDE_COUNT]; /* nanoseconds */
    size_t counts[SIDE_COUNT];
    bool paired;
    struct comparison wall_comparison, cpu_comparison;
    struct verdict wall_verdict, cpu_verdict;
    bool moved;
};

/* Caches and branches by cachegrind, where there are no counters. */
enum explain_sim {
    EXPLAIN_SIM_SHORT, /* when it takes less than 20 s and user code moved */
    EXPLAIN_SIM_ALWAYS,
    EXPLAIN_SIM_NEVER,
};

struct explain_settings {
    uint64_t rounds;         /* measured ones; 0 for 10 */
    uint64_t profile_rounds; /* 0 for 6 */
    uint64_t count_rounds;   /* 0 for 3 */
    uint64_t frequency_hz;   /* 0: by the length of a run */
    uint64_t seed;
    bool force; /* also when nothing moved */
    enum explain_sim simulate;
    const char *work;   /* the metric that counts the work; NULL: ops, work, bytes, … or none */
    const char *folder; /* where recordings go, made by the caller */
};

enum explain_phase {
    EXPLAIN_MEASURE,
    EXPLAIN_PROFILE,
    EXPLAIN_COUNT,
    EXPLAIN_SIMULATE,
    EXPLAIN_TRACE,
};

/* How one side is run once. */
struct explain_runs {
    /* Runs side's command on the runner, with the words before it (NULL for none).  A failed
     * command is an error. */
    int (*run)(void *context, unsigned side, struct runner *runner, char *const *before,
               struct run_result *result, struct error *err);
    /* The command's words, for the simulation; NULL when it cannot be simulated. */
    char *const *(*argv)(void *context, unsigned side);
    void (*progress)(void *context, enum explain_phase phase, uint64_t round, uint64_t count);
    void *context;
};

enum explain_outcome {
    EXPLAIN_SAME,        /* the sides were not told apart */
    EXPLAIN_UNCONFIRMED, /* the measured ones were, but the profiled runs do not show it */
    EXPLAIN_EXPLAINED,
};

struct explain {
    char *names[SIDE_COUNT];
    char *label; /* of the cell, "" for none */
    /* Where they are in the store; NULL and 0 for commands. */
    char *uuids[SIDE_COUNT], *cells[SIDE_COUNT];
    int64_t experiments[SIDE_COUNT];
    char *work; /* the metric that counts the work; NULL for runs */
    char *unit; /* what one of it is called: "op"; NULL for a run */
    struct explain_measured measured;
    enum explain_outcome outcome;
    bool looked_at_waits; /* and at the rest of the profiled runs, to decide this */
    bool waits_moved;     /* the program's own waits changed, whatever the clocks say */
    struct attributed profiled_change; /* what the profiled runs show of what moved */
    bool profiled;                     /* the rest is set */
    struct attributed whole, cpu, waits;
    struct attributed unattributed;
    char *unattributed_where;    /* which code that is, and what would name it; "" for none */
    struct attributed others;    /* runnable while others had the CPU: not part of the whole */
    struct attributed own_peers; /* waits for other threads or processes of the command */
    struct attributed idle;      /* waits of threads that nothing waited for meanwhile */
    struct reason *reasons;      /* the largest first */
    size_t reason_count, reason_capacity;
    struct explain_fact *facts;
    size_t fact_count, fact_capacity;
    struct explain_program
        *programs; /* the largest change first; none where there is one process */
    size_t program_count, program_capacity;
    struct explain_owner *owners; /* the largest change first */
    size_t owner_count, owner_capacity;
    struct profile_pair recordings;
    struct diff diff; /* of CPU time, function by function */
    struct profile_loads loads;
    bool has_waits; /* could be recorded */
    struct strbuf notes;
    char simulator[64]; /* "" when nothing was simulated */
};

/* Measures both sides (unless e->measured has values already), and explains if they moved. */
int explain_run(struct explain *e, const struct explain_settings *settings,
                const struct explain_runs *runs, struct error *err);
void explain_done(struct explain *e);

/* Compares the measured values; sets the verdicts and moved. */
int explain_judge(struct explain_measured *m, struct error *err);

#endif
