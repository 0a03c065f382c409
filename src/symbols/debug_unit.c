/* SPDX-License-Identifier: MIT */
/*
 * Decoding of one compilation unit: see debug_unit.h.
 *
 * The tree of DIEs is walked once.  Functions with code and inlined calls become nodes; their
 * ranges, the deeper one winning, become a row of addresses that do not overlap.  Many calls of
 * one function were inlined, so what a DIE says about the function (names, where it is declared)
 * is read once for each function.
 */
#include "symbols/debug_unit.h"

#if HAVE_LIBDW

#include "base/memory.h"

#include <dwarf.h>

#define DEPTH_MAX 200u
#define NODE_COUNT_MAX (4u << 20)
#define RANGE_COUNT_MAX (1u << 16) /* of one node */
#define FILE_COUNT_MAX (1u << 20)

void unit_done(struct unit *u)
{
    free(u->lines);
    free(u->files);
    free(u->nodes);
    range_map_done(&u->map);
    arena_done(&u->arena);
}

/* libdw gives the same pointer for the same file, so pointers are what is compared. */
struct file_table {
    struct unit *unit;
    const char **keys; /* hash table of libdw's pointers, open addressing */
    uint32_t *values;
    size_t size, capacity;
    const char *last_key;
    uint32_t last_value;
};

static size_t hash_pointer(const void *pointer)
{
    return (size_t)((uint64_t)(uintptr_t)pointer * 0x9e3779b97f4a7c15ull >> 20);
}

static void grow_files(struct file_table *t)
{
    if (t->unit->file_count * 2 < t->size)
        return;
    size_t size = t->size ? t->size * 2 : 64;
    const char **keys = memory_zalloc(size, sizeof(*keys));
    uint32_t *values = memory_zalloc(size, sizeof(*values));
    for (size_t i = 0; i < t->size; i++) {
        if (!t->keys[i])
            continue;
        size_t at = hash_pointer(t->keys[i]) & (size - 1);
        while (keys[at])
            at = (at + 1) & (size - 1);
        keys[at] = t->keys[i];
        values[at] = t->values[i];
    }
    free(t->keys);
    free(t->values);
    t->keys = keys;
    t->values = values;
    t->size = size;
}

static uint32_t file_index(struct file_table *t, const char *name)
{
    if (!name || t->unit->file_count >= FILE_COUNT_MAX)
        return UINT32_MAX;
    if (name == t->last_key)
        return t->last_value;
    grow_files(t);
    size_t at = hash_pointer(name) & (t->size - 1);
    while (t->keys[at] && t->keys[at] != name)
        at = (at + 1) & (t->size - 1);
    if (!t->keys[at]) {
        t->keys[at] = name;
        t->values[at] = (uint32_t)t->unit->file_count;
        ARRAY_PUSH(t->unit->files, t->unit->file_count, t->capacity) =
            arena_strndup(&t->unit->arena, name, strnlen(name, SYMBOLS_NAME_MAX));
    }
    t->last_key = name;
    t->last_value = t->values[at];
    return t->last_value;
}

static int by_address(const void *a, const void *b)
{
    const struct unit_line *x = a, *y = b;
    return x->address < y->address ? -1 : x->address > y->address;
}

/* libdw sorts them; a malformed table is sorted again, so that look-ups can rely on it. */
static void ensure_sorted(struct unit *u)
{
    for (size_t i = 1; i < u->line_count; i++) {
        if (u->lines[i].address < u->lines[i - 1].address) {
            qsort(u->lines, u->line_count, sizeof(*u->lines), by_address);
            return;
        }
    }
}

void unit_decode_lines(struct unit *u, Dwarf *dwarf)
{
    u->has_lines = true;
    Dwarf_Die die;
    Dwarf_Lines *lines;
    size_t count;
    if (!dwarf_offdie(dwarf, u->die_offset, &die) || dwarf_getsrclines(&die, &lines, &count) != 0)
        return;
    struct file_table files = {.unit = u};
    u->lines = memory_alloc(count * sizeof(*u->lines));
    for (size_t i = 0; i < count; i++) {
        Dwarf_Line *line = dwarf_onesrcline(lines, i);
        Dwarf_Addr address;
        int number = 0;
        bool ends = false;
        if (!line || dwarf_lineaddr(line, &address) != 0 || dwarf_lineendsequence(line, &ends) != 0)
            continue;
        dwarf_lineno(line, &number);
        u->lines[u->line_count++] = (struct unit_line){
            .address = address,
            .file = ends ? UINT32_MAX : file_index(&files, dwarf_linesrc(line, NULL, NULL)),
            .line = ends || number < 0 ? 0 : (uint32_t)number};
    }
    free(files.keys);
    free(files.values);
    ensure_sorted(u);
}

