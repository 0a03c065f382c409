/* SPDX-License-Identifier: MIT */
/* Equal stacks merged: see stacks.h. */
#include "profile/stacks.h"

#include <assert.h>

static uint64_t location_hash(const void *items, uint32_t id)
{
    const struct stack_location *l = (const struct stack_location *)items + id;
    return hash_mix(l->address, (uint64_t)(uintptr_t)l->module + l->flags);
}

static uint64_t cell_key_hash(uint32_t node, uint32_t task, uint32_t event, uint32_t cpu)
{
    return hash_mix((uint64_t)node << 32 | task, (uint64_t)event << 32 | cpu);
}

static uint64_t cell_hash(const void *items, uint32_t id)
{
    const struct stack_cell *c = (const struct stack_cell *)items + id;
    return cell_key_hash(c->node, c->task, c->event, c->cpu);
}

void stacks_init(struct stacks *s)
{
    *s = (struct stacks){0};
    idtable_init(&s->location_table, 12);
    s->slot_mask = 4095;
    s->slots = memory_zalloc(s->slot_mask + 1, sizeof(*s->slots));
    idtable_init(&s->cell_table, 12);
    ARRAY_PUSH(s->nodes, s->node_count, s->node_capacity) = (struct stack_node){0, UINT32_MAX};
}

static void add_waiting(struct stacks *s);

void stacks_finish(struct stacks *s)
{
    if (s->slots)
        add_waiting(s);
    idtable_done(&s->location_table);
    free(s->slots);
    s->slots = NULL;
    idtable_done(&s->cell_table);
}

void stacks_done(struct stacks *s)
{
    s->waiting_count = 0;
    stacks_finish(s);
    free(s->locations);
    free(s->nodes);
    free(s->cells);
    *s = (struct stacks){0};
}

/* Every index must stay below IDTABLE_NONE; four thousand million different stacks do not fit
 * into the memory of any machine that reads this. */
static uint32_t next_id(size_t count)
{
    assert(count < IDTABLE_NONE);
    return (uint32_t)count;
}

uint32_t stacks_location(struct stacks *s, struct module *module, uint64_t address, uint32_t flags)
{
    uint64_t hash = hash_mix(address, (uint64_t)(uintptr_t)module + flags);
    uint32_t slot, id;
    IDTABLE_EACH(&s->location_table, hash, slot, id)
    {
        const struct stack_location *l = &s->locations[id];
        if (l->address == address && l->module == module && l->flags == flags)
            return id;
    }
    id = next_id(s->location_count);
    ARRAY_PUSH(s->locations, s->location_count, s->location_capacity) =
        (struct stack_location){module, address, flags};
    idtable_put(&s->location_table, slot, id);
    if (idtable_is_crowded(&s->location_table))
        idtable_grow(&s->location_table, location_hash, s->locations);
    return id;
}

static size_t first_slot(size_t mask, uint32_t parent, uint32_t location)
{
    return (size_t)hash_mix(parent, location) & mask;
}

static size_t find_slot(const struct stack_slot *slots, size_t mask, uint32_t parent,
                        uint32_t location)
{
    size_t at = first_slot(mask, parent, location);
    while (slots[at].node && (slots[at].parent != parent || slots[at].location != location))
        at = (at + 1) & mask;
    return at;
}

static void grow_slots(struct stacks *s)
{
    size_t mask = 2 * s->slot_mask + 1;
    struct stack_slot *slots = memory_zalloc(mask + 1, sizeof(*slots));
    for (size_t i = 0; i <= s->slot_mask; i++) {
        const struct stack_slot *old = &s->slots[i];
        if (old->node)
            slots[find_slot(slots, mask, old->parent, old->location)] = *old;
    }
    free(s->slots);
    s->slots = slots;
    s->slot_mask = mask;
}

/* The slot of a node, made if it was not there.  Valid until the next one is made. */
static struct stack_slot *push_slot(struct stacks *s, uint32_t parent, uint32_t location)
{
    struct stack_slot *slot = &s->slots[find_slot(s->slots, s->slot_mask, parent, location)];
    if (slot->node)
        return slot;
    if ((s->node_count + 1) * 10 > s->slot_mask * 7) {
        grow_slots(s);
        slot = &s->slots[find_slot(s->slots, s->slot_mask, parent, location)];
    }
    uint32_t id = next_id(s->node_count);
    ARRAY_PUSH(s->nodes, s->node_count, s->node_capacity) = (struct stack_node){parent, location};
    *slot = (struct stack_slot){parent, location, id, IDTABLE_NONE};
    return slot;
}

