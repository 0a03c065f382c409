/* SPDX-License-Identifier: MIT */
/* The kernel's symbols: see kallsyms.h. */
#include "symbols/kallsyms.h"

#include "base/memory.h"

#define PAGE 4096ull
#define PART_COUNT_MAX 65535u

/* One line, taken apart. */
struct kallsyms_line {
    uint64_t address;
    char type;
    const char *name, *part;
    size_t name_length, part_length; /* part_length 0: the kernel itself */
};

static bool parse_line(const char *at, const char *end, struct kallsyms_line *ret)
{
    uint64_t address = 0;
    const char *first = at;
    for (; at < end && *at != ' '; at++) {
        char c = *at;
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                                                : 16;
        if (digit == 16 || at - first >= 16)
            return false;
        address = address << 4 | digit;
    }
    if (at == first || end - at < 4 || at[2] != ' ')
        return false;
    ret->address = address;
    ret->type = at[1];
    ret->name = at + 3;
    size_t rest = (size_t)(end - ret->name);
    const char *tab = memchr(ret->name, '\t', rest);
    ret->name_length = tab ? (size_t)(tab - ret->name) : rest;
    ret->name_length = strnlen(ret->name, ret->name_length);
    if (ret->name_length > SYMBOLS_NAME_MAX)
        ret->name_length = SYMBOLS_NAME_MAX;
    ret->part = tab ? tab + 1 : "";
    ret->part_length = tab ? strnlen(ret->part, (size_t)(end - tab - 1)) : 0;
    return ret->name_length > 0;
}

/* Modules come one after the other, so the last one is looked at first. */
static uint32_t part_number(struct kallsyms *k, size_t *capacity, const char *name, size_t length)
{
    if (length == 0)
        return 0;
    for (size_t i = k->part_count; i-- > 0;)
        if (strlen(k->part_names[i]) == length && memcmp(k->part_names[i], name, length) == 0)
            return (uint32_t)i + 1;
    if (k->part_count >= PART_COUNT_MAX)
        return 0;
    ARRAY_PUSH(k->part_names, k->part_count, *capacity) = memory_strndup(name, length);
    return (uint32_t)k->part_count;
}

static bool is_text(char type)
{
    return type == 't' || type == 'T' || type == 'w' || type == 'W';
}

static enum symtab_binding binding_of(char type)
{
    return type == 'T' ? SYMTAB_GLOBAL : type == 't' ? SYMTAB_LOCAL : SYMTAB_WEAK;
}

/* The file has no sizes: a symbol reaches to the next one, but the last before a hole (the end of
 * the kernel's text, of a module) only to the end of the page after it. */
static uint64_t limit_of(uint64_t address)
{
    uint64_t page = (address + PAGE - 1) & ~(PAGE - 1);
    return page > UINT64_MAX - PAGE ? UINT64_MAX : page + PAGE;
}

static int by_address(const void *a, const void *b)
{
    const struct symtab_entry *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

/* Neighbours of the same part may be far apart (a function can be long): only where the part
 * changes, or at the very end, the page's end is the limit. */
static void set_limits(struct symtab_builder *b)
{
    if (b->count == 0)
        return;
    qsort(b->entries, b->count, sizeof(*b->entries), by_address);
    for (size_t i = 0; i < b->count; i++) {
        size_t next = i + 1;
        while (next < b->count && b->entries[next].start == b->entries[i].start)
            next++;
        bool same = next < b->count && b->entries[next].part == b->entries[i].part;
        b->entries[i].limit = same ? UINT64_MAX : limit_of(b->entries[i].start);
    }
}

void kallsyms_parse(const char *text, size_t length, uint64_t shift, struct kallsyms *ret)
{
    struct symtab_builder builder = {0};
    size_t part_capacity = 0, symbols = 0;
    bool nonzero = false;
    *ret = (struct kallsyms){0};
    const char *end = text + length;
    for (const char *line = text; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop)
            stop = end;
        struct kallsyms_line l;
        if (stop > line && !parse_line(line, stop, &l)) {
            ret->bad_lines++;
        } else if (stop > line) {
            symbols++;
            nonzero = nonzero || l.address;
            if (is_text(l.type) && l.address && (shift == 0 || l.part_length == 0))
                symtab_add(&builder, l.address + shift, 0, 0, binding_of(l.type),
                           part_number(ret, &part_capacity, l.part, l.part_length), l.name,
                           l.name_length);
        }
        line = stop + 1;
    }
    ret->restricted = symbols > 0 && !nonzero;
    set_limits(&builder);
    symtab_build(&builder, &ret->table);
}

uint64_t kallsyms_address_of(const char *text, size_t length, const char *name)
{
    CLEANUP(memory_freep) char *tail = memory_printf(" %s\n", name);
    const char *found = memmem(text, length, tail, strlen(tail));
    if (!found)
        return 0;
    const char *start = found, *stop = found + strlen(tail) - 1;
    while (start > text && start[-1] != '\n')
        start--;
    struct kallsyms_line l;
    return parse_line(start, stop, &l) ? l.address : 0;
}

void kallsyms_done(struct kallsyms *k)
{
    symtab_done(&k->table);
    for (size_t i = 0; i < k->part_count; i++)
        free(k->part_names[i]);
    free(k->part_names);
    *k = (struct kallsyms){0};
}
