/* SPDX-License-Identifier: MIT */
/*
 * The experiments that come with assay, found by their names from anywhere, and the programs that
 * they measure.  Both are looked for beside the running assay: in what was installed or unpacked
 * (PREFIX/bin, PREFIX/share/assay/experiments, PREFIX/libexec/assay) or in the folder that it was
 * built in, so that nothing needs to be set, and an installation may be moved.
 */
#ifndef ASSAY_SESSION_EXPERIMENTS_H
#define ASSAY_SESSION_EXPERIMENTS_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* The folder of the experiments that came with this assay; NULL when there is none.  The caller
 * frees it. */
char *experiments_folder(void);

/* Which spec a word means: a file, or else the name of an experiment that came with assay.  The
 * caller frees the path. */
int experiments_find(const char *word, char **ret_path, struct error *err);

/* The names, sorted; the caller frees them and the array. */
int experiments_names(char ***ret_names, size_t *ret_count, struct error *err);

/* Has the programs of this assay found in PATH by what is started from now on: first of all for an
 * experiment of its own, which means these and no others, after everything else for other specs. */
void experiments_find_programs(const char *spec_folder);

#endif
