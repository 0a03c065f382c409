/* SPDX-License-Identifier: MIT */
/*
 * What a command executed, exactly: instructions, by where in which file they stand, and system
 * calls by number.  Filled from the files that the plugin counts in (format.h), one for each
 * process image, in any order and while others are still being written.
 */
#ifndef ASSAY_EXACT_COUNTS_H
#define ASSAY_EXACT_COUNTS_H

#include "base/error.h"
#include "exact/format.h"
#include "exact/model.h"

#include <stdbool.h>
#include <stddef.h>

/* A block of code. */
struct exact_site {
    uint32_t file; /* of exact_counts.files */
    uint64_t offset;
    uint64_t instructions; /* 0: an unused place */
};

/* Instructions whose function is known by now: those of a machine's kernel. */
struct exact_named {
    char *name, *module;
    uint64_t instructions;
};

/* A way into a machine's kernel: a system call, "[page_fault]" … */
struct exact_way {
    char *name;
    uint64_t count, instructions;
};

struct exact_counts {
    uint64_t instructions, calls; /* the first: user and, of a machine, kernel */
    /* Of a machine only. */
    uint64_t user, kernel, interrupts, aside, faults, switches;
    uint64_t began_at_ns; /* of this machine's clock_now_ns */
    struct exact_named *named;
    size_t named_count, named_capacity;
    struct exact_way *ways; /* the most instructions first; those of all add up to kernel */
    size_t way_count, way_capacity;
    struct exact_modelled modelled;
    uint64_t calls_by_number[EXACT_CALLS];
    uint64_t unplaced; /* instructions of blocks that found no room in the plugin's table */
    size_t process_count, thread_count; /* images of processes; an exec begins another one */
    char **files;                       /* "" for memory without a file */
    size_t file_count, file_capacity;
    struct exact_site *sites; /* a hash table */
    size_t site_count, site_capacity;
};

/* Adds the counts of a file.  -EBADMSG for a file that the plugin did not write. */
int exact_counts_add(struct exact_counts *c, const char *path, struct error *err);
/* Adds the counts of every file of the directory, and removes the files; while the command runs,
 * only those of processes that have ended. */
int exact_counts_collect(struct exact_counts *c, const char *folder, bool is_over,
                         struct error *err);
/* Adds instructions of a place in a file ("" for none). */
void exact_counts_put(struct exact_counts *c, const char *path, uint64_t offset,
                      uint64_t instructions);
void exact_counts_done(struct exact_counts *c);

#endif
