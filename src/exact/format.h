/* SPDX-License-Identifier: MIT */
/*
 * The file in which the plugin counts (plugin/) and which counts.c reads.
 *
 * There is one file for each process image, mapped shared and counted in directly: a process that
 * is killed at any moment leaves exact counts behind.  The file is sparse.  A block of code that
 * the emulator translates gets a number, a description, and a counter of its executions in each of
 * EXACT_SLOTS tables: threads count in different ones.
 *
 *   struct exact_head | modules | text | struct exact_block [BLOCKS] | u64 counts[SLOTS][BLOCKS]
 */
#ifndef ASSAY_EXACT_FORMAT_H
#define ASSAY_EXACT_FORMAT_H

#include <stdint.h>

#define EXACT_MAGIC 0x3174636178656121ULL /* "!aexact1" */

enum {
    EXACT_SLOTS = 16,
    EXACT_CALLS = 1024, /* system calls with higher numbers count as the last */
    EXACT_MODULES = 2048,
    EXACT_BLOCKS = 1 << 20,
    EXACT_NO_MODULE = 0xffffffff,
};

/* A file that was mapped, and where. */
struct exact_module {
    uint64_t start, end, offset;
    uint32_t path; /* where in the text it begins, terminated */
    uint32_t unused;
};

struct exact_block {
    uint64_t address;
    uint32_t instructions;
    uint32_t module; /* EXACT_NO_MODULE for memory without a file */
};

struct exact_head {
    uint64_t magic;
    uint32_t pid, parent;
    uint32_t block_count, module_count, text_bytes;
    uint32_t threads; /* that were started, the first one included */
    uint32_t slots;   /* tables of counts that are in use */
    uint32_t unused;
    uint64_t rest; /* instructions of blocks that found no room in the table */
    uint64_t calls[EXACT_CALLS];
};

enum {
    EXACT_HEAD_BYTES = 16384,
    EXACT_MODULES_AT = EXACT_HEAD_BYTES,
    EXACT_TEXT_AT = EXACT_MODULES_AT + EXACT_MODULES * 32,
    EXACT_TEXT_BYTES = 1 << 18,
    EXACT_BLOCKS_AT = EXACT_TEXT_AT + EXACT_TEXT_BYTES,
    EXACT_COUNTS_AT = EXACT_BLOCKS_AT + EXACT_BLOCKS * 16,
    EXACT_SLOT_BYTES = EXACT_BLOCKS * 8,
    EXACT_FILE_BYTES = EXACT_COUNTS_AT + EXACT_SLOTS * EXACT_SLOT_BYTES,
};

_Static_assert(sizeof(struct exact_module) == 32, "the reader and the plugin agree");
_Static_assert(sizeof(struct exact_block) == 16, "the reader and the plugin agree");
_Static_assert(sizeof(struct exact_head) <= EXACT_HEAD_BYTES, "it fits");

#endif
