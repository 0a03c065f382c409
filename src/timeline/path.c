/* SPDX-License-Identifier: MIT */
/* The critical path: see path.h. */
#include "timeline/path.h"
#include "base/memory.h"

#define JUMPS_MAX 64 /* from thread to thread at one moment: more is nonsense */

/* A thread that sleeps again and again: so many times before, among so many pieces; and how much of
 * the time it runs at most. */
enum { SLEEPS_BEFORE = 3, PIECES_BEFORE = 64 };
#define RUNS_MOST 0.2

struct walk {
    const struct timeline *t;
    struct path *path;
    uint32_t thread;
    uint64_t time_ns;
    unsigned jumps;
    /* The waits that the path came from and that still last, the innermost last. */
    struct walk_wait {
        uint32_t thread, piece;
        uint64_t start_ns;
    } * waits;
    size_t wait_count, wait_capacity;
    /* Where the path left a thread for the one that had ended its wait, the latest last. */
    struct walk_origin {
        uint32_t thread, followed;
        uint64_t start_ns, end_ns; /* of the wait */
        uint64_t ran_ns;           /* by the one that was followed, since */
    } * origins;
    size_t origin_count, origin_capacity;
};

/* The latest one, if the path is still with the thread that it led to. */
static struct walk_origin *origin_of(const struct walk *w)
{
    struct walk_origin *o = w->origin_count ? &w->origins[w->origin_count - 1] : NULL;
    return o && o->followed == w->thread ? o : NULL;
}

static void step_back(struct walk *w, uint64_t to_ns, uint32_t piece)
{
    while (w->wait_count && w->waits[w->wait_count - 1].start_ns >= w->time_ns)
        w->wait_count--;
    const struct walk_wait *wait = w->wait_count ? &w->waits[w->wait_count - 1] : NULL;
    /* A step ends where what it keeps waiting began: before, it was for itself. */
    if (wait && wait->start_ns > to_ns)
        to_ns = wait->start_ns;
    ARRAY_PUSH(w->path->steps, w->path->count, w->path->capacity) = (struct path_step){
        .start_ns = to_ns,
        .end_ns = w->time_ns,
        .thread = w->thread,
        .piece = piece,
        .waiter = wait ? wait->thread : TIMELINE_NONE,
        .waiter_piece = wait ? wait->piece : TIMELINE_NONE,
    };
    struct walk_origin *origin = origin_of(w);
    if (piece == TIMELINE_NONE)
        w->path->unknown_ns += w->time_ns - to_ns;
    else if (origin && w->t->threads[w->thread].pieces[piece].state == TIMELINE_RUNS)
        origin->ran_ns += w->time_ns - to_ns;
    w->time_ns = to_ns;
    w->jumps = 0;
}

/* Whether the wait was ended by a thread that ran at that moment, as far as is known. */
static bool can_follow(const struct walk *w, const struct timeline_piece *p)
{
    if (p->state != TIMELINE_WAITS || p->waker_kind != WAKER_THREAD || p->end_ns != w->time_ns ||
        p->waker >= w->t->thread_count || w->jumps >= JUMPS_MAX)
        return false;
    const struct timeline_thread *by = &w->t->threads[p->waker];
    size_t piece = timeline_piece_before(by, w->time_ns);
    return piece < by->piece_count && by->pieces[piece].state == TIMELINE_RUNS;
}

/* To the thread that made this one, where it is known and its time is not over. */
static bool go_to_creator(struct walk *w)
{
    const struct timeline_thread *thread = &w->t->threads[w->thread];
    if (thread->creator == TIMELINE_NONE || w->time_ns > thread->made_ns || w->jumps >= JUMPS_MAX)
        return false;
    w->thread = thread->creator;
    w->jumps++;
    return true;
}

static bool is_timer_wait(const struct timeline_piece *p)
{
    return p->state == TIMELINE_WAITS && p->waker_kind == WAKER_INTERRUPT;
}

