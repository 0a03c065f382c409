/* SPDX-License-Identifier: MIT */
/* What each thread did at every moment: see timeline.h. */
#include "timeline/timeline.h"
#include "base/memory.h"
#include "tracepoints/waking.h"

#include <string.h>

/* Bits of sched_switch's prev_state, which are the same on all kernels since 4.14. */
enum {
    STATE_UNINTERRUPTIBLE = 0x02,
    STATE_ENDED = 0x10 | 0x20,
    STATE_WAITS = 0xff, /* none of these: it was preempted */
};

void timeline_init(struct timeline *t)
{
    *t = (struct timeline){0};
    names_init(&t->names);
    idtable_init(&t->table, 6);
}

void timeline_done(struct timeline *t)
{
    for (size_t i = 0; i < t->thread_count; i++)
        free(t->threads[i].pieces);
    for (size_t i = 0; i < t->cpu_count; i++)
        free(t->cpus[i].turns);
    free(t->threads);
    free(t->calls);
    free(t->cpus);
    names_done(&t->names);
    idtable_done(&t->table);
    arena_done(&t->arena);
    *t = (struct timeline){0};
}

static uint64_t hash_thread(const void *items, uint32_t id)
{
    return hash_mix(((const struct timeline_thread *)items)[id].tid, 0);
}

static struct timeline_thread *find_thread(struct timeline *t, uint32_t tid)
{
    struct timeline_thread *found = NULL;
    uint32_t slot, id;
    /* A number can be used again: those that are made later stand later. */
    IDTABLE_EACH(&t->table, hash_mix(tid, 0), slot, id)
    if (t->threads[id].tid == tid && (!found || &t->threads[id] > found))
        found = &t->threads[id];
    return found;
}

static struct timeline_thread *add_thread(struct timeline *t, uint32_t pid, uint32_t tid,
                                          uint32_t creator, uint64_t time_ns)
{
    uint32_t slot, id;
    IDTABLE_EACH(&t->table, hash_mix(tid, 0), slot, id);
    id = (uint32_t)t->thread_count;
    struct timeline_thread *thread = &ARRAY_PUSH(t->threads, t->thread_count, t->thread_capacity);
    *thread = (struct timeline_thread){.pid = pid,
                                       .tid = tid,
                                       .creator = creator,
                                       .made_ns = time_ns,
                                       .is_here = true,
                                       .last_stack = TIMELINE_NONE};
    thread->now = (struct timeline_piece){.start_ns = time_ns,
                                          .name = TIMELINE_NONE,
                                          .call = TIMELINE_NONE,
                                          .stack = TIMELINE_NONE,
                                          .waker = TIMELINE_NONE};
    idtable_put(&t->table, slot, id);
    if (idtable_is_crowded(&t->table))
        idtable_grow(&t->table, hash_thread, t->threads);
    return thread;
}

void timeline_begin(struct timeline *t, uint32_t tid, const char *name, uint64_t start_ns)
{
    struct timeline_thread *thread = add_thread(t, tid, tid, TIMELINE_NONE, start_ns);
    thread->now.state = TIMELINE_WAITS;
    thread->now.is_start = true;
    thread->now.name = names_add(&t->names, &t->arena, name);
    t->start_ns = start_ns;
}

/* Ends the piece that is under way.  The next one begins here, in the same call. */
static void cut(struct timeline *t, struct timeline_thread *thread, uint64_t time_ns)
{
    struct timeline_piece *now = &thread->now;
    if (time_ns > now->start_ns) {
        if (t->piece_count < TIMELINE_PIECES_MAX) {
            now->end_ns = time_ns;
            ARRAY_PUSH(thread->pieces, thread->piece_count, thread->piece_capacity) = *now;
            t->piece_count++;
        } else {
            t->is_full = true;
        }
        now->start_ns = time_ns;
    }
    now->stack = now->waker = TIMELINE_NONE;
    now->was_preempted = now->uninterrupted = false;
}

static void label(struct timeline_thread *thread, uint32_t stack)
{
    for (; thread->unlabelled < thread->piece_count; thread->unlabelled++) {
        struct timeline_piece *p = &thread->pieces[thread->unlabelled];
        if (p->state == TIMELINE_RUNS && p->call == TIMELINE_NONE)
            p->stack = stack;
    }
}

static void run_on(struct timeline *t, struct timeline_thread *thread, uint64_t time_ns,
                   uint32_t cpu)
{
    struct timeline_piece *now = &thread->now;
    if (now->state == TIMELINE_WAITS) {
        now->waker_kind = WAKER_UNSEEN;
        t->unseen++;
    }
    if (now->state == TIMELINE_READY)
        now->cpu = cpu;
    cut(t, thread, time_ns);
    now->state = TIMELINE_RUNS;
    now->cpu = cpu;
}

