/* SPDX-License-Identifier: MIT */
/*
 * Decoding of one compilation unit: see debug_unit.h.
 *
 * The DIEs are gone over once.  Functions with code and inlined calls become nodes; their ranges,
 * the deeper one winning, become a row of addresses that do not overlap.  What a function is
 * called is read when the first address in it asks: most functions of a unit are never hit.
 */
#include "symbols/dwarf/debug_unit.h"

#include "base/memory.h"
#include "symbols/dwarf/dwarf_constants.h"
#include "symbols/tables/source_path.h"

#define DEPTH_MAX 512u
#define NODE_COUNT_MAX (16u << 20)
#define RANGES_READ_MAX (64u << 20)

void unit_drop(struct unit *u)
{
    free(u->lines);
    free(u->files.items);
    free(u->paths);
    free(u->split_files.items);
    free(u->split_paths);
    free(u->nodes);
    free(u->origins);
    free(u->copied_nodes);
    free(u->scopes);
    range_map_done(&u->map);
    range_map_done(&u->roots);
    dwarf_abbrevs_done(&u->abbrevs);
    dwarf_abbrevs_done(&u->other_abbrevs);
    dwarf_close(u->split);
    arena_done(&u->arena);
    *u = (struct unit){.dwarf = u->dwarf, .header = u->header};
}

/* The file's folder may itself be relative to that of the unit. */
const char *unit_make_path(struct arena *arena, const char *base, const struct dwarf_file *file)
{
    CLEANUP(strbuf_done) struct strbuf folder = {0}, path = {0};
    if (!file->name)
        return NULL;
    if (file->folder)
        source_path(&folder, base, file->folder);
    source_path(&path, file->folder ? strbuf_text(&folder) : base, file->name);
    return arena_strdup(arena, strbuf_text(&path));
}

static const char *path_of(struct unit *u, const struct dwarf_files *files, const char **paths,
                           uint32_t file)
{
    if (file >= files->count)
        return NULL;
    if (!paths[file])
        paths[file] = unit_make_path(&u->arena, u->header->folder, &files->items[file]);
    return paths[file];
}

const char *unit_path(struct unit *u, uint32_t file)
{
    return path_of(u, &u->files, u->paths, file);
}

const char *unit_call_path(struct unit *u, uint32_t file)
{
    return u->split_files.count ? path_of(u, &u->split_files, u->split_paths, file)
                                : unit_path(u, file);
}

/* What is taken from a DIE that may have code. */
struct die_values {
    struct dwarf_pc pc;
    struct dwarf_value origin, call_file, call_line, sibling;
};

struct walk {
    struct unit *unit;
    const struct dwarf *dwarf;
    const struct dwarf_unit *header;
    const struct dwarf_abbrevs *abbrevs;
    size_t node_capacity, origin_capacity, scope_capacity;
    struct range *ranges, *roots;
    size_t range_count, range_capacity, root_count, root_capacity;
    uint32_t *table; /* of origins by offset: index + 1, open addressing */
    size_t table_size;
    size_t ranges_read;
    uint32_t node, depth; /* of the ranges that are being added */
    bool inlined;
};

/* Blocks, types (methods of local classes, Rust) and namespaces (clang) can have functions in them;
 * variables and call sites cannot. */
static bool can_hold_code(uint16_t tag)
{
    switch (tag) {
    case TAG_subprogram:
    case TAG_inlined_subroutine:
    case TAG_lexical_block:
    case TAG_namespace:
    case TAG_module:
    case TAG_class_type:
    case TAG_structure_type:
    case TAG_union_type:
    case TAG_enumeration_type:
    case TAG_try_block:
    case TAG_catch_block:
    case TAG_with_stmt:
    case TAG_common_block:
    case TAG_entry_point:
        return true;
    default:
        return false;
    }
}

static size_t origin_place(const struct walk *w, uint64_t offset, bool alternate)
{
    const struct unit *u = w->unit;
    size_t at = (size_t)(offset * 0x9e3779b97f4a7c15ull >> 30) & (w->table_size - 1);
    while (w->table[at]) {
        const struct unit_origin *o = &u->origins[w->table[at] - 1];
        if (o->offset == offset && o->alternate == alternate)
            break;
        at = (at + 1) & (w->table_size - 1);
    }
    return at;
}

