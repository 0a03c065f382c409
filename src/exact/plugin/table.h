/* SPDX-License-Identifier: MIT */
/* The counts of this process, in a file that it maps (exact/format.h). */
#ifndef ASSAY_EXACT_PLUGIN_TABLE_H
#define ASSAY_EXACT_PLUGIN_TABLE_H

#include "exact/format.h"

#include <stdbool.h>
#include <stddef.h>

enum { TABLE_FULL = -1 };

/* Creates the file in the directory; false when it cannot. */
bool table_open(const char *folder);
struct exact_head *table_head(void);
/* From now on threads count beside each other. */
void table_share(void);
bool table_is_shared(void);
/* The number of a block, the same for the same block; TABLE_FULL when there is no room.  Calls are
 * made one at a time: QEMU translates under a lock. */
int table_block(uint64_t address, uint32_t instructions, uint32_t module);
uint64_t *table_count(unsigned slot, int block);

/* The module that is mapped at an address of the host; shift is what turns it into one of the
 * guest.  The maps are read again when table_maps_changed was called. */
uint32_t table_module(uint64_t host_address, uint64_t shift);
void table_maps_changed(void);

/* A line for whoever reads the counts. */
void table_note(const char *kind, const char *text);

#endif
