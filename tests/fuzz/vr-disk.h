/* SPDX-License-Identifier: MIT */
/*
 * A replica's disk out of a fuzzer's input, for the fuzzer and for the test that its corpus is what
 * the names of its files say.  The first byte says what is made right, the rest is the disk: left
 * alone, nearly every change of a byte ends at a checksum; made right, it reaches what is behind.
 */
#ifndef ASSAY_FUZZ_VR_DISK_H
#define ASSAY_FUZZ_VR_DISK_H

#include "base/memory.h"
#include "vr/disk/store.h"

#include <string.h>

enum disk_seal {
    DISK_SEAL_SUPERBLOCKS = 1, /* their sums */
    DISK_SEAL_HEADS = 2,       /* the sums of the heads' second copies */
    DISK_SEAL_ENTRIES = 4,     /* the sums of entries and of their requests */
    DISK_SEAL_CHAIN = 8,       /* each entry names the one before it; the superblocks say so, too */
    DISK_SEAL_CHECKPOINT = 16, /* its sum, in the superblocks */
    DISK_SEAL_ALL = 31,
};

#define DISK_SECTOR 512u
#define DISK_COPIES 4u
/* The superblock's layout is store.c's own; the test would see these two fail. */
#define DISK_DURABLE_AT (2 * sizeof(uint64_t) + 10 * sizeof(uint32_t))
#define DISK_SUM_AT (DISK_DURABLE_AT + sizeof(struct vr_durable))

struct disk {
    struct vr_config config;
    struct vr_store store;
    unsigned char *bytes;
};

static inline void disk_init(struct disk *d)
{
    d->config = (struct vr_config){.cluster = 3,
                                   .replica_count = 3,
                                   .slots = 8,
                                   .checkpoint_every = 4,
                                   .pipeline = 2,
                                   .batch_bytes = 448,
                                   .sessions = 1,
                                   .kv_capacity = 1,
                                   .page_bytes = DISK_SECTOR,
                                   .heartbeat_ns = 1000,
                                   .timeout_ns = 10000};
    vr_store_init(&d->store, &d->config, DISK_SECTOR);
    d->bytes = memory_zalloc(1, d->store.total_bytes);
}

static inline void disk_done(struct disk *d)
{
    vr_store_done(&d->store);
    free(d->bytes);
}

static inline int disk_read(void *context, uint64_t offset, void *bytes, size_t size)
{
    const struct disk *d = context;
    if (offset > d->store.total_bytes || size > d->store.total_bytes - offset)
        return -1;
    memcpy(bytes, d->bytes + offset, size);
    return 0;
}

/* The first phases of a write reach the disk. */
static inline void disk_write(struct disk *d, const struct vr_write *w, unsigned phases)
{
    unsigned char *buffer = memory_alloc(vr_store_phase_bytes_max(&d->store));
    for (unsigned phase = 0; phase < phases; phase++) {
        uint64_t offset;
        size_t size = vr_store_phase(&d->store, w, phase, buffer, &offset);
        if (size && offset <= d->store.total_bytes && size <= d->store.total_bytes - offset)
            memcpy(d->bytes + offset, buffer, size);
    }
    vr_store_ended(&d->store, w, false);
    free(buffer);
}

/* The newest superblock, or NULL. */
static inline unsigned char *disk_newest(struct disk *d)
{
    unsigned char *newest = NULL;
    uint64_t most = 0, sequence;
    for (unsigned i = 0; i < DISK_COPIES; i++) {
        memcpy(&sequence, d->bytes + i * DISK_SECTOR + sizeof(uint64_t), sizeof(sequence));
        if (sequence > most && sequence % 2 == i / 2) {
            most = sequence;
            newest = d->bytes + i * DISK_SECTOR;
        }
    }
    return newest;
}

static inline void disk_seal_entry(unsigned char *at, bool body, size_t body_bytes_max)
{
    struct vr_entry entry;
    static const struct vr_entry zero;
    memcpy(&entry, at, sizeof(entry));
    if (memcmp(&entry, &zero, sizeof(zero)) == 0)
        return;
    if (body && entry.size <= body_bytes_max)
        entry.body_checksum = vr_hash(at + sizeof(entry), entry.size);
    entry.checksum = vr_entry_checksum(&entry);
    memcpy(at, &entry, sizeof(entry));
}

