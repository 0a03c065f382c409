/* SPDX-License-Identifier: MIT */
/* See contention.h. */
#include "bill/contention.h"
#include "base/memory.h"
#include "base/strings.h"

#include <sys/syscall.h>

static struct contention_lock *find(struct contention *c, const struct contention_lock *like)
{
    for (size_t i = 0; i < c->count; i++) {
        struct contention_lock *l = &c->locks[i];
        if (l->address == like->address && str_eq(l->wanted, like->wanted) &&
            str_eq(l->waiter, like->waiter))
            return l;
    }
    ARRAY_PUSH(c->locks, c->count, c->capacity) = *like;
    return &c->locks[c->count - 1];
}

/* Who ended the wait, by name. */
static const char *giver_of(const struct timeline *t, const struct timeline_piece *p)
{
    if (p->waker == TIMELINE_NONE)
        return NULL;
    if (p->waker_kind == WAKER_OUTSIDE)
        return t->names.items[p->waker];
    if (p->waker_kind != WAKER_THREAD || p->waker >= t->thread_count)
        return NULL;
    const struct timeline_thread *thread = &t->threads[p->waker];
    size_t piece = timeline_piece_before(thread, p->end_ns);
    return piece < thread->piece_count ? t->names.items[thread->pieces[piece].name] : NULL;
}

static void add(struct contention *c, const struct timeline *t, const struct timeline_piece *p,
                const struct bill_item *item)
{
    const struct timeline_call *call = p->call < t->call_count ? &t->calls[p->call] : NULL;
    bool is_futex = call && call->number == SYS_futex;
    struct contention_lock like = {.address = is_futex ? call->args[0] : 0,
                                   .wanted = item->what,
                                   .waiter = item->who,
                                   .is_kernel = !str_has_prefix(item->what, "lock wanted")};
    struct contention_lock *l = find(c, &like);
    const char *giver = giver_of(t, p);
    uint64_t ns = p->end_ns - p->start_ns;
    l->giver = !l->has_giver ? giver : l->giver && giver && str_eq(l->giver, giver) ? giver : NULL;
    l->has_giver = true;
    l->waits++;
    l->ns += ns;
    l->max_ns = ns > l->max_ns ? ns : l->max_ns;
    c->ns += ns;
}

static int by_time(const void *a, const void *b)
{
    const struct contention_lock *x = a, *y = b;
    return x->ns < y->ns ? 1 : x->ns > y->ns ? -1 : 0;
}

void contention_make(struct contention *c, const struct bill *b)
{
    *c = (struct contention){0};
    if (!b->run_count)
        return;
    const struct bill_run *run = &b->runs[b->run_count - 1];
    const struct timeline *t = &run->timeline;
    for (size_t i = 0; i < t->thread_count; i++)
        for (size_t k = 0; k < t->threads[i].piece_count; k++) {
            const struct timeline_piece *p = &t->threads[i].pieces[k];
            const struct bill_item *item = &b->items[run->items[i][k]];
            if (p->state == TIMELINE_WAITS && item->part == BILL_LOCK)
                add(c, t, p, item);
        }
    if (c->count)
        qsort(c->locks, c->count, sizeof(*c->locks), by_time);
}

void contention_done(struct contention *c)
{
    free(c->locks);
    *c = (struct contention){0};
}
