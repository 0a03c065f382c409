/* SPDX-License-Identifier: MIT */
/*
 * Address spaces: see addrspace.h.
 *
 * A treap (Seidel & Aragon, "Randomized Search Trees", 1996) by start address.  Nodes are shared
 * between copies and counted: a node that only we hold is changed in place, one that others see is
 * copied first.  Priorities come from a number the kernel gave this process at random, so that a
 * file cannot be written that makes the tree deep.
 */
#include "symbols/addrspace.h"

#include "base/memory.h"

#include <stdatomic.h>
#include <sys/auxv.h>

struct map_node {
    uint64_t start, end, offset;
    struct module *module;
    struct map_node *left, *right;
    uint32_t priority;
    /* Dropped with release, and with acquire by the last: what one holder read happens before
     * another frees or changes the node. */
    _Atomic uint32_t references;
};

struct addrspace {
    struct map_node *root;
};

static struct map_node *node_get(struct map_node *n)
{
    if (n)
        atomic_fetch_add_explicit(&n->references, 1, memory_order_relaxed);
    return n;
}

static void node_put(struct map_node *n)
{
    while (n && atomic_fetch_sub_explicit(&n->references, 1, memory_order_acq_rel) == 1) {
        struct map_node *right = n->right;
        node_put(n->left);
        free(n);
        n = right;
    }
}

/* Takes a reference, gives one to a node that is ours alone. */
static struct map_node *node_own(struct map_node *n)
{
    if (atomic_load_explicit(&n->references, memory_order_acquire) == 1)
        return n;
    struct map_node *copy = memory_alloc(sizeof(*copy));
    copy->start = n->start;
    copy->end = n->end;
    copy->offset = n->offset;
    copy->module = n->module;
    copy->left = node_get(n->left);
    copy->right = node_get(n->right);
    copy->priority = n->priority;
    atomic_init(&copy->references, 1);
    node_put(n);
    return copy;
}

static uint32_t priority_of(uint64_t start)
{
    uint64_t seed, value;
    const void *random = (const void *)getauxval(AT_RANDOM);
    memcpy(&seed, random ? random : "assayseed", sizeof(seed));
    value = (start ^ seed) * 0x9e3779b97f4a7c15ull;
    value = (value ^ value >> 31) * (seed | 1);
    return (uint32_t)(value >> 32);
}

static struct map_node *node_new(uint64_t start, uint64_t end, uint64_t offset,
                                 struct module *module)
{
    struct map_node *n = memory_zalloc(1, sizeof(*n));
    n->start = start;
    n->end = end;
    n->offset = offset;
    n->module = module;
    n->priority = priority_of(start);
    atomic_init(&n->references, 1);
    return n;
}

/* Those that start before `at` to the left, the others to the right. */
static void split(struct map_node *n, uint64_t at, struct map_node **ret_left,
                  struct map_node **ret_right)
{
    if (!n) {
        *ret_left = *ret_right = NULL;
        return;
    }
    n = node_own(n);
    if (n->start < at) {
        split(n->right, at, &n->right, ret_right);
        *ret_left = n;
    } else {
        split(n->left, at, ret_left, &n->left);
        *ret_right = n;
    }
}

static struct map_node *merge(struct map_node *left, struct map_node *right)
{
    if (!left || !right)
        return left ? left : right;
    if (left->priority >= right->priority) {
        left = node_own(left);
        left->right = merge(left->right, right);
        return left;
    }
    right = node_own(right);
    right->left = merge(left, right->left);
    return right;
}

static const struct map_node *last_of(const struct map_node *n)
{
    while (n && n->right)
        n = n->right;
    return n;
}

/* Ends the last map at `end`. */
static struct map_node *cut_last(struct map_node *n, uint64_t end)
{
    n = node_own(n);
    if (n->right)
        n->right = cut_last(n->right, end);
    else
        n->end = end;
    return n;
}

struct addrspace *addrspace_new(void)
{
    return memory_zalloc(1, sizeof(struct addrspace));
}

struct addrspace *addrspace_copy(const struct addrspace *space)
{
    struct addrspace *copy = addrspace_new();
    copy->root = node_get(space->root);
    return copy;
}

void addrspace_free(struct addrspace *space)
{
    if (space)
        node_put(space->root);
    free(space);
}

/* What reaches beyond `end` of the last map of a part, as a node of its own. */
static struct map_node *tail_of(const struct map_node *part, uint64_t end)
{
    const struct map_node *last = last_of(part);
    return last && last->end > end
               ? node_new(end, last->end, last->offset + (end - last->start), last->module)
               : NULL;
}

static void replace(struct addrspace *space, uint64_t start, uint64_t end, struct map_node *with)
{
    struct map_node *before, *within, *after;
    split(space->root, start, &before, &after);
    split(after, end, &within, &after);
    /* Maps do not overlap, so at most one of these reaches beyond the end. */
    struct map_node *tail = within ? tail_of(within, end) : tail_of(before, end);
    const struct map_node *last = last_of(before);
    if (last && last->end > start)
        before = cut_last(before, start);
    node_put(within);
    space->root = merge(merge(before, with), merge(tail, after));
}

static const struct map_node *find(const struct addrspace *space, uint64_t address)
{
    const struct map_node *n = space->root;
    while (n && (address < n->start || address >= n->end))
        n = address < n->start ? n->left : n->right;
    return n;
}

void addrspace_map(struct addrspace *space, uint64_t start, uint64_t length, uint64_t offset,
                   struct module *module)
{
    uint64_t end = start + length;
    if (length == 0 || end < start)
        return;
    const struct map_node *there = find(space, start);
    if (there && there->start == start && there->end == end && there->offset == offset &&
        there->module == module)
        return;
    replace(space, start, end, node_new(start, end, offset, module));
}

void addrspace_unmap(struct addrspace *space, uint64_t start, uint64_t length)
{
    if (length && start + length > start)
        replace(space, start, start + length, NULL);
}

bool addrspace_find(const struct addrspace *space, uint64_t address, struct location *ret_location)
{
    const struct map_node *n = find(space, address);
    *ret_location = n ? (struct location){n->module, address - n->start + n->offset}
                      : (struct location){NULL, address};
    return n;
}

bool addrspace_find_map(const struct addrspace *space, uint64_t address, struct map *ret_map)
{
    const struct map_node *n = find(space, address);
    if (n)
        *ret_map = (struct map){n->start, n->end, n->offset, n->module};
    return n;
}