static bool is_same_wait(const struct timeline *t, const struct timeline_piece *a,
                         const struct timeline_piece *b)
{
    if (a->call != TIMELINE_NONE && b->call != TIMELINE_NONE)
        return t->calls[a->call].number == t->calls[b->call].number;
    return a->stack != TIMELINE_NONE && a->stack == b->stack;
}

static bool is_repeated(const struct timeline *t, const struct timeline_thread *thread,
                        size_t piece)
{
    unsigned before = 0;
    for (size_t i = piece; i-- > 0 && piece - i <= PIECES_BEFORE && before < SLEEPS_BEFORE;)
        before += is_timer_wait(&thread->pieces[i]) &&
                  is_same_wait(t, &thread->pieces[i], &thread->pieces[piece]);
    return before >= SLEEPS_BEFORE;
}

/*
 * A thread that looks at something from time to time and sleeps between ends a wait now and then:
 * the join at the end, the lock that it held.  It keeps the other waiting from the moment on at
 * which that begins to wait; how often it slept before is decided by what the others do.
 */
static bool go_back(struct walk *w, const struct timeline_thread *thread, size_t piece)
{
    const struct timeline_piece *p = &thread->pieces[piece];
    struct walk_origin *o = origin_of(w);
    if (!o || !is_timer_wait(p) || p->start_ns >= o->start_ns ||
        (double)o->ran_ns > RUNS_MOST * (double)(o->end_ns - p->start_ns) ||
        !is_repeated(w->t, thread, piece))
        return false;
    if (w->time_ns > o->start_ns)
        step_back(w, o->start_ns, (uint32_t)piece);
    if (w->time_ns > o->start_ns) /* an inner wait began within */
        return true;
    w->thread = o->thread;
    w->origin_count--;
    return true;
}

static void walk_on(struct walk *w)
{
    const struct timeline_thread *thread = &w->t->threads[w->thread];
    size_t piece = timeline_piece_before(thread, w->time_ns);
    if (piece == thread->piece_count) {
        if (go_to_creator(w))
            return;
        /* A gap: back to the end of what is known before it. */
        uint64_t to_ns = w->t->start_ns;
        for (size_t i = thread->piece_count; i-- > 0;)
            if (thread->pieces[i].end_ns < w->time_ns) {
                to_ns = thread->pieces[i].end_ns;
                break;
            }
        if (thread->made_ns < w->time_ns && thread->made_ns > to_ns)
            to_ns = thread->made_ns;
        step_back(w, to_ns > w->t->start_ns ? to_ns : w->t->start_ns, TIMELINE_NONE);
        return;
    }
    const struct timeline_piece *p = &thread->pieces[piece];
    if (can_follow(w, p)) {
        ARRAY_PUSH(w->waits, w->wait_count, w->wait_capacity) =
            (struct walk_wait){w->thread, (uint32_t)piece, p->start_ns};
        ARRAY_PUSH(w->origins, w->origin_count, w->origin_capacity) =
            (struct walk_origin){w->thread, p->waker, p->start_ns, p->end_ns, 0};
        w->thread = p->waker;
        w->jumps++;
        return;
    }
    if (go_back(w, thread, piece))
        return;
    step_back(w, p->start_ns > w->t->start_ns ? p->start_ns : w->t->start_ns, (uint32_t)piece);
}

void path_find(struct path *p, const struct timeline *t)
{
    *p = (struct path){0};
    if (!t->thread_count)
        return;
    struct walk w = {.t = t, .path = p, .time_ns = t->end_ns};
    while (w.time_ns > t->start_ns)
        walk_on(&w);
    free(w.waits);
    free(w.origins);
    for (size_t i = 0; i < p->count / 2; i++) {
        struct path_step step = p->steps[i];
        p->steps[i] = p->steps[p->count - 1 - i];
        p->steps[p->count - 1 - i] = step;
    }
}

void path_done(struct path *p)
{
    free(p->steps);
    *p = (struct path){0};
}
