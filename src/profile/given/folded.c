/* SPDX-License-Identifier: MIT */
/*
 * Folded stacks: "main;parse;read 12", the outermost frame first.  Whether the first is a command
 * or a function differs from tool to tool and is not said, so it stays a frame.  Of the marks that
 * stackcollapse-perf.pl can add, "_[k]" (the kernel) and "_[i]" (inlined) are read.
 */
#include "base/hash.h"
#include "base/memory.h"
#include "base/strings.h"
#include "profile/given/given.h"

#include <errno.h>
#include <inttypes.h>

enum { DEPTH_MAX = 8192 };

/* Names by number: one location for each name with its marks. */
struct folded {
    struct given *g;
    uint32_t *slots; /* location + 1, by hash of its whole name */
    const char **names;
    size_t name_capacity, slot_mask;
};

static uint64_t hash_of(const char *text, size_t length)
{
    uint64_t h = hash_bytes(HASH_START, text, length);
    return h ^ h >> 29;
}

static void grow(struct folded *f)
{
    size_t mask = f->slot_mask ? 2 * f->slot_mask + 1 : 1023;
    uint32_t *slots = memory_zalloc(mask + 1, sizeof(*slots));
    for (uint32_t i = 0; i < f->g->location_count; i++) {
        size_t at = hash_of(f->names[i], strlen(f->names[i])) & mask;
        while (slots[at])
            at = (at + 1) & mask;
        slots[at] = i + 1;
    }
    free(f->slots);
    f->slots = slots;
    f->slot_mask = mask;
}

static uint32_t location_of(struct folded *f, const char *text, size_t length)
{
    struct given *g = f->g;
    if (2 * (g->location_count + 1) > f->slot_mask)
        grow(f);
    size_t at = hash_of(text, length) & f->slot_mask;
    for (; f->slots[at]; at = (at + 1) & f->slot_mask) {
        const char *name = f->names[f->slots[at] - 1];
        if (strlen(name) == length && memcmp(name, text, length) == 0)
            return f->slots[at] - 1;
    }
    uint32_t number = (uint32_t)g->location_count;
    struct given_frame frame = {.binary = "", .file = ""};
    char *name = arena_strndup(&g->arena, text, length);
    size_t kept = length;
    if (length > 4 && name[length - 4] == '_' && name[length - 3] == '[' &&
        name[length - 1] == ']') {
        frame.is_kernel = name[length - 2] == 'k';
        frame.inlined = name[length - 2] == 'i';
        kept -= frame.is_kernel || frame.inlined ? 4 : 0;
    }
    frame.name = kept < length ? arena_strndup(&g->arena, text, kept) : name;
    size_t count = number;
    ARRAY_PUSH(f->names, count, f->name_capacity) = name;
    ARRAY_PUSH(g->locations, g->location_count, g->location_capacity) = (struct given_location){
        .first_frame = (uint32_t)g->frame_count, .frame_count = 1, .binary = ""};
    ARRAY_PUSH(g->frames, g->frame_count, g->frame_capacity) = frame;
    f->slots[at] = number + 1;
    return number;
}

/* The frames of a line, which stand the other way round in the chain. */
static int take_stack(struct folded *f, const char *text, size_t length, size_t number,
                      struct error *err)
{
    struct given *g = f->g;
    size_t first = g->chain_count;
    for (size_t start = 0, at = 0; at <= length; at++) {
        if (at < length && text[at] != ';')
            continue;
        if (at > start)
            ARRAY_PUSH(g->chain, g->chain_count, g->chain_capacity) =
                location_of(f, text + start, at - start);
        start = at + 1;
        if (g->chain_count - first > DEPTH_MAX)
            return error_set(err, -E2BIG, "line %zu: more than %d frames", number, DEPTH_MAX);
    }
    for (size_t i = first, k = g->chain_count; i + 1 < k; i++, k--) {
        uint32_t kept = g->chain[i];
        g->chain[i] = g->chain[k - 1];
        g->chain[k - 1] = kept;
    }
    return 0;
}

static int take_line(struct folded *f, const char *line, size_t length, size_t number,
                     struct error *err)
{
    struct given *g = f->g;
    while (length && (line[length - 1] == '\r' || line[length - 1] == ' '))
        length--;
    if (!length || *line == '#')
        return 0;
    size_t blank = length;
    while (blank && line[blank - 1] != ' ')
        blank--;
    char count_text[24];
    uint64_t count;
    struct error ignored;
    size_t digits = length - blank;
    memcpy(count_text, line + blank, digits < sizeof(count_text) ? digits : 0);
    count_text[digits < sizeof(count_text) ? digits : 0] = '\0';
    if (blank < 2 || parse_u64(count_text, &count, &ignored) < 0 || count > INT64_MAX)
        return error_set(err, -EINVAL,
                         "line %zu: no count behind the stack; a line is FRAME;FRAME;… COUNT",
                         number);
    if (!count)
        return 0;
    struct given_sample sample = {.first_location = g->chain_count, .comm = "", .samples = count};
    int r = take_stack(f, line, blank - 1, number, err);
    sample.location_count = (uint32_t)(g->chain_count - sample.first_location);
    ARRAY_PUSH(g->samples, g->sample_count, g->sample_capacity) = sample;
    ARRAY_PUSH(g->values, g->value_count, g->value_capacity) = count;
    return r;
}

int given_read_folded(struct given *g, const char *bytes, size_t length, struct error *err)
{
    struct folded f = {.g = g};
    int r = 0;
    ARRAY_PUSH(g->events, g->event_count, g->event_capacity) =
        (struct given_event){.name = "samples"};
    for (size_t at = 0, number = 1; at < length && r == 0; number++) {
        const char *end = memchr(bytes + at, '\n', length - at);
        size_t here = end ? (size_t)(end - bytes) - at : length - at;
        if (memchr(bytes + at, '\0', here))
            r = error_set(err, -EINVAL, "line %zu: a zero byte; this is not text", number);
        else
            r = take_line(&f, bytes + at, here, number, err);
        at += here + 1;
    }
    free(f.slots);
    free(f.names);
    return r;
}