uint32_t stacks_push(struct stacks *s, uint32_t parent, uint32_t location)
{
    return push_slot(s, parent, location)->node;
}

static bool is_cell(const struct stack_cell *c, uint32_t node, uint32_t task, uint32_t event,
                    uint32_t cpu)
{
    return c->node == node && c->task == task && c->event == event && c->cpu == cpu;
}

static uint32_t new_cell(struct stacks *s, uint32_t node, uint32_t task, uint32_t event,
                         uint32_t cpu)
{
    uint32_t id = next_id(s->cell_count);
    ARRAY_PUSH(s->cells, s->cell_count, s->cell_capacity) =
        (struct stack_cell){node, task, event, cpu, 0, 0};
    return id;
}

/* A cell that is not the first of its node. */
static uint32_t further_cell(struct stacks *s, uint32_t node, uint32_t task, uint32_t event,
                             uint32_t cpu)
{
    uint64_t hash = cell_key_hash(node, task, event, cpu);
    uint32_t slot, id;
    IDTABLE_EACH(&s->cell_table, hash, slot, id)
    if (is_cell(&s->cells[id], node, task, event, cpu))
        return id;
    id = new_cell(s, node, task, event, cpu);
    idtable_put(&s->cell_table, slot, id);
    if (idtable_is_crowded(&s->cell_table))
        idtable_grow(&s->cell_table, cell_hash, s->cells);
    return id;
}

static void count(struct stacks *s, uint32_t cell, uint64_t samples, uint64_t weight)
{
    s->cells[cell].samples += samples;
    s->cells[cell].weight += weight;
}

static uint32_t cell_of(struct stacks *s, uint32_t node, uint32_t task, uint32_t event,
                        uint32_t cpu)
{
    if (node == STACK_EMPTY)
        return further_cell(s, node, task, event, cpu);
    struct stack_slot *slot = push_slot(s, s->nodes[node].parent, s->nodes[node].location);
    if (slot->cell == IDTABLE_NONE)
        slot->cell = new_cell(s, node, task, event, cpu);
    uint32_t cell = slot->cell;
    return is_cell(&s->cells[cell], node, task, event, cpu)
               ? cell
               : further_cell(s, node, task, event, cpu);
}

void stacks_add(struct stacks *s, uint32_t node, uint32_t task, uint32_t event, uint32_t cpu,
                uint64_t weight)
{
    count(s, cell_of(s, node, task, event, cpu), 1, weight);
}

void stacks_add_merged(struct stacks *s, uint32_t node, uint32_t task, uint32_t event,
                       uint64_t samples, uint64_t weight)
{
    count(s, cell_of(s, node, task, event, STACK_ANY_CPU), samples, weight);
}

/* In three rounds, each of which asks the memory for what the next one reads. */
static void add_waiting(struct stacks *s)
{
    for (size_t i = 0; i < s->waiting_count; i++)
        __builtin_prefetch(
            &s->slots[first_slot(s->slot_mask, s->waiting[i].parent, s->waiting[i].location)]);
    for (size_t i = 0; i < s->waiting_count; i++) {
        struct stack_sample *w = &s->waiting[i];
        struct stack_slot *slot = push_slot(s, w->parent, w->location);
        w->node = slot->node;
        if (slot->cell == IDTABLE_NONE)
            slot->cell = new_cell(s, w->node, w->task, w->event, w->cpu);
        else
            __builtin_prefetch(&s->cells[slot->cell]);
        w->cell = slot->cell;
    }
    for (size_t i = 0; i < s->waiting_count; i++) {
        const struct stack_sample *w = &s->waiting[i];
        uint32_t cell = w->cell;
        if (!is_cell(&s->cells[cell], w->node, w->task, w->event, w->cpu))
            cell = further_cell(s, w->node, w->task, w->event, w->cpu);
        count(s, cell, 1, w->weight);
    }
    s->waiting_count = 0;
}

void stacks_add_later(struct stacks *s, const struct stack_sample *sample)
{
    s->waiting[s->waiting_count++] = *sample;
    if (s->waiting_count == STACKS_WAITING_MAX)
        add_waiting(s);
}
