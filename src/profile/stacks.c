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

void stacks_finish(struct stacks *s)
{
    idtable_done(&s->location_table);
    free(s->slots);
    s->slots = NULL;
    idtable_done(&s->cell_table);
}

void stacks_done(struct stacks *s)
{
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

static size_t find_slot(const struct stack_slot *slots, size_t mask, uint32_t parent,
                        uint32_t location)
{
    size_t at = (size_t)hash_mix(parent, location) & mask;
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

uint32_t stacks_push(struct stacks *s, uint32_t parent, uint32_t location)
{
    size_t at = find_slot(s->slots, s->slot_mask, parent, location);
    if (s->slots[at].node)
        return s->slots[at].node;
    uint32_t id = next_id(s->node_count);
    ARRAY_PUSH(s->nodes, s->node_count, s->node_capacity) = (struct stack_node){parent, location};
    s->slots[at] = (struct stack_slot){parent, location, id};
    if (s->node_count * 10 > s->slot_mask * 7)
        grow_slots(s);
    return id;
}

uint32_t stacks_add(struct stacks *s, uint32_t node, uint32_t task, uint32_t event, uint32_t cpu,
                    uint64_t samples, uint64_t weight)
{
    uint64_t hash = cell_key_hash(node, task, event, cpu);
    uint32_t slot, id;
    IDTABLE_EACH(&s->cell_table, hash, slot, id)
    {
        struct stack_cell *c = &s->cells[id];
        if (c->node == node && c->task == task && c->event == event && c->cpu == cpu) {
            c->samples += samples;
            c->weight += weight;
            return id;
        }
    }
    id = next_id(s->cell_count);
    ARRAY_PUSH(s->cells, s->cell_count, s->cell_capacity) =
        (struct stack_cell){node, task, event, cpu, samples, weight};
    idtable_put(&s->cell_table, slot, id);
    if (idtable_is_crowded(&s->cell_table))
        idtable_grow(&s->cell_table, cell_hash, s->cells);
    return id;
}
