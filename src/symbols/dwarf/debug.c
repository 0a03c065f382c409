/* SPDX-License-Identifier: MIT */
/* DWARF of one file: see debug.h. */
#include "symbols/dwarf/debug.h"

#include "base/memory.h"
#include "symbols/dwarf/debug_unit.h"
#include "symbols/dwarf/dwarf_constants.h"

#define RANGES_READ_MAX (64u << 20) /* of all units */

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
    size_t capacity = 0, ranges_read = 0;
    for (size_t i = 0; i < d->dwarf->unit_count && ranges_read < RANGES_READ_MAX; i++) {
        struct dwarf_unit *header = &d->dwarf->units[i];
        struct dwarf_pc pc;
        size_t before = index.count;
        if (header->type == UT_type || !dwarf_read_unit_die(d->dwarf, header, &pc))
            continue;
        index.unit = (uint32_t)d->unit_count;
        ranges_read += dwarf_each_range(d->dwarf, header, &pc, take_range, &index);
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
    debug_drop(d);
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

void debug_decode(struct debug *d, uint32_t unit)
{
    if (!d->units[unit].is_decoded)
        unit_decode(&d->units[unit]);
}

void debug_drop(struct debug *d)
{
    for (size_t i = 0; i < d->unit_count; i++) {
        if (!d->units[i].is_decoded)
            continue;
        unit_drop(&d->units[i]);
    }
}

/* Makes [*start, *end) no larger than the row of a map that an address lies in. */
static void narrow(const struct range_map *map, uint64_t address, uint64_t *start, uint64_t *end)
{
    size_t low = 0, high = map->count; /* the first that starts behind the address */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (map->starts[middle] <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low > 0 && map->starts[low - 1] > *start)
        *start = map->starts[low - 1];
    if (low < map->count && map->starts[low] < *end)
        *end = map->starts[low];
}

/* One unit's functions on their way into a table: what was copied has its number there. */
struct copy {
    struct unit *unit;
    struct linetab *table;
};

static uint32_t copy_node(struct copy *c, uint32_t index)
{
    struct unit *u = c->unit;
    const struct unit_node *node = &u->nodes[index];
    if (!u->copied_nodes)
        u->copied_nodes = memory_zalloc(u->node_count, sizeof(*u->copied_nodes));
    if (u->copied_nodes[index])
        return u->copied_nodes[index] - 1;
    uint32_t parent = node->parent == UNIT_NO_PARENT ? LINETAB_NONE : copy_node(c, node->parent);
    const struct unit_origin *o = unit_origin(u, node->origin);
    uint32_t origin = linetab_add_origin(c->table, o->name, o->linkage_name, o->file, o->line);
    uint32_t file = linetab_add_file(c->table, unit_call_path(u, node->call_file));
    uint32_t copied =
        linetab_add_node(c->table, (struct linetab_node){parent, origin, file, node->call_line});
    u->copied_nodes[index] = copied + 1;
    return copied;
}

static void copy_lines(struct copy *c, uint64_t start, uint64_t end)
{
    const struct unit *u = c->unit;
    size_t low = 0, high = u->line_count; /* the first behind the start */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (u->lines[middle].address <= start)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t i = low ? low - 1 : low; i < u->line_count && u->lines[i].address < end; i++) {
        const struct dwarf_line *line = &u->lines[i];
        uint64_t from = line->address > start ? line->address : start;
        uint32_t file = line->file == UINT32_MAX
                            ? LINETAB_NONE
                            : linetab_add_file(c->table, unit_path(c->unit, line->file));
        linetab_add_line(c->table, (uint32_t)(from - start), file, line->line);
    }
}

static void copy_rows(struct copy *c, uint64_t start, uint64_t end)
{
    const struct range_map *map = &c->unit->map;
    size_t low = 0, high = map->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (map->starts[middle] <= start)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t i = low ? low - 1 : low; i < map->count && map->starts[i] < end; i++) {
        uint64_t from = map->starts[i] > start ? map->starts[i] : start;
        uint32_t node = map->owners[i] == RANGE_NONE ? LINETAB_NONE : copy_node(c, map->owners[i]);
        linetab_add_row(c->table, (uint32_t)(from - start), node);
    }
}

uint64_t debug_copy(struct debug *d, uint64_t address, struct linetab *table)
{
    uint64_t start = 0, end = UINT64_MAX;
    uint32_t unit = debug_unit_at(d, address);
    narrow(&d->map, address, &start, &end);
    if (unit != DEBUG_NO_UNIT) {
        struct copy c = {&d->units[unit], table};
        narrow(&c.unit->roots, address, &start, &end);
        /* Offsets have 32 bits; what is larger is no function. */
        if (address - start > UINT32_MAX / 2)
            start = address;
        if (end - start > UINT32_MAX)
            end = start + UINT32_MAX;
        copy_lines(&c, start, end);
        copy_rows(&c, start, end);
    }
    linetab_add_span(table, start, end);
    return end;
}
