/* SPDX-License-Identifier: MIT */
/* Source lines and inlined calls of the functions that were hit: see linetab.h. */
#include "symbols/tables/linetab.h"

#include "base/memory.h"

#include <assert.h>
#include <errno.h>

#define STRINGS_BYTES_MAX (1u << 30)

enum { ARRAY_COUNT_ALL = 7 };

struct linetab_header {
    struct sealed_header sealed;
    uint64_t counts[ARRAY_COUNT_ALL];
};

static_assert(sizeof(struct linetab_span) == 32 && sizeof(struct linetab_line) == 12 &&
                  sizeof(struct linetab_row) == 8 && sizeof(struct linetab_node) == 16 &&
                  sizeof(struct linetab_origin) == 16,
              "they are written to files");

/* The arrays in the order of the file, which keeps each aligned. */
static struct linetab_array *array_at(struct linetab *t, size_t index, size_t *ret_item_size)
{
    struct linetab_array *arrays[ARRAY_COUNT_ALL] = {&t->spans, &t->rows,  &t->nodes,  &t->origins,
                                                     &t->lines, &t->files, &t->strings};
    static const size_t sizes[ARRAY_COUNT_ALL] = {sizeof(struct linetab_span),
                                                  sizeof(struct linetab_row),
                                                  sizeof(struct linetab_node),
                                                  sizeof(struct linetab_origin),
                                                  sizeof(struct linetab_line),
                                                  sizeof(uint32_t),
                                                  sizeof(char)};
    *ret_item_size = sizes[index];
    return arrays[index];
}

void linetab_done(struct linetab *t)
{
    for (size_t i = 0; i < ARRAY_COUNT_ALL && t->is_thawed; i++) {
        size_t size;
        free(array_at(t, i, &size)->items);
    }
    free(t->file_index.places);
    free(t->origin_index.places);
    free(t->functions);
    free(t->paths);
    sealed_block_done(&t->block);
    *t = (struct linetab){0};
}

static const struct linetab_span *span_at(const struct linetab *t, size_t index)
{
    return &((const struct linetab_span *)t->spans.items)[index];
}

