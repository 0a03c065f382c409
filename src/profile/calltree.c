/* SPDX-License-Identifier: MIT */
/* Call trees: see calltree.h. */
#include "profile/calltree.h"
#include "base/memory.h"

#include <string.h>

static uint64_t node_key(uint32_t parent, uint32_t symbol, bool inlined)
{
    return hash_mix(parent, (uint64_t)symbol << 1 | inlined);
}

static uint64_t node_hash(const void *items, uint32_t id)
{
    const struct calltree_node *n = (const struct calltree_node *)items + id;
    return node_key(n->parent, n->symbol, n->inlined);
}

static uint32_t add_child(struct calltree *tree, uint32_t parent, const struct profile_frame *frame)
{
    uint32_t slot, id;
    IDTABLE_EACH(&tree->table, node_key(parent, frame->symbol, frame->inlined), slot, id)
    {
        const struct calltree_node *n = &tree->nodes[id];
        if (n->parent == parent && n->symbol == frame->symbol && n->inlined == frame->inlined)
            return id;
    }
    id = (uint32_t)tree->count;
    ARRAY_PUSH(tree->nodes, tree->count, tree->capacity) =
        (struct calltree_node){.symbol = frame->symbol,
                               .inlined = frame->inlined,
                               .parent = parent,
                               .first_child = IDTABLE_NONE,
                               .next = tree->nodes[parent].first_child};
    tree->nodes[parent].first_child = id;
    idtable_put(&tree->table, slot, id);
    if (idtable_is_crowded(&tree->table))
        idtable_grow(&tree->table, node_hash, tree->nodes);
    return id;
}

static void start(struct calltree *tree)
{
    if (tree->table.slots) {
        memset(tree->table.slots, 0, ((size_t)tree->table.mask + 1) * sizeof(*tree->table.slots));
        tree->table.count = 0;
    } else {
        idtable_init(&tree->table, 8);
    }
    tree->count = 0;
    ARRAY_PUSH(tree->nodes, tree->count, tree->capacity) =
        (struct calltree_node){.symbol = IDTABLE_NONE,
                               .parent = IDTABLE_NONE,
                               .first_child = IDTABLE_NONE,
                               .next = IDTABLE_NONE};
}

struct sort_item {
    uint32_t node;
    uint64_t weight;
    const char *name;
    uint64_t address;
};

static int compare_items(const void *left, const void *right)
{
    const struct sort_item *a = left, *b = right;
    if (a->weight != b->weight)
        return a->weight < b->weight ? 1 : -1;
    int order = strcmp(a->name ? a->name : "", b->name ? b->name : "");
    return order ? order : a->address < b->address ? -1 : a->address > b->address;
}

static void sort_children(struct calltree *tree, const struct calls *calls, uint32_t parent,
                          struct sort_item **items, size_t *capacity)
{
    size_t count = 0;
    for (uint32_t id = tree->nodes[parent].first_child; id != IDTABLE_NONE;
         id = tree->nodes[id].next) {
        const struct profile_symbol *s = &calls->symbols[tree->nodes[id].symbol];
        ARRAY_PUSH(*items, count, *capacity) =
            (struct sort_item){id, tree->nodes[id].weight, s->name, s->address};
    }
    if (count < 2)
        return;
    qsort(*items, count, sizeof(**items), compare_items);
    tree->nodes[parent].first_child = (*items)[0].node;
    for (size_t i = 0; i < count; i++)
        tree->nodes[(*items)[i].node].next = i + 1 < count ? (*items)[i + 1].node : IDTABLE_NONE;
}

static void count_node(struct calltree *tree, uint32_t id, const struct row_group *group)
{
    tree->nodes[id].samples += group->samples;
    tree->nodes[id].weight += group->weight;
}

/* Collects the path from `leaf` up to `top` and puts it in from the top down. */
static void add_downwards(struct calltree *tree, const struct rows *rows,
                          const struct row_group *group, uint32_t leaf, uint32_t top,
                          uint32_t **path, size_t *capacity)
{
    const struct calls *calls = rows->calls;
    size_t depth = 0;
    for (uint32_t node = leaf; node; node = calls->nodes[node].parent) {
        ARRAY_PUSH(*path, depth, *capacity) = calls->nodes[node].frame;
        if (node == top)
            break;
    }
    uint32_t at = 0;
    while (depth > 0) {
        at = add_child(tree, at, &calls->frames[(*path)[--depth]]);
        count_node(tree, at, group);
    }
}

static void add_upwards(struct calltree *tree, const struct rows *rows,
                        const struct row_group *group, uint32_t from)
{
    uint32_t at = 0;
    for (uint32_t node = from; node; node = rows->calls->nodes[node].parent) {
        at = add_child(tree, at, &rows->calls->frames[rows->calls->nodes[node].frame]);
        count_node(tree, at, group);
    }
}

void calltree_build(struct calltree *tree, const struct rows *rows, const struct row *row,
                    enum calltree_order order)
{
    start(tree);
    uint32_t *path = NULL;
    size_t path_capacity = 0;
    for (uint32_t i = 0; i < row->member_count; i++) {
        const struct row_member *m = &rows->members[row->first_member + i];
        const struct row_group *group = &rows->groups[m->group];
        count_node(tree, 0, group);
        if (order == CALLTREE_CALLEE)
            add_upwards(tree, rows, group, m->inner);
        else
            add_downwards(tree, rows, group, group->node, rows->options.children ? m->outer : 0,
                          &path, &path_capacity);
    }
    free(path);
    struct sort_item *items = NULL;
    size_t item_capacity = 0;
    for (size_t i = 0; i < tree->count; i++)
        sort_children(tree, rows->calls, (uint32_t)i, &items, &item_capacity);
    free(items);
}

void calltree_done(struct calltree *tree)
{
    free(tree->nodes);
    idtable_done(&tree->table);
    *tree = (struct calltree){0};
}
