/* SPDX-License-Identifier: MIT */
/*
 * ms: an unbounded queue for any number of producers and consumers, linked (Michael and Scott
 * 1996), with the source of its nodes (nodes.h) and their reclamation (reclaim.h) chosen apart.
 *
 * Progress   lock-free, as far as the node source is.  A thread that stalls or dies inside a call
 *            does not hold up others.
 * Order      first in, first out over all producers; linearizable.
 * Memory     16 bytes for an 8-byte item in the queue; besides, for each thread what reclaim.h
 *            keeps (bounded with RECLAIM_HAZARD and RECLAIM_TAGGED, unbounded with RECLAIM_EPOCH
 *            while a thread stalls inside a call) and two magazines of nodes.h.  The pools keep
 *            the largest number of nodes ever in use, malloc gets them back.
 * Failure    try_pop fails only when the queue is empty, push only when there is no memory.
 *
 * Sketch.  The list begins with a node whose item was taken; `head` names it.  A push links its
 * node behind the last one by compare-and-swap of that one's `next`, and then moves `tail` on;
 * whoever finds `tail` behind moves it.  A pop moves `head` to the next node, whose item is the
 * result, and retires the old one.
 *
 * What is new here is `limit`.  A pop must not move `head` past `tail`, or a push would link to
 * a node that was retired.  Michael and Scott's pop reads `tail` each time, so that the line of the
 * producers goes to the consumers and back with each item.  `limit` stands beside `head` and names
 * a node that `tail` is known to have reached; only when `head` gets there `tail` is read again.
 *
 * Why this is correct.
 * (1) head ≤ limit ≤ tail in the order of the list, always.  limit moves only from the node at
 *     which head stands to one that was tail while head stood there: the compare-and-swap of limit
 *     fails if it has moved, and as long as limit is there head is, too.  head moves to the next
 *     node only when limit was seen to be another node than head while head stood there; that one
 *     lies behind.
 * (2) That "head stood there all the while" is what the compare-and-swap of head tells, or the
 *     second load of head.  It tells the truth if the node cannot have been taken out, released and
 *     put in again meanwhile: it is protected by a hazard slot or by the epoch, or the tag would
 *     differ.
 * (3) A node that a push links to is the tail and not retired by (1); its `next` is null once and
 *     changes once while it is in the list.  With tags, `next` was read while the node was the tail
 *     (tail is looked at again after it), and a later life of the node has another tag in `next`.
 * (4) An item is read before head is moved and used only if moving succeeds; with tags the node may
 *     meanwhile be filled again, so its words are atomic.
 * (5) try_pop returns false only after it saw the next of head's node null and then head still
 *     there: between the two loads the list had no further node.
 * (6) Who reads tail or limit, with acquire, sees all nodes up to there, their links and items:
 *     tail is moved, with release, by who made the nodes up to there or has acquired the `next`
 *     that leads to them, after having acquired tail itself; and limit by who has acquired tail.
 *     A pop does not go beyond limit, and its limit is not older than its head (who moved head had
 *     read limit before, and head is acquired), so no load of `next` on its way needs an order.
 *     Nor does a store to the `next` of a node in a chain that is not linked yet: it is not null,
 *     and so leads who still holds the node from its last life, with tags, only to a
 *     compare-and-swap of head or tail, which fails.  (The null that ms_fill stores would be taken
 *     for the end of the list.)
 *
 * A link is the node's address, or with RECLAIM_TAGGED tag << 32 | unit.
 */
#ifndef ASSAY_QUEUE_MS_H
#define ASSAY_QUEUE_MS_H

#include "nodes.h"
#include "reclaim.h"

#define MS_BATCH_MAX 64

struct ms {
    struct nodes nodes;
    struct reclaim reclaim;
    QUEUE_ALIGNED uint64_t head;
    uint64_t limit; /* in the line of head: both are the consumers' */
    QUEUE_ALIGNED uint64_t tail;
};

/* One for each thread that uses the queue; its own. */
struct ms_thread {
    QUEUE_ALIGNED struct reclaim_thread *reclaim;
    struct nodes_thread nodes;
};

QUEUE_INLINE bool ms_tagged(const struct ms *q)
{
    return q->reclaim.kind == RECLAIM_TAGGED;
}

QUEUE_INLINE struct node *ms_node(const struct ms *q, uint64_t link)
{
    return ms_tagged(q) ? nodes_at(&q->nodes, (uint32_t)link) : (struct node *)(uintptr_t)link;
}

QUEUE_INLINE bool ms_is_null(const struct ms *q, uint64_t link)
{
    return ms_tagged(q) ? (uint32_t)link == 0 : link == 0;
}

QUEUE_INLINE bool ms_same(const struct ms *q, uint64_t a, uint64_t b)
{
    return ms_tagged(q) ? (uint32_t)a == (uint32_t)b : a == b;
}

