/* SPDX-License-Identifier: MIT */
/*
 * Commands in an emulated machine whose instructions are counted exactly, in user mode and in the
 * kernel (plugin/machine.h).  Each run goes on from a machine that was booted once (vm/snapshot.h),
 * among the host's files, which it cannot change, as the host's user.
 */
#ifndef ASSAY_EXACT_MACHINE_H
#define ASSAY_EXACT_MACHINE_H

#include "exact/run.h"

#define EXACT_KERNEL "linux-image-amd64" /* Debian's, unless ASSAY_EXACT_KERNEL names another */
#define EXACT_MEMORY_BYTES (1ULL << 30)

/* For people; with EXACT_MEMORY_BYTES >> 20. */
#define EXACT_RAN_OUT                                                                          \
    "The emulated machine has %llu MiB of memory; the command needed more, and the machine's " \
    "kernel killed a process."

/* Tells processes what exact_see_as was told: both paths, with a line's end between. */
#define EXACT_TREE "ASSAY_EXACT_TREE"

struct exact_machine;

/* Finds one that has booted, or boots it. */
int exact_machine_open(struct exact_machine **ret, void (*progress)(const char *what),
                       struct error *err);
void exact_machine_close(struct exact_machine *m);
const char *exact_machine_release(const struct exact_machine *m); /* of its kernel */
int exact_machine_run(const struct exact_tool *tool, char *const *argv, struct exact_result *result,
                      int *ret_start_code, struct error *err);

/* What is known of a run beside the plugin's file. */
struct exact_machine_run {
    const char *maps; /* lines of "START END OFFSET PATH": files that the command mapped as code */
    const char *symbols;        /* the file of the kernel's */
    const char *guest;          /* assay's program in the machine, whose own work is taken off */
    const char *tree, *seen_as; /* the command saw this tree there; NULL for none */
};

/* Reads what the plugin counted. */
int exact_machine_counts(struct exact_counts *c, const char *path,
                         const struct exact_machine_run *run, struct error *err);
/* What a path has behind a directory: "" or "/…"; NULL when it is not in it. */
const char *exact_below(const char *path, const char *folder);

#endif
