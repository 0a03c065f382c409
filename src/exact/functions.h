/* SPDX-License-Identifier: MIT */
/* Exact counts by function, and two of them against each other. */
#ifndef ASSAY_EXACT_FUNCTIONS_H
#define ASSAY_EXACT_FUNCTIONS_H

#include "exact/counts.h"

struct exact_function {
    char *name;   /* "[unknown]" where there is no symbol */
    char *module; /* the last part of the file's path */
    uint64_t instructions;
};

/* The instructions of all of them add up to those of the command. */
struct exact_functions {
    struct exact_function *items; /* the most instructions first */
    size_t count, capacity;
    uint64_t instructions;
};

/* Names what was counted. */
void exact_functions_find(struct exact_functions *f, const struct exact_counts *c);
void exact_functions_done(struct exact_functions *f);

/* What a function has more of in the second than in the first. */
struct exact_change {
    const char *name, *module; /* of the functions that were compared */
    uint64_t base, new;
};

struct exact_changes {
    struct exact_change *items; /* the largest change first; functions that have not changed are
                                   left out, so that the changes add up to that of the whole */
    size_t count;
};

void exact_changes_find(struct exact_changes *c, const struct exact_functions *base,
                        const struct exact_functions *new);
void exact_changes_done(struct exact_changes *c);

/* For one process to write and another to read; lines of "INSTRUCTIONS MODULE\tNAME". */
int exact_functions_write(const struct exact_functions *f, const char *path, struct error *err);
int exact_functions_read(struct exact_functions *f, const char *path, struct error *err);

#endif
