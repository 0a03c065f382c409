/* SPDX-License-Identifier: MIT */
/*
 * A recording from start to end: opens the events, starts the command, carries what the kernel
 * writes into a perf.data file, and finishes the file.
 *
 *   struct recording_spec spec = {.command = &command, .output = "perf.data", …};
 *   struct recording_result result;
 *   int r = recording_run(&spec, &result, &err);
 *   … result.samples, result.lost, result.notes …
 *   recording_result_done(&result);
 *
 * While it runs, SIGINT and SIGTERM end it (the command gets them too, see base/process.h), and the
 * file is finished all the same.
 */
#ifndef ASSAY_SAMPLER_RECORDING_H
#define ASSAY_SAMPLER_RECORDING_H

#include "base/error.h"
#include "base/process.h"
#include "base/strings.h"
#include "sampler/sampling.h"

/* Events that are recorded beside the others, with rings of their own. */
struct recording_part {
    const struct event_list *events;
    bool whole_cpus;    /* of all that the machine does; else of the same tasks as the others */
    bool kernel_stacks; /* with the kernel's part of call chains; else without any */
    uint64_t ring_bytes;
};

#define RECORDING_PARTS_MAX 4 /* with the main one */

struct recording_spec {
    const struct event_list *events; /* NULL or empty: cycles, or cpu-clock without a PMU */
    uint64_t frequency_hz, period;   /* at most one of them; none for the default frequency */
    enum sampling_stacks stacks;
    uint32_t stack_bytes; /* 0 for the default */
    bool off_cpu;
    const struct recording_part *beside; /* of a command that assay starts */
    size_t beside_count;

    const struct process_spec *command; /* NULL: until a signal, the duration or the tasks' end */
    bool whole_cpus;
    const pid_t *pids; /* processes that run already */
    size_t pid_count;
    const int *cpus; /* NULL for all that are online */
    size_t cpu_count;
    uint64_t duration_ns; /* 0 for none; ends the recording, not the command */

    const char *output;
    int pack_level;      /* of zstd; 0 for none */
    uint64_t ring_bytes; /* for each CPU; 0 for the default */

    char *const *command_line; /* of assay itself, for the header; ends with NULL */
    /* Called about once a second when not NULL. */
    void (*progress)(void *context, uint64_t samples, uint64_t bytes, uint64_t elapsed_ns);
    void *progress_context;
};

struct recording_result {
    bool has_started; /* the command's exec succeeded */
    bool exec_failed; /* it was tried and did not */
    bool has_ended;   /* and it has ended: */
    struct process_result command;
    pid_t pid;         /* of the command */
    uint64_t start_ns; /* when it was let go, by clock_now_ns */
    int signal;        /* that ended the recording, 0 for none */
    uint64_t samples, lost, throttled;
    uint64_t bytes;  /* of the file */
    uint64_t rounds; /* how often the rings were emptied */
    uint64_t wall_ns;
    size_t ring_bytes;           /* for each CPU */
    enum sampling_stacks stacks; /* that were taken */
    uint32_t stack_bytes;        /* the most that a copy may have */
    struct trim_totals copies;   /* of stacks */
    struct strbuf notes;         /* lines for the user */
    struct strbuf events;        /* their names, separated by ", " */
};

/*
 * Returns 0, or a negative errno with words.  When the command could not be executed, exec_failed
 * is set and the code is that of process_release.  When writing failed on the way, the command
 * has still run to its end and the file holds what was written before.
 */
int recording_run(const struct recording_spec *spec, struct recording_result *ret_result,
                  struct error *err);
void recording_result_done(struct recording_result *r);

#endif