const struct linetab_span *linetab_find(const struct linetab *t, uint64_t address)
{
    size_t low = 0, high = t->spans.count; /* the first that starts behind the address */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (span_at(t, middle)->start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    const struct linetab_span *span = low ? span_at(t, low - 1) : NULL;
    return span && address < span->end ? span : NULL;
}

const char *linetab_string(const struct linetab *t, uint32_t string)
{
    return string < t->strings.count ? (const char *)t->strings.items + string : NULL;
}

const char *linetab_file(const struct linetab *t, uint32_t file)
{
    return file < t->files.count ? linetab_string(t, ((const uint32_t *)t->files.items)[file])
                                 : NULL;
}

const struct linetab_node *linetab_node(const struct linetab *t, uint32_t node)
{
    if (node >= t->nodes.count)
        return NULL;
    const struct linetab_node *n = &((const struct linetab_node *)t->nodes.items)[node];
    return n->parent == LINETAB_NONE || n->parent < node ? n : NULL; /* no circles */
}

const struct linetab_origin *linetab_origin(const struct linetab *t, uint32_t origin)
{
    return origin < t->origins.count ? &((const struct linetab_origin *)t->origins.items)[origin]
                                     : NULL;
}

void linetab_place(const struct linetab *t, const struct linetab_span *span, uint64_t address,
                   uint32_t *ret_file, uint32_t *ret_line)
{
    *ret_file = LINETAB_NONE;
    *ret_line = 0;
    if (span->first_line > t->lines.count || span->line_count > t->lines.count - span->first_line)
        return;
    const struct linetab_line *lines = (const struct linetab_line *)t->lines.items;
    uint64_t offset = address - span->start;
    size_t low = span->first_line, high = low + span->line_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (lines[middle].offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == span->first_line || lines[low - 1].file >= t->files.count)
        return;
    *ret_file = lines[low - 1].file;
    *ret_line = lines[low - 1].line;
}

uint32_t linetab_node_at(const struct linetab *t, const struct linetab_span *span, uint64_t address)
{
    if (span->first_row > t->rows.count || span->row_count > t->rows.count - span->first_row)
        return LINETAB_NONE;
    const struct linetab_row *rows = (const struct linetab_row *)t->rows.items;
    uint64_t offset = address - span->start;
    size_t low = span->first_row, high = low + span->row_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (rows[middle].offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low == span->first_row ? LINETAB_NONE : rows[low - 1].node;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 29;
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
    if (!text)
        return mix(hash, 1);
    size_t length = strlen(text);
    for (; length >= 8; length -= 8, text += 8) {
        uint64_t word;
        memcpy(&word, text, 8);
        hash = mix(hash, word);
    }
    for (; length; length--)
        hash = mix(hash, (uint8_t)*text++);
    return hash;
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? str_eq(a, b) : a == b;
}

/* An origin with its strings, to compare and to hash. */
struct origin_text {
    const char *name, *linkage_name;
    uint32_t file, line;
};

static uint64_t hash_origin(const struct origin_text *o)
{
    return mix_text(mix_text(mix(mix(3, o->file), o->line), o->name), o->linkage_name);
}

static struct origin_text origin_text(const struct linetab *t, uint32_t origin)
{
    const struct linetab_origin *o = linetab_origin(t, origin);
    return (struct origin_text){linetab_string(t, o->name), linetab_string(t, o->linkage_name),
                                o->file, o->line};
}

static uint64_t hash_file_at(const struct linetab *t, uint32_t file)
{
    return mix_text(2, linetab_file(t, file));
}

static uint64_t hash_origin_at(const struct linetab *t, uint32_t origin)
{
    struct origin_text o = origin_text(t, origin);
    return hash_origin(&o);
}

/* Makes an index at least twice as large as what it holds. */
static void grow_index(struct linetab_index *index, size_t count, const struct linetab *t,
                       uint64_t (*hash)(const struct linetab *, uint32_t))
{
    if (index->size > count * 2)
        return;
    free(index->places);
    index->size = 256;
    while (index->size <= count * 2)
        index->size *= 2;
    index->places = memory_zalloc(index->size, sizeof(*index->places));
    for (size_t i = 0; i < count; i++) {
        size_t at = hash(t, (uint32_t)i) & (index->size - 1);
        while (index->places[at])
            at = (at + 1) & (index->size - 1);
        index->places[at] = (uint32_t)i + 1;
    }
}

/* From here on the arrays are changed: they must be our own. */
static void thaw(struct linetab *t)
{
    t->changed = true;
    if (t->is_thawed)
        return;
    t->is_thawed = true;
    for (size_t i = 0; i < ARRAY_COUNT_ALL; i++) {
        size_t size;
        struct linetab_array *a = array_at(t, i, &size);
        const void *old = a->items;
        a->capacity = a->count;
        a->items = memory_alloc(a->count * size);
        if (a->count)
            memcpy(a->items, old, a->count * size);
    }
    sealed_block_done(&t->block);
}

#define PUSH(array, type)                                                                  \
    (*((array).items =                                                                     \
           memory_grow((array).items, &(array).capacity, (array).count + 1, sizeof(type)), \
       &((type *)(array).items)[(array).count++]))

static uint32_t add_string(struct linetab *t, const char *text)
{
    size_t length = text ? strnlen(text, SYMBOLS_NAME_MAX) : 0;
    struct linetab_array *s = &t->strings;
    if (!text || s->count + length + 1 > STRINGS_BYTES_MAX)
        return LINETAB_NONE;
    uint32_t at = (uint32_t)s->count;
    s->items = memory_grow(s->items, &s->capacity, s->count + length + 1, 1);
    memcpy((char *)s->items + at, text, length);
    ((char *)s->items)[at + length] = '\0';
    s->count += length + 1;
    return at;
}

uint32_t linetab_add_file(struct linetab *t, const char *path)
{
    if (!path)
        return LINETAB_NONE;
    thaw(t);
    struct linetab_index *index = &t->file_index;
    grow_index(index, t->files.count, t, hash_file_at);
    size_t at = mix_text(2, path) & (index->size - 1);
    for (uint32_t place; (place = index->places[at]); at = (at + 1) & (index->size - 1))
        if (same_text(linetab_file(t, place - 1), path))
            return place - 1;
    uint32_t string = add_string(t, path);
    PUSH(t->files, uint32_t) = string;
    index->places[at] = (uint32_t)t->files.count;
    return (uint32_t)t->files.count - 1;
}

uint32_t linetab_add_origin(struct linetab *t, const char *name, const char *linkage_name,
                            const char *file, uint32_t line)
{
    struct origin_text o = {name, linkage_name, linetab_add_file(t, file), line};
    thaw(t);
    struct linetab_index *index = &t->origin_index;
    grow_index(index, t->origins.count, t, hash_origin_at);
    size_t at = hash_origin(&o) & (index->size - 1);
    for (uint32_t place; (place = index->places[at]); at = (at + 1) & (index->size - 1)) {
        struct origin_text there = origin_text(t, place - 1);
        if (there.file == o.file && there.line == o.line && same_text(there.name, name) &&
            same_text(there.linkage_name, linkage_name))
            return place - 1;
    }
    struct linetab_origin added = {add_string(t, name), add_string(t, linkage_name), o.file, line};
    PUSH(t->origins, struct linetab_origin) = added;
    index->places[at] = (uint32_t)t->origins.count;
    return (uint32_t)t->origins.count - 1;
}

uint32_t linetab_add_node(struct linetab *t, struct linetab_node node)
{
    thaw(t);
    PUSH(t->nodes, struct linetab_node) = node;
    return (uint32_t)t->nodes.count - 1;
}

void linetab_add_line(struct linetab *t, uint32_t offset, uint32_t file, uint32_t line)
{
    thaw(t);
    PUSH(t->lines, struct linetab_line) = (struct linetab_line){offset, file, line};
}

void linetab_add_row(struct linetab *t, uint32_t offset, uint32_t node)
{
    thaw(t);
    PUSH(t->rows, struct linetab_row) = (struct linetab_row){offset, node};
}

void linetab_add_span(struct linetab *t, uint64_t start, uint64_t end)
{
    thaw(t);
    struct linetab_span span = {.start = start,
                                .end = end,
                                .first_line = t->pending_line,
                                .line_count = (uint32_t)t->lines.count - t->pending_line,
                                .first_row = t->pending_row,
                                .row_count = (uint32_t)t->rows.count - t->pending_row};
    PUSH(t->spans, struct linetab_span) = span;
    t->pending_line = (uint32_t)t->lines.count;
    t->pending_row = (uint32_t)t->rows.count;
}

static int by_start(const void *a, const void *b)
{
    const struct linetab_span *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

void linetab_sort(struct linetab *t)
{
    if (t->changed && t->spans.count)
        qsort(t->spans.items, t->spans.count, sizeof(struct linetab_span), by_start);
}

struct sealed_block linetab_seal(const struct linetab *table, const struct build_id *build_id,
                                 const char *source)
{
    struct linetab *t = (struct linetab *)(uintptr_t)table; /* array_at serves both */
    struct sealed_block block = {.size = sizeof(struct linetab_header)};
    size_t size;
    for (size_t i = 0; i < ARRAY_COUNT_ALL; i++)
        block.size += array_at(t, i, &size)->count * size;
    block.bytes = memory_zalloc(1, block.size);
    struct linetab_header *header = block.bytes;
    char *at = (char *)(header + 1);
    for (size_t i = 0; i < ARRAY_COUNT_ALL; i++) {
        const struct linetab_array *a = array_at(t, i, &size);
        header->counts[i] = a->count;
        if (a->count)
            memcpy(at, a->items, a->count * size);
        at += a->count * size;
    }
    sealed_close(&block, SEALED_LINES, LINETAB_VERSION, build_id, source);
    return block;
}

int linetab_unseal(struct linetab *ret_table, struct sealed_block block,
                   const struct build_id *build_id, const char *source, struct error *err)
{
    struct linetab t = {.block = block};
    const struct linetab_header *header = block.bytes;
    int r = sealed_check(&block, SEALED_LINES, LINETAB_VERSION, build_id, source, err);
    bool whole = r == 0 && block.size >= sizeof(*header);
    size_t left = whole ? block.size - sizeof(*header) : 0;
    char *at = (char *)block.bytes + sizeof(*header);
    for (size_t i = 0; i < ARRAY_COUNT_ALL && whole; i++) {
        size_t size;
        struct linetab_array *a = array_at(&t, i, &size);
        whole = header->counts[i] < LINETAB_NONE && header->counts[i] <= left / size;
        a->items = at;
        a->count = whole ? (size_t)header->counts[i] : 0;
        at += a->count * size;
        left -= a->count * size;
    }
    const char *strings = t.strings.items;
    if (r == 0 && (!whole || left || (t.strings.count && strings[t.strings.count - 1])))
        r = error_set(err, -ESTALE, "the cached table contradicts itself");
    if (r < 0) {
        linetab_done(&t);
        return r;
    }
    t.pending_line = (uint32_t)t.lines.count;
    t.pending_row = (uint32_t)t.rows.count;
    *ret_table = t;
    return 0;
}
