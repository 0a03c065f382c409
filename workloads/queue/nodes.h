/* SPDX-License-Identifier: MIT */
/*
 * Where the nodes of a linked queue come from.
 *
 * NODES_MALLOC   malloc and free, so that whichever allocator is linked or preloaded does it.
 * NODES_POOL     one pool for all threads: each get and put is a compare-and-swap on one word.
 * NODES_CACHE    a magazine of free nodes in each thread, and the pool behind them, to which whole
 *                magazines go and from which they come (Bonwick's magazines; the seed's third
 *                version).  Nodes that consumers free reach producers NODES_MAGAZINE at a time.
 *
 * The pools take nodes out of one reserved range of addresses, in order, and never give them back
 * before nodes_done: the memory is type-stable.  A node is named by its unit, its distance from the
 * start of the range in 16 bytes, which fits 32 bits; 0 names none.
 *
 * The pool is a stack of magazines (of one node for NODES_POOL).  Its top is a unit and a tag that
 * changes with every change.  A free node's first item word holds the unit of the next node of
 * its magazine, and in its upper half, in the first node, that of the next magazine.  A thread may
 * read this word of a node that another has just popped and filled: it reads any value, and its
 * compare-and-swap fails because of the tag.
 *
 * Progress   lock-free (malloc: whatever the allocator promises).
 * Memory     the pools hold as many nodes as were ever in use at once, and up to two magazines a
 *            thread.
 */
#ifndef ASSAY_QUEUE_NODES_H
#define ASSAY_QUEUE_NODES_H

#include "atomics.h"
#include "reclaim.h"

#ifndef Q_ALLOC_NODE
#define Q_ALLOC_NODE(bytes) ((struct node *)malloc(bytes))
#define Q_FREE_NODE(node) free(node)
#endif

#ifndef NODES_MAGAZINE
#define NODES_MAGAZINE 128
#endif
#define NODES_UNIT 16

enum nodes_kind { NODES_MALLOC, NODES_POOL, NODES_CACHE };

struct node {
    uint64_t next;    /* a link of the queue; its tag survives the node's death */
    uint64_t words[]; /* the item */
};

struct nodes {
    enum nodes_kind kind;
    size_t node_bytes; /* a multiple of NODES_UNIT */
    char *base;
    uint64_t unit_end;            /* of the reserved range */
    QUEUE_ALIGNED uint64_t top;   /* tag << 32 | unit of the first free magazine */
    QUEUE_ALIGNED uint64_t fresh; /* the first unit that was never used */
};

struct nodes_magazine {
    uint32_t unit; /* its first node */
    uint32_t count;
};

/* A thread's own. */
struct nodes_thread {
    struct nodes_magazine loaded, spare;
    uint64_t fresh, fresh_end; /* units never used */
};

/* Reserves the range; -ENOMEM when even a small one cannot be had.  nodes_max is a hint. */
QUEUE_C_BEGIN
int nodes_init(struct nodes *n, enum nodes_kind kind, size_t item_bytes, uint64_t nodes_max);
void nodes_done(struct nodes *n);
QUEUE_C_END

static inline size_t nodes_bytes_for(size_t item_bytes)
{
    return (sizeof(struct node) + item_bytes + NODES_UNIT - 1) / NODES_UNIT * NODES_UNIT;
}

QUEUE_INLINE struct node *nodes_at(const struct nodes *n, uint64_t unit)
{
    return (struct node *)(n->base + unit * NODES_UNIT);
}

QUEUE_INLINE uint32_t nodes_unit(const struct nodes *n, const struct node *node)
{
    return (uint32_t)(((const char *)node - n->base) / NODES_UNIT);
}

/* Puts a magazine on the stack. */
QUEUE_INLINE void nodes_stack_push(struct nodes *n, uint32_t unit)
{
    struct node *first = nodes_at(n, unit);
    uint64_t within = (uint32_t)Q_LOAD(&first->words[0], relaxed), top = Q_LOAD(&n->top, relaxed);
    Q_FOREVER (top) {
        Q_STORE(&first->words[0], within | top << 32, relaxed);
        /* Partner: the load of top in nodes_stack_pop. */
        if (Q_CAS(&n->top, &top, ((top >> 32) + 1) << 32 | unit, release))
            return;
    }
}

