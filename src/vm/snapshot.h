/* SPDX-License-Identifier: MIT */
/*
 * Machines that have booted, kept in the cache: a run goes on from there, in a fraction of a
 * second.
 *
 *   ${XDG_CACHE_HOME:-~/.cache}/assay/vm/snapshots/linux-image-6.1.0-55-amd64_6.1.192-1-HASH/
 *     memory    the machine's, which runs map privately
 *     state     of its processor and devices
 *     kallsyms  the kernel's symbols
 *     about     lines of NAME VALUE
 *
 * The hash is over all that such a machine depends on: kernel, QEMU, assay's program in it, and the
 * settings.  The SNAPSHOTS_MAX that were used last stay.
 */
#ifndef ASSAY_VM_SNAPSHOT_H
#define ASSAY_VM_SNAPSHOT_H

#include "vm/machine.h"

enum { SNAPSHOTS_MAX = 4 };

struct vm_snapshot {
    char *folder, *memory, *state, *symbols;
    char release[128]; /* of its kernel */
};

/* The one for these settings; boots and keeps one where there is none.  The settings' own files and
 * plugin do not matter.  on_tick of the settings tells how it goes on. */
int vm_snapshot_find(struct vm_snapshot *s, const struct vm_settings *like, bool may_make,
                     struct error *err);
void vm_snapshot_done(struct vm_snapshot *s);

/* What is kept. */
struct vm_snapshot_entry {
    char *name;
    char *kernel;
    uint64_t size_bytes; /* on the disk */
    time_t used;
};

struct vm_snapshot_list {
    struct vm_snapshot_entry *items; /* used last comes first */
    size_t count, capacity;
};

void vm_snapshots_list(struct vm_snapshot_list *list);
void vm_snapshot_list_done(struct vm_snapshot_list *list);

#endif
