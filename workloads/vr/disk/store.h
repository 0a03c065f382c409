/* SPDX-License-Identifier: MIT */
/*
 * What stands on a replica's disk, and how it is read after a crash.
 *
 *   superblock   four copies in two pairs, written alternately: what vr_durable holds
 *   pages        of the state, each with two places: what a checkpoint changes is written beside
 *                what the one before needs
 *   heads        a ring of 64 bytes for each slot: second copies of the entries' heads
 *   entries      a ring of slots: head and requests
 *
 * An entry is written first, its head's second copy after it, and only then is it acknowledged.  So
 * after a crash a damaged entry whose head says nothing was never acknowledged, and one whose head
 * is there was written and then lost: it is asked of the others, never forgotten.  Where both
 * copies are damaged the log is uncertain (rule 6 of core.h).
 *
 * A page ends with its number and the op of the checkpoint for which it was written.  Of its two
 * places the later one counts that is not later than the checkpoint which the superblock names;
 * that all of these together are that checkpoint is seen by its sum.
 *
 * No reading or writing here: this is the format, for real disks and simulated ones.
 */
#ifndef ASSAY_VR_STORE_H
#define ASSAY_VR_STORE_H

#include "base/error.h"
#include "vr/core/core.h"

struct vr_store {
    struct vr_config config;
    uint32_t sector_bytes;
    size_t slot_bytes, heads_bytes;
    uint32_t page_count;
    uint64_t pages_offset, heads_offset, entries_offset, total_bytes;
    uint64_t sequence;      /* of the newest superblock */
    uint64_t settled;       /* of the newest of which a copy is on disk */
    struct vr_entry *heads; /* the heads' ring as it is to stand on disk */
    bool *head_new;         /* the slot's write under way has put its head there */
};

void vr_store_init(struct vr_store *s, const struct vr_config *config, uint32_t sector_bytes);
void vr_store_done(struct vr_store *s);

/* The bytes that a write takes at most in one phase. */
size_t vr_store_phase_bytes_max(const struct vr_store *s);
/* A write goes in phases, each on disk before the next begins: what the phase writes, and where.
 * Returns its size, a multiple of the sector; 0 when there is no such phase. */
size_t vr_store_phase(struct vr_store *s, const struct vr_write *write, unsigned phase,
                      unsigned char *out, uint64_t *ret_offset);
/* A write has ended.  One that failed takes its head back, lest another's sector carry it to the
 * disk: a head without its requests is an entry that may have been acknowledged. */
void vr_store_ended(struct vr_store *s, const struct vr_write *write, bool failed);
/* The superblock of a new replica; everything else is zero.  incarnation: by which this disk is
 * known from any other, never 0. */
size_t vr_store_format(struct vr_store *s, uint32_t incarnation, unsigned char *out,
                       uint64_t *ret_offset);

typedef int (*vr_store_read)(void *context, uint64_t offset, void *bytes, size_t size);

struct vr_loaded {
    struct vr_image image;
    struct vr_entry *entries;
    unsigned char *bodies;
    struct vr_pages pages;
    uint32_t batch_bytes;
    uint32_t damaged; /* slots and copies that were found damaged */
    /* Second copies of heads that are damaged or older than their entries.  Where there are any,
     * the ring is to be written as the store has it now, before anything is acknowledged: an entry
     * with no second copy that is lost later would be taken for one that never was. */
    uint32_t heads_stale;
};

/* Reads what is there.  -EUCLEAN when no superblock is whole: then nothing is known, not even which
 * view this replica promised, and it must not start.  A sector that cannot be read counts as
 * damaged. */
int vr_store_load(struct vr_store *s, vr_store_read read, void *context,
                  struct vr_loaded *ret_loaded, struct error *err);
void vr_loaded_done(struct vr_loaded *loaded);

#endif
