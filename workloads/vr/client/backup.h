/* SPDX-License-Identifier: MIT */
/*
 * The file of a backup: a head, then blocks of pairs in the order of their keys, then an empty
 * block.  Each block's sum covers that of the one before, so that a file that was cut, put together
 * or damaged is noticed where it happened.  Numbers are little-endian.
 */
#ifndef ASSAY_VR_BACKUP_H
#define ASSAY_VR_BACKUP_H

#include "base/fd.h"
#include "vr/core/service.h"

#include <stdio.h>

#define VR_BACKUP_BLOCK_BYTES (64u << 10)

struct vr_backup_head {
    char magic[8];
    uint32_t version, cluster; /* of which cluster it is */
    uint64_t op, keys;         /* the last operation in it; how many pairs follow */
    uint64_t checksum;         /* of all before it */
};

struct vr_backup_block {
    uint32_t size, count; /* bytes and pairs; none: the end */
    uint64_t checksum;    /* with that of the block before */
};

uint64_t vr_backup_head_checksum(const struct vr_backup_head *head);
/* chain: the sum of the block before, of the head for the first. */
uint64_t vr_backup_block_checksum(uint64_t chain, const struct vr_backup_block *block,
                                  const void *bytes);

struct vr_backup_writer {
    struct outfile out;
    struct vr_backup_block block;
    uint64_t chain;
    unsigned char bytes[VR_BACKUP_BLOCK_BYTES];
};

int vr_backup_create(struct vr_backup_writer *w, const char *path, uint32_t cluster, uint64_t op,
                     uint64_t keys, struct error *err);
int vr_backup_add(struct vr_backup_writer *w, struct vr_bytes key, struct vr_bytes value,
                  struct error *err);
/* The file is there under its name when this has succeeded. */
int vr_backup_commit(struct vr_backup_writer *w, struct error *err);
void vr_backup_abandon(struct vr_backup_writer *w);

struct vr_backup_reader {
    FILE *in; /* the caller's */
    const char *path;
    struct vr_backup_head head;
    struct vr_backup_block block;
    uint64_t chain, pairs;
    uint32_t at; /* in the block */
    bool ended;
    unsigned char last[VR_KEY_BYTES_MAX], bytes[VR_BACKUP_BLOCK_BYTES];
    size_t last_size;
};

/* path is for messages.  Errors: -EBADMSG when it is no backup, or not whole. */
int vr_backup_read_head(struct vr_backup_reader *b, FILE *in, const char *path, struct error *err);
/* 1: a pair, valid until the next call; 0: the end, and the file was whole. */
int vr_backup_next(struct vr_backup_reader *b, struct vr_bytes *ret_key, struct vr_bytes *ret_value,
                   struct error *err);

#endif
