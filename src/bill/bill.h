/* SPDX-License-Identifier: MIT */
/*
 * The bill of one command: where its wall time went, along the critical path of each run.
 *
 *   struct bill b;
 *   bill_init(&b);
 *   for (each traced run)
 *       bill_add_run(&b, &timeline, profile, files, cpu_ns);   takes the first two over
 *   bill_add_wall(&b, wall_ns, cpu_ns);                        each untraced run
 *   bill_sum(&b);
 *   … b.lines …
 *   bill_done(&b);
 *
 * Each step of the path belongs to one *item*: a kind of activity, who did it, and what it was.
 * Items that say too little on their own become one *line*.  The lines of a run add up to its wall
 * time, since the path has no gaps; what no record tells is an item, too.
 *
 * Tracing takes time.  Where the traced runs took longer than the others, the difference is taken
 * out of the lines in proportion to the records that were written for them.  What is left of it is
 * settled by calibrate.c, so that the lines add up to the wall time of the runs that were not
 * traced.
 */
#ifndef ASSAY_BILL_BILL_H
#define ASSAY_BILL_BILL_H

#include "base/arena.h"
#include "bill/files.h"
#include "bill/places.h"
#include "timeline/path.h"

enum bill_part {
    BILL_USER,      /* on a CPU: the program's own code */
    BILL_CALL,      /* in the kernel, for a system call */
    BILL_FAULT,     /* for page faults */
    BILL_INTERRUPT, /* for the machine: interrupts and the like */
    BILL_STORAGE,   /* waiting: for files */
    BILL_LOCK,      /* for a lock */
    BILL_NETWORK,
    BILL_OUTSIDE, /* for other programs */
    BILL_SLEEP,   /* on purpose */
    BILL_READY,   /* could run, and did not */
    BILL_START,   /* of programs */
    BILL_END,
    BILL_UNKNOWN,
    BILL_PARTS
};

/* "on-cpu", …: for JSON; and for people: "on the CPU, its own code". */
const char *bill_part_name(enum bill_part part);
const char *bill_part_title(enum bill_part part);

struct bill_item {
    enum bill_part part;
    const char *who, *what; /* the program or thread; "fsync" */
    const char *detail;     /* "called by f", "held by worker, in g"; or NULL */
    double *ns, *records;   /* on the path, by run */
    uint32_t line;          /* after bill_sum */
};

/* A mean over runs with its 95 % interval. */
struct bill_estimate {
    double mean, low, high;
};

struct bill_line {
    enum bill_part part;
    const char *who, *what, *detail; /* detail NULL where its items differ in it */
    double *ns;                      /* by run, without the cost of tracing */
    struct bill_estimate time;
    double share; /* of the wall time */
};

struct bill_run {
    struct timeline timeline;
    struct path path;
    struct profile *profile;
    uint32_t **items;     /* by thread and piece: as on the path, without anybody waiting */
    uint32_t *step_items; /* by step of the path */
    uint64_t wall_ns;     /* of the path */
    double cpu_ns;        /* of all threads and processes; 0 where it is not known */
    double records;       /* written along the path */
};

struct bill {
    struct arena arena;
    struct bill_item *items;
    size_t item_count, item_capacity;
    struct idtable table;
    struct bill_run *runs;
    size_t run_count, run_capacity;
    double *walls; /* of runs that were not traced */
    size_t wall_count, wall_capacity;
    double cpu_ns; /* CPU time of them all together */

    /* After bill_sum: */
    struct bill_line *lines; /* the largest first */
    size_t line_count, line_capacity;
    struct bill_estimate wall;   /* of the untraced runs; of the traced ones where there are none */
    struct bill_estimate traced; /* wall time of the traced runs */
    struct bill_estimate sum;    /* of the lines; within 3 % of wall */
    struct bill_estimate parts[BILL_PARTS];
    double cost_ns;   /* of tracing, for each record on the path */
    double cpu_scale; /* what was left of the lines that ran, by the CPU time without tracing */
    double unseen_ns; /* the untraced runs took longer than what the traced ones show */
    bool has_threads; /* more than one thread or process is on the path */
};

void bill_init(struct bill *b);
void bill_done(struct bill *b);
/* Takes over what is in timeline and profile.  files: what was seen meanwhile, or NULL.  cpu_ns: of
 * all threads and processes, 0 where it is not known. */
void bill_add_run(struct bill *b, struct timeline *timeline, struct profile *profile,
                  const struct files *files, double cpu_ns);
void bill_add_wall(struct bill *b, double wall_ns, double cpu_ns);
void bill_sum(struct bill *b);
/* What of the line's time in the traced runs is left in it: for predictions from these. */
double bill_line_scale(const struct bill *b, uint32_t line);

/* The number of the item, a new one if there was none.  Strings are copied. */
uint32_t bill_item(struct bill *b, enum bill_part part, const char *who, const char *what,
                   const char *detail);
bool bill_part_is_cpu(enum bill_part part);
/* Makes the lines, by run, add up to the time of the runs that were not traced. */
void bill_calibrate(struct bill *b);
/* Fills run->items and run->step_items, and adds the steps up. */
void bill_classify(struct bill *b, size_t run, const struct files *files);

struct bill_estimate bill_estimate(const double *values, size_t count);

#endif
