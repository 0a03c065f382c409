/* SPDX-License-Identifier: MIT */
/*
 * Waits that nothing waits for.
 *
 * A thread that sleeps between two looks at something, beside the threads that do the work, may
 * sleep longer without making anything slower.  Which waits those are is a matter of the critical
 * path: a wait on it makes the command longer, whoever waits.  A thread that sleeps while it holds
 * a lock is on the path of those that want the lock.  The profiles do not know the path, so one run
 * of the side that waits longer is traced.
 */
#include "base/memory.h"
#include "bill/places.h"
#include "timeline/path.h"
#include "why/explain_internal.h"

#include <math.h>
#include <stdlib.h>

/* What has to have changed, as a part of CPU time and own waits: less is no reason. */
#define CHANGE_LEAST 0.01
/* A function whose waits are so little on the path: of these waits, and of the path. */
#define ON_PATH_MOST 0.1
#define OF_PATH_MOST 0.1

/* So much of its waits beside a step of the path of which nobody knows who ended it. */
#define IN_THE_DARK_MOST 0.1

struct waits {
    const char *function;
    double all_ns, path_ns;
    double dark_ns; /* while the path waited for nobody knows whom */
};

struct waits_list {
    const struct timeline *t;
    const struct profile *profile;
    struct waits *items;
    size_t count, capacity;
};

/* Those of threads other than the first; NULL for others. */
static struct waits *find_waits(struct waits_list *list, uint32_t thread, uint32_t piece)
{
    const struct timeline_piece *p = &list->t->threads[thread].pieces[piece];
    if (!thread || p->state != TIMELINE_WAITS || p->stack >= list->profile->calls.node_count)
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

/* A wait that data through a socket may have ended: they come by an interrupt even where a thread
 * of the command sent them. */
static bool is_dark(const struct waits_list *list, const struct path_step *s)
{
    if (s->piece == TIMELINE_NONE)
        return true;
    const struct timeline_piece *p = &list->t->threads[s->thread].pieces[s->piece];
    if (p->state != TIMELINE_WAITS || p->waker_kind == WAKER_THREAD)
        return false;
    struct place place = {0};
    if (p->stack < list->profile->calls.node_count)
        place_find(&place, list->profile, p->stack);
    return place.wait != WAIT_SLEEP && place.wait != WAIT_LOCK && place.wait != WAIT_STORAGE;
}

/* How long the path was in the dark between two moments. */
static double dark_between(const struct waits_list *list, const struct path *path,
                           uint64_t start_ns, uint64_t end_ns)
{
    size_t low = 0, high = path->count; /* the first step that ends behind the start */
    double sum = 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (path->steps[middle].end_ns <= start_ns)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < path->count && path->steps[low].start_ns < end_ns; low++) {
        const struct path_step *s = &path->steps[low];
        uint64_t from = s->start_ns > start_ns ? s->start_ns : start_ns;
        uint64_t to = s->end_ns < end_ns ? s->end_ns : end_ns;
        sum += is_dark(list, s) ? (double)(to - from) : 0;
    }
    return sum;
}

static void add_up(struct waits_list *list, const struct path *path)
{
    for (uint32_t i = 1; i < list->t->thread_count; i++)
        for (uint32_t k = 0; k < list->t->threads[i].piece_count; k++) {
            const struct timeline_piece *p = &list->t->threads[i].pieces[k];
            struct waits *waits = find_waits(list, i, k);
            if (!waits)
                continue;
            waits->all_ns += (double)(p->end_ns - p->start_ns);
            waits->dark_ns += dark_between(list, path, p->start_ns, p->end_ns);
        }
    for (size_t i = 0; i < path->count; i++) {
        const struct path_step *s = &path->steps[i];
        struct waits *waits =
            s->piece == TIMELINE_NONE ? NULL : find_waits(list, s->thread, s->piece);
        if (waits)
            waits->path_ns += (double)(s->end_ns - s->start_ns);
    }
}

static double own_costs(const struct parts *p, unsigned side)
{
    double sum = 0;
    for (size_t run = 0; run < p->run_counts[side]; run++) {
        sum += p->cpu_weights[side][run];
        for (size_t i = 0; i < p->count; i++)
            sum += part_is_own_wait(&p->items[i]) ? p->items[i].weights[side][run] : 0;
    }
    return p->run_counts[side] ? sum / (double)p->run_counts[side] : 0;
}

void explain_find_idle(struct parts_idle *idle, const struct explain *e,
                       const struct explain_settings *settings, const struct explain_runs *runs,
                       const struct parts *parts)
{
    const double *waits = parts->background;
    struct timeline t = {0};
    struct profile *profile = NULL;
    struct path path;
    idle->side = waits[SIDE_B] >= waits[SIDE_A] ? SIDE_B : SIDE_A;
    double least = fmin(own_costs(parts, SIDE_A), own_costs(parts, SIDE_B));
    if (fabs(waits[SIDE_B] - waits[SIDE_A]) < CHANGE_LEAST * least ||
        explain_trace(e, settings, runs, idle->side, &t, &profile) < 0)
        return;
    struct waits_list list = {.t = &t, .profile = profile};
    path_find(&path, &t);
    add_up(&list, &path);
    double whole = (double)(t.end_ns - t.start_ns);
    for (size_t i = 0; i < list.count; i++)
        if (list.items[i].path_ns < ON_PATH_MOST * list.items[i].all_ns &&
            list.items[i].path_ns < OF_PATH_MOST * whole &&
            list.items[i].dark_ns < IN_THE_DARK_MOST * list.items[i].all_ns)
            ARRAY_PUSH(idle->functions, idle->count, idle->capacity) =
                memory_strdup(list.items[i].function);
    free(list.items);
    path_done(&path);
    timeline_done(&t);
    profile_free(profile);
}

void parts_idle_done(struct parts_idle *idle)
{
    for (size_t i = 0; i < idle->count; i++)
        free(idle->functions[i]);
    free(idle->functions);
    *idle = (struct parts_idle){0};
}
