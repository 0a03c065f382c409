/* SPDX-License-Identifier: MIT */
/*
 * What the process that owns an experiment and its tasks on other nodes tell each other: files in a
 * folder that all of them see (the spool folder; docs/FORMATS.md).
 *
 *   builds/TYPE/…          builds with inputs, one folder for each type of node
 *   UUID/spec.yaml         the spec as it was submitted
 *   UUID/builds/TYPE/…     builds without inputs
 *   UUID/nodes/NAME.json   what a node is, written by its first task
 *   UUID/stop              tasks are to end after the run in flight
 *   UUID/N/job.sh          what the scheduler runs: array number N
 *   UUID/N/job             its number there
 *   UUID/N/T.task          what task T is to do: a round and its cells on each line
 *   UUID/N/T.spool         what it measured
 *   UUID/N/T.end           how it ended: a word, the node, and words for a person
 *   UUID/N/T.out           what it said
 *   UUID/N/T.profiles      of a task that records profiles: cell, work and file of each
 */
#ifndef ASSAY_SESSION_CLUSTER_FILES_H
#define ASSAY_SESSION_CLUSTER_FILES_H

#include "base/error.h"
#include "base/strings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum task_end {
    TASK_DONE,
    TASK_STOPPED,   /* it was told to */
    TASK_FAILED,    /* a command failed, or assay did */
    TASK_UNFIT,     /* the node cannot measure this */
    TASK_UNCOUNTED, /* it lacks events that the spec names */
};

/* A round of some cells. */
struct task_unit {
    uint64_t round;
    size_t *cells; /* from 0 */
    size_t count, capacity;
};

enum task_mode {
    TASK_ALL,
    TASK_WAIVED,   /* counters that the node has not are left out */
    TASK_PROFILES, /* nothing is measured: the cells are run under `assay record` */
};

struct task_plan {
    char *uuid;
    enum task_mode mode;
    struct task_unit *units;
    size_t count, capacity;
};

void task_plan_done(struct task_plan *plan);

/* With all folders above it. */
int cluster_make_folder(const char *path, struct error *err);

#define TASK_FIRST_LINE "assay task 1\n"
extern const char *const task_mode_words[]; /* by enum task_mode */

/* Cells must be below cell_count; `file` is for messages. */
int task_plan_parse(struct task_plan *plan, const char *file, const char *text, size_t cell_count,
                    struct error *err);

int task_end_write(const char *path, enum task_end end, const char *node, const char *words,
                   struct error *err);
/* -ENOENT while there is none.  words holds at least 600 bytes, node 64. */
int task_end_read(const char *path, enum task_end *ret_end, char *ret_node, char *ret_words,
                  struct error *err);

enum { TASK_NODE_BYTES = 64, TASK_WORDS_BYTES = 600 };

#endif
