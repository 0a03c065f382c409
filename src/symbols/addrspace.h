/* SPDX-License-Identifier: MIT */
/*
 * What lies where in the memory of processes, as a recording's records tell it.
 *
 * An address space is a persistent tree of maps: a copy costs nothing, and changing a copy costs
 * the path to the changed map.  So a fork is one pointer, however many maps there are, and a
 * process with 10^5 maps adds one in logarithmic time.
 *
 * struct processes keeps the spaces of all processes by pid and is fed with records in the order
 * of their times.  One thread at a time may use it; but an address space that addrspace_copy gave
 * never changes under its holder, and may be searched and freed by another thread.
 */
#ifndef ASSAY_SYMBOLS_ADDRSPACE_H
#define ASSAY_SYMBOLS_ADDRSPACE_H

#include "symbols/symbols.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct addrspace;

struct addrspace *addrspace_new(void);
struct addrspace *addrspace_copy(const struct addrspace *space);
void addrspace_free(struct addrspace *space);

/* From now on [start, start + length) is this module from offset on, whatever was there before;
 * what was there beside it stays.  A length of 0 or one that wraps around is ignored. */
void addrspace_map(struct addrspace *space, uint64_t start, uint64_t length, uint64_t offset,
                   struct module *module);
void addrspace_unmap(struct addrspace *space, uint64_t start, uint64_t length);
/* False when nothing is mapped there; *ret_location is then {NULL, address}. */
bool addrspace_find(const struct addrspace *space, uint64_t address, struct location *ret_location);

struct map {
    uint64_t start, end, offset;
    struct module *module;
};

bool addrspace_find_map(const struct addrspace *space, uint64_t address, struct map *ret_map);

struct processes;

/* symbols must outlive it. */
struct processes *processes_new(struct symbols *symbols);
void processes_free(struct processes *processes);

/* An MMAP or MMAP2 record of a user process. */
struct process_map {
    uint64_t start, length, offset;
    const char *path;
    struct build_id build_id; /* from the record, or from the file's table of build-ids */
    uint64_t inode;
    uint32_t dev_major, dev_minor;
    uint64_t time_ns; /* of the record; 0 when not known */
};

/* A map of a file named jit-PID.dump is how a JIT compiler announces its jitdump: that file is
 * read and its code added as the times of later calls pass it. */
void processes_map(struct processes *processes, pid_t pid, const struct process_map *map);
/* A new process (not a new thread) begins with its parent's maps. */
void processes_fork(struct processes *processes, pid_t parent, pid_t child);
void processes_exec(struct processes *processes, pid_t pid);
/* The maps of the last processes that ended are kept a while: samples may still come. */
void processes_exit(struct processes *processes, pid_t pid);

/* A KSYMBOL record: kernel code that came or went, BPF programs above all. */
void processes_kernel_code(struct processes *processes, uint64_t start, uint64_t size,
                           const char *name, bool removed);

/* Where an address of a sample lies.  kernel: by the sample's cpumode, or by
 * address_is_kernel() for entries of a call chain.  time_ns is that of the sample, 0 for unknown.
 * False when nothing is known there. */
bool processes_find(struct processes *processes, pid_t pid, bool kernel, uint64_t address,
                    uint64_t time_ns, struct location *ret_location);

/* The space of a process, NULL when no record named it.  Valid until the next change; use
 * addrspace_copy to keep it. */
const struct addrspace *processes_space(struct processes *processes, pid_t pid, uint64_t time_ns);

static inline bool address_is_kernel(uint64_t address)
{
    return address >> 63;
}

#endif
