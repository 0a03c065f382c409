/* SPDX-License-Identifier: MIT */
/*
 * Counts without a PMU: the command runs under Valgrind's cachegrind, which counts the
 * instructions of user mode exactly and, on request, simulates branch predictors and caches.  A
 * simulated count is never mixed up with a counted one: its event is called sim:…, and the tool and
 * its version go with it.
 */
#ifndef ASSAY_COUNTERS_SIMULATED_H
#define ASSAY_COUNTERS_SIMULATED_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SIMULATED_EVENTS_MAX 10

/* Which of them: simulated_event(index). */
enum simulated_index {
    SIM_INSTRUCTIONS,
    SIM_BRANCHES,
    SIM_BRANCH_MISSES,
    SIM_L1I_MISSES,
    SIM_L1D_LOADS,
    SIM_L1D_LOAD_MISSES,
    SIM_L1D_STORES,
    SIM_L1D_STORE_MISSES,
    SIM_LLC_MISSES,
};

struct simulated_event {
    const char *name; /* "sim:instructions" */
    const char *help;
    bool is_miss_of; /* a share of the event `of` */
    size_t of;
};

struct simulated_run {
    uint64_t values[SIMULATED_EVENTS_MAX];
    uint64_t wall_ns; /* of the simulation, not of the command */
    int status;
    size_t process_count; /* that were simulated and added up */
    bool left_behind;     /* processes of the command went on: their counts are missing */
};

struct simulation {
    char tool[64]; /* "cachegrind of valgrind-3.19.0" */
    bool full;
    size_t event_count;
    struct simulated_run *runs;
    size_t run_count, run_capacity;
    int signal;
};

/* What a function did in one run; the misses are those of data.  The name is not terminated. */
struct simulated_function {
    double instructions, mispredicted, first_level, last_level;
};
typedef void (*simulated_function_fn)(const char *name, size_t length,
                                      const struct simulated_function *f, void *context);

struct simulate_spec {
    char *const *argv;
    bool full;        /* branches, mispredictions and caches as well */
    bool same_caches; /* the same on every machine, in the place of those of this one */
    uint64_t repeat_count;
    uint64_t timeout_ns; /* 0 for none: a run that takes longer is ended, and an error */
    bool discard_output; /* the command's standard output goes nowhere */
    void (*on_run)(const struct simulation *s, void *context);
    simulated_function_fn on_function; /* for each function, with `full`; may be NULL */
    void *context;
};

/* As measure(): s is filled as far as it went and must be given to simulation_done. */
int simulate(const struct simulate_spec *spec, struct simulation *s, int *ret_start_code,
             struct error *err);
void simulation_done(struct simulation *s);

/* For those who run the command themselves, without `full`: the words that go before it, and then
 * what its processes counted. */
struct simulator {
    char *valgrind, *folder, *out_option, *log_option;
    char *words[12]; /* ends with NULL; words[0] is the program */
};

#define SIMULATED_INSTRUCTIONS "sim:instructions"

/* -ENOENT, and what to install, where there is no Valgrind. */
int simulator_open(struct simulator *s, struct error *err);
/* The instructions of the run that has just ended; the next one starts at 0. */
int simulator_take(struct simulator *s, uint64_t *ret_instructions, struct error *err);
void simulator_done(struct simulator *s);
/* Whether a list of events as -e takes it names sim:instructions.  *ret_rest is the list without
 * it; the caller frees it. */
bool simulated_take_event(const char *list, char **ret_rest);

/* The events in the order of the values. */
const struct simulated_event *simulated_event(size_t index);

/* Adds the totals of one cachegrind.out text (terminated) to values, as many as the events that
 * full or not give. */
int simulated_parse(const char *text, bool full, uint64_t *values, struct error *err);

/* Calls back for each function of such a text, perhaps several times for one; what is no number
 * counts as 0. */
void simulated_functions(const char *text, simulated_function_fn on_function, void *context);

#endif
