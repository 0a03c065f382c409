/* SPDX-License-Identifier: MIT */
/* DWARF of one file: see debug.h. */
#include "symbols/debug.h"

#include "base/fd.h"
#include "base/memory.h"
#include "symbols/debug_unit.h"

#if HAVE_LIBDW

#include <dwarf.h>
#include <fcntl.h>

#define UNIT_RANGE_COUNT_MAX (1u << 20) /* of one unit */
#define CHAIN_LENGTH_MAX 256u           /* inlined calls within each other */

/* A handle of libdw; whoever has it uses it alone. */
struct handle {
    struct handle *next;
    int fd;
    Dwarf *dwarf;
};

struct debug {
    char *path;
    pthread_mutex_t lock; /* guards idle */
    struct handle *idle;
    struct unit *units;
    size_t unit_count;
    struct range_map map; /* address → unit */
};

static void handle_free(struct handle *h)
{
    if (!h)
        return;
    dwarf_end(h->dwarf);
    fd_closep(&h->fd);
    free(h);
}

static struct handle *handle_open(const char *path)
{
    struct handle *h = memory_zalloc(1, sizeof(*h));
    h->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    h->dwarf = h->fd >= 0 ? dwarf_begin(h->fd, DWARF_C_READ) : NULL;
    if (h->dwarf)
        return h;
    handle_free(h);
    return NULL;
}

static struct handle *handle_take(struct debug *d)
{
    pthread_mutex_lock(&d->lock);
    struct handle *h = d->idle;
    if (h)
        d->idle = h->next;
    pthread_mutex_unlock(&d->lock);
    return h ? h : handle_open(d->path);
}

static void handle_give(struct debug *d, struct handle *h)
{
    pthread_mutex_lock(&d->lock);
    h->next = d->idle;
    d->idle = h;
    pthread_mutex_unlock(&d->lock);
}

struct range_list {
    struct range *items;
    size_t count, capacity;
};

/* A linker that drops a function leaves its ranges at 0 (or at 1, for lists that end with 0). */
static void add_unit_ranges(struct range_list *list, Dwarf_Die *die, uint32_t unit)
{
    Dwarf_Addr base, start, end;
    ptrdiff_t at = 0;
    for (size_t i = 0; i < UNIT_RANGE_COUNT_MAX; i++) {
        at = dwarf_ranges(die, at, &base, &start, &end);
        if (at <= 0)
            break;
        if (start > 1 && end > start)
            ARRAY_PUSH(list->items, list->count, list->capacity) =
                (struct range){.start = start, .end = end, .owner = unit};
    }
}

/* Units that say nothing themselves may be listed in .debug_aranges. */
static void add_aranges(struct range_list *list, const struct debug *d, Dwarf *dwarf,
                        const bool *has_ranges)
{
    Dwarf_Aranges *aranges;
    size_t count;
    if (dwarf_getaranges(dwarf, &aranges, &count) != 0)
        return;
    for (size_t i = 0; i < count; i++) {
        Dwarf_Addr start;
        Dwarf_Word length;
        Dwarf_Off offset;
        Dwarf_Arange *one = dwarf_onearange(aranges, i);
        if (!one || dwarf_getarangeinfo(one, &start, &length, &offset) != 0 || start <= 1)
            continue;
        for (size_t u = 0; u < d->unit_count; u++)
            if (!has_ranges[u] && d->units[u].die_offset == offset)
                ARRAY_PUSH(list->items, list->count, list->capacity) =
                    (struct range){.start = start, .end = start + length, .owner = (uint32_t)u};
    }
}

static void index_units(struct debug *d, Dwarf *dwarf)
{
    struct range_list list = {0};
    bool *has_ranges = NULL;
    bool any_without = false;
    size_t capacity = 0, flags_capacity = 0;
    Dwarf_CU *cu = NULL;
    Dwarf_Die die;
    uint8_t type;
    while (dwarf_get_units(dwarf, cu, &cu, NULL, &type, &die, NULL) == 0) {
        if (type != DW_UT_compile && type != DW_UT_skeleton)
            continue;
        size_t before = list.count;
        add_unit_ranges(&list, &die, (uint32_t)d->unit_count);
        has_ranges = memory_grow(has_ranges, &flags_capacity, d->unit_count + 1, sizeof(bool));
        has_ranges[d->unit_count] = list.count > before;
        any_without = any_without || list.count == before;
        ARRAY_PUSH(d->units, d->unit_count, capacity) =
            (struct unit){.die_offset = dwarf_dieoffset(&die)};
    }
    if (any_without)
        add_aranges(&list, d, dwarf, has_ranges);
    range_map_build(&d->map, list.items, list.count);
    free(list.items);
    free(has_ranges);
}

