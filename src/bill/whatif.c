/* SPDX-License-Identifier: MIT */
/* How much sooner it would end: see whatif.h. */
#include "bill/whatif.h"
#include "base/memory.h"
#include "base/strings.h"

#include <math.h>

#define OPERATIONS_MOST                                                                 \
    100000000            /* of all replays together: with more, fewer runs are replayed \
                          */
#define SMALL_SHARE 0.01 /* a line with less is not worth a prediction */
#define MODEL_ERROR 0.05 /* of a gain: what a replay cannot know */

/* A thread that does nothing but sleep again and again: so many times, and running so little. */
enum { SLEEPS_LEAST = 4 };
#define RUNS_MOST 0.2

enum operation_kind {
    OP_RUN,
    OP_LAST,
    OP_AWAIT,
    OP_WAKE,
    OP_AWAITED, /* until another thread stands at the edge's OP_AWAIT */
};

struct operation {
    uint8_t kind;
    uint32_t edge; /* of OP_AWAIT, OP_WAKE and OP_AWAITED */
    double ns;     /* of OP_RUN and OP_LAST */
};

/* One wake-up, or the making of a thread. */
struct edge {
    uint64_t time_ns;
    uint32_t from, to; /* threads */
    bool is_fired, is_awaited;
    uint32_t handing_over; /* the thread that stands at OP_WAKE until `to` comes */
};

struct replay_thread {
    struct operation *operations;
    size_t count, capacity, next;
    double left; /* of the operation under way */
    bool is_active;
};

struct replay {
    const struct bill_run *run;
    struct replay_thread *threads;
    struct edge *edges;
    size_t edge_count, edge_capacity;
    uint32_t *active;
    size_t active_count;
    double now, cpus;
    bool hands_over;
};

