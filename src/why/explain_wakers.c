/* SPDX-License-Identifier: MIT */
/*
 * Who ended a wait?  The profiles know where a thread waited, not who woke it.  So the side that
 * waits longer runs once more with every wake-up traced, and each reason that is a wait is told who
 * ended most of it: a thread of the command and where that was meanwhile, or another program.
 */
#include "base/memory.h"
#include "bill/bill_run.h"
#include "why/explain_internal.h"

#include <math.h>
#include <stdlib.h>

/* Of the time of all waits in a function: less is nobody's doing in particular. */
#define MOST 0.6

enum { FREQUENCY_HZ = 999 };

/* All waits in one function that one waker ended. */
struct woken {
    const char *waiter, *from; /* functions; from: where the waker was, NULL when not known */
    const char *program;       /* another one, NULL for a thread of the command */
    bool by_interrupt;         /* by no thread: a timer or a device */
    double ns;
};

struct woken_list {
    struct woken *items;
    size_t count, capacity;
};

static bool same(const char *a, const char *b)
{
    return a == b || (a && b && str_eq(a, b));
}

static void add_woken(struct woken_list *list, struct woken woken)
{
    for (size_t i = 0; i < list->count; i++)
        if (same(list->items[i].waiter, woken.waiter) && same(list->items[i].from, woken.from) &&
            same(list->items[i].program, woken.program) &&
            list->items[i].by_interrupt == woken.by_interrupt) {
            list->items[i].ns += woken.ns;
            return;
        }
    ARRAY_PUSH(list->items, list->count, list->capacity) = woken;
}

static const char *function_of(const struct profile *profile, uint32_t stack)
{
    struct place place = {0};
    if (!profile || stack >= profile->calls.node_count)
        return NULL;
    place_find(&place, profile, stack);
    return place.program_function;
}

/* Where a thread was seen last before a moment, but not before the wait began. */
static const char *seen_in(const struct timeline_thread *thread, const struct profile *profile,
                           const struct timeline_piece *wait)
{
    for (size_t i = thread->piece_count; i-- > 0;) {
        const struct timeline_piece *p = &thread->pieces[i];
        if (p->start_ns >= wait->end_ns)
            continue;
        if (p->end_ns <= wait->start_ns)
            return NULL;
        const char *function = function_of(profile, p->stack);
        if (function)
            return function;
    }
    return NULL;
}

static void add_wait(struct woken_list *list, const struct timeline *t,
                     const struct profile *profile, const struct timeline_piece *p)
{
    const char *waiter = function_of(profile, p->stack);
    struct woken woken = {.waiter = waiter, .ns = (double)(p->end_ns - p->start_ns)};
    if (!waiter)
        return;
    if (p->waker_kind == WAKER_THREAD && p->waker < t->thread_count)
        woken.from = seen_in(&t->threads[p->waker], profile, p);
    else if (p->waker_kind == WAKER_OUTSIDE && p->waker < t->names.count)
        woken.program = t->names.items[p->waker];
    else if (p->waker_kind == WAKER_INTERRUPT)
        woken.by_interrupt = true;
    else
        return; /* not known */
    add_woken(list, woken);
}

/* Who ended most of the waits in a function; NULL when that is no single one. */
static const struct woken *find_main(const struct woken_list *list, const char *waiter)
{
    const struct woken *largest = NULL;
    double all = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (!str_eq(list->items[i].waiter, waiter))
            continue;
        all += list->items[i].ns;
        if (!largest || list->items[i].ns > largest->ns)
            largest = &list->items[i];
    }
    return largest && largest->ns >= MOST * all ? largest : NULL;
}

static void tell(struct reason *reason, const struct woken *by)
{
    struct strbuf out = {0};
    strbuf_puts(&out, reason->evidence);
    if (by->by_interrupt)
        strbuf_puts(&out, "ended by a timer or a device\n");
    else if (by->program)
        strbuf_printf(&out, "ended by another program: %s\n", by->program);
    else if (by->from)
        strbuf_printf(&out, "ended by another thread of the command, which was in %s\n", by->from);
    else
        strbuf_puts(&out, "ended by another thread of the command\n");
    free(reason->evidence);
    reason->evidence = out.data;
}

static bool wants_waker(const struct reason *r)
{
    return r->kind == REASON_WAIT && r->waiter && attributed_is_told(&r->cost);
}

int explain_trace(const struct explain *e, const struct explain_settings *settings,
                  const struct explain_runs *runs, unsigned side, struct timeline *t,
                  struct profile **ret_profile)
{
    struct error err;
    char *const *argv = runs->argv ? runs->argv(runs->context, side) : NULL;
    if (!argv)
        return -1;
    struct command command = {.text = e->names[side], .argv = (char **)argv};
    struct bill_settings s = {.command = &command,
                              .frequency_hz =
                                  settings->frequency_hz ? settings->frequency_hz : FREQUENCY_HZ,
                              .folder = settings->folder};
    runs->progress(runs->context, EXPLAIN_TRACE, 0, 1);
    return bill_trace(&s, t, ret_profile, &err);
}

void explain_find_wakers(struct explain *e, const struct explain_settings *settings,
                         const struct explain_runs *runs)
{
    struct timeline t = {0};
    struct profile *profile = NULL;
    struct woken_list list = {0};
    bool any = false;
    for (size_t i = 0; i < e->reason_count; i++)
        any |= wants_waker(&e->reasons[i]);
    unsigned side = e->waits.change >= 0 ? SIDE_B : SIDE_A;
    if (!any || explain_trace(e, settings, runs, side, &t, &profile) < 0)
        return;
    for (size_t i = 0; i < t.thread_count; i++)
        for (size_t k = 0; k < t.threads[i].piece_count; k++)
            if (t.threads[i].pieces[k].state == TIMELINE_WAITS)
                add_wait(&list, &t, profile, &t.threads[i].pieces[k]);
    for (size_t i = 0; i < e->reason_count; i++) {
        struct reason *reason = &e->reasons[i];
        const struct woken *by = wants_waker(reason) ? find_main(&list, reason->waiter) : NULL;
        if (by)
            tell(reason, by);
    }
    free(list.items);
    timeline_done(&t);
    profile_free(profile);
}
