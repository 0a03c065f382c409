/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes the reader of backups behind its sums.  The first byte says how the rest is fed: as a file
 * (odd), or cut into blocks whose sums are made right, so that what stands in them is read.
 */
#include "base/memory.h"
#include "vr/client/backup.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put(struct strbuf *out, const void *bytes, size_t size)
{
    strbuf_append(out, bytes, size);
}

/* Each block: two bytes of size, a byte of count, its bytes. */
static void make_file(struct strbuf *out, const uint8_t *data, size_t size)
{
    struct vr_backup_head head = {.magic = "vrbackup", .version = 1, .cluster = 1};
    head.keys = size ? data[0] : 0;
    head.checksum = vr_backup_head_checksum(&head);
    put(out, &head, sizeof(head));
    uint64_t chain = head.checksum;
    for (size_t at = 1; at + 3 <= size;) {
        uint32_t length = (uint32_t)(data[at] | data[at + 1] << 8);
        struct vr_backup_block block = {length, data[at + 2], 0};
        at += 3;
        if (block.size > size - at)
            block.size = (uint32_t)(size - at);
        block.checksum = chain = vr_backup_block_checksum(chain, &block, data + at);
        put(out, &block, sizeof(block));
        put(out, data + at, block.size);
        at += block.size;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct vr_backup_reader b;
    CLEANUP(strbuf_done) struct strbuf file = {0};
    struct vr_bytes key, value;
    struct error err = {0};
    if (size < 2)
        return 0;
    if (data[0] & 1)
        put(&file, data + 1, size - 1);
    else
        make_file(&file, data + 1, size - 1);
    FILE *in = fmemopen(file.data, file.length, "r");
    if (!in)
        return 0;
    int result = vr_backup_read_head(&b, in, "it", &err);
    uint64_t pairs = 0;
    while (!result && (result = vr_backup_next(&b, &key, &value, &err)) == 1) {
        assert(key.size <= VR_KEY_BYTES_MAX && value.size <= VR_VALUE_BYTES_MAX);
        pairs++;
        result = 0;
    }
    assert(result || pairs == b.head.keys);
    assert(!result || err.code == result);
    fclose(in);
    return 0;
}
