/* SPDX-License-Identifier: MIT */
/* Tables that are kept in files: see sealed.h. */
#include "symbols/tables/sealed.h"

#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <sys/mman.h>

#define SEALED_MAGIC 0x656c6261746d7973ull /* changes with the byte order too */

static_assert(sizeof(struct sealed_header) % 8 == 0, "tables behind it are aligned");

void sealed_block_done(struct sealed_block *block)
{
    if (block->mapped)
        munmap(block->bytes, block->size);
    else
        free(block->bytes);
    *block = (struct sealed_block){0};
}

/* Eight bytes at a time, in four lanes, so that a large table is checked at the speed of memory.
 * It finds damage, not malice. */
static uint64_t checksum(const void *bytes, size_t size)
{
    const uint64_t prime = 0x9e3779b97f4a7c15ull;
    uint64_t lanes[4] = {1, 2, 3, size};
    const uint8_t *at = bytes;
    for (; size >= 32; size -= 32, at += 32) {
        for (int i = 0; i < 4; i++) {
            uint64_t word;
            memcpy(&word, at + 8 * i, 8);
            lanes[i] = (lanes[i] ^ word) * prime;
            lanes[i] ^= lanes[i] >> 29;
        }
    }
    for (; size; size--, at++)
        lanes[0] = (lanes[0] ^ *at) * prime;
    uint64_t sum = 0;
    for (int i = 0; i < 4; i++)
        sum = (sum ^ lanes[i]) * prime + (sum >> 31);
    return sum;
}

static uint64_t block_checksum(const struct sealed_block *block)
{
    size_t skipped = offsetof(struct sealed_header, checksum) + sizeof(uint64_t);
    return checksum((const char *)block->bytes + skipped, block->size - skipped);
}

void sealed_close(struct sealed_block *block, enum sealed_kind kind, uint32_t version,
                  const struct build_id *build_id, const char *source)
{
    struct sealed_header *header = block->bytes;
    *header = (struct sealed_header){.magic = SEALED_MAGIC,
                                     .kind = kind,
                                     .version = version,
                                     .size = block->size,
                                     .build_id = *build_id};
    memcpy(header->source, source, strnlen(source, SEALED_SOURCE_MAX - 1));
    header->checksum = block_checksum(block);
}

int sealed_check(const struct sealed_block *block, enum sealed_kind kind, uint32_t version,
                 const struct build_id *build_id, const char *source, struct error *err)
{
    const struct sealed_header *header = block->bytes;
    const char *why = NULL;
    if (block->size < sizeof(*header) || header->magic != SEALED_MAGIC || header->kind != kind)
        why = "is not such a table";
    else if (header->version != version)
        why = "was written by a different version";
    else if (header->size != block->size || header->checksum != block_checksum(block))
        why = "is damaged";
    else if (!build_id_equal(&header->build_id, build_id))
        why = "belongs to a different file";
    else if (source && strncmp(header->source, source, SEALED_SOURCE_MAX - 1) != 0)
        why = "was made from different files";
    return why ? error_set(err, -ESTALE, "the cached table %s", why) : 0;
}
