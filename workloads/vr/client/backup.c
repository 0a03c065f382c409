/* SPDX-License-Identifier: MIT */
#include "vr/client/backup.h"
#include "vr/core/hash.h"

#include <errno.h>
#include <string.h>

static const char magic[8] = "vrbackup";
#define VERSION 1u

struct pair_sizes {
    uint16_t key, value;
};

uint64_t vr_backup_head_checksum(const struct vr_backup_head *head)
{
    return vr_hash(head, offsetof(struct vr_backup_head, checksum));
}

uint64_t vr_backup_block_checksum(uint64_t chain, const struct vr_backup_block *block,
                                  const void *bytes)
{
    struct vr_key key = {{chain, (uint64_t)block->size << 32 | block->count}, 1, 3};
    return vr_hash_keyed(&key, bytes, block->size);
}

int vr_backup_create(struct vr_backup_writer *w, const char *path, uint32_t cluster, uint64_t op,
                     uint64_t keys, struct error *err)
{
    struct vr_backup_head head = {.version = VERSION, .cluster = cluster, .op = op, .keys = keys};
    memcpy(head.magic, magic, sizeof(magic));
    head.checksum = w->chain = vr_backup_head_checksum(&head);
    w->block = (struct vr_backup_block){0};
    int result = outfile_open(&w->out, path, err);
    return result ? result : outfile_write(&w->out, &head, sizeof(head), err);
}

static int write_block(struct vr_backup_writer *w, struct error *err)
{
    w->chain = w->block.checksum = vr_backup_block_checksum(w->chain, &w->block, w->bytes);
    int result = outfile_write(&w->out, &w->block, sizeof(w->block), err);
    if (!result)
        result = outfile_write(&w->out, w->bytes, w->block.size, err);
    w->block = (struct vr_backup_block){0};
    return result;
}

int vr_backup_add(struct vr_backup_writer *w, struct vr_bytes key, struct vr_bytes value,
                  struct error *err)
{
    struct pair_sizes sizes = {(uint16_t)key.size, (uint16_t)value.size};
    size_t size = sizeof(sizes) + key.size + value.size;
    int result = w->block.size + size > sizeof(w->bytes) ? write_block(w, err) : 0;
    unsigned char *at = w->bytes + w->block.size;
    memcpy(at, &sizes, sizeof(sizes));
    memcpy(at + sizeof(sizes), key.at, key.size);
    memcpy(at + sizeof(sizes) + key.size, value.at, value.size);
    w->block.size += (uint32_t)size;
    w->block.count++;
    return result;
}

int vr_backup_commit(struct vr_backup_writer *w, struct error *err)
{
    int result = w->block.count ? write_block(w, err) : 0;
    if (!result)
        result = write_block(w, err); /* the empty one: the end */
    return result ? result : outfile_commit(&w->out, err);
}

void vr_backup_abandon(struct vr_backup_writer *w)
{
    outfile_done(&w->out);
}

/* ---- reading */

static int damaged(const struct vr_backup_reader *b, struct error *err)
{
    return error_set(err, -EBADMSG, "%s is damaged or incomplete behind key %lu of %lu", b->path,
                     (unsigned long)b->pairs, (unsigned long)b->head.keys);
}

int vr_backup_read_head(struct vr_backup_reader *b, FILE *in, const char *path, struct error *err)
{
    *b = (struct vr_backup_reader){.in = in, .path = path};
    if (fread(&b->head, sizeof(b->head), 1, in) != 1 ||
        memcmp(b->head.magic, magic, sizeof(magic)) != 0)
        return error_set(err, -EBADMSG, "%s is not a backup of assay-vr", path);
    if (b->head.version != VERSION)
        return error_set(err, -EBADMSG, "%s is of version %u; this program reads version %u", path,
                         b->head.version, VERSION);
    if (b->head.checksum != vr_backup_head_checksum(&b->head))
        return error_set(err, -EBADMSG, "%s: the head is damaged", path);
    b->chain = b->head.checksum;
    return 0;
}

static int next_block(struct vr_backup_reader *b, struct error *err)
{
    if (fread(&b->block, sizeof(b->block), 1, b->in) != 1 || b->block.size > sizeof(b->bytes) ||
        (b->block.size && fread(b->bytes, b->block.size, 1, b->in) != 1) ||
        b->block.checksum != vr_backup_block_checksum(b->chain, &b->block, b->bytes) ||
        !b->block.size != !b->block.count)
        return damaged(b, err);
    b->chain = b->block.checksum;
    b->at = 0;
    b->ended = !b->block.count;
    if (b->ended && (b->pairs != b->head.keys || fgetc(b->in) != EOF))
        return damaged(b, err);
    return 0;
}

static bool is_behind(const struct vr_backup_reader *b, struct vr_bytes key)
{
    size_t common = key.size < b->last_size ? key.size : b->last_size;
    int order = memcmp(key.at, b->last, common);
    return b->pairs == 0 || order > 0 || (order == 0 && key.size > b->last_size);
}

int vr_backup_next(struct vr_backup_reader *b, struct vr_bytes *ret_key, struct vr_bytes *ret_value,
                   struct error *err)
{
    struct pair_sizes sizes;
    if (!b->ended && b->block.count == 0) {
        if (b->at != b->block.size)
            return damaged(b, err);
        int result = next_block(b, err);
        if (result)
            return result;
    }
    if (b->ended)
        return 0;
    if (b->block.size - b->at < sizeof(sizes))
        return damaged(b, err);
    memcpy(&sizes, b->bytes + b->at, sizeof(sizes));
    if (sizes.key > VR_KEY_BYTES_MAX || sizes.value > VR_VALUE_BYTES_MAX ||
        b->block.size - b->at < sizeof(sizes) + sizes.key + sizes.value)
        return damaged(b, err);
    struct vr_bytes key = {b->bytes + b->at + sizeof(sizes), sizes.key};
    if (!is_behind(b, key))
        return damaged(b, err);
    *ret_key = key;
    *ret_value = (struct vr_bytes){b->bytes + b->at + sizeof(sizes) + sizes.key, sizes.value};
    memcpy(b->last, key.at, key.size);
    b->last_size = key.size;
    b->at += (uint32_t)(sizeof(sizes) + sizes.key + sizes.value);
    b->block.count--;
    b->pairs++;
    return 1;
}