/* The link that names the node of `to`, to be stored where `old` stands. */
QUEUE_INLINE uint64_t ms_link(const struct ms *q, uint64_t to, uint64_t old)
{
    return ms_tagged(q) ? ((old >> 32) + 1) << 32 | (uint32_t)to : to;
}

QUEUE_INLINE uint64_t ms_name(const struct ms *q, struct node *node)
{
    return ms_tagged(q) ? nodes_unit(&q->nodes, node) : (uint64_t)(uintptr_t)node;
}

static inline void ms_release(void *owner, void *thread, uint64_t link)
{
    struct ms *q = (struct ms *)owner;
    struct ms_thread *t = (struct ms_thread *)thread;
    nodes_put(&q->nodes, &t->nodes, ms_node(q, link));
}

/* Before any thread: the node at which head stands.  False when there is no memory.  The nodes are
 * initialised by the caller (nodes_init). */
static inline bool ms_init(struct ms *q, enum reclaim_kind kind, bool cheap, uint64_t batch)
{
    struct nodes_thread t;
    memset(&t, 0, sizeof(t));
    reclaim_init(&q->reclaim, kind, cheap, batch, ms_release, q);
    struct node *first = nodes_get(&q->nodes, &t);
    if (!first)
        return false;
    Q_STORE(&first->next, 0, relaxed);
    Q_STORE(&q->head, ms_name(q, first), relaxed);
    Q_STORE(&q->limit, ms_name(q, first), relaxed);
    Q_STORE(&q->tail, ms_name(q, first), relaxed);
    nodes_leave(&q->nodes, &t);
    return true;
}

/* False when QUEUE_THREADS_MAX threads use the queue already. */
static inline bool ms_join(struct ms *q, struct ms_thread *t)
{
    memset(t, 0, sizeof(*t));
    t->reclaim = reclaim_join(&q->reclaim);
    return t->reclaim != NULL;
}

static inline void ms_leave(struct ms *q, struct ms_thread *t)
{
    reclaim_leave(&q->reclaim, t->reclaim, t);
    nodes_leave(&q->nodes, &t->nodes);
}

/* When no thread uses it any more; what is still in it is dropped. */
static inline void ms_done(struct ms *q)
{
    struct ms_thread t;
    memset(&t, 0, sizeof(t));
    uint64_t link = q->head;
    while (!ms_is_null(q, link)) {
        struct node *node = ms_node(q, link);
        link = node->next;
        nodes_put(&q->nodes, &t.nodes, node);
    }
    reclaim_done(&q->reclaim, &t);
    nodes_done(&q->nodes);
}

/* A node with the item in it; 0 when there is no memory. */
QUEUE_INLINE uint64_t ms_fill(struct ms *q, struct ms_thread *t, const void *item, size_t bytes)
{
    struct node *node = nodes_get(&q->nodes, &t->nodes);
    if (!node)
        return 0;
    for (size_t i = 0; i < bytes / 8; i++) {
        uint64_t word;
        memcpy(&word, (const char *)item + i * 8, 8);
        Q_STORE(&node->words[i], word, relaxed);
    }
    uint64_t old = ms_tagged(q) ? Q_LOAD(&node->next, relaxed) : 0;
    /* Partner: the loads of next.  With tags, who still holds the node from its last life and reads
     * this one's next must then see that head or tail have moved. */
    Q_STORE(&node->next, ms_link(q, 0, old), release);
    return ms_name(q, node);
}

/* Another thread of this side was faster; left alone for a moment, it gets some items ahead without
 * the lines of head or tail going to and fro. */
QUEUE_INLINE void ms_lost(void)
{
    queue_wait(QUEUE_BACKOFF);
}

/* Puts the chain from `first` to `last` behind the last node. */
QUEUE_INLINE void ms_append(struct ms *q, struct ms_thread *t, uint64_t first, uint64_t last)
{
    reclaim_enter(&q->reclaim, t->reclaim);
    Q_FOREVER (first) {
        /* Partner: the stores to tail below: who sees a node there sees its next, too. */
        uint64_t tail = Q_LOAD(&q->tail, acquire);
        if (!reclaim_protect(&q->reclaim, t->reclaim, 0, tail, &q->tail, tail))
            continue;
        struct node *node = ms_node(q, tail);
        /* Partner: the compare-and-swap of next below; what it links is then moved to tail. */
        uint64_t next = Q_LOAD(&node->next, acquire);
        if (ms_tagged(q) && Q_LOAD(&q->tail, relaxed) != tail)
            continue;
        if (Q_UNLIKELY(!ms_is_null(q, next))) {
            /* Partner: the load of tail above. */
            Q_CAS(&q->tail, &tail, ms_link(q, next, tail), release);
            continue;
        }
        /* Partner: the loads of next above and in ms_raise_limit, which then see the chain. */
        if (Q_LIKELY(Q_CAS(&node->next, &next, ms_link(q, first, next), release))) {
            /* Partner: the load of tail above.  If it fails, another has
             * moved tail, at least to the first node of the chain. */
            Q_CAS(&q->tail, &tail, ms_link(q, last, tail), release);
            break;
        }
        ms_lost();
    }
    reclaim_exit(&q->reclaim, t->reclaim);
}

