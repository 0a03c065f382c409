/* SPDX-License-Identifier: MIT */
/* Who ended the waits of a recording made with `assay record --wakers`, as text. */
#include "base/memory.h"
#include "report/profile/profile_report.h"

#include <errno.h>
#include <stdlib.h>

/* All waits in one function that one task, or an interrupt, ended. */
struct wakes {
    uint32_t waiter; /* symbol, IDTABLE_NONE for none */
    const char *by;
    uint64_t count, ns;
};

struct wakes_list {
    struct wakes *items;
    size_t count, capacity;
    uint64_t ns;
};

/* The function of the program that waits: beyond the kernel and the C library. */
static uint32_t waiter_of(const struct calls *c, uint32_t node)
{
    uint32_t innermost = IDTABLE_NONE;
    for (; node; node = c->nodes[node].parent) {
        uint32_t frame = c->nodes[node].frame;
        const char *dso = calls_dso(c, frame);
        if (calls_symbol(c, frame)->is_kernel)
            continue;
        if (innermost == IDTABLE_NONE)
            innermost = c->frames[frame].symbol;
        if (!str_has_prefix(dso, "libc.so") && !str_has_prefix(dso, "libc-") &&
            !str_has_prefix(dso, "libpthread") && !str_has_prefix(dso, "ld-"))
            return c->frames[frame].symbol;
    }
    return innermost;
}

static void add_wait(struct wakes_list *list, uint32_t waiter, const char *by, uint64_t ns)
{
    size_t i = 0;
    while (i < list->count && (list->items[i].waiter != waiter || !str_eq(list->items[i].by, by)))
        i++;
    if (i == list->count)
        ARRAY_PUSH(list->items, list->count, list->capacity) =
            (struct wakes){.waiter = waiter, .by = by};
    list->items[i].count++;
    list->items[i].ns += ns;
    list->ns += ns;
}

static int by_time(const void *left, const void *right)
{
    const struct wakes *a = left, *b = right;
    return a->ns < b->ns ? 1 : a->ns > b->ns ? -1 : 0;
}

static bool has_wakers(const struct profile *p)
{
    for (size_t i = 0; i < p->waker_count; i++)
        if (p->wakers[i] != PROFILE_WAKER_UNKNOWN)
            return true;
    return false;
}

/* Not every wake-up is in a recording; the table adds up to the waits all the same. */
static void list_waits(struct wakes_list *list, const struct profile *p)
{
    for (size_t i = 0; i < p->sample_count && i < p->waker_count; i++) {
        const struct profile_sample *s = &p->samples[i];
        uint32_t by = p->wakers[i];
        if (by == PROFILE_WAKER_UNKNOWN && !str_eq(p->events[s->event].name, "off-cpu"))
            continue;
        add_wait(list, waiter_of(&p->calls, p->call_nodes[s->node]),
                 by == PROFILE_WAKER_UNKNOWN     ? "not recorded"
                 : by == PROFILE_WAKER_INTERRUPT ? "a timer or a device"
                                                 : tasks_comm(&p->tasks, by),
                 s->weight);
    }
    if (list->count)
        qsort(list->items, list->count, sizeof(*list->items), by_time);
}

int profile_put_wakers(const struct profile *p, struct strbuf *out, struct error *err)
{
    struct wakes_list list = {0};
    char time[32];
    if (has_wakers(p))
        list_waits(&list, p);
    if (!list.count)
        return error_set(err, -ENOENT, "%s does not say who ended waits; record with --wakers",
                         p->path);
    strbuf_printf(out,
                  "# Who ended the waits: %s in all\n#\n#  Share        Time    Waits  Waiter"
                  "                           Ended by\n",
                  format_duration((double)list.ns, time, sizeof(time)));
    for (size_t i = 0; i < list.count; i++) {
        const struct wakes *w = &list.items[i];
        CLEANUP(strbuf_done) struct strbuf waiter = {0};
        if (w->waiter == IDTABLE_NONE)
            strbuf_puts(&waiter, "[kernel]");
        else
            calls_put_name(&p->calls, w->waiter, &waiter);
        strbuf_printf(out, "  %5.1f%%  %10s  %7llu  %-31s  %s\n",
                      list.ns ? 100.0 * (double)w->ns / (double)list.ns : 0.0,
                      format_duration((double)w->ns, time, sizeof(time)),
                      (unsigned long long)w->count, strbuf_text(&waiter), w->by);
    }
    free(list.items);
    return 0;
}
