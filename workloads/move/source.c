/* SPDX-License-Identifier: MIT */
/*
 * The sender's messages in memory.
 *
 * A message for --verify is: its number (8 bytes), a checksum of number and body (8 bytes), a body
 * that depends on the number in every word.  A buffer that is changed while the kernel still reads
 * it arrives with another number or with parts of two messages: either is caught.
 */
#include "base/memory.h"
#include "check.h"
#include "settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096UL
#define HUGE_PAGE (2UL << 20)
#define FIELD_GAP 64UL /* between fields: the next cache line, so that they do not touch */

static uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93ULL;
    return x ^ (x >> 29);
}

uint64_t message_checksum(const void *message, size_t bytes)
{
    const char *at = message;
    uint64_t sum = 0, word;
    memcpy(&word, at, 8);
    sum = mix(word + bytes);
    for (size_t i = 16; i < bytes; i += 8) {
        size_t left = bytes - i;
        word = 0;
        memcpy(&word, at + i, left < 8 ? left : 8);
        sum = mix(sum ^ word);
    }
    return sum;
}

void message_make(void *message, size_t bytes, uint64_t sequence)
{
    char *at = message;
    memcpy(at, &sequence, 8);
    for (size_t i = 16; i < bytes; i += 8) {
        uint64_t word = sequence * 0x9e3779b97f4a7c15ULL + i;
        size_t left = bytes - i;
        memcpy(at + i, &word, left < 8 ? left : 8);
    }
    uint64_t sum = message_checksum(message, bytes);
    memcpy(at + 8, &sum, 8);
}

static size_t round_up(size_t value, size_t unit)
{
    return (value + unit - 1) / unit * unit;
}

/* Where the pieces of slot i lie. */
static void place_pieces(struct link *l, size_t field_stride)
{
    struct source *s = &l->source;
    for (size_t slot = 0; slot < s->slots; slot++) {
        size_t left = l->message_bytes, each = l->message_bytes / s->fields;
        for (size_t f = 0; f < s->fields; f++) {
            size_t length = f + 1 == s->fields ? left : each;
            source_pieces(l, slot)[f] =
                (struct iovec){s->base + slot * s->stride + f * field_stride, length};
            left -= length;
        }
    }
}

/* Room that begins on a huge page, which only a larger piece surely holds.  The kernel may refuse
 * the pages themselves; it is the same memory then. */
static void *map_huge(size_t bytes)
{
    size_t larger = bytes + HUGE_PAGE;
    char *room = mmap(NULL, larger, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return MAP_FAILED;
    char *base = (char *)round_up((size_t)room, HUGE_PAGE);
    if (base > room)
        munmap(room, (size_t)(base - room));
    munmap(base + bytes, (size_t)(room + larger - (base + bytes)));
    madvise(base, bytes, MADV_HUGEPAGE);
    return base;
}

static int map_source(struct source *s, bool with_file, struct error *err)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    if (with_file) {
        flags = MAP_SHARED;
        s->file_fd = memfd_create("assay-move", MFD_CLOEXEC);
        if (s->file_fd < 0 || ftruncate(s->file_fd, (off_t)s->bytes) < 0)
            return error_errno(err, -errno, "a memory file of %zu bytes for the messages",
                               s->bytes);
    }
    void *base = s->is_huge ? map_huge(s->bytes)
                            : mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, flags, s->file_fd, 0);
    if (base == MAP_FAILED)
        return error_errno(err, -errno, "%zu bytes for the messages", s->bytes);
    s->base = base;
    return 0;
}

int source_open(struct link *l, enum source_layout layout, size_t slots, bool with_file,
                struct error *err)
{
    struct source *s = &l->source;
    *s = (struct source){.slots = slots, .fields = 1, .file_fd = -1};
    size_t field_stride = 0;
    s->stride = l->message_bytes;
    if (layout == SOURCE_ALIGNED)
        s->stride = round_up(l->message_bytes, PAGE);
    if (layout == SOURCE_FIELDS || layout == SOURCE_PIECES) {
        s->fields = layout == SOURCE_FIELDS ? l->settings->fields : l->settings->pieces;
        size_t longest = l->message_bytes - l->message_bytes / s->fields * (s->fields - 1);
        field_stride = round_up(longest, 64) + FIELD_GAP;
        s->stride = field_stride * s->fields;
    }
    s->is_huge = layout == SOURCE_HUGE && !with_file;
    s->bytes = round_up(s->stride * slots, s->is_huge ? HUGE_PAGE : PAGE);
    int r = map_source(s, with_file, err);
    if (r < 0)
        return r;
    s->pieces = memory_zalloc(slots * s->fields, sizeof(*s->pieces));
    s->scratch = memory_zalloc(1, round_up(l->message_bytes, 8));
    place_pieces(l, field_stride);
    source_paint(l, 'a');
    return 0;
}

void source_close(struct link *l)
{
    struct source *s = &l->source;
    if (s->base)
        munmap(s->base, s->bytes);
    if (s->base && s->file_fd >= 0)
        close(s->file_fd);
    free(s->pieces);
    free(s->scratch);
    *s = (struct source){.file_fd = -1};
}

void source_fill_slot(struct link *l, size_t slot)
{
    struct source *s = &l->source;
    message_make(s->scratch, l->message_bytes, l->sequence++);
    const char *from = s->scratch;
    for (size_t f = 0; f < s->fields; f++) {
        struct iovec *piece = source_pieces(l, slot) + f;
        memcpy(piece->iov_base, from, piece->iov_len);
        from += piece->iov_len;
    }
}

void source_paint(struct link *l, unsigned char byte)
{
    memset(l->source.base, byte, l->source.bytes);
}