static void grow_table(struct walk *w)
{
    const struct unit *u = w->unit;
    if (u->origin_count * 2 < w->table_size)
        return;
    free(w->table);
    w->table_size = w->table_size ? w->table_size * 2 : 256;
    w->table = memory_zalloc(w->table_size, sizeof(*w->table));
    for (size_t i = 0; i < u->origin_count; i++)
        w->table[origin_place(w, u->origins[i].offset, u->origins[i].alternate)] = (uint32_t)i + 1;
}

static uint32_t intern_origin(struct walk *w, uint64_t offset, bool alternate)
{
    struct unit *u = w->unit;
    grow_table(w);
    size_t place = origin_place(w, offset, alternate);
    if (!w->table[place]) {
        ARRAY_PUSH(u->origins, u->origin_count, w->origin_capacity) =
            (struct unit_origin){.offset = offset, .alternate = alternate};
        w->table[place] = (uint32_t)u->origin_count;
    }
    return w->table[place] - 1;
}

static void take_range(void *context, uint64_t start, uint64_t end)
{
    struct walk *w = context;
    struct range range = {.start = start, .end = end, .owner = w->node, .priority = w->depth};
    ARRAY_PUSH(w->ranges, w->range_count, w->range_capacity) = range;
    if (!w->inlined)
        ARRAY_PUSH(w->roots, w->root_count, w->root_capacity) = range;
}

/* Adds a node for a function or an inlined call at an offset, if it has code.  Returns whose
 * children stand below it. */
static uint32_t add_node(struct walk *w, const struct die_values *v, bool inlined, uint64_t offset,
                         uint32_t parent, uint32_t depth)
{
    struct unit *u = w->unit;
    size_t before = w->range_count;
    if ((inlined && parent == UNIT_NO_PARENT) || u->node_count >= NODE_COUNT_MAX ||
        w->ranges_read >= RANGES_READ_MAX)
        return parent;
    w->node = (uint32_t)u->node_count;
    w->depth = depth;
    w->inlined = inlined;
    w->ranges_read += dwarf_each_range(w->dwarf, w->header, &v->pc, take_range, w);
    if (w->range_count == before)
        return inlined ? parent : UNIT_NO_PARENT;
    uint64_t origin = offset;
    bool alternate = false;
    if (inlined && !dwarf_reference(w->header, v->origin, &origin, &alternate))
        origin = offset;
    struct unit_node node = {.parent = inlined ? parent : UNIT_NO_PARENT,
                             .origin = intern_origin(w, origin, alternate),
                             .call_file = UINT32_MAX};
    uint64_t file = dwarf_number(v->call_file), line = dwarf_number(v->call_line);
    if (v->call_file.form && file < UINT32_MAX)
        node.call_file = (uint32_t)file;
    node.call_line = line <= UINT32_MAX ? (uint32_t)line : 0;
    ARRAY_PUSH(u->nodes, u->node_count, w->node_capacity) = node;
    return w->node;
}

static void take_attribute(struct die_values *v, uint16_t name, struct dwarf_value value)
{
    switch (name) {
    case AT_low_pc:
        v->pc.low = value;
        break;
    case AT_high_pc:
        v->pc.high = value;
        break;
    case AT_ranges:
        v->pc.ranges = value;
        break;
    case AT_abstract_origin:
        v->origin = value;
        break;
    case AT_call_file:
        v->call_file = value;
        break;
    case AT_call_line:
        v->call_line = value;
        break;
    case AT_sibling:
        v->sibling = value;
        break;
    default:
        break;
    }
}

static void read_values(const struct walk *w, const struct dwarf_abbrev *abbrev, struct cursor *c,
                        struct die_values *ret)
{
    const struct dwarf_attribute *attribute = w->abbrevs->attributes + abbrev->first_attribute;
    *ret = (struct die_values){0};
    for (size_t i = 0; i < abbrev->attribute_count && !c->bad; i++, attribute++)
        take_attribute(ret, attribute->name, dwarf_read_value(w->header, c, attribute));
}

/* Goes to the next DIE of the same parent if this one says where that is. */
static bool jump_to_sibling(const struct walk *w, const struct die_values *v, struct cursor *c)
{
    const uint8_t *base = w->dwarf->sections[DWARF_INFO].bytes;
    uint64_t offset;
    bool alternate;
    if (!v->sibling.form || !dwarf_reference(w->header, v->sibling, &offset, &alternate) ||
        alternate || offset >= w->header->end || base + offset <= c->at)
        return false;
    c->at = base + offset;
    return true;
}

