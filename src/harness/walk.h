/* SPDX-License-Identifier: MIT */
/* A directory and all below it, in the order of their names. */
#ifndef ASSAY_HARNESS_WALK_H
#define ASSAY_HARNESS_WALK_H

#include "base/error.h"

#include <stdbool.h>

/* Calls `visit` for the directory and those below it, at most 16 deep; symbolic links are not
 * followed. Stops at the first failure. */
int walk(const char *path, int (*visit)(void *context, const char *directory, struct error *err),
         void *context, struct error *err);
/* Whether the directory, or one below it, is such a one. */
bool walk_has(const char *path, bool (*is_one)(const char *directory));

#endif
