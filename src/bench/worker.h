/* SPDX-License-Identifier: MIT */
/*
 * A process that runs benchmarks, from the outside: started, asked, and ended.  It speaks over two
 * pipes of its own, so that whatever the program prints is no matter; what it prints on standard
 * error is kept for the message when it fails.  It dies with assay.
 */
#ifndef ASSAY_BENCH_WORKER_H
#define ASSAY_BENCH_WORKER_H

#include "base/strings.h"
#include "bench/protocol.h"
#include "bench/target.h"

#include <sys/types.h>

struct bench_worker {
    const struct bench_target *target;
    pid_t pid; /* 0: there is none */
    int to, from, errors;
    uint64_t timeout_ns; /* for one answer */
    struct strbuf in;    /* what has come and was not used yet */
    size_t used;
    struct strbuf words; /* the end of its standard error */
    bool interrupted;    /* a signal came for assay while it waited */
    bool is_guest;       /* in the process of another worker, which ends it */
};

struct bench_start {
    int cpu;             /* to run on; -1 for any */
    bool show_output;    /* its output goes where assay's standard error goes */
    uint64_t timeout_ns; /* for one answer */
    const int
        *preload_fd;     /* a library that counts allocations, to be loaded first; NULL for none */
    char *const *before; /* words before the command (a simulator), NULL for none */
    const char *once;    /* instead of a dialogue: of ASSAY_ONCE */
    const char *folder;  /* where it runs; NULL for assay's own */
    bool counters;       /* its own events are counted, those of bench_counters() */
    const struct bench_target *beside; /* loaded into the same process, NULL for none … */
    int beside_in, beside_out;         /* … and asked over these */
};

/* What the CPU can count of a process: names that end with NULL, at most BENCH_COUNTERS_MAX; none
 * where there is no PMU, or no permission to use it. */
const char *const *bench_counters(void);
/* Opens them for the calling process, on descriptors from `first` on that stay open through exec.
 */
void bench_counters_open(int first);

/* Starts it and waits until it answers.  -EINTR when a signal came for assay. */
int bench_worker_start(struct bench_worker *w, const struct bench_target *t,
                       const struct bench_start *how, struct error *err);
/* Two shared objects in one process, a worker for each; the second is the guest. */
int bench_worker_start_both(struct bench_worker *w, struct bench_worker *guest,
                            const struct bench_target *t, const struct bench_target *beside,
                            const struct bench_start *how, struct error *err);
/* Starts it without a dialogue, with how->once, and waits for its end.  It must succeed. */
int bench_worker_once(const struct bench_target *t, const struct bench_start *how,
                      struct error *err);
/* Ends it, whatever it does. */
void bench_worker_stop(struct bench_worker *w);

int bench_worker_list(struct bench_worker *w, struct bench_entries *entries, struct error *err);
/* What an empty iteration and a look at the clock cost. */
int bench_worker_overhead(struct bench_worker *w, double *ret_loop_ns, double *ret_clock_ns,
                          struct error *err);

/* One benchmark to be called. */
struct bench_call {
    size_t index;
    uint64_t threads;
    uint64_t stack_bytes, heap_bytes; /* by which both are moved */
    int64_t values[BENCH_PARAMETERS_MAX];
};

/* A figure that the benchmark reports. */
struct bench_figure {
    char *name, *unit;
    double value;
};

/* What a call said besides its samples. */
struct bench_said {
    char *failed, *skipped; /* why; NULL for neither */
    struct bench_figure *figures;
    size_t figure_count, figure_capacity;
    double n; /* with the law by which time grows; NULL for none */
    char *law;
};
void bench_said_done(struct bench_said *said);

/* Calls a benchmark, up to its loop.  *ret_ready is false when it has none to run: it was left out
 * or failed, and said tells why. */
int bench_worker_call(struct bench_worker *w, const struct bench_call *call, bool *ret_ready,
                      struct bench_said *said, struct error *err);
/* A batch of iterations, after some that are not timed.  *ret_more is false when the loop was left
 * instead. */
int bench_worker_go(struct bench_worker *w, uint64_t warm, uint64_t iterations,
                    struct bench_sample *ret_sample, bool *ret_more, struct bench_said *said,
                    struct error *err);
/* Lets the benchmark leave its loop and return. */
int bench_worker_finish(struct bench_worker *w, struct bench_said *said, struct error *err);

#endif
