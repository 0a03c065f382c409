/* SPDX-License-Identifier: MIT */
/* Who is behind a part: see explain_callers.h. */
#include "why/explain_callers.h"
#include "base/memory.h"
#include "base/strings.h"

#include <stdlib.h>

enum { CALLERS_MOST = 2000 };

static uint32_t add_node(struct callers *c, struct caller node)
{
    for (unsigned s = 0; s < SIDE_COUNT; s++) {
        node.weights[s] = memory_zalloc(c->run_counts[s] + 1, sizeof(double));
        node.samples[s] = memory_zalloc(c->run_counts[s] + 1, sizeof(double));
    }
    ARRAY_PUSH(c->items, c->count, c->capacity) = node;
    return (uint32_t)c->count - 1;
}

void callers_init(struct callers *c, const size_t run_counts[SIDE_COUNT])
{
    *c = (struct callers){.run_counts = {run_counts[SIDE_A], run_counts[SIDE_B]}};
    add_node(c, (struct caller){.parent = CALLERS_NONE});
}

void callers_done(struct callers *c)
{
    for (size_t i = 0; i < c->count; i++)
        for (unsigned s = 0; s < SIDE_COUNT; s++) {
            free(c->items[i].weights[s]);
            free(c->items[i].samples[s]);
        }
    free(c->items);
    *c = (struct callers){0};
}

uint32_t callers_child(const struct callers *c, uint32_t node, uint32_t from)
{
    for (uint32_t i = from; i < c->count; i++)
        if (c->items[i].parent == node)
            return i;
    return CALLERS_NONE;
}

uint32_t callers_find(struct callers *c, uint32_t node, const char *name, bool inlined)
{
    uint32_t child = callers_child(c, node, node + 1);
    for (; child != CALLERS_NONE; child = callers_child(c, node, child + 1))
        if (str_eq(c->items[child].name, name)) {
            c->items[child].inlined |= inlined;
            return child;
        }
    if (c->count >= CALLERS_MOST)
        return CALLERS_NONE;
    return add_node(c, (struct caller){.name = name, .parent = node, .inlined = inlined});
}

void callers_add(struct callers *c, uint32_t node, unsigned side, size_t run, double weight,
                 double samples)
{
    c->items[node].weights[side][run] += weight;
    c->items[node].samples[side][run] += samples;
}

double callers_weight(const struct callers *c, uint32_t node)
{
    double weight = 0;
    for (unsigned s = 0; s < SIDE_COUNT; s++)
        for (size_t run = 0; run < c->run_counts[s]; run++)
            weight += c->items[node].weights[s][run] / (double)c->run_counts[s];
    return weight;
}

static void add_all(struct callers *to, uint32_t to_node, const struct caller *from, double times)
{
    for (unsigned s = 0; s < SIDE_COUNT; s++)
        for (size_t run = 0; run < to->run_counts[s]; run++)
            callers_add(to, to_node, s, run, times * from->weights[s][run],
                        times * from->samples[s][run]);
}

void callers_graft(struct callers *to, uint32_t to_node, const struct callers *from,
                   uint32_t from_node)
{
    uint32_t child = callers_child(from, from_node, from_node + 1);
    for (; child != CALLERS_NONE; child = callers_child(from, from_node, child + 1)) {
        const struct caller *source = &from->items[child];
        uint32_t node = callers_find(to, to_node, source->name, source->inlined);
        if (node == CALLERS_NONE)
            return;
        to->items[node].is_program |= source->is_program;
        add_all(to, node, source, 1);
        callers_graft(to, node, from, child);
    }
}

void callers_cut(struct callers *c, uint32_t node)
{
    for (uint32_t at = c->items[node].parent; at != CALLERS_NONE; at = c->items[at].parent)
        add_all(c, at, &c->items[node], -1);
    c->items[node].parent = CALLERS_NONE; /* out of the tree, freed with the rest */
}
