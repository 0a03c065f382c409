/* SPDX-License-Identifier: MIT */
/*
 * Builds: a command for each combination of the factors it uses, run once.
 *
 * Each has a folder of its own below .assay/build beside the spec, named by a hash of the command
 * and of what it is made from.  With `inputs` given, a build that is there is not made again; its
 * name changes with the inputs' contents, the command and the compiler.  Without, it is made anew
 * for each experiment.  A lock keeps two assays from making the same at once.
 */
#ifndef ASSAY_SESSION_BUILD_H
#define ASSAY_SESSION_BUILD_H

#include "spec/matrix.h"

struct built {
    char *folder; /* absolute */
    char *id;     /* a hash of what was built: the same content, the same id */
    bool was_cached;
};

/* Where builds go that nodes share; see cluster_files.h. */
struct build_place {
    const char *lasting; /* for builds with inputs */
    const char *own;     /* for those without: made once, too */
    bool only_named; /* nothing is made: ids come from what would be built, the folder is a hole */
};

struct builds {
    struct built *items;
    size_t count, capacity;
    size_t *of_cell; /* [cell * build_count + build]: index in items */
    size_t build_count;
};

/* Makes all that the kept cells need.  place: NULL for the folder beside the spec.  on_build is
 * called before each; may be NULL. */
int builds_make(struct builds *b, const struct matrix *m, const bool *kept,
                const struct build_place *place,
                void (*on_build)(const char *command, size_t done, size_t total, void *context),
                void *context, struct error *err);
void builds_done(struct builds *b);

/* The folders for the cell's {build} holes, one per build of the spec; the caller frees the array
 * alone.  NULL when the spec builds nothing. */
const char **builds_folders(const struct builds *b, size_t cell);
/* What identifies the program of a cell: its builds, or the content of the executed file when the
 * spec builds nothing.  The caller frees it. */
char *builds_identity(const struct builds *b, size_t cell, const char *program, const char *folder);

#endif
