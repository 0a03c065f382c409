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

#include <stdbool.h>
#include <stddef.h>

/* A block of code. */
struct exact_site {
    uint32_t file; /* of exact_counts.files */
    uint64_t offset;
    uint64_t instructions; /* 0: an unused place */
};

struct exact_counts {
    uint64_t instructions, calls;
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
void exact_counts_done(struct exact_counts *c);

#endif
