/* SPDX-License-Identifier: MIT */
/* Where a uprobe goes: the offset of a function in its file. */
#ifndef ASSAY_COUNTERS_PROBE_H
#define ASSAY_COUNTERS_PROBE_H

#include "base/error.h"

#include <stdint.h>

/*
 * binary is a path, or a command to find in PATH; place is SYMBOL, SYMBOL+OFFSET or a 0x offset in
 * the file.  The caller frees *ret_path.
 */
int probe_find(const char *binary, const char *place, char **ret_path, uint64_t *ret_offset,
               struct error *err);

#endif
