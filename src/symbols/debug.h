/* SPDX-License-Identifier: MIT */
/*
 * DWARF of one file: source lines and inlined functions.
 *
 * A file is indexed once: which compilation unit has which addresses.  A unit that is hit is
 * decoded once, its lines and its tree of inlined calls into sorted arrays; addresses are then
 * looked up there.  Different units of one file may be decoded by different threads.
 */
#ifndef ASSAY_SYMBOLS_DEBUG_H
#define ASSAY_SYMBOLS_DEBUG_H

#include "base/arena.h"
#include "symbols/internal.h"

#include <stdint.h>

struct debug;

#define DEBUG_NO_UNIT UINT32_MAX

/* NULL when the file has no DWARF that can be read.  The image may be closed, unless it lies in
 * memory. */
struct debug *debug_open(const struct image *image);
void debug_free(struct debug *debug);

/* The unit that has an address, in the file's own terms. */
uint32_t debug_unit_at(const struct debug *debug, uint64_t address);

struct debug_query {
    uint64_t address; /* in the file's own terms */
    struct symbols_request *request;
    struct function_entry *function; /* from the table of symbols; may be NULL */
};

/* Fills in the frames of requests that lie in one unit; frames come from the arena.  Called without
 * the module's lock, for one unit by one thread at a time. */
void debug_resolve(struct debug *debug, struct module *module, uint32_t unit, bool inlines,
                   const struct debug_query *queries, size_t count, struct arena *arena);

#endif