static void leave_cpu(struct timeline *t, struct timeline_thread *thread,
                      const struct timeline_event *e)
{
    struct timeline_piece *now = &thread->now;
    if (now->state != TIMELINE_RUNS) {
        t->strange++;
        return;
    }
    int64_t state = e->change.previous_state;
    cut(t, thread, e->time_ns);
    if (state & STATE_ENDED) {
        thread->is_here = false;
        thread->has_ended = true;
    } else if (state & STATE_WAITS) {
        now->state = TIMELINE_WAITS;
        now->stack = e->change.stack;
        now->uninterrupted = state & STATE_UNINTERRUPTIBLE;
    } else {
        now->state = TIMELINE_READY;
        now->was_preempted = true;
    }
}

static struct timeline_cpu *find_cpu(struct timeline *t, uint32_t cpu)
{
    if (cpu >= TIMELINE_CPUS_MAX)
        return NULL;
    if (cpu >= t->cpu_count) {
        t->cpus = memory_grow(t->cpus, &t->cpu_capacity, (size_t)cpu + 1, sizeof(*t->cpus));
        memset(t->cpus + t->cpu_count, 0, (cpu + 1 - t->cpu_count) * sizeof(*t->cpus));
        t->cpu_count = (size_t)cpu + 1;
    }
    return &t->cpus[cpu];
}

static void add_turn(struct timeline *t, struct timeline_cpu *c, uint64_t time_ns,
                     const struct timeline_thread *thread, uint32_t tid, const char *name)
{
    struct timeline_turn turn = {time_ns, TIMELINE_NONE, TIMELINE_NONE};
    if (thread)
        turn.thread = (uint32_t)(thread - t->threads);
    else if (tid)
        turn.name = names_add(&t->names, &t->arena, name);
    ARRAY_PUSH(c->turns, c->turn_count, c->turn_capacity) = turn;
}

static void take_turn(struct timeline *t, const struct timeline_event *e,
                      const struct timeline_thread *previous, const struct timeline_thread *next)
{
    struct timeline_cpu *c = find_cpu(t, e->cpu);
    if (!c || t->piece_count >= TIMELINE_PIECES_MAX || c->turn_count >= TIMELINE_PIECES_MAX ||
        (c->turn_count && c->turns[c->turn_count - 1].start_ns > e->time_ns))
        return;
    if (!c->turn_count) /* who leaves now was there before */
        add_turn(t, c, t->start_ns, previous, e->tid, e->change.previous_name);
    add_turn(t, c, e->time_ns, next, e->change.next, e->change.next_name);
}

static void feed_switch(struct timeline *t, const struct timeline_event *e)
{
    struct timeline_thread *previous = find_thread(t, e->tid);
    if (previous && previous->is_here)
        leave_cpu(t, previous, e);
    struct timeline_thread *next = e->change.next ? find_thread(t, e->change.next) : NULL;
    if (next && !next->is_here)
        next = NULL;
    if (next)
        run_on(t, next, e->time_ns, e->cpu);
    take_turn(t, e, previous, next);
}

static int64_t call_of(const struct timeline *t, const struct timeline_thread *thread)
{
    return thread && thread->now.call != TIMELINE_NONE ? t->calls[thread->now.call].number
                                                       : WAKING_NO_CALL;
}

static void feed_waking(struct timeline *t, const struct timeline_event *e)
{
    struct timeline_thread *target = find_thread(t, e->waking.target);
    if (!target || !target->is_here || target->now.state != TIMELINE_WAITS)
        return;
    const struct timeline_thread *waker = e->tid ? find_thread(t, e->tid) : NULL;
    struct timeline_piece *now = &target->now;
    uint32_t by = TIMELINE_NONE;
    now->waker_kind = WAKER_OUTSIDE;
    if (!waking_is_by_thread(e->tid, e->waking.flags, call_of(t, waker))) {
        now->waker_kind = WAKER_INTERRUPT;
    } else if (waker && waker->is_here && waker->now.state == TIMELINE_RUNS && waker != target) {
        now->waker_kind = WAKER_THREAD;
        by = (uint32_t)(waker - t->threads);
    } else if (e->cpu < t->cpu_count && t->cpus[e->cpu].turn_count) {
        by = t->cpus[e->cpu].turns[t->cpus[e->cpu].turn_count - 1].name;
    }
    now->waker = by;
    uint32_t stack = now->stack;
    if (e->time_ns <= now->start_ns) { /* it had not even left */
        now->state = TIMELINE_READY;
        return;
    }
    now->stack = stack;
    cut(t, target, e->time_ns);
    now->state = TIMELINE_READY;
}