/* Takes a magazine from the stack; 0 when there is none. */
QUEUE_INLINE uint32_t nodes_stack_pop(struct nodes *n)
{
    Q_FOREVER (0) {
        /* Partner: the compare-and-swap in nodes_stack_push. */
        uint64_t top = Q_LOAD(&n->top, acquire);
        if ((uint32_t)top == 0)
            return 0;
        uint64_t next = Q_LOAD(&nodes_at(n, (uint32_t)top)->words[0], relaxed) >> 32;
        if (Q_CAS(&n->top, &top, ((top >> 32) + 1) << 32 | next, relaxed))
            return (uint32_t)top;
    }
}

/* A node that was never used; NULL when the range is used up. */
QUEUE_SLOW struct node *nodes_fresh(struct nodes *n, struct nodes_thread *t)
{
    if (t->fresh == t->fresh_end) {
        uint64_t units = n->node_bytes / NODES_UNIT * (n->kind == NODES_CACHE ? NODES_MAGAZINE : 1);
        if (Q_LOAD(&n->fresh, relaxed) + units > n->unit_end)
            return NULL;
        t->fresh = Q_ADD(&n->fresh, units, relaxed);
        t->fresh_end = t->fresh + units;
        if (t->fresh_end > n->unit_end) {
            t->fresh = t->fresh_end = 0;
            return NULL;
        }
    }
    struct node *node = nodes_at(n, t->fresh);
    t->fresh += n->node_bytes / NODES_UNIT;
    return node;
}

/* NULL when there is no memory left. */
QUEUE_INLINE struct node *nodes_get(struct nodes *n, struct nodes_thread *t)
{
    if (n->kind == NODES_MALLOC)
        return Q_ALLOC_NODE(n->node_bytes);
    if (n->kind == NODES_POOL) {
        uint32_t unit = nodes_stack_pop(n);
        return unit ? nodes_at(n, unit) : nodes_fresh(n, t);
    }
    if (Q_UNLIKELY(t->loaded.unit == 0)) {
        t->loaded = t->spare;
        t->spare = (struct nodes_magazine){0, 0};
        if (t->loaded.unit == 0 && t->fresh == t->fresh_end)
            t->loaded = (struct nodes_magazine){nodes_stack_pop(n), NODES_MAGAZINE};
        if (t->loaded.unit == 0) {
            t->loaded.count = 0;
            return nodes_fresh(n, t);
        }
    }
    struct node *node = nodes_at(n, t->loaded.unit);
    t->loaded.unit = (uint32_t)Q_LOAD(&node->words[0], relaxed);
    t->loaded.count--;
    return node;
}

QUEUE_INLINE void nodes_put(struct nodes *n, struct nodes_thread *t, struct node *node)
{
    if (n->kind == NODES_MALLOC) {
        Q_FREE_NODE(node);
        return;
    }
    uint32_t unit = nodes_unit(n, node);
    if (n->kind == NODES_POOL) {
        Q_STORE(&node->words[0], 0, relaxed);
        nodes_stack_push(n, unit);
        return;
    }
    if (Q_UNLIKELY(t->loaded.count >= NODES_MAGAZINE)) {
        if (t->spare.unit)
            nodes_stack_push(n, t->spare.unit);
        t->spare = t->loaded;
        t->loaded = (struct nodes_magazine){0, 0};
    }
    Q_STORE(&node->words[0], t->loaded.unit, relaxed);
    t->loaded.unit = unit;
    t->loaded.count++;
}

/* Gives the thread's magazines to the pool. */
static inline void nodes_leave(struct nodes *n, struct nodes_thread *t)
{
    if (n->kind == NODES_CACHE) {
        /* What is left of a fresh range becomes free nodes. */
        while (t->fresh != t->fresh_end)
            nodes_put(n, t, nodes_fresh(n, t));
        if (t->loaded.unit)
            nodes_stack_push(n, t->loaded.unit);
        if (t->spare.unit)
            nodes_stack_push(n, t->spare.unit);
    }
    memset(t, 0, sizeof(*t));
}

#endif
