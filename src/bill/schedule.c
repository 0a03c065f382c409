/* SPDX-License-Identifier: MIT */
/* See schedule.h. */
#include "bill/schedule.h"
#include "base/memory.h"

static void add_delay(struct schedule_thread *s, uint32_t name, bool is_own, uint64_t ns)
{
    for (size_t i = 0; i < s->delayer_count; i++)
        if (s->delayers[i].name == name && s->delayers[i].is_own == is_own) {
            s->delayers[i].ns += ns;
            return;
        }
    ARRAY_PUSH(s->delayers, s->delayer_count, s->delayer_capacity) =
        (struct schedule_delayer){name, is_own, ns};
}

/* What a thread of the command was called at that time. */
static uint32_t name_then(const struct timeline *t, uint32_t thread, uint64_t time_ns)
{
    const struct timeline_thread *other = &t->threads[thread];
    size_t piece = timeline_piece_before(other, time_ns + 1);
    if (piece == other->piece_count)
        piece = other->piece_count ? other->piece_count - 1 : 0;
    return other->piece_count ? other->pieces[piece].name : 0;
}

/* Whoever had the CPU meanwhile. */
static void blame(struct schedule_thread *s, const struct timeline *t,
                  const struct timeline_piece *p)
{
    if (p->cpu >= t->cpu_count)
        return;
    const struct timeline_cpu *cpu = &t->cpus[p->cpu];
    for (size_t turn = timeline_turn_at(cpu, p->start_ns);
         turn < cpu->turn_count && cpu->turns[turn].start_ns < p->end_ns; turn++) {
        const struct timeline_turn *u = &cpu->turns[turn];
        uint64_t from = u->start_ns > p->start_ns ? u->start_ns : p->start_ns;
        uint64_t to = turn + 1 < cpu->turn_count && cpu->turns[turn + 1].start_ns < p->end_ns
                          ? cpu->turns[turn + 1].start_ns
                          : p->end_ns;
        bool is_own = u->thread != TIMELINE_NONE;
        uint32_t name = is_own ? name_then(t, u->thread, from) : u->name;
        if (to > from && name != TIMELINE_NONE && u->thread != s->thread)
            add_delay(s, name, is_own, to - from);
    }
}

static int by_time(const void *a, const void *b)
{
    const struct schedule_delayer *x = a, *y = b;
    return x->ns < y->ns ? 1 : x->ns > y->ns ? -1 : 0;
}

/* Pieces of one state that follow each other are one turn, one delay or one wait. */
static void add_thread(struct schedule_thread *s, const struct timeline *t)
{
    const struct timeline_thread *thread = &t->threads[s->thread];
    uint64_t delay_ns = 0;
    uint32_t cpu = TIMELINE_NONE;
    for (size_t i = 0; i < thread->piece_count; i++) {
        const struct timeline_piece *p = &thread->pieces[i];
        uint64_t ns = p->end_ns - p->start_ns;
        bool begins = !i || thread->pieces[i - 1].state != p->state;
        delay_ns = p->state != TIMELINE_READY ? 0 : begins ? ns : delay_ns + ns;
        switch (p->state) {
        case TIMELINE_RUNS:
            s->runs_ns += ns;
            s->turns += begins;
            s->migrations += cpu != TIMELINE_NONE && cpu != p->cpu;
            cpu = p->cpu;
            break;
        case TIMELINE_READY:
            s->ready_ns += ns;
            s->delays += begins;
            s->preempted += begins && p->was_preempted;
            s->ready_max_ns = delay_ns > s->ready_max_ns ? delay_ns : s->ready_max_ns;
            blame(s, t, p);
            break;
        default:
            s->waits_ns += ns;
            break;
        }
    }
    if (s->delayer_count)
        qsort(s->delayers, s->delayer_count, sizeof(*s->delayers), by_time);
}

static int by_delay(const void *a, const void *b)
{
    const struct schedule_thread *x = a, *y = b;
    if (x->ready_ns != y->ready_ns)
        return x->ready_ns < y->ready_ns ? 1 : -1;
    return x->thread < y->thread ? -1 : x->thread > y->thread;
}

void schedule_make(struct schedule *s, const struct timeline *t)
{
    *s = (struct schedule){.threads = memory_zalloc(t->thread_count + 1, sizeof(*s->threads)),
                           .count = t->thread_count};
    for (size_t i = 0; i < s->count; i++) {
        s->threads[i].thread = (uint32_t)i;
        add_thread(&s->threads[i], t);
    }
    qsort(s->threads, s->count, sizeof(*s->threads), by_delay);
}

void schedule_done(struct schedule *s)
{
    for (size_t i = 0; i < s->count; i++)
        free(s->threads[i].delayers);
    free(s->threads);
    *s = (struct schedule){0};
}
