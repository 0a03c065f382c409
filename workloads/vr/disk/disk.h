/* SPDX-License-Identifier: MIT */
/*
 * A replica's file: the format of store.h, written with group commit.  Everything that waits goes
 * in one cycle: all writes at once, then one sync; while a cycle is under way, what comes gathers
 * for the next.  A write's next phase rides in the next cycle, beside the first phases of newer
 * writes.  Pages of checkpoints have cycles of their own, so that nobody waits for them.
 *
 * The file is written with O_DIRECT where the file system allows it.  Its log was filled when it
 * was made, and room for the pages was reserved: no later write needs room, so that a full disk is
 * met at the start and not in the middle.
 */
#ifndef ASSAY_VR_DISK_H
#define ASSAY_VR_DISK_H

#include "vr/disk/store.h"
#include "vr/net/io.h"

#define VR_DISK_SECTOR 4096
#define VR_DISK_WRITES_MAX 192

struct vr_disk_item {
    struct vr_write write;
    unsigned phase;
    unsigned char *buffer; /* of the first phase */
    size_t size;
    uint64_t offset;
};

struct vr_lane {
    uint32_t active[VR_DISK_WRITES_MAX], waiting[VR_DISK_WRITES_MAX];
    uint32_t active_count, waiting_count;
    uint32_t outstanding;
    bool busy, syncing, dsync, failed;
    uint64_t resume_ns;        /* after a failure: not before */
    uint64_t failing_since_ns; /* 0: the last entry or checkpoint came through */
};

struct vr_disk {
    struct vr_store store;
    struct vr_io *io;
    /* One for each lane, opened apart: the kernel tells an error of writing back once to each open
     * file, and a sync of the other lane must not take it away. */
    int fds[2];
    bool direct;
    struct vr_disk_item items[VR_DISK_WRITES_MAX];
    bool used[VR_DISK_WRITES_MAX];
    uint32_t next_free;
    struct vr_lane lanes[2];
    /* Writes that found no room: told as failed, later, never from within vr_disk_submit. */
    struct vr_write *refused;
    uint32_t refused_count, refused_max;
    uint64_t refused_due_ns;
    unsigned char *buffers, *heads;
    bool *head_queued;
    /* Called when a write has ended. */
    void (*written)(void *context, const struct vr_write *write, bool failed);
    void *context;
    uint64_t cycles, failures;
    int last_error;
};

/* Makes a replica's file; -EEXIST when there is one. */
int vr_disk_format(const char *path, const struct vr_config *config, struct error *err);
/* Opens it and reads what is there.  -EBUSY when another process has it. */
int vr_disk_open(struct vr_disk *d, const char *path, const struct vr_config *config,
                 struct vr_loaded *ret_loaded, struct error *err);
void vr_disk_close(struct vr_disk *d);

/* Takes a write; one that finds no room is told as failed by a later vr_disk_kick.  Calls nobody
 * back. */
void vr_disk_submit(struct vr_disk *d, const struct vr_write *write);
/* Begins what can begin; before each turn of the io.  May call back. */
void vr_disk_kick(struct vr_disk *d, uint64_t now_ns);
/* When to kick again although nothing happened; UINT64_MAX: no need. */
uint64_t vr_disk_deadline_ns(const struct vr_disk *d);
/* Whether nothing but superblocks has come through for so long. */
bool vr_disk_failing(const struct vr_disk *d, uint64_t now_ns, uint64_t for_ns);
/* To be called for each io_handler.disk. */
void vr_disk_ended(struct vr_disk *d, uint32_t tag, int result, uint64_t now_ns);

#endif
