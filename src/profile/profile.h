/* SPDX-License-Identifier: MIT */
/*
 * A recording as a profile: read once, equal stacks merged on the way, every address named once.
 *
 *   struct profile *p;
 *   if (profile_load(&p, "perf.data", &(struct profile_options){0}, &err) < 0) …
 *   profile_symbolize(p);
 *   … rows_build(&rows, &p->calls, &p->tasks, …), calltree_build, the exports …
 *   profile_free(p);
 *
 * Everything in struct profile may be read by everyone; only the functions here write it.
 */
#ifndef ASSAY_PROFILE_PROFILE_H
#define ASSAY_PROFILE_PROFILE_H

#include "base/error.h"
#include "profile/calls.h"
#include "profile/rows.h"
#include "sampler/perfdata.h"
#include "symbols/symbols.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which samples count at all.  Empty lists let everything pass. */
struct profile_filter {
    struct name_filter events;
    const uint32_t *pids, *tids;
    size_t pid_count, tid_count;
    const int *cpus;
    size_t cpu_count;
    /* Both ends are within.  Nanoseconds of the recording's clock, or since the first sample when
     * time_is_relative; or parts of the whole, 0 to 1, when time_is_part. */
    bool has_time, time_is_relative, time_is_part;
    uint64_t time_from_ns, time_to_ns;
    double part_from, part_to;
};

/* "10.5,12" (seconds of the clock; either may be missing), "+1,+2.5" (since the first sample),
 * "10%-20%" (of the whole). */
int profile_parse_time(const char *text, struct profile_filter *filter, struct error *err);

struct profile_options {
    struct symbols_options symbols; /* its strings must outlive the profile */
    enum symbols_want want;
    struct profile_filter filter;
    bool fold_variants; /* f.isra.0, f.cold, … count as f */
    bool with_lines;    /* frames of one function at different lines are different frames */
    bool with_cpus;     /* samples of different processors are kept apart */
    bool with_samples;  /* every sample is kept too, in order of time: see profile_sample */
    bool tail_calls;    /* callers that gave their place to another function are put back */
    bool no_callers;    /* only the sampled instruction, not who called it */
    bool with_fields;   /* with samples: tracepoints' fields too, see fields.h */
    bool with_wakers;   /* with samples: who ended each wait, where that was recorded */
    /* Called with each record as it is read, in the order of time; with the callers that unwinding
     * the stack of a sample gives, the sampled address first, NULL where there is no stack.  May be
     * NULL. */
    void (*each)(void *context, const struct perfdata *reader, const struct perfdata_record *record,
                 const uint64_t *addresses, size_t count);
    void *each_context;
    /* Called now and then while reading; may be NULL. */
    void (*progress)(void *context, uint64_t done_bytes, uint64_t total_bytes);
    void *progress_context;
};

struct profile_event {
    const char *name;
    bool is_time;         /* weights are nanoseconds: cpu-clock, task-clock, off-cpu */
    bool is_off_cpu;      /* time that threads waited, not ran */
    bool has_callers;     /* samples carry call chains, or stacks to be unwound */
    bool user_only;       /* the kernel's part was not sampled */
    bool is_fixed_period; /* one sample every `period` events; else at `frequency_hz` */
    bool is_tracepoint;
    uint64_t tracepoint_id;
    uint64_t period, frequency_hz;
    uint64_t samples, weight; /* that passed the filter */
    double weight_squares;    /* the sum of their squares */
};

/* How whole the call chains are. */
struct profile_chains {
    uint64_t samples;     /* with a call chain in user space */
    uint64_t broken;      /* of these: with a caller that lies in no mapped code */
    uint64_t ending;      /* of these: not broken, but ending in a function that is no beginning */
    uint64_t unwound;     /* samples whose copied stack was unwound */
    uint64_t stack_cut;   /* of these: that went beyond the bytes that were copied */
    uint64_t no_rules;    /* of these: that met code without unwinding rules, or broken ones */
    uint64_t stack_bytes; /* copied with each sample */
};

/* Waits that were left out: see idle.h. */
struct profile_idle {
    uint64_t waits, ns;
};

struct given;
struct profile_fields;

#define PROFILE_WAKER_UNKNOWN UINT32_MAX
#define PROFILE_WAKER_INTERRUPT (UINT32_MAX - 1) /* a timer or a device */

struct profile_sample {
    uint64_t time_ns, weight;
    uint32_t node; /* in stacks */
    uint32_t task, event, cpu;
};

struct profile {
    struct profile_options options;
    char *path;
    struct arena arena; /* of the strings below */
    struct profile_event *events;
    size_t event_count, event_capacity;
    struct tasks tasks;
    struct stacks stacks;
    struct symbols *symbols;
    uint64_t first_ns, last_ns; /* of the samples that passed; 0 without times */
    /* With options.with_wakers, for each sample: the task that ended the wait, or one of these. */
    uint32_t *wakers;
    size_t waker_count, waker_capacity;
    struct profile_sample *samples;
    size_t sample_count, sample_capacity;
    struct perfdata_losses losses;
    const char *trouble; /* what is wrong with the file, NULL when nothing is */
    const char *hostname, *os_release, *version, *arch, *cpu_description, *command_line;
    uint64_t clock_wall_ns, clock_ns; /* the same moment on the wall's and the record's clock */
    struct profile_chains chains;
    struct {
        struct profile_idle children, workers;
    } idle;
    struct profile_fields *fields; /* NULL unless asked for */
    char *names; /* that the recording brought with it (symbols/portable.h); NULL for none */
    struct given *given; /* another tool's profile, of which this was made; NULL for a recording */

    /* After profile_symbolize: */
    struct calls calls;
    /* The frames of location l are location_frames[location_lists[l]] up to [location_lists[l+1]],
     * the innermost first: numbers in calls.frames. */
    uint32_t *location_lists, *location_frames;
    uint32_t *called;     /* with tail_calls: as calls_known has it */
    uint32_t *call_nodes; /* for each node of stacks the node of calls */
};

/* Reads the file ("-" for standard input): a recording, or a profile of another tool, whose stacks
 * come with names, but without times and processors (given/given.h). */
int profile_load(struct profile **ret_profile, const char *path,
                 const struct profile_options *options, struct error *err);
/* Names every address and makes profile->calls. */
void profile_symbolize(struct profile *profile);
/* Makes the nodes and cells of profile->calls anew, with what is known of calls (calls_known). */
void profile_make_calls(struct profile *profile, const uint32_t *meant, const uint32_t *instead);
void profile_free(struct profile *profile);

/* How many samples of equal weight would be worth as much: (sum w)^2 / sum w^2. */
double profile_effective_samples(const struct profile_event *event);

#endif
