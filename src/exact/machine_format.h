/* SPDX-License-Identifier: MIT */
/*
 * The file in which the plugin counts what an emulated machine executes (plugin/machine.c), and
 * which machine_counts.c reads.
 *
 * There is one file for a run, mapped and counted in directly.  assay's process in the machine
 * marks where the command begins and ends (vm/marker.h); the counts of its blocks are then copied,
 * so that what the machine does afterwards changes nothing.
 *
 *   struct machine_head | struct machine_block [BLOCKS] | u64 counts[BLOCKS] | u64 final[BLOCKS]
 */
#ifndef ASSAY_EXACT_MACHINE_FORMAT_H
#define ASSAY_EXACT_MACHINE_FORMAT_H

#include <stdint.h>

#define MACHINE_MAGIC 0x3368636d78656121ULL /* "!aexmch3" */

enum {
    MACHINE_BLOCKS = 1 << 20,
    MACHINE_BYTES = 16,    /* of a block's code that are kept */
    MACHINE_ENTRIES = 1024 /* ways into the kernel; the first is for what is not told apart */
};

enum machine_state { MACHINE_IDLE, MACHINE_COUNTING, MACHINE_COUNTED };

/* A block of code: one of the user's where the top bit of the address is 0. */
struct machine_block {
    uint64_t address;
    uint32_t instructions;
    uint32_t unused;
    uint8_t bytes[MACHINE_BYTES]; /* its code, as far as it is in the same page; zeros behind */
};

/* A way into the kernel: the function of a system call, or the entry of an exception. */
struct machine_entry {
    uint64_t address; /* 0 for what is not told apart */
    uint64_t instructions;
};

struct machine_head {
    uint64_t magic;
    uint32_t state; /* enum machine_state */
    uint32_t block_count, entry_count;
    uint32_t tasks; /* of the command: processes and threads that ran */
    /* Of the command: its user mode, the kernel for it, and interrupts while it ran. */
    uint64_t user, kernel, interrupts;
    uint64_t aside;       /* of the command's tasks, but not due to it (plugin/ksyms.c) */
    uint64_t others;      /* kernel instructions of all other tasks, e.g. the idle one */
    uint64_t began_at_ns; /* when the command began, by the host's CLOCK_MONOTONIC */
    /* Of blocks that found no room in the table. */
    uint64_t user_rest, kernel_rest;
    struct machine_entry entries[MACHINE_ENTRIES];
};

enum {
    MACHINE_HEAD_BYTES = 20480,
    MACHINE_BLOCKS_AT = MACHINE_HEAD_BYTES,
    MACHINE_COUNTS_AT = MACHINE_BLOCKS_AT + MACHINE_BLOCKS * 32,
    MACHINE_FINAL_AT = MACHINE_COUNTS_AT + MACHINE_BLOCKS * 8,
    MACHINE_FILE_BYTES = MACHINE_FINAL_AT + MACHINE_BLOCKS * 8,
};

_Static_assert(sizeof(struct machine_block) == 32, "the reader and the plugin agree");
_Static_assert(sizeof(struct machine_head) <= MACHINE_HEAD_BYTES, "it fits");

#endif
