/* SPDX-License-Identifier: MIT */
/* The kernel's symbols: see kallsyms.h. */
#include "symbols/names/kallsyms.h"

#include "base/memory.h"

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

static bool is_text(char type)
{
    return type == 't' || type == 'T' || type == 'w' || type == 'W';
}

static enum symtab_binding binding_of(char type)
{
    return type == 'T' ? SYMTAB_GLOBAL : type == 't' ? SYMTAB_LOCAL : SYMTAB_WEAK;
}

void kallsyms_parse(const char *text, size_t length, uint64_t shift, struct kallsyms *ret)
{
    struct symtab_builder builder = {.page_limits = true};
    size_t symbols = 0;
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
            if (is_text(l.type) && l.address && (shift == 0 || l.part_length == 0)) {
                symtab_set_part(&builder, l.part, l.part_length);
                symtab_add(&builder, l.address + shift, 0, UINT64_MAX, binding_of(l.type), l.name,
                           l.name_length);
            }
        }
        line = stop + 1;
    }
    ret->restricted = symbols > 0 && !nonzero;
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
    *k = (struct kallsyms){0};
}