const struct unit_line *unit_line_at(const struct unit *u, uint64_t address)
{
    size_t low = 0, high = u->line_count; /* the first that is behind the address */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (u->lines[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &u->lines[low - 1] : NULL;
}

/* What is known of a function by the DIE that describes it. */
struct origin {
    uint64_t key; /* the DIE's address in memory; 0 for an empty place */
    const struct function *function;
};

struct walk {
    struct unit *unit;
    struct module *module;
    Dwarf_Files *files;
    size_t file_count;
    const char **file_names; /* those copied so far */
    size_t node_capacity;
    struct range *ranges;
    size_t range_count, range_capacity;
    struct origin *origins; /* hash table, open addressing */
    size_t origin_count, origin_size;
};

static const char *string_of(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    return dwarf_formstring(dwarf_attr_integrate(die, name, &attribute));
}

static const char *linkage_name_of(Dwarf_Die *die)
{
    const char *name = string_of(die, DW_AT_linkage_name);
    return name ? name : string_of(die, DW_AT_MIPS_linkage_name);
}

static uint32_t number_of(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value;
    if (dwarf_formudata(dwarf_attr_integrate(die, name, &attribute), &value) != 0 ||
        value > UINT32_MAX)
        return 0;
    return (uint32_t)value;
}

static const char *keep(struct walk *w, const char *text)
{
    return text ? arena_strndup(&w->unit->arena, text, strnlen(text, SYMBOLS_NAME_MAX)) : NULL;
}

static size_t origin_place(const struct origin *table, size_t size, uint64_t key)
{
    size_t at = hash_pointer((void *)(uintptr_t)key) & (size - 1);
    while (table[at].key && table[at].key != key)
        at = (at + 1) & (size - 1);
    return at;
}

static void grow_origins(struct walk *w)
{
    if (w->origin_count * 2 < w->origin_size)
        return;
    size_t size = w->origin_size ? w->origin_size * 2 : 256;
    struct origin *table = memory_zalloc(size, sizeof(*table));
    for (size_t i = 0; i < w->origin_size; i++)
        if (w->origins[i].key)
            table[origin_place(table, size, w->origins[i].key)] = w->origins[i];
    free(w->origins);
    w->origins = table;
    w->origin_size = size;
}

/* The function that an inlined call is a copy of. */
static const struct function *inlined_function(struct walk *w, Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    Dwarf_Die origin;
    if (!dwarf_formref_die(dwarf_attr(die, DW_AT_abstract_origin, &attribute), &origin))
        origin = *die;
    grow_origins(w);
    uint64_t key = (uint64_t)(uintptr_t)origin.addr;
    struct origin *place = &w->origins[origin_place(w->origins, w->origin_size, key)];
    if (place->key)
        return place->function;
    const char *name = dwarf_diename(&origin);
    const char *linkage_name = linkage_name_of(&origin);
    const char *file = dwarf_decl_file(&origin);
    if (!name && !linkage_name)
        name = "[inlined]";
    pthread_mutex_lock(&w->module->lock);
    const struct function *f =
        module_inlined(w->module, name, linkage_name, file, number_of(&origin, DW_AT_decl_line));
    pthread_mutex_unlock(&w->module->lock);
    *place = (struct origin){key, f};
    w->origin_count++;
    return f;
}

/* Adds the DIE's ranges; false when it has no code. */
static bool add_ranges(struct walk *w, Dwarf_Die *die, uint32_t node, uint32_t depth)
{
    Dwarf_Addr base, start, end;
    ptrdiff_t at = 0;
    bool any = false;
    for (size_t i = 0; i < RANGE_COUNT_MAX; i++) {
        at = dwarf_ranges(die, at, &base, &start, &end);
        if (at <= 0)
            break;
        if (end <= start || start <= 1)
            continue;
        any = true;
        ARRAY_PUSH(w->ranges, w->range_count, w->range_capacity) =
            (struct range){.start = start, .end = end, .owner = node, .priority = depth};
    }
    return any;
}

static const char *call_file(struct walk *w, Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    Dwarf_Word index;
    if (!w->files || dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &attribute), &index) != 0 ||
        index >= w->file_count)
        return NULL;
    if (!w->file_names[index])
        w->file_names[index] = keep(w, dwarf_filesrc(w->files, index, NULL, NULL));
    return w->file_names[index];
}

