/* SPDX-License-Identifier: MIT */
/* Sorted tables of symbols: see symtab.h. */
#include "symbols/tables/symtab.h"

#include "base/memory.h"
#include "symbols/tables/keysort.h"
#include "symbols/tables/ranges.h"

#include <assert.h>
#include <errno.h>

#define SYMTAB_VERSION 5u
#define SEGMENT_COUNT_MAX 64u

struct symtab_header {
    struct sealed_header sealed;
    uint64_t range_count, symbol_count, segment_count, strings_size;
};

static_assert(sizeof(struct symtab_symbol) == 24, "it is written to files");

void symtab_done(struct symtab *table)
{
    sealed_block_done(&table->block);
    *table = (struct symtab){0};
}

uint32_t symtab_find(const struct symtab *table, uint64_t address)
{
    uint32_t owner = range_find(table->starts, table->owners, table->range_count, address);
    return owner < table->symbol_count ? owner : SYMTAB_NONE;
}

uint64_t symtab_to_address(const struct symtab *table, uint64_t offset)
{
    for (size_t i = 0; i < table->segment_count; i++) {
        const struct symtab_segment *s = &table->segments[i];
        if (offset - s->offset < s->size)
            return offset - s->offset + s->address;
    }
    return offset;
}

uint64_t symtab_to_offset(const struct symtab *table, uint64_t address)
{
    for (size_t i = 0; i < table->segment_count; i++) {
        const struct symtab_segment *s = &table->segments[i];
        if (address - s->address < s->size)
            return address - s->address + s->offset;
    }
    return address;
}

const char *symtab_name(const struct symtab *table, uint32_t symbol, size_t *ret_length)
{
    size_t offset = table->symbols[symbol].name;
    if (offset >= table->strings_size) {
        *ret_length = 0;
        return "";
    }
    *ret_length = strnlen(table->strings + offset, SYMBOLS_NAME_MAX);
    return table->strings + offset;
}

const char *symtab_part(const struct symtab *table, uint32_t symbol)
{
    size_t offset = table->symbols[symbol].part;
    return offset < table->strings_size ? table->strings + offset : "";
}

void symtab_add(struct symtab_builder *builder, uint64_t start, uint64_t size, uint64_t limit,
                enum symtab_binding binding, const char *name, size_t length)
{
    struct strbuf *strings = &builder->strings;
    if (strings->length == 0)
        strbuf_putc(strings, '\0'); /* the string of no part */
    if (length == 0 || strings->length + length + 1 > SYMTAB_NAME_BYTES_MAX ||
        builder->count >= SYMTAB_NONE - 1)
        return;
    uint64_t end = start + size < start ? UINT64_MAX : start + size;
    ARRAY_PUSH(builder->entries, builder->count, builder->capacity) =
        (struct symtab_entry){.start = start,
                              .end = end,
                              .limit = limit,
                              .name = (uint32_t)strings->length,
                              .part = builder->last_part,
                              .order = (uint32_t)builder->count,
                              .binding = (uint8_t)binding};
    strbuf_append(strings, name, length);
    strbuf_putc(strings, '\0');
}

void symtab_set_part(struct symtab_builder *builder, const char *part, size_t length)
{
    struct strbuf *strings = &builder->strings;
    const char *last = builder->last_part ? strings->data + builder->last_part : "";
    if (strlen(last) == length && memcmp(last, part, length) == 0)
        return;
    builder->last_part = 0;
    if (length == 0 || strings->length + length + 1 > SYMTAB_NAME_BYTES_MAX)
        return;
    if (strings->length == 0)
        strbuf_putc(strings, '\0');
    builder->last_part = (uint32_t)strings->length;
    strbuf_append(strings, part, length);
    strbuf_putc(strings, '\0');
}

void symtab_add_segment(struct symtab_builder *builder, uint64_t offset, uint64_t address,
                        uint64_t size)
{
    if (builder->segment_count < SEGMENT_COUNT_MAX)
        ARRAY_PUSH(builder->segments, builder->segment_count, builder->segment_capacity) =
            (struct symtab_segment){offset, address, size};
}

static void builder_done(struct symtab_builder *builder)
{
    free(builder->entries);
    free(builder->segments);
    strbuf_done(&builder->strings);
    *builder = (struct symtab_builder){0};
}