/* What holds for the DIEs of one depth. */
struct level {
    uint32_t node;   /* the function or call that they are in */
    uint32_t scope;  /* the namespace or class */
    uint32_t opened; /* the same, if it is their own parent */
};

static bool is_scope(uint16_t tag)
{
    return tag == TAG_namespace || tag == TAG_class_type || tag == TAG_structure_type ||
           tag == TAG_union_type;
}

static uint32_t add_scope(struct walk *w, uint16_t tag, uint64_t offset, uint32_t parent)
{
    struct unit *u = w->unit;
    if (u->scope_count >= NODE_COUNT_MAX)
        return parent;
    ARRAY_PUSH(u->scopes, u->scope_count, w->scope_capacity) =
        (struct unit_scope){.offset = offset,
                            .end = w->header->end,
                            .parent = parent,
                            .is_namespace = tag == TAG_namespace};
    return (uint32_t)u->scope_count - 1;
}

static void walk_dies(struct walk *w)
{
    const struct dwarf_bytes *info = &w->dwarf->sections[DWARF_INFO];
    struct cursor c = {info->bytes + w->header->die_offset, info->bytes + w->header->end, false};
    struct level levels[DEPTH_MAX];
    uint32_t depth = 0;
    levels[0] = (struct level){UNIT_NO_PARENT, UNIT_NO_PARENT, UNIT_NO_PARENT};
    while (c.at < c.end && !c.bad) {
        uint64_t offset = (uint64_t)(c.at - info->bytes);
        uint64_t code = cursor_uleb(&c);
        if (code == 0) { /* the end of a row of siblings */
            if (depth <= 1)
                break;
            if (levels[depth].opened != UNIT_NO_PARENT)
                w->unit->scopes[levels[depth].opened].end = offset;
            depth--;
            continue;
        }
        if (code >= w->abbrevs->count || w->abbrevs->by_code[code].tag == 0)
            break;
        const struct dwarf_abbrev *abbrev = &w->abbrevs->by_code[code];
        bool inlined = abbrev->tag == TAG_inlined_subroutine;
        struct level below = {levels[depth].node, levels[depth].scope, UNIT_NO_PARENT};
        struct die_values v;
        if (inlined || abbrev->tag == TAG_subprogram) {
            read_values(w, abbrev, &c, &v);
            below.node = add_node(w, &v, inlined, offset, below.node, depth);
        } else if (abbrev->has_children && depth > 0 && !can_hold_code(abbrev->tag)) {
            read_values(w, abbrev, &c, &v);
            if (jump_to_sibling(w, &v, &c))
                continue;
        } else {
            dwarf_skip_die(w->abbrevs, abbrev, &c);
        }
        if (!abbrev->has_children && depth == 0)
            break;
        if (!abbrev->has_children)
            continue;
        if (depth + 1 >= DEPTH_MAX)
            break;
        if (is_scope(abbrev->tag))
            below.scope = below.opened = add_scope(w, abbrev->tag, offset, below.scope);
        levels[++depth] = below;
    }
}

/* With -gsplit-dwarf the functions stand in another file.  gcc gives it a list of files of its own;
 * clang's has none, and numbers files as the main one does. */
static void open_split(struct unit *u)
{
    if (!u->header->dwo_name)
        return;
    u->split = dwarf_open_split(u->dwarf, u->header);
    if (!u->split)
        return;
    dwarf_read_lines(u->split, &u->split->units[0], &u->split_files, NULL, NULL);
    u->split_paths = memory_zalloc(u->split_files.count, sizeof(*u->split_paths));
}

void unit_decode(struct unit *u)
{
    u->is_decoded = true;
    dwarf_read_lines(u->dwarf, u->header, &u->files, &u->lines, &u->line_count);
    u->paths = memory_zalloc(u->files.count, sizeof(*u->paths));
    open_split(u);
    struct walk w = {.unit = u,
                     .dwarf = u->split ? u->split : u->dwarf,
                     .header = u->split ? &u->split->units[0] : u->header,
                     .abbrevs = &u->abbrevs};
    dwarf_read_abbrevs(w.dwarf, w.header, &u->abbrevs);
    walk_dies(&w);
    range_map_build(&u->map, w.ranges, w.range_count);
    range_map_build(&u->roots, w.roots, w.root_count);
    free(w.ranges);
    free(w.roots);
    free(w.table);
}