static void feed_enter(struct timeline *t, struct timeline_thread *thread,
                       const struct timeline_event *e)
{
    cut(t, thread, e->time_ns);
    timeline_loads(thread, e->enter.number);
    if (t->call_count >= TIMELINE_PIECES_MAX)
        return;
    struct timeline_call *call = &ARRAY_PUSH(t->calls, t->call_count, t->call_capacity);
    *call = (struct timeline_call){.number = e->enter.number, .entered_ns = e->time_ns};
    memcpy(call->args, e->enter.args, sizeof(call->args));
    thread->now.call = (uint32_t)(t->call_count - 1);
}

static void feed_leave(struct timeline *t, struct timeline_thread *thread,
                       const struct timeline_event *e)
{
    cut(t, thread, e->time_ns);
    if (thread->now.call != TIMELINE_NONE) {
        t->calls[thread->now.call].result = e->leave.result;
        t->calls[thread->now.call].has_ended = true;
    }
    thread->now.call = TIMELINE_NONE;
    thread->loaded_ns = e->time_ns;
}

static void feed_name(struct timeline *t, struct timeline_thread *thread,
                      const struct timeline_event *e)
{
    cut(t, thread, e->time_ns);
    thread->now.name = names_add(&t->names, &t->arena, e->name.name);
    if (!e->name.is_exec)
        return;
    label(thread, thread->last_stack); /* what comes now is another program */
    thread->last_stack = TIMELINE_NONE;
    thread->now.is_start = false;
    if (!t->without_calls)
        timeline_begins_to_load(thread);
}

static void feed_fork(struct timeline *t, const struct timeline_thread *creator,
                      const struct timeline_event *e)
{
    uint32_t name = creator->now.name, by = (uint32_t)(creator - t->threads);
    struct timeline_thread *child =
        add_thread(t, e->fork.child_pid, e->fork.child_tid, by, e->time_ns);
    child->now.state = TIMELINE_READY;
    child->now.name = name;
}

static void feed_sample(struct timeline *t, struct timeline_thread *thread,
                        const struct timeline_event *e)
{
    if (thread->now.state != TIMELINE_RUNS || thread->now.call != TIMELINE_NONE)
        return; /* in a call: its time is known exactly */
    cut(t, thread, e->time_ns);
    label(thread, e->stack);
    thread->last_stack = e->stack;
}

void timeline_feed(struct timeline *t, const struct timeline_event *e)
{
    if (e->kind == TIMELINE_SWITCH) {
        feed_switch(t, e);
        return;
    }
    if (e->kind == TIMELINE_WAKING) {
        feed_waking(t, e);
        return;
    }
    struct timeline_thread *thread = find_thread(t, e->tid);
    if (!thread || !thread->is_here)
        return;
    bool acts = e->kind != TIMELINE_STACK && e->kind != TIMELINE_NAME && e->kind != TIMELINE_SAMPLE;
    if (acts && thread->now.state != TIMELINE_RUNS) {
        t->strange++; /* it acts, so it runs: the switch was lost */
        run_on(t, thread, e->time_ns, e->cpu);
    }
    switch (e->kind) {
    case TIMELINE_ENTER:
        feed_enter(t, thread, e);
        break;
    case TIMELINE_LEAVE:
        feed_leave(t, thread, e);
        break;
    case TIMELINE_FORK:
        feed_fork(t, thread, e);
        break;
    case TIMELINE_NAME:
        feed_name(t, thread, e);
        break;
    case TIMELINE_SAMPLE:
        feed_sample(t, thread, e);
        break;
    case TIMELINE_STACK:
        if (thread->now.state == TIMELINE_WAITS)
            thread->now.stack = e->stack;
        break;
    default:
        break;
    }
}

void timeline_finish(struct timeline *t, uint64_t end_ns)
{
    struct timeline_thread *first = t->thread_count ? &t->threads[0] : NULL;
    for (size_t i = 0; i < t->thread_count; i++) {
        struct timeline_thread *thread = &t->threads[i];
        if (thread->is_here && thread->now.state == TIMELINE_WAITS)
            thread->now.waker_kind = WAKER_UNSEEN;
        if (thread->is_here)
            cut(t, thread, end_ns);
        label(thread, thread->last_stack);
        thread->is_here = false;
    }
    t->end_ns = first && first->has_ended && first->piece_count
                    ? first->pieces[first->piece_count - 1].end_ns
                    : end_ns;
}

size_t timeline_piece_before(const struct timeline_thread *thread, uint64_t time_ns)
{
    size_t low = 0, high = thread->piece_count; /* the first piece whose end is not before it */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (thread->pieces[middle].end_ns < time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low < thread->piece_count && thread->pieces[low].start_ns < time_ns
               ? low
               : thread->piece_count;
}

size_t timeline_turn_at(const struct timeline_cpu *cpu, uint64_t time_ns)
{
    size_t low = 0, high = cpu->turn_count; /* the first turn that begins behind it */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (cpu->turns[middle].start_ns <= time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? low - 1 : cpu->turn_count;
}
