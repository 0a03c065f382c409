/* SPDX-License-Identifier: MIT */
/* Stacks of functions: see calls.h. */
#include "profile/calls.h"

#include <assert.h>
#include <string.h>

static uint64_t frame_key(uint32_t symbol, uint32_t srcline, bool inlined)
{
    return hash_mix((uint64_t)symbol << 1 | inlined, srcline);
}

static uint64_t frame_hash(const void *items, uint32_t id)
{
    const struct profile_frame *f = (const struct profile_frame *)items + id;
    return frame_key(f->symbol, f->srcline, f->inlined);
}

static uint64_t srcline_key(const char *file, uint32_t line)
{
    return hash_mix(hash_string(file), line);
}

static uint64_t srcline_hash(const void *items, uint32_t id)
{
    const struct profile_srcline *s = (const struct profile_srcline *)items + id;
    return srcline_key(s->file ? s->file : "", s->line);
}

static uint64_t node_hash(const void *items, uint32_t id)
{
    const struct call_node *n = (const struct call_node *)items + id;
    return hash_mix(n->parent, n->frame);
}

static uint64_t cell_key(uint32_t node, uint32_t task, uint32_t event, uint32_t cpu)
{
    return hash_mix((uint64_t)node << 32 | task, (uint64_t)event << 32 | cpu);
}

static uint64_t cell_hash(const void *items, uint32_t id)
{
    const struct call_cell *c = (const struct call_cell *)items + id;
    return cell_key(c->node, c->task, c->event, c->cpu);
}

void calls_init(struct calls *c)
{
    *c = (struct calls){0};
    names_init(&c->dsos);
    idtable_init(&c->frame_table, 10);
    idtable_init(&c->srcline_table, 6);
    idtable_init(&c->node_table, 10);
    idtable_init(&c->cell_table, 10);
    ARRAY_PUSH(c->nodes, c->node_count, c->node_capacity) = (struct call_node){0, IDTABLE_NONE};
    ARRAY_PUSH(c->srclines, c->srcline_count, c->srcline_capacity) = (struct profile_srcline){0};
}

void calls_done(struct calls *c)
{
    names_done(&c->dsos);
    free(c->symbols);
    free(c->frames);
    free(c->srclines);
    free(c->nodes);
    free(c->cells);
    idtable_done(&c->frame_table);
    idtable_done(&c->srcline_table);
    idtable_done(&c->node_table);
    idtable_done(&c->cell_table);
    arena_done(&c->arena);
    *c = (struct calls){0};
}

uint32_t calls_srcline(struct calls *c, const char *file, uint32_t line)
{
    if (!file)
        return 0;
    uint32_t slot, id;
    IDTABLE_EACH(&c->srcline_table, srcline_key(file, line), slot, id)
    {
        const struct profile_srcline *s = &c->srclines[id];
        if (s->line == line && (s->file == file || strcmp(s->file, file) == 0))
            return id;
    }
    id = (uint32_t)c->srcline_count;
    ARRAY_PUSH(c->srclines, c->srcline_count, c->srcline_capacity) =
        (struct profile_srcline){file, line};
    idtable_put(&c->srcline_table, slot, id);
    if (idtable_is_crowded(&c->srcline_table))
        idtable_grow(&c->srcline_table, srcline_hash, c->srclines);
    return id;
}

uint32_t calls_frame(struct calls *c, uint32_t symbol, uint32_t srcline, bool inlined)
{
    uint32_t slot, id;
    IDTABLE_EACH(&c->frame_table, frame_key(symbol, srcline, inlined), slot, id)
    {
        const struct profile_frame *f = &c->frames[id];
        if (f->symbol == symbol && f->srcline == srcline && f->inlined == inlined)
            return id;
    }
    id = (uint32_t)c->frame_count;
    ARRAY_PUSH(c->frames, c->frame_count, c->frame_capacity) =
        (struct profile_frame){symbol, srcline, inlined};
    idtable_put(&c->frame_table, slot, id);
    if (idtable_is_crowded(&c->frame_table))
        idtable_grow(&c->frame_table, frame_hash, c->frames);
    return id;
}

uint32_t calls_push(struct calls *c, uint32_t parent, uint32_t frame)
{
    uint32_t slot, id;
    IDTABLE_EACH(&c->node_table, hash_mix(parent, frame), slot, id)
    if (c->nodes[id].parent == parent && c->nodes[id].frame == frame)
        return id;
    assert(c->node_count < IDTABLE_NONE);
    id = (uint32_t)c->node_count;
    ARRAY_PUSH(c->nodes, c->node_count, c->node_capacity) = (struct call_node){parent, frame};
    idtable_put(&c->node_table, slot, id);
    if (idtable_is_crowded(&c->node_table))
        idtable_grow(&c->node_table, node_hash, c->nodes);
    return id;
}