static int compare_edges(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

static void list_edges(struct replay *r)
{
    const struct timeline *t = &r->run->timeline;
    for (uint32_t i = 0; i < t->thread_count; i++) {
        const struct timeline_thread *thread = &t->threads[i];
        if (thread->creator != TIMELINE_NONE)
            ARRAY_PUSH(r->edges, r->edge_count, r->edge_capacity) =
                (struct edge){.time_ns = thread->made_ns, .from = thread->creator, .to = i};
        for (size_t k = 0; k < thread->piece_count; k++) {
            const struct timeline_piece *p = &thread->pieces[k];
            if (p->state == TIMELINE_WAITS && p->waker_kind == WAKER_THREAD)
                ARRAY_PUSH(r->edges, r->edge_count, r->edge_capacity) =
                    (struct edge){.time_ns = p->end_ns, .from = p->waker, .to = i};
        }
    }
    if (r->edge_count)
        qsort(r->edges, r->edge_count, sizeof(*r->edges), compare_edges);
    for (size_t i = 0; i < r->edge_count; i++)
        r->edges[i].handing_over = TIMELINE_NONE;
}

/* The first edge of the thread that is not before the time. */
static size_t first_edge(const struct replay *r, uint32_t from, uint64_t time_ns, uint32_t to)
{
    struct edge key = {.time_ns = time_ns, .from = from, .to = to};
    size_t low = 0, high = r->edge_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_edges(&r->edges[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void push(struct replay_thread *thread, enum operation_kind kind, double ns, size_t edge)
{
    struct operation *last = thread->count ? &thread->operations[thread->count - 1] : NULL;
    if ((kind == OP_RUN || kind == OP_LAST) && last && last->kind == kind) {
        last->ns += ns;
        return;
    }
    ARRAY_PUSH(thread->operations, thread->count, thread->capacity) =
        (struct operation){.kind = (uint8_t)kind, .edge = (uint32_t)edge, .ns = ns};
}

/* A running piece, with the wake-ups in it. */
static void push_running(struct replay *r, uint32_t number, const struct timeline_piece *p,
                         double scale, size_t *edge)
{
    struct replay_thread *thread = &r->threads[number];
    uint64_t at = p->start_ns;
    while (*edge < r->edge_count && r->edges[*edge].from == number &&
           r->edges[*edge].time_ns <= p->end_ns) {
        uint64_t time_ns = r->edges[*edge].time_ns > at ? r->edges[*edge].time_ns : at;
        push(thread, OP_RUN, scale * (double)(time_ns - at), 0);
        push(thread, OP_WAKE, 0, (*edge)++);
        at = time_ns;
    }
    push(thread, OP_RUN, scale * (double)(p->end_ns - at), 0);
}

/* How long the thread could not run for other reasons than that threads of the command had the CPU:
 * of these the replay has its own opinion. */
static double kept_by_others(const struct replay *r, const struct timeline_piece *p)
{
    const struct timeline *t = &r->run->timeline;
    const struct timeline_cpu *cpu = p->cpu < t->cpu_count ? &t->cpus[p->cpu] : NULL;
    double kept = 0;
    if (!cpu || !cpu->turn_count)
        return (double)(p->end_ns - p->start_ns);
    size_t turn = timeline_turn_at(cpu, p->start_ns);
    for (uint64_t at = p->start_ns; at < p->end_ns; turn++) {
        bool is_known = turn < cpu->turn_count;
        uint64_t until = turn + 1 < cpu->turn_count ? cpu->turns[turn + 1].start_ns : p->end_ns;
        until = until > p->end_ns || until < at ? p->end_ns : until;
        if (!is_known || cpu->turns[turn].thread == TIMELINE_NONE)
            kept += (double)(until - at);
        at = until;
        if (!is_known)
            break;
    }
    return kept;
}

/*
 * The wait that a thread ends at its own end, when it slept again and again until then; NULL for
 * other threads, and ret_edge untouched.  It may be one that was told to stop: then only what it
 * did during that wait matters, and how often it slept before was up to the others.
 */
static const struct timeline_piece *told_to_stop(const struct replay *r, uint32_t number,
                                                 size_t *ret_edge)
{
    const struct timeline *t = &r->run->timeline;
    const struct timeline_thread *thread = &t->threads[number];
    size_t edge = first_edge(r, number, 0, 0), sleeps = 0;
    uint64_t ran = 0, all = 0, last = 0;
    if (!number || edge == r->edge_count || r->edges[edge].from != number)
        return NULL;
    for (size_t i = 0; i < thread->piece_count; i++) {
        const struct timeline_piece *p = &thread->pieces[i];
        all += p->end_ns - p->start_ns;
        ran += p->state == TIMELINE_RUNS ? p->end_ns - p->start_ns : 0;
        if (p->state == TIMELINE_WAITS && p->waker_kind == WAKER_INTERRUPT) {
            sleeps++;
            last = p->end_ns;
        }
    }
    if (sleeps < SLEEPS_LEAST || (double)ran > RUNS_MOST * (double)all ||
        r->edges[edge].time_ns < last)
        return NULL;
    const struct timeline_thread *waiter = &t->threads[r->edges[edge].to];
    size_t piece = timeline_piece_before(waiter, r->edges[edge].time_ns);
    const struct timeline_piece *wait = piece < waiter->piece_count ? &waiter->pieces[piece] : NULL;
    if (!wait || wait->state != TIMELINE_WAITS || wait->end_ns != r->edges[edge].time_ns)
        return NULL;
    *ret_edge = edge;
    return wait;
}

static void push_thread(struct replay *r, uint32_t number, const bool *is_meant, double scale)
{
    const struct timeline_thread *thread = &r->run->timeline.threads[number];
    struct replay_thread *to = &r->threads[number];
    size_t edge = first_edge(r, number, 0, 0), last_edge = 0;
    const struct timeline_piece *stop = r->hands_over ? told_to_stop(r, number, &last_edge) : NULL;
    if (thread->creator != TIMELINE_NONE)
        push(to, OP_AWAIT, 0, first_edge(r, thread->creator, thread->made_ns, number));
    if (stop)
        push(to, OP_AWAITED, 0, last_edge);
    for (size_t i = 0; i < thread->piece_count; i++) {
        struct timeline_piece copy = thread->pieces[i], *p = &copy;
        if (stop && p->end_ns <= stop->start_ns)
            continue;
        if (stop && p->start_ns < stop->start_ns)
            p->start_ns = stop->start_ns;
        double factor = is_meant[r->run->items[number][i]] ? scale : 1;
        double ns = factor * (double)(p->end_ns - p->start_ns);
        if (p->state == TIMELINE_RUNS)
            push_running(r, number, p, factor, &edge);
        else if (p->state == TIMELINE_READY)
            push(to, OP_LAST, kept_by_others(r, p), 0);
        else if (p->waker_kind != WAKER_THREAD)
            push(to, OP_LAST, ns, 0);
        else if (factor > 0.75) /* a lock that nobody wants any more, or half as often */
            push(to, OP_AWAIT, 0, first_edge(r, p->waker, p->end_ns, number));
        else if (factor > 0)
            push(to, OP_LAST, ns, 0);
    }
    /* Wake-ups that no piece holds happen at the end. */
    for (; edge < r->edge_count && r->edges[edge].from == number; edge++)
        push(to, OP_WAKE, 0, edge);
}

static void activate(struct replay *r, uint32_t number)
{
    if (r->threads[number].is_active)
        return;
    r->threads[number].is_active = true;
    r->active[r->active_count++] = number;
}

/* Goes on until something that takes time; false when it has to wait or is done. */
static bool advance(struct replay *r, uint32_t number)
{
    struct replay_thread *thread = &r->threads[number];
    for (; thread->next < thread->count; thread->next++) {
        const struct operation *o = &thread->operations[thread->next];
        struct edge *e = o->kind == OP_RUN || o->kind == OP_LAST ? NULL : &r->edges[o->edge];
        if (!e) {
            thread->left = o->ns;
            if (o->ns > 0)
                return true;
        } else if (o->kind == OP_AWAITED) {
            if (!e->is_awaited && r->threads[e->to].next < r->threads[e->to].count) {
                e->handing_over = number;
                return false;
            }
        } else if (o->kind == OP_WAKE) {
            if (r->hands_over && !e->is_awaited &&
                r->threads[e->to].next < r->threads[e->to].count) {
                e->handing_over = number;
                return false;
            }
            e->is_fired = true;
            activate(r, e->to);
        } else {
            e->is_awaited = true;
            if (e->handing_over != TIMELINE_NONE)
                activate(r, e->handing_over);
            if (!e->is_fired)
                return false;
        }
    }
    return false;
}

/* Lets all active threads go on; those that wait or are done leave the list. */
static void settle(struct replay *r, bool *changed)
{
    for (size_t i = 0; i < r->active_count;) {
        uint32_t number = r->active[i];
        struct replay_thread *thread = &r->threads[number];
        if (thread->left > 0 || advance(r, number)) {
            i++;
            continue;
        }
        thread->is_active = false;
        r->active[i] = r->active[--r->active_count];
        *changed = true;
    }
}

static double rate_of(const struct replay *r, uint32_t number, double cpu_rate)
{
    const struct replay_thread *thread = &r->threads[number];
    return thread->operations[thread->next].kind == OP_RUN ? cpu_rate : 1;
}

/* To the end of whichever operation ends first. */
static void step(struct replay *r)
{
    size_t running = 0;
    double next = INFINITY;
    for (size_t i = 0; i < r->active_count; i++)
        running += rate_of(r, r->active[i], 0) == 0;
    double cpu_rate = (double)running > r->cpus ? r->cpus / (double)running : 1;
    for (size_t i = 0; i < r->active_count; i++)
        next = fmin(next, r->threads[r->active[i]].left / rate_of(r, r->active[i], cpu_rate));
    for (size_t i = 0; i < r->active_count; i++) {
        struct replay_thread *thread = &r->threads[r->active[i]];
        thread->left -= next * rate_of(r, r->active[i], cpu_rate);
        if (thread->left < 0.5) { /* half a nanosecond */
            thread->left = 0;
            thread->next++;
        }
    }
    r->now += next;
}

static double run_through(struct replay *r)
{
    size_t count = r->run->timeline.thread_count;
    for (uint32_t i = 0; i < count; i++)
        activate(r, i);
    for (;;) {
        for (bool changed = true; changed;) {
            changed = false;
            settle(r, &changed);
        }
        if (r->threads[0].next >= r->threads[0].count)
            return r->now;
        if (!r->active_count)
            return NAN;
        step(r);
    }
}

double whatif_replay(const struct bill_run *run, const bool *is_meant, double scale,
                     bool hands_over)
{
    size_t count = run->timeline.thread_count;
    struct replay r = {.run = run,
                       .threads = memory_zalloc(count + 1, sizeof(*r.threads)),
                       .active = memory_zalloc(count + 1, sizeof(*r.active)),
                       .cpus = run->timeline.cpu_count ? (double)run->timeline.cpu_count : 1,
                       .hands_over = hands_over};
    list_edges(&r);
    for (uint32_t i = 0; i < count; i++)
        push_thread(&r, i, is_meant, scale);
    double end = count ? run_through(&r) : 0;
    for (size_t i = 0; i < count; i++)
        free(r.threads[i].operations);
    free(r.threads);
    free(r.active);
    free(r.edges);
    return end;
}

static bool can_be_less(enum bill_part part)
{
    return part != BILL_READY && part != BILL_UNKNOWN && part != BILL_INTERRUPT;
}

/* Of locks, those that wait for it are meant, whoever holds it. */
static void mark(const struct bill *b, uint32_t line, bool *is_meant)
{
    const struct bill_line *l = &b->lines[line];
    for (size_t i = 0; i < b->item_count; i++) {
        const struct bill_item *item = &b->items[i];
        is_meant[i] =
            item->line == line || (l->part == BILL_LOCK && item->part == BILL_LOCK &&
                                   str_eq(item->who, l->who) && str_eq(item->what, l->what));
    }
}

/* How long threads were at what is meant, all together: no more can be gained. */
static double meant_ns(const struct bill_run *run, const bool *is_meant)
{
    const struct timeline *t = &run->timeline;
    double sum = 0;
    for (uint32_t i = 0; i < t->thread_count; i++)
        for (size_t k = 0; k < t->threads[i].piece_count; k++)
            if (is_meant[run->items[i][k]])
                sum += (double)(t->threads[i].pieces[k].end_ns - t->threads[i].pieces[k].start_ns);
    return sum;
}

/* The gains of all runs by both replays as one interval. */
static struct bill_estimate gain(const struct bill *b, size_t runs, const bool *is_meant,
                                 double correction, double scale, const double *ends[2])
{
    CLEANUP(memory_freep) double *gains = memory_zalloc(runs + 1, sizeof(*gains));
    struct bill_estimate both = {NAN, INFINITY, -INFINITY};
    double means = 0, most = 0;
    for (size_t r = 0; r < runs; r++)
        most = fmax(most, (1 - scale) * correction * meant_ns(&b->runs[r], is_meant));
    for (unsigned model = 0; model < 2; model++) {
        for (size_t r = 0; r < runs; r++)
            gains[r] = correction *
                       (ends[model][r] - whatif_replay(&b->runs[r], is_meant, scale, model == 1));
        struct bill_estimate one = bill_estimate(gains, runs);
        if (!isfinite(one.mean))
            return (struct bill_estimate){NAN, NAN, NAN};
        double half = (runs > 1 ? one.high - one.mean : 0) + MODEL_ERROR * fabs(one.mean);
        both.low = fmax(fmin(both.low, one.mean - half), 0); /* less work takes no longer */
        both.high = fmax(both.high, one.mean + half);
        means += one.mean / 2;
    }
    both.high = fmin(both.high, (1 + MODEL_ERROR) * most);
    both.low = fmin(both.low, both.high);
    both.mean = fmin(means, both.high);
    return both;
}

static size_t runs_to_replay(const struct bill *b)
{
    double pieces = 0;
    size_t runs = 0;
    for (; runs < b->run_count; runs++) {
        pieces += (double)b->runs[runs].timeline.piece_count * (2 + 4 * WHATIF_MOST);
        if (runs && pieces > OPERATIONS_MOST)
            break;
    }
    return runs;
}

void whatif_predict(struct whatifs *w, const struct bill *b)
{
    *w = (struct whatifs){0};
    CLEANUP(memory_freep) bool *is_meant = memory_zalloc(b->item_count + 1, sizeof(*is_meant));
    size_t runs = runs_to_replay(b);
    CLEANUP(memory_freep) double *free_ends = memory_zalloc(runs + 1, sizeof(double));
    CLEANUP(memory_freep) double *bound_ends = memory_zalloc(runs + 1, sizeof(double));
    for (size_t r = 0; r < runs; r++) {
        free_ends[r] = whatif_replay(&b->runs[r], is_meant, 1, false);
        bound_ends[r] = whatif_replay(&b->runs[r], is_meant, 1, true);
        double off = fabs(free_ends[r] / (double)b->runs[r].wall_ns - 1);
        w->replay_error = fmax(w->replay_error, isfinite(off) ? off : 1);
    }
    for (uint32_t l = 0; l < b->line_count && w->count < WHATIF_MOST; l++) {
        if (!can_be_less(b->lines[l].part) || b->lines[l].share < SMALL_SHARE)
            continue;
        mark(b, l, is_meant);
        const double *ends[2] = {free_ends, bound_ends};
        double correction = bill_line_scale(b, l);
        struct whatif item = {.line = l,
                              .removed = gain(b, runs, is_meant, correction, 0, ends),
                              .halved = gain(b, runs, is_meant, correction, 0.5, ends)};
        if (isfinite(item.removed.mean) && isfinite(item.halved.mean))
            w->items[w->count++] = item;
    }
}