struct debug *debug_open(const char *path)
{
    struct handle *h = handle_open(path);
    if (!h)
        return NULL;
    struct debug *d = memory_zalloc(1, sizeof(*d));
    d->path = memory_strdup(path);
    pthread_mutex_init(&d->lock, NULL);
    index_units(d, h->dwarf);
    handle_give(d, h);
    if (d->map.count)
        return d;
    debug_free(d);
    return NULL;
}

void debug_free(struct debug *d)
{
    if (!d)
        return;
    while (d->idle) {
        struct handle *next = d->idle->next;
        handle_free(d->idle);
        d->idle = next;
    }
    for (size_t i = 0; i < d->unit_count; i++)
        unit_done(&d->units[i]);
    free(d->units);
    range_map_done(&d->map);
    pthread_mutex_destroy(&d->lock);
    free(d->path);
    free(d);
}

uint32_t debug_unit_at(const struct debug *d, uint64_t address)
{
    uint32_t unit = range_map_find(&d->map, address);
    return unit == RANGE_NONE ? DEBUG_NO_UNIT : unit;
}

/* The function with the code: the symbol table's, or DWARF's where that has none. */
static const struct function *outer_function(struct module *m, const struct unit_node *node,
                                             struct function_entry *symbol)
{
    if (!node)
        return symbol ? &symbol->function : NULL;
    pthread_mutex_lock(&m->lock);
    const struct function *f = NULL;
    if (symbol) {
        f = &symbol->function;
        if (!f->declared_file && node->declared_file) {
            symbol->function.declared_file = arena_strdup(&m->arena, node->declared_file);
            symbol->function.declared_line = node->declared_line;
        }
    } else if (node->name || node->linkage_name) {
        f = module_inlined(m, node->name, node->linkage_name, node->declared_file,
                           node->declared_line);
    }
    pthread_mutex_unlock(&m->lock);
    return f;
}

static void answer(const struct unit *unit, struct module *m, const struct debug_query *q,
                   struct arena *arena)
{
    struct symbols_frame chain[CHAIN_LENGTH_MAX];
    uint32_t count = 0;
    struct symbols_frame frame = {0};
    const struct unit_line *line = unit_line_at(unit, q->address);
    if (line && line->file != UINT32_MAX) {
        frame.file = unit->files[line->file];
        frame.line = line->line;
    }
    uint32_t at = unit->has_nodes ? range_map_find(&unit->map, q->address) : RANGE_NONE;
    const struct unit_node *node = at == RANGE_NONE ? NULL : &unit->nodes[at];
    while (node && node->parent != UINT32_MAX) {
        frame.function = node->function;
        frame.inlined = true;
        if (count < CHAIN_LENGTH_MAX - 1)
            chain[count++] = frame;
        frame.file = node->call_file;
        frame.line = node->call_line;
        node = &unit->nodes[node->parent]; /* parents stand before their children */
    }
    frame.function = outer_function(m, node, q->function);
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
    if (!u->has_lines || (inlines && !u->has_nodes)) {
        struct handle *h = handle_take(d);
        if (!h)
            return;
        if (!u->has_lines)
            unit_decode_lines(u, h->dwarf);
        if (inlines && !u->has_nodes)
            unit_decode_nodes(u, h->dwarf, module);
        handle_give(d, h);
    }
    for (size_t i = 0; i < count; i++)
        answer(u, module, &queries[i], arena);
}

#else

struct debug *debug_open(const char *path)
{
    (void)path;
    return NULL;
}

void debug_free(struct debug *d)
{
    (void)d;
}

uint32_t debug_unit_at(const struct debug *d, uint64_t address)
{
    (void)d, (void)address;
    return DEBUG_NO_UNIT;
}

void debug_resolve(struct debug *d, struct module *module, uint32_t unit, bool inlines,
                   const struct debug_query *queries, size_t count, struct arena *arena)
{
    (void)d, (void)module, (void)unit, (void)inlines, (void)queries, (void)count, (void)arena;
}

#endif