/* By start; those that start together stay in the order in which they were added. */
static void sort_entries(struct symtab_builder *b)
{
    struct keysort_item *keys = memory_alloc(b->count * sizeof(*keys));
    struct symtab_entry *sorted = memory_alloc(b->count * sizeof(*sorted));
    for (size_t i = 0; i < b->count; i++)
        keys[i] = (struct keysort_item){b->entries[i].start, (uint32_t)i};
    keysort(keys, b->count);
    for (size_t i = 0; i < b->count; i++)
        sorted[i] = b->entries[keys[i].index];
    free(keys);
    free(b->entries);
    b->entries = sorted;
    b->capacity = b->count;
}

static size_t underscores(const char *name)
{
    return strspn(name, "_");
}

/* The kernel has its system calls under several names, of which this one is known best:
 * __ia32_sys_x and __do_sys_x may be the same code. */
static bool is_system_call(const char *name)
{
    return str_has_prefix(name, "__x64_sys_") || str_has_prefix(name, "__arm64_sys_");
}

/* Which of two names for the same place a person would rather read; the order of the questions
 * is perf's, so that both show the same. */
static bool is_better(const struct symtab_builder *b, const struct symtab_entry *x,
                      const struct symtab_entry *y)
{
    const char *x_name = b->strings.data + x->name, *y_name = b->strings.data + y->name;
    bool x_sized = x->end != x->start, y_sized = y->end != y->start;
    bool x_call = is_system_call(x_name), y_call = is_system_call(y_name);
    if (x_call != y_call)
        return x_call;
    if (x_sized != y_sized)
        return x_sized;
    if (x->binding != y->binding && (x->binding == SYMTAB_WEAK || y->binding == SYMTAB_WEAK))
        return y->binding == SYMTAB_WEAK;
    if (x->binding != y->binding)
        return x->binding == SYMTAB_GLOBAL;
    size_t x_under = underscores(x_name), y_under = underscores(y_name);
    if (x_under != y_under)
        return x_under < y_under;
    return strlen(x_name) > strlen(y_name);
}

/* Parts lie apart (the kernel's text, each of its modules): the last symbol of one has nothing to
 * end it, and ends with the page after its own. */
static uint64_t page_limit(uint64_t address)
{
    const uint64_t page = 4096;
    uint64_t rounded = (address + page - 1) & ~(page - 1);
    return rounded > UINT64_MAX - page ? UINT64_MAX : rounded + page;
}

static bool same_part(const struct symtab_builder *b, const struct symtab_entry *x,
                      const struct symtab_entry *y)
{
    return x->part == y->part || str_eq(b->strings.data + x->part, b->strings.data + y->part);
}

/* Gives those without a size their end. */
static void set_ends(struct symtab_builder *b)
{
    for (size_t i = 0; i < b->count; i++) {
        struct symtab_entry *e = &b->entries[i];
        const struct symtab_entry *after = i + 1 < b->count ? e + 1 : NULL;
        if (e->end != e->start)
            continue;
        e->unsized = true;
        uint64_t limit = e->limit;
        if (b->page_limits && (!after || !same_part(b, e, after)))
            limit = page_limit(e->start);
        uint64_t next = after ? after->start : UINT64_MAX;
        e->end = next < limit ? next : limit;
        if (e->end < e->start)
            e->end = e->start;
    }
}

/* Sorts, and keeps one entry for each start. */
static void settle_entries(struct symtab_builder *b)
{
    if (b->count == 0)
        return;
    sort_entries(b);
    size_t kept = 0;
    for (size_t i = 1; i < b->count; i++) {
        struct symtab_entry *last = &b->entries[kept], *next = &b->entries[i];
        if (next->start != last->start)
            b->entries[++kept] = *next;
        else if (b->latest_wins || is_better(b, next, last))
            *last = *next;
    }
    b->count = kept + 1;
    set_ends(b);
}

/* Who owns which addresses.  The entries are in order of their starts. */
static void settle_ranges(const struct symtab_builder *b, struct range_map *ret)
{
    struct range *ranges = memory_alloc(b->count * sizeof(*ranges));
    for (size_t i = 0; i < b->count; i++) {
        const struct symtab_entry *e = &b->entries[i];
        ranges[i] = (struct range){.start = e->start,
                                   .end = e->end,
                                   .owner = (uint32_t)i,
                                   .priority = b->latest_wins ? e->order
                                               : e->unsized   ? 0
                                                              : (uint32_t)i + 1};
    }
    range_map_build(ret, ranges, b->count);
    free(ranges);
}

static size_t round_up(size_t size)
{
    return (size + 7) & ~(size_t)7;
}

