/* SPDX-License-Identifier: MIT */
/* DWARF of one file: see debug.h. */
#include "symbols/debug.h"

#include "base/memory.h"
#include "symbols/debug_unit.h"
#include "symbols/dwarf_constants.h"

#define CHAIN_LENGTH_MAX 256u /* inlined calls within each other that are shown */

struct debug {
    struct dwarf *dwarf;
    struct unit *units; /* those with code */
    size_t unit_count;
    struct range_map map; /* address → unit */
};

struct index {
    struct range *ranges;
    size_t count, capacity;
    uint32_t unit;
};

static void take_range(void *context, uint64_t start, uint64_t end)
{
    struct index *index = context;
    ARRAY_PUSH(index->ranges, index->count, index->capacity) =
        (struct range){.start = start, .end = end, .owner = index->unit};
}

static void index_units(struct debug *d)
{
    struct index index = {0};
    size_t capacity = 0;
    for (size_t i = 0; i < d->dwarf->unit_count; i++) {
        struct dwarf_unit *header = &d->dwarf->units[i];
        struct dwarf_pc pc;
        size_t before = index.count;
        if (header->type == UT_type || !dwarf_read_unit_die(d->dwarf, header, &pc))
            continue;
        index.unit = (uint32_t)d->unit_count;
        dwarf_each_range(d->dwarf, header, &pc, take_range, &index);
        if (index.count > before)
            ARRAY_PUSH(d->units, d->unit_count, capacity) =
                (struct unit){.dwarf = d->dwarf, .header = header};
    }
    range_map_build(&d->map, index.ranges, index.count);
    free(index.ranges);
}

struct debug *debug_open(const struct image *image)
{
    struct dwarf *dwarf = dwarf_open(image);
    if (!dwarf)
        return NULL;
    struct debug *d = memory_zalloc(1, sizeof(*d));
    d->dwarf = dwarf;
    index_units(d);
    if (d->unit_count)
        return d;
    debug_free(d);
    return NULL;
}

void debug_free(struct debug *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->unit_count; i++)
        unit_done(&d->units[i]);
    free(d->units);
    range_map_done(&d->map);
    dwarf_close(d->dwarf);
    free(d);
}

uint32_t debug_unit_at(const struct debug *d, uint64_t address)
{
    uint32_t unit = range_map_find(&d->map, address);
    return unit == RANGE_NONE ? DEBUG_NO_UNIT : unit;
}

static const struct function *make_function(struct module *m, const struct unit_origin *o)
{
    const char *name = o->name || o->linkage_name ? o->name : "[inlined]";
    pthread_mutex_lock(&m->lock);
    const struct function *f = module_inlined(m, name, o->linkage_name, o->file, o->line);
    pthread_mutex_unlock(&m->lock);
    return f;
}

static const struct function *inlined_function(struct unit *u, struct module *m, uint32_t origin)
{
    struct unit_origin *o = unit_origin(u, origin);
    if (!o->function)
        o->function = make_function(m, o);
    return o->function;
}

/* The function with the code: the symbol table's, or DWARF's where that has none. */
static const struct function *outer_function(struct unit *u, struct module *m,
                                             const struct unit_node *node,
                                             struct function_entry *symbol)
{
    if (!node)
        return symbol ? &symbol->function : NULL;
    if (!symbol)
        return inlined_function(u, m, node->origin);
    /* Only this unit has the function's start, so only this thread writes here. */
    struct function *f = &symbol->function;
    if (!f->declared_file) {
        const struct unit_origin *o = unit_origin(u, node->origin);
        if (o->file) {
            pthread_mutex_lock(&m->lock);
            f->declared_file = arena_strdup(&m->arena, o->file);
            f->declared_line = o->line;
            pthread_mutex_unlock(&m->lock);
        }
    }
    return f;
}

static void answer(struct unit *unit, struct module *m, const struct debug_query *q,
                   struct arena *arena)
{
    struct symbols_frame chain[CHAIN_LENGTH_MAX];
    uint32_t count = 0;
    struct symbols_frame frame = {0};
    const struct dwarf_line *line = unit_line_at(unit, q->address);
    if (line && line->file != UINT32_MAX) {
        frame.file = unit_path(unit, line->file);
        frame.line = line->line;
    }
    uint32_t at = unit->has_nodes ? range_map_find(&unit->map, q->address) : RANGE_NONE;
    const struct unit_node *node = at == RANGE_NONE ? NULL : &unit->nodes[at];
    while (node && node->parent != UNIT_NO_PARENT) {
        if (count < CHAIN_LENGTH_MAX - 1) {
            frame.function = inlined_function(unit, m, node->origin);
            frame.inlined = true;
            chain[count++] = frame;
        }
        frame.file = unit_call_path(unit, node->call_file);
        frame.line = node->call_line;
        node = &unit->nodes[node->parent];
    }
    frame.function = outer_function(unit, m, node, q->function);
    frame.inlined = false;
    chain[count++] = frame;
    struct symbols_frame *frames = arena_alloc(arena, count * sizeof(*frames));
    memcpy(frames, chain, count * sizeof(*frames));
    q->request->frames = frames;
    q->request->frame_count = count;
}

void debug_resolve(struct debug *d, struct module *module, uint32_t unit, bool inlines,
                   const struct debug_query *queries, size_t count, struct arena *arena)
{
    struct unit *u = &d->units[unit];
    if (!u->has_lines)
        unit_decode_lines(u);
    if (inlines && !u->has_nodes)
        unit_decode_nodes(u);
    for (size_t i = 0; i < count; i++)
        answer(u, module, &queries[i], arena);
}