void calls_add(struct calls *c, uint32_t node, uint32_t task, uint32_t event, uint32_t cpu,
               uint64_t samples, uint64_t weight)
{
    uint32_t slot, id;
    IDTABLE_EACH(&c->cell_table, cell_key(node, task, event, cpu), slot, id)
    {
        struct call_cell *cell = &c->cells[id];
        if (cell->node == node && cell->task == task && cell->event == event && cell->cpu == cpu) {
            cell->samples += samples;
            cell->weight += weight;
            return;
        }
    }
    id = (uint32_t)c->cell_count;
    ARRAY_PUSH(c->cells, c->cell_count, c->cell_capacity) =
        (struct call_cell){node, task, event, cpu, samples, weight};
    idtable_put(&c->cell_table, slot, id);
    if (idtable_is_crowded(&c->cell_table))
        idtable_grow(&c->cell_table, cell_hash, c->cells);
}

/* A caller in user space that lies in no code: the chain was followed through something that is no
 * frame pointer. */
static bool is_nowhere(const struct stack_location *l)
{
    return !l->module && l->flags == STACK_CALLER;
}

/* Puts the outermost frame of a location below its caller's node. */
static uint32_t push_outermost(struct calls *c, const struct stacks *stacks,
                               const struct stack_node *n, uint32_t node, uint32_t frame,
                               const struct calls_known *known)
{
    uint32_t by = stacks->nodes[n->parent].location;
    bool is_called = n->parent != STACK_EMPTY &&
                     !(stacks->locations[n->location].flags & (STACK_KERNEL | STACK_GUEST));
    if (is_called && known->meant && known->meant[by] != IDTABLE_NONE &&
        c->frames[frame].symbol == known->instead[by])
        return calls_push(c, node, known->meant[by]);
    if (is_called && known->called && known->called[by] != IDTABLE_NONE &&
        c->frames[known->called[by]].symbol != c->frames[frame].symbol)
        node = calls_push(c, node, known->called[by]);
    return calls_push(c, node, frame);
}

static void forget_nodes(struct calls *c)
{
    c->node_count = 1;
    c->cell_count = 0;
    idtable_clear(&c->node_table);
    idtable_clear(&c->cell_table);
}

void calls_from_stacks(struct calls *c, const struct stacks *stacks, const uint32_t *frame_lists,
                       const uint32_t *frame_items, const struct calls_known *known,
                       uint32_t *ret_nodes)
{
    uint32_t *nodes = ret_nodes ? ret_nodes : memory_zalloc(stacks->node_count, sizeof(*nodes));
    forget_nodes(c);
    nodes[STACK_EMPTY] = 0;
    for (size_t i = 1; i < stacks->node_count; i++) {
        const struct stack_node *n = &stacks->nodes[i];
        uint32_t start = frame_lists[n->location], end = frame_lists[n->location + 1];
        nodes[i] = nodes[n->parent];
        if (start == end || is_nowhere(&stacks->locations[n->location]))
            continue;
        nodes[i] = push_outermost(c, stacks, n, nodes[i], frame_items[end - 1], known);
        for (uint32_t k = end - 1; k > start; k--)
            nodes[i] = calls_push(c, nodes[i], frame_items[k - 1]);
    }
    for (size_t i = 0; i < stacks->cell_count; i++) {
        const struct stack_cell *cell = &stacks->cells[i];
        calls_add(c, nodes[cell->node], cell->task, cell->event, cell->cpu, cell->samples,
                  cell->weight);
    }
    if (!ret_nodes)
        free(nodes);
}

uint32_t calls_leaf_frame(const struct calls *c, uint32_t node)
{
    while (node && c->frames[c->nodes[node].frame].inlined && c->nodes[node].parent)
        node = c->nodes[node].parent;
    return c->nodes[node].frame;
}

void calls_put_name(const struct calls *calls, uint32_t symbol, struct strbuf *out)
{
    const struct profile_symbol *s = &calls->symbols[symbol];
    const char *dso = calls->dsos.items[s->dso];
    if (s->name) /* the symbol's source has cut it already */
        strbuf_put_safe(out, s->name, strlen(s->name), strlen(s->name));
    else if (dso[0] == '[')
        strbuf_put_safe(out, dso, strlen(dso), 4096);
    else {
        strbuf_putc(out, '[');
        strbuf_put_safe(out, dso, strlen(dso), 4096);
        strbuf_putc(out, ']');
    }
}