/* False when there is no memory left. */
QUEUE_INLINE bool ms_push(struct ms *q, struct ms_thread *t, const void *item, size_t bytes)
{
    uint64_t link = ms_fill(q, t, item, bytes);
    if (!link)
        return false;
    ms_append(q, t, link, link);
    return true;
}

/* Pushes up to `count` items, one behind the other; fewer only when there is no memory left. */
QUEUE_INLINE size_t ms_push_some(struct ms *q, struct ms_thread *t, const void *items, size_t count,
                                 size_t bytes)
{
    uint64_t first = count ? ms_fill(q, t, items, bytes) : 0, last = first;
    if (!first)
        return 0;
    size_t filled = 1;
    for (; filled < count; filled++) {
        uint64_t link = ms_fill(q, t, (const char *)items + filled * bytes, bytes);
        if (!link)
            break;
        struct node *node = ms_node(q, last);
        uint64_t old = ms_tagged(q) ? Q_LOAD(&node->next, relaxed) : 0;
        /* Seen with whatever leads to the chain, see (6). */
        Q_STORE(&node->next, ms_link(q, link, old), relaxed);
        last = link;
    }
    ms_append(q, t, first, last);
    return filled;
}

/*
 * head stands at limit.  Moves limit to the tail; false when head is the tail and nothing follows.
 * True says only that it is worth another try.
 */
QUEUE_INLINE bool ms_raise_limit(struct ms *q, uint64_t head, uint64_t limit)
{
    /* Partner: the stores to tail in ms_append.  With tags the tail may be head's node in its next
     * life; then its next and head itself must be seen as they are by now. */
    uint64_t tail = Q_LOAD(&q->tail, acquire);
    /* Partner: the compare-and-swap of next in ms_append. */
    uint64_t next = Q_LOAD(&ms_node(q, head)->next, acquire);
    if (Q_LOAD(&q->head, relaxed) != head)
        return true;
    if (!ms_same(q, tail, head)) {
        /* Partner: the load of limit in ms_pop_some. */
        Q_CAS(&q->limit, &limit, ms_link(q, tail, limit), release);
        return true;
    }
    if (ms_is_null(q, next))
        return false;
    /* Partner: the load of tail in ms_append. */
    Q_CAS(&q->tail, &tail, ms_link(q, next, tail), release);
    return true;
}

/* Pops up to `count` (at most MS_BATCH_MAX) items; returns how many. */
QUEUE_INLINE size_t ms_pop_some(struct ms *q, struct ms_thread *t, void *items, size_t count,
                                size_t bytes)
{
    uint64_t taken[MS_BATCH_MAX];
    size_t found;
    reclaim_enter(&q->reclaim, t->reclaim);
    Q_FOREVER (0) {
        /* Partner: the compare-and-swap of head below. */
        uint64_t head = Q_LOAD(&q->head, acquire), link = head, next = head;
        found = 0;
        if (!reclaim_protect(&q->reclaim, t->reclaim, 0, head, &q->head, head))
            continue;
        /* Partner: the compare-and-swap of limit in ms_raise_limit: tail is then not older than
         * what limit was made of, so it does not lie behind head. */
        uint64_t limit = Q_LOAD(&q->limit, acquire);
        if (Q_UNLIKELY(ms_same(q, limit, head))) {
            if (!ms_raise_limit(q, head, limit))
                break;
            continue;
        }
        while (found < (count < MS_BATCH_MAX ? count : MS_BATCH_MAX)) {
            if (found && ms_same(q, limit, link))
                break;
            /* Seen with limit, see (6). */
            next = Q_LOAD(&ms_node(q, link)->next, relaxed);
            if (ms_is_null(q, next) ||
                !reclaim_protect(&q->reclaim, t->reclaim, 1 + found % 2, next, &q->head, head))
                break;
            struct node *node = ms_node(q, next);
            for (size_t i = 0; i < bytes / 8; i++) {
                uint64_t word = Q_LOAD(&node->words[i], relaxed);
                memcpy((char *)items + found * bytes + i * 8, &word, 8);
            }
            taken[found++] = link;
            link = next;
            if (ms_tagged(q) && Q_LOAD(&q->head, relaxed) != head)
                break;
        }
        /* Partner: the load of head above: who sees the new head sees its next, too. */
        if (found && Q_LIKELY(Q_CAS(&q->head, &head, ms_link(q, link, head), release)))
            break;
        if (found)
            ms_lost();
    }
    for (size_t i = 0; i < found; i++)
        reclaim_retire(&q->reclaim, t->reclaim, t, taken[i]);
    reclaim_exit(&q->reclaim, t->reclaim);
    return found;
}

QUEUE_INLINE bool ms_try_pop(struct ms *q, struct ms_thread *t, void *item, size_t bytes)
{
    return ms_pop_some(q, t, item, 1, bytes) == 1;
}

#endif
