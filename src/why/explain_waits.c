/* SPDX-License-Identifier: MIT */
/*
 * Waits seen from the critical path.
 *
 * A thread that sleeps between two looks at something, beside the threads that do the work, may
 * sleep longer without making anything slower.  Which waits those are is a matter of the critical
 * path: a wait on it makes the command longer, whoever waits.  A thread that sleeps while it holds
 * a lock is on the path of those that want the lock.  And a thread that waits for another one adds
 * nothing, because the other's work is counted, unless it is its own time limit that ends the wait.
 * The profiles do not know the path, so one run of the side that waits longer is traced.
 */
#include "base/memory.h"
#include "bill/places.h"
#include "timeline/path.h"
#include "why/explain_internal.h"

#include <math.h>
#include <stdlib.h>

/* What has to have changed, as a part of CPU time and own waits: less is no reason. */
#define CHANGE_LEAST 0.01
#define PEERS_LEAST 0.1
/* A function whose waits are so little on the path: of these waits, and of the path. */
#define ON_PATH_MOST 0.1
#define OF_PATH_MOST 0.1
/* So much of its waits beside a step of the path of which nobody knows who ended it. */
#define IN_THE_DARK_MOST 0.1
/* So much of the waits for others has to end by a timer, and be on the path. */
#define TIMED_LEAST 0.5

/* All waits in a function of the program. */
struct waits {
    const char *function;
    double all_ns, path_ns;               /* in threads other than the first */
    double dark_ns;                       /* while the path waited for nobody knows whom */
    double futex_ns, timed_ns, limits_ns; /* in all threads; ended by a timer; and on the path */
};

struct waits_list {
    const struct timeline *t;
    const struct profile *profile;
    struct path path;
    bool *is_dark; /* each step of the path */
    struct waits *items;
    size_t count, capacity;
};

static const struct timeline_piece *piece_of(const struct waits_list *list, uint32_t thread,
                                             uint32_t piece)
{
    return &list->t->threads[thread].pieces[piece];
}

/* NULL for what is no wait, or nobody knows where. */
static struct waits *find_waits(struct waits_list *list, const struct timeline_piece *p)
{
    if (p->state != TIMELINE_WAITS || p->stack >= list->profile->calls.node_count)
        return NULL;
    const char *function = part_function_of(&list->profile->calls, p->stack);
    if (!function)
        return NULL;
    for (size_t i = 0; i < list->count; i++)
        if (str_eq(list->items[i].function, function))
            return &list->items[i];
    ARRAY_PUSH(list->items, list->count, list->capacity) = (struct waits){.function = function};
    return &list->items[list->count - 1];
}

static enum wait_kind kind_of(const struct waits_list *list, const struct timeline_piece *p)
{
    struct place place = {0};
    if (p->stack < list->profile->calls.node_count)
        place_find(&place, list->profile, p->stack);
    return place.wait;
}

/* A wait that data through a socket may have ended: they come by an interrupt even where a thread
 * of the command sent them. */
static bool is_dark(const struct waits_list *list, const struct path_step *s)
{
    if (s->piece == TIMELINE_NONE)
        return true;
    const struct timeline_piece *p = piece_of(list, s->thread, s->piece);
    if (p->state != TIMELINE_WAITS || p->waker_kind == WAKER_THREAD)
        return false;
    enum wait_kind kind = kind_of(list, p);
    return kind != WAIT_SLEEP && kind != WAIT_LOCK && kind != WAIT_STORAGE;
}

/* How long the path was in the dark during a wait. */
static double dark_during(const struct waits_list *list, const struct timeline_piece *p)
{
    const struct path *path = &list->path;
    size_t low = 0, high = path->count; /* the first step that ends behind the start */
    double sum = 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (path->steps[middle].end_ns <= p->start_ns)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < path->count && path->steps[low].start_ns < p->end_ns; low++) {
        const struct path_step *s = &path->steps[low];
        uint64_t from = s->start_ns > p->start_ns ? s->start_ns : p->start_ns;
        uint64_t to = s->end_ns < p->end_ns ? s->end_ns : p->end_ns;
        sum += list->is_dark[low] ? (double)(to - from) : 0;
    }
    return sum;
}

static void add_piece(struct waits_list *list, uint32_t thread, const struct timeline_piece *p)
{
    struct waits *waits = find_waits(list, p);
    double ns = (double)(p->end_ns - p->start_ns);
    if (!waits)
        return;
    if (thread) {
        waits->all_ns += ns;
        waits->dark_ns += dark_during(list, p);
    }
    if (kind_of(list, p) == WAIT_LOCK) {
        waits->futex_ns += ns;
        waits->timed_ns += p->waker_kind == WAKER_INTERRUPT ? ns : 0;
    }
}

