/* SPDX-License-Identifier: MIT */
/* jitdump files: see jitdump.h. */
#include "symbols/names/jitdump.h"

#include "base/memory.h"
#include "symbols/tables/names.h"

#include <assert.h>
#include <errno.h>

#define JITDUMP_MAGIC 0x4a695444u
#define JITDUMP_MAGIC_SWAPPED 0x4454694au
#define JITDUMP_VERSION 1u

enum {
    RECORD_LOAD = 0,
    RECORD_MOVE = 1,
    RECORD_DEBUG_INFO = 2,
};

struct file_header {
    uint32_t magic, version, total_size, elf_machine, pad, pid;
    uint64_t time_ns, flags;
};

struct record_header {
    uint32_t id, total_size;
    uint64_t time_ns;
};

struct record_load {
    uint32_t pid, tid;
    uint64_t vma, code_address, code_size, code_index;
};

struct record_move {
    uint32_t pid, tid;
    uint64_t vma, old_address, new_address, code_size, code_index;
};

struct record_debug {
    uint64_t code_address, entry_count;
};

struct debug_entry {
    uint64_t address;
    int32_t line, discriminator;
};

static_assert(sizeof(struct file_header) == 40 && sizeof(struct record_header) == 16 &&
                  sizeof(struct record_load) == 40 && sizeof(struct record_move) == 48 &&
                  sizeof(struct debug_entry) == 16,
              "the specification's sizes");

/* Lines come before the piece they belong to. */
struct pending_lines {
    uint64_t code_address;
    struct code_line *lines;
    size_t count;
};

static int by_offset(const void *a, const void *b)
{
    const struct code_line *x = a, *y = b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* A file name of "\xff" repeats the one before. */
static void read_debug(struct jitdump *dump, const uint8_t *at, size_t left,
                       struct pending_lines *pending)
{
    struct record_debug record;
    if (left < sizeof(record))
        return;
    memcpy(&record, at, sizeof(record));
    at += sizeof(record);
    left -= sizeof(record);
    size_t most = left / (sizeof(struct debug_entry) + 1);
    if (record.entry_count < most)
        most = (size_t)record.entry_count;
    struct code_line *lines = arena_alloc(&dump->arena, most * sizeof(*lines));
    const char *file = NULL;
    size_t count = 0;
    while (count < most && left > sizeof(struct debug_entry)) {
        struct debug_entry entry;
        memcpy(&entry, at, sizeof(entry));
        const char *name = (const char *)at + sizeof(entry);
        size_t room = left - sizeof(entry), length = strnlen(name, room);
        if (length == room)
            break;
        if (!(length == 1 && (uint8_t)name[0] == 0xff))
            file = arena_strndup(&dump->arena, name,
                                 length < SYMBOLS_NAME_MAX ? length : SYMBOLS_NAME_MAX);
        lines[count++] = (struct code_line){.offset = entry.address - record.code_address,
                                            .file = file,
                                            .line = entry.line > 0 ? (uint32_t)entry.line : 0};
        at += sizeof(entry) + length + 1;
        left -= sizeof(entry) + length + 1;
    }
    if (count)
        qsort(lines, count, sizeof(*lines), by_offset);
    *pending = (struct pending_lines){record.code_address, lines, count};
}

static void read_load(struct jitdump *dump, const struct record_header *header, const uint8_t *base,
                      const uint8_t *at, size_t left, struct pending_lines *pending)
{
    struct record_load record;
    if (left < sizeof(record))
        return;
    memcpy(&record, at, sizeof(record));
    const char *name = (const char *)at + sizeof(record);
    size_t room = left - sizeof(record), length = strnlen(name, room);
    if (length == room || record.code_size == 0)
        return;
    struct jitdump_code code = {.time_ns = header->time_ns,
                                .address = record.code_address,
                                .size = record.code_size,
                                .index = record.code_index};
    code.name =
        arena_strndup(&dump->arena, name, length < SYMBOLS_NAME_MAX ? length : SYMBOLS_NAME_MAX);
    code.bytes_offset = (uint64_t)(at - base) + sizeof(record) + length + 1;
    if (pending->count && pending->code_address == record.code_address) {
        code.lines = pending->lines;
        code.line_count = pending->count;
    }
    *pending = (struct pending_lines){0};
    ARRAY_PUSH(dump->codes, dump->count, dump->capacity) = code;
}

static void read_move(struct jitdump *dump, const struct record_header *header, const uint8_t *at,
                      size_t left)
{
    struct record_move record;
    if (left < sizeof(record))
        return;
    memcpy(&record, at, sizeof(record));
    if (record.code_size)
        ARRAY_PUSH(dump->codes, dump->count, dump->capacity) =
            (struct jitdump_code){.time_ns = header->time_ns,
                                  .address = record.new_address,
                                  .size = record.code_size,
                                  .index = record.code_index,
                                  .moved = true};
}

static int check_header(const struct file_header *header, size_t size, struct error *err)
{
    if (header->magic == JITDUMP_MAGIC_SWAPPED)
        return error_set(err, -EBADMSG,
                         "a jitdump file in the other byte order, which assay cannot read");
    if (header->magic != JITDUMP_MAGIC)
        return error_set(err, -EBADMSG, "not a jitdump file");
    if (header->version != JITDUMP_VERSION)
        return error_set(err, -EBADMSG, "jitdump version %u; assay reads version 1",
                         header->version);
    if (header->total_size < sizeof(*header) || header->total_size > size)
        return error_set(err, -EBADMSG, "a jitdump header of only %u bytes", header->total_size);
    return 0;
}

int jitdump_parse(const void *bytes, size_t size, struct jitdump *ret, struct error *err)
{
    struct file_header header;
    *ret = (struct jitdump){0};
    if (size < sizeof(header))
        return error_set(err, -EBADMSG, "too short for a jitdump file");
    memcpy(&header, bytes, sizeof(header));
    int r = check_header(&header, size, err);
    if (r < 0)
        return r;
    const uint8_t *base = bytes;
    struct pending_lines pending = {0};
    for (size_t at = header.total_size; at < size;) {
        struct record_header record;
        size_t left = size - at;
        if (left >= sizeof(record))
            memcpy(&record, base + at, sizeof(record));
        if (left < sizeof(record) || record.total_size < sizeof(record) ||
            record.total_size > left) {
            ret->truncated = true;
            break;
        }
        const uint8_t *body = base + at + sizeof(record);
        size_t body_size = record.total_size - sizeof(record);
        if (record.id == RECORD_LOAD)
            read_load(ret, &record, base, body, body_size, &pending);
        else if (record.id == RECORD_MOVE)
            read_move(ret, &record, body, body_size);
        else if (record.id == RECORD_DEBUG_INFO)
            read_debug(ret, body, body_size, &pending);
        at += record.total_size;
    }
    return 0;
}

void jitdump_done(struct jitdump *dump)
{
    free(dump->codes);
    arena_done(&dump->arena);
    *dump = (struct jitdump){0};
}
