/* SPDX-License-Identifier: MIT */
/*
 * DWARF of one file: source lines and inlined functions.
 *
 * A file is indexed once: which compilation unit has which addresses.  A unit that is hit is
 * decoded once, its lines and its tree of inlined calls into sorted arrays; from there the
 * functions that are hit are copied into a struct linetab, which outlives the decoded unit.
 *
 * Threads: different units of one file may be decoded by different threads at the same time.
 */
#ifndef ASSAY_SYMBOLS_DWARF_DEBUG_H
#define ASSAY_SYMBOLS_DWARF_DEBUG_H

#include "elf/image.h"
#include "symbols/tables/linetab.h"

#include <stdint.h>

struct debug;

#define DEBUG_NO_UNIT UINT32_MAX

/* NULL when the file has no DWARF that can be read.  The image may be closed, unless it lies in
 * memory. */
struct debug *debug_open(const struct image *image);
void debug_free(struct debug *debug);

/* The unit that has an address, in the file's own terms. */
uint32_t debug_unit_at(const struct debug *debug, uint64_t address);
/* Decodes a unit, unless it is. */
void debug_decode(struct debug *debug, uint32_t unit);
/* Adds the function at an address to the table and returns where it ends; its unit must be decoded.
 * Where there is none, what is added says so, lest it be looked for again. */
uint64_t debug_copy(struct debug *debug, uint64_t address, struct linetab *table);
/* Frees the decoded units. */
void debug_drop(struct debug *debug);

#endif