static inline void disk_seal_entries(struct disk *d, unsigned what)
{
    for (uint32_t i = 0; i < d->config.slots; i++) {
        if (what & DISK_SEAL_HEADS)
            disk_seal_entry(d->bytes + d->store.heads_offset + i * sizeof(struct vr_entry), false,
                            0);
        if (what & DISK_SEAL_ENTRIES)
            disk_seal_entry(d->bytes + d->store.entries_offset + i * d->store.slot_bytes, true,
                            d->config.batch_bytes);
    }
}

/* Links what stands behind the checkpoint, in the order of ops, as far as there is anything. */
static inline void disk_seal_chain(struct disk *d, struct vr_durable *durable)
{
    uint64_t parent =
        durable->checkpoint_op ? durable->checkpoint_entry : vr_genesis_checksum(d->config.cluster);
    if (durable->view_op == durable->checkpoint_op)
        durable->view_checksum = parent;
    for (uint64_t i = 1; i <= d->config.slots; i++) {
        uint64_t op = durable->checkpoint_op + i, slot = op % d->config.slots;
        unsigned char *at = d->bytes + d->store.entries_offset + slot * d->store.slot_bytes;
        struct vr_entry entry;
        memcpy(&entry, at, sizeof(entry));
        if (entry.op != op)
            return;
        entry.parent = parent;
        parent = entry.checksum = vr_entry_checksum(&entry);
        memcpy(at, &entry, sizeof(entry));
        memcpy(d->bytes + d->store.heads_offset + slot * sizeof(entry), &entry, sizeof(entry));
        if (op == durable->view_op)
            durable->view_checksum = parent;
    }
}

/* Every page in both of its places is whole, and the superblocks name what is read. */
static inline void disk_seal_checkpoint(struct disk *d, struct vr_durable *durable)
{
    uint32_t bytes = d->config.page_bytes - VR_PAGE_TRAILER_BYTES;
    uint64_t root = 0;
    if (durable->checkpoint_size > d->store.page_count)
        return;
    for (uint32_t page = 0; page < durable->checkpoint_size; page++) {
        uint64_t best_op = 0, best_sum = 0;
        for (unsigned place = 0; place < 2; place++) {
            unsigned char *at = d->bytes + d->store.pages_offset +
                                (2 * (uint64_t)page + place) * d->config.page_bytes;
            uint64_t trailer[4], sum = vr_page_sum(page, at, bytes);
            memcpy(trailer, at + bytes, sizeof(trailer));
            if (trailer[0] != page || trailer[1] > durable->checkpoint_op || trailer[1] == 0)
                continue;
            trailer[2] = sum ^ trailer[1] * 0x9e3779b97f4a7c15;
            memcpy(at + bytes, trailer, sizeof(trailer));
            if (trailer[1] > best_op) {
                best_op = trailer[1];
                best_sum = sum;
            }
        }
        root += best_sum;
    }
    durable->checkpoint_checksum = root;
}

static inline void disk_seal(struct disk *d, unsigned what)
{
    unsigned char *newest = disk_newest(d);
    struct vr_durable durable;
    disk_seal_entries(d, what);
    if (newest) {
        memcpy(&durable, newest + DISK_DURABLE_AT, sizeof(durable));
        if (what & DISK_SEAL_CHECKPOINT)
            disk_seal_checkpoint(d, &durable);
        if (what & DISK_SEAL_CHAIN)
            disk_seal_chain(d, &durable);
        memcpy(newest + DISK_DURABLE_AT, &durable, sizeof(durable));
    }
    for (unsigned i = 0; i < DISK_COPIES && what & DISK_SEAL_SUPERBLOCKS; i++) {
        uint64_t sum = vr_hash(d->bytes + i * DISK_SECTOR, DISK_SUM_AT);
        memcpy(d->bytes + i * DISK_SECTOR + DISK_SUM_AT, &sum, sizeof(sum));
    }
}

/* The disk that an input stands for; what is not said is zero. */
static inline void disk_from_input(struct disk *d, const uint8_t *data, size_t size)
{
    disk_init(d);
    if (size < 1)
        return;
    size_t most = d->store.total_bytes;
    memcpy(d->bytes, data + 1, size - 1 < most ? size - 1 : most);
    disk_seal(d, data[0]);
}

#endif
