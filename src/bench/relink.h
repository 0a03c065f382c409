/* SPDX-License-Identifier: MIT */
/*
 * Programs linked anew, several times, with their functions in another order each time.  A shell
 * runs the link command of a program with these variables:
 *   ASSAY_OUT       the file to make
 *   ASSAY_SECTIONS  a file with the sections of its functions (.text.NAME), a line each, shuffled:
 *                   for gold's --section-ordering-file
 *   ASSAY_SYMBOLS   the same as symbols: for lld's --symbol-ordering-file
 *   ASSAY_LAYOUT    the number of the layout, from 1 on
 */
#ifndef ASSAY_BENCH_RELINK_H
#define ASSAY_BENCH_RELINK_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct relink_plan {
    const char *const *programs; /* as they were built: their symbols say what can be ordered */
    const char *const *commands; /* one for each */
    size_t program_count, layout_count;
    uint64_t seed;
    void (*on_progress)(size_t done, double share, const char *label, void *context); /* or NULL */
    void *context;
};

struct relinked {
    char **paths; /* of layout after layout */
    size_t layout_count, program_count;
    char *folder; /* where they lie; removed in the end */
};

/* To be given to relinked_done in any case, which removes the files. */
int relink(struct relinked *l, const struct relink_plan *plan, struct error *err);
void relinked_done(struct relinked *l);

static inline const char *relinked_path(const struct relinked *l, size_t layout, size_t program)
{
    return l->paths[layout * l->program_count + program];
}

#endif
