/* SPDX-License-Identifier: MIT */
/* What DWARF says of a function, read when it is first asked for: see debug_unit.h. */
#include "base/memory.h"
#include "symbols/dwarf/debug_unit.h"
#include "symbols/dwarf/dwarf_constants.h"
#include "symbols/tables/names.h"

#define ORIGIN_CHAIN_MAX 8 /* abstract origins and specifications that refer to each other */
#define SCOPE_DEPTH_MAX 32

/* Reads the DIE of a function; what it leaves to another one is read there. */
struct origin_values {
    struct dwarf_value name, linkage_name, file, line, next;
};

static void take_origin_attribute(struct origin_values *v, uint16_t name, struct dwarf_value value)
{
    switch (name) {
    case AT_name:
        v->name = value;
        break;
    case AT_linkage_name:
    case AT_MIPS_linkage_name:
        v->linkage_name = value;
        break;
    case AT_decl_file:
        v->file = value;
        break;
    case AT_decl_line:
        v->line = value;
        break;
    case AT_abstract_origin:
    case AT_specification:
        v->next = value;
        break;
    default:
        break;
    }
}

static const struct dwarf_abbrevs *abbrevs_of(struct unit *u, const struct dwarf *d,
                                              const struct dwarf_unit *unit)
{
    if (unit == u->abbrevs.unit)
        return &u->abbrevs;
    if (unit != u->other_abbrevs.unit) {
        dwarf_abbrevs_done(&u->other_abbrevs);
        dwarf_read_abbrevs(d, unit, &u->other_abbrevs);
    }
    return &u->other_abbrevs;
}

static bool read_origin_die(struct unit *u, const struct dwarf *d, const struct dwarf_unit *unit,
                            uint64_t offset, struct origin_values *ret)
{
    const struct dwarf_bytes *info = &d->sections[DWARF_INFO];
    const struct dwarf_abbrevs *abbrevs = abbrevs_of(u, d, unit);
    struct cursor c = {info->bytes + offset, info->bytes + unit->end, false};
    *ret = (struct origin_values){0};
    uint64_t code = cursor_uleb(&c);
    if (c.bad || code >= abbrevs->count || abbrevs->by_code[code].tag == 0)
        return false;
    const struct dwarf_abbrev *abbrev = &abbrevs->by_code[code];
    const struct dwarf_attribute *attribute = abbrevs->attributes + abbrev->first_attribute;
    for (size_t i = 0; i < abbrev->attribute_count && !c.bad; i++, attribute++)
        take_origin_attribute(ret, attribute->name, dwarf_read_value(unit, &c, attribute));
    return !c.bad;
}

/* Files are numbered by the unit that the DIE is in. */
static const char *declared_path(struct unit *u, const struct dwarf *d,
                                 const struct dwarf_unit *unit, uint64_t file)
{
    const struct dwarf_unit *own = u->split ? &u->split->units[0] : u->header;
    if (unit == own)
        return file < UINT32_MAX ? unit_call_path(u, (uint32_t)file) : NULL;
    struct dwarf_unit other = *unit;
    struct dwarf_pc pc;
    struct dwarf_files files;
    if (!dwarf_read_unit_die(d, &other, &pc))
        return NULL;
    dwarf_read_lines(d, &other, &files, NULL, NULL);
    const char *path =
        file < files.count ? unit_make_path(&u->arena, other.folder, &files.items[file]) : NULL;
    free(files.items);
    return path;
}

/* The innermost namespace or class that a DIE is in. */
static uint32_t scope_at(const struct unit *u, uint64_t offset)
{
    size_t low = 0, high = u->scope_count; /* the first that starts behind it */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (u->scopes[middle].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    uint32_t scope = low ? (uint32_t)low - 1 : UNIT_NO_PARENT;
    while (scope != UNIT_NO_PARENT && u->scopes[scope].end <= offset)
        scope = u->scopes[scope].parent;
    return scope;
}

/* Functions with internal linkage (those of local classes, of unnamed namespaces) have no linkage
 * name to take the scope from. */
static void qualify(struct unit *u, struct unit_origin *o, const struct dwarf *d,
                    const struct dwarf_unit *unit, uint64_t offset)
{
    const char *names[SCOPE_DEPTH_MAX];
    size_t count = 0, length = strlen(o->name) + 1;
    uint32_t scope = scope_at(u, offset);
    for (; scope != UNIT_NO_PARENT && count < SCOPE_DEPTH_MAX; scope = u->scopes[scope].parent) {
        struct origin_values v;
        const char *name = read_origin_die(u, d, unit, u->scopes[scope].offset, &v)
                               ? dwarf_string(d, unit, v.name)
                               : NULL;
        if (!name && u->scopes[scope].is_namespace)
            name = "(anonymous namespace)";
        if (name) {
            names[count++] = name;
            length += strlen(name) + 2;
        }
    }
    if (count == 0 || length > SYMBOLS_NAME_MAX)
        return;
    char *text = arena_alloc(&u->arena, length), *at = text;
    while (count-- > 0)
        at = stpcpy(stpcpy(at, names[count]), "::");
    strcpy(at, o->name);
    o->name = text;
}

static void read_origin(struct unit *u, struct unit_origin *o)
{
    const struct dwarf *d = u->split ? u->split : u->dwarf;
    uint64_t offset = o->offset;
    bool alternate = o->alternate;
    for (int i = 0; i < ORIGIN_CHAIN_MAX; i++) {
        if (alternate)
            d = d->alternate;
        const struct dwarf_unit *unit = d ? dwarf_unit_at(d, offset) : NULL;
        struct origin_values v;
        if (!unit || !read_origin_die(u, d, unit, offset, &v))
            return;
        if (!o->name)
            o->name = dwarf_string(d, unit, v.name);
        if (!o->linkage_name)
            o->linkage_name = dwarf_string(d, unit, v.linkage_name);
        if (!o->file && v.file.form)
            o->file = declared_path(u, d, unit, dwarf_number(v.file));
        if (!o->line)
            o->line = (uint32_t)dwarf_number(v.line);
        uint64_t next;
        if (dwarf_reference(unit, v.next, &next, &alternate)) {
            offset = next;
            continue;
        }
        if (o->name && !o->linkage_name && unit == u->abbrevs.unit)
            qualify(u, o, d, unit, offset);
        return;
    }
}

struct unit_origin *unit_origin(struct unit *u, uint32_t origin)
{
    struct unit_origin *o = &u->origins[origin];
    if (!o->is_read) {
        o->is_read = true;
        read_origin(u, o);
    }
    return o;
}