static uint32_t add_node(struct walk *w, struct unit_node node)
{
    struct unit *u = w->unit;
    ARRAY_PUSH(u->nodes, u->node_count, w->node_capacity) = node;
    return (uint32_t)u->node_count - 1;
}

static uint32_t add_function(struct walk *w, Dwarf_Die *die)
{
    return add_node(w, (struct unit_node){.parent = UINT32_MAX,
                                          .name = keep(w, dwarf_diename(die)),
                                          .linkage_name = keep(w, linkage_name_of(die)),
                                          .declared_file = keep(w, dwarf_decl_file(die)),
                                          .declared_line = number_of(die, DW_AT_decl_line)});
}

static uint32_t add_inlined(struct walk *w, Dwarf_Die *die, uint32_t parent)
{
    Dwarf_Attribute attribute;
    Dwarf_Word line = 0;
    if (dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &attribute), &line) != 0)
        line = 0;
    return add_node(w, (struct unit_node){.parent = parent,
                                          .function = inlined_function(w, die),
                                          .call_file = call_file(w, die),
                                          .call_line = (uint32_t)line});
}

/* Whether code can hide below a DIE.  Blocks, types (methods of local classes, Rust) and
 * namespaces (clang) can have functions in them; variables and call sites cannot. */
static bool can_hold_code(int tag)
{
    switch (tag) {
    case DW_TAG_subprogram:
    case DW_TAG_inlined_subroutine:
    case DW_TAG_lexical_block:
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_enumeration_type:
    case DW_TAG_try_block:
    case DW_TAG_catch_block:
    case DW_TAG_with_stmt:
    case DW_TAG_common_block:
    case DW_TAG_entry_point:
        return true;
    default:
        return false;
    }
}

static void walk_children(struct walk *w, Dwarf_Die *parent_die, uint32_t parent, uint32_t depth)
{
    Dwarf_Die die;
    if (depth >= DEPTH_MAX || dwarf_child(parent_die, &die) != 0)
        return;
    do {
        int tag = dwarf_tag(&die);
        if (!can_hold_code(tag) || w->unit->node_count >= NODE_COUNT_MAX)
            continue;
        uint32_t here = parent;
        if (tag == DW_TAG_subprogram ||
            (tag == DW_TAG_inlined_subroutine && parent != RANGE_NONE)) {
            uint32_t node = (uint32_t)w->unit->node_count;
            bool inlined = tag == DW_TAG_inlined_subroutine;
            if (add_ranges(w, &die, node, depth))
                here = inlined ? add_inlined(w, &die, parent) : add_function(w, &die);
            else if (!inlined)
                here = RANGE_NONE;
        }
        walk_children(w, &die, here, depth + 1);
    } while (dwarf_siblingof(&die, &die) == 0);
}

void unit_decode_nodes(struct unit *u, Dwarf *dwarf, struct module *module)
{
    u->has_nodes = true;
    struct walk w = {.unit = u, .module = module};
    Dwarf_Die die, split;
    if (!dwarf_offdie(dwarf, u->die_offset, &die))
        return;
    if (dwarf_getsrcfiles(&die, &w.files, &w.file_count) != 0)
        w.files = NULL;
    w.file_names = memory_zalloc(w.files ? w.file_count : 0, sizeof(*w.file_names));
    /* With -gsplit-dwarf the functions stand in another file, which libdw finds. */
    uint8_t type;
    if (dwarf_cu_info(die.cu, NULL, &type, NULL, &split, NULL, NULL, NULL) == 0 &&
        type == DW_UT_skeleton && split.cu)
        die = split;
    walk_children(&w, &die, RANGE_NONE, 0);
    range_map_build(&u->map, w.ranges, w.range_count);
    free(w.ranges);
    free(w.origins);
    free(w.file_names);
}

#endif