/* Where the arrays stand behind the header; false when that is more than the block has. */
static bool lay_out(struct symtab *t, const struct symtab_header *header, size_t size)
{
    uint64_t ranges = header->range_count, symbols = header->symbol_count;
    if (ranges > size / 12 || symbols > size / 24 || header->segment_count > SEGMENT_COUNT_MAX ||
        header->strings_size > size)
        return false;
    size_t starts = sizeof(*header), owners = starts + (size_t)ranges * 8;
    size_t entries = owners + round_up((size_t)ranges * 4);
    size_t segments = entries + (size_t)symbols * sizeof(*t->symbols);
    size_t strings = segments + (size_t)header->segment_count * sizeof(*t->segments);
    if (strings + header->strings_size != size)
        return false;
    const char *base = t->block.bytes;
    t->starts = (const uint64_t *)(base + starts);
    t->owners = (const uint32_t *)(base + owners);
    t->range_count = (size_t)ranges;
    t->symbols = (const struct symtab_symbol *)(base + entries);
    t->symbol_count = (size_t)symbols;
    t->segments = (const struct symtab_segment *)(base + segments);
    t->segment_count = (size_t)header->segment_count;
    t->strings = base + strings;
    t->strings_size = (size_t)header->strings_size;
    return true;
}

void symtab_build(struct symtab_builder *builder, struct symtab *ret_table)
{
    CLEANUP(range_map_done) struct range_map ranges = {0};
    settle_entries(builder);
    settle_ranges(builder, &ranges);
    strbuf_putc(&builder->strings, '\0');

    struct symtab_header header = {.range_count = ranges.count,
                                   .symbol_count = builder->count,
                                   .segment_count = builder->segment_count,
                                   .strings_size = builder->strings.length};
    size_t size = sizeof(header) + ranges.count * 8 + round_up(ranges.count * 4) +
                  builder->count * sizeof(struct symtab_symbol) +
                  builder->segment_count * sizeof(struct symtab_segment) + builder->strings.length;
    struct symtab table = {.block = {.bytes = memory_zalloc(1, size), .size = size}};
    memcpy(table.block.bytes, &header, sizeof(header));
    bool fits = lay_out(&table, &header, size);
    (void)fits; /* by construction */
    if (ranges.count) {
        memcpy((void *)(uintptr_t)table.starts, ranges.starts, ranges.count * 8);
        memcpy((void *)(uintptr_t)table.owners, ranges.owners, ranges.count * 4);
    }
    struct symtab_symbol *symbols = (struct symtab_symbol *)(uintptr_t)table.symbols;
    for (size_t i = 0; i < builder->count; i++) {
        const struct symtab_entry *e = &builder->entries[i];
        symbols[i] = (struct symtab_symbol){e->start, e->end - e->start, e->name, e->part};
    }
    if (builder->segment_count)
        memcpy((void *)(uintptr_t)table.segments, builder->segments,
               builder->segment_count * sizeof(*builder->segments));
    memcpy((void *)(uintptr_t)table.strings, builder->strings.data, builder->strings.length);
    builder_done(builder);
    *ret_table = table;
}

void symtab_copy(const struct symtab *table, struct symtab *ret_copy)
{
    struct symtab copy = {
        .block = {.bytes = memory_alloc(table->block.size), .size = table->block.size}};
    memcpy(copy.block.bytes, table->block.bytes, table->block.size);
    bool fits = lay_out(&copy, copy.block.bytes, copy.block.size);
    (void)fits; /* as the original does */
    *ret_copy = copy;
}

void symtab_seal(struct symtab *table, const struct build_id *build_id, const char *source)
{
    sealed_close(&table->block, SEALED_SYMBOLS, SYMTAB_VERSION, build_id, source);
}

int symtab_unseal(struct symtab *ret_table, struct sealed_block block,
                  const struct build_id *build_id, const char *source, struct error *err)
{
    struct symtab table = {.block = block};
    int r = sealed_check(&block, SEALED_SYMBOLS, SYMTAB_VERSION, build_id, source, err);
    if (r == 0 &&
        (block.size < sizeof(struct symtab_header) || !lay_out(&table, block.bytes, block.size) ||
         table.strings_size == 0 || table.strings[table.strings_size - 1] != '\0'))
        r = error_set(err, -ESTALE, "the cached table contradicts itself");
    if (r < 0)
        symtab_done(&table);
    else
        *ret_table = table;
    return r;
}