static void add_step(struct waits_list *list, const struct path_step *s)
{
    const struct timeline_piece *p =
        s->piece == TIMELINE_NONE ? NULL : piece_of(list, s->thread, s->piece);
    struct waits *waits = p ? find_waits(list, p) : NULL;
    double ns = (double)(s->end_ns - s->start_ns);
    if (!waits)
        return;
    waits->path_ns += s->thread ? ns : 0;
    if (p->waker_kind == WAKER_INTERRUPT && kind_of(list, p) == WAIT_LOCK)
        waits->limits_ns += ns;
}

static void add_up(struct waits_list *list)
{
    list->is_dark = memory_zalloc(list->path.count + 1, sizeof(*list->is_dark));
    for (size_t i = 0; i < list->path.count; i++)
        list->is_dark[i] = is_dark(list, &list->path.steps[i]);
    for (uint32_t i = 0; i < list->t->thread_count; i++)
        for (uint32_t k = 0; k < list->t->threads[i].piece_count; k++)
            add_piece(list, i, piece_of(list, i, k));
    for (size_t i = 0; i < list->path.count; i++)
        add_step(list, &list->path.steps[i]);
}

static bool nothing_waits_for(const struct waits *w, double whole)
{
    return w->all_ns > 0 && w->path_ns < ON_PATH_MOST * w->all_ns &&
           w->path_ns < OF_PATH_MOST * whole && w->dark_ns < IN_THE_DARK_MOST * w->all_ns;
}

static bool wait_until_a_limit(const struct waits *w)
{
    return w->timed_ns > TIMED_LEAST * w->futex_ns && w->limits_ns > TIMED_LEAST * w->timed_ns;
}

/* What a run has of the parts that count, on average. */
static double cost_of(const struct parts *p, unsigned side, bool (*counts)(const struct part *))
{
    double sum = 0;
    for (size_t run = 0; run < p->run_counts[side]; run++)
        for (size_t i = 0; i < p->count; i++)
            sum += counts(&p->items[i]) ? p->items[i].weights[side][run] : 0;
    return p->run_counts[side] ? sum / (double)p->run_counts[side] : 0;
}

static bool is_own_cost(const struct part *p)
{
    return !p->is_wait || part_is_own_wait(p);
}

static bool is_wait_of_threads(const struct part *p)
{
    return part_is_peers(p) && str_has_prefix(p->name, "futex");
}

/* Which side is to be traced; SIDE_COUNT for none. */
static unsigned choose_side(const struct parts *p)
{
    double least = fmin(cost_of(p, SIDE_A, is_own_cost), cost_of(p, SIDE_B, is_own_cost));
    double background = p->background[SIDE_B] - p->background[SIDE_A];
    double peers = cost_of(p, SIDE_B, is_wait_of_threads) - cost_of(p, SIDE_A, is_wait_of_threads);
    if (fabs(background) >= CHANGE_LEAST * least)
        return background > 0 ? SIDE_B : SIDE_A;
    if (fabs(peers) >= PEERS_LEAST * least)
        return peers > 0 ? SIDE_B : SIDE_A;
    return SIDE_COUNT;
}

void explain_look_at_waits(struct parts_waits *found, const struct explain *e,
                           const struct explain_settings *settings, const struct explain_runs *runs,
                           const struct parts *parts)
{
    struct timeline t = {0};
    struct profile *profile = NULL;
    found->side = choose_side(parts);
    if (found->side == SIDE_COUNT ||
        explain_trace(e, settings, runs, found->side, &t, &profile) < 0)
        return;
    struct waits_list list = {.t = &t, .profile = profile};
    path_find(&list.path, &t);
    add_up(&list);
    double whole = (double)(t.end_ns - t.start_ns);
    for (size_t i = 0; i < list.count; i++) {
        const struct waits *w = &list.items[i];
        bool is_timed = wait_until_a_limit(w);
        if (is_timed || nothing_waits_for(w, whole))
            ARRAY_PUSH(found->items, found->count, found->capacity) =
                (struct parts_waiter){memory_strdup(w->function), is_timed};
    }
    free(list.items);
    free(list.is_dark);
    path_done(&list.path);
    timeline_done(&t);
    profile_free(profile);
}

void parts_waits_done(struct parts_waits *waits)
{
    for (size_t i = 0; i < waits->count; i++)
        free(waits->items[i].function);
    free(waits->items);
    *waits = (struct parts_waits){0};
}
