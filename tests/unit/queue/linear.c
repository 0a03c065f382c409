/* SPDX-License-Identifier: MIT */
#include "linear.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHORT_MAX 64
#define MEMO_BITS 15

struct search {
    const struct linear_operation *by_thread[LINEAR_THREADS][SHORT_MAX];
    unsigned counts[LINEAR_THREADS], done[LINEAR_THREADS];
    size_t total, placed;
    uint64_t capacity;
    uint64_t queue[SHORT_MAX];
    size_t head, tail;
    uint64_t memo[1 << MEMO_BITS];
};

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = ((h ^ v) + 0x632be59bd9b4e019ull) * 0x9e3779b97f4a7c15ull;
    return h ^ h >> 32;
}

/* Whether this place of the search, which found no order before, is reached again. */
static bool seen_before(struct search *s)
{
    uint64_t h = 1;
    for (unsigned t = 0; t < LINEAR_THREADS; t++)
        h = mix(h, s->done[t]);
    for (size_t i = s->head; i < s->tail; i++)
        h = mix(h, s->queue[i]);
    uint64_t *slot = &s->memo[h >> (64 - MEMO_BITS)];
    bool seen = *slot == h;
    *slot = h;
    return seen;
}

static bool may_come_next(const struct search *s, const struct linear_operation *o)
{
    for (unsigned t = 0; t < LINEAR_THREADS; t++)
        if (t != o->thread && o->before[t] > s->done[t])
            return false;
    return true;
}

static bool place(struct search *s)
{
    if (s->placed == s->total)
        return true;
    if (seen_before(s))
        return false;
    for (unsigned t = 0; t < LINEAR_THREADS; t++) {
        if (s->done[t] == s->counts[t])
            continue;
        const struct linear_operation *o = s->by_thread[t][s->done[t]];
        size_t size = s->tail - s->head;
        bool fits = !may_come_next(s, o) ? false
                    : o->failed  ? (o->is_push ? s->capacity && size == s->capacity : size == 0)
                    : o->is_push ? !s->capacity || size < s->capacity
                                 : size > 0 && s->queue[s->head] == o->value;
        if (!fits)
            continue;
        bool push = o->is_push && !o->failed, pop = !o->is_push && !o->failed;
        if (push)
            s->queue[s->tail++] = o->value;
        s->head += pop;
        s->done[t]++;
        s->placed++;
        if (place(s))
            return true;
        s->placed--;
        s->done[t]--;
        s->head -= pop;
        s->tail -= push;
    }
    return false;
}

bool linear_check(const struct linear_operation *operations, size_t count, uint64_t capacity)
{
    static struct search s;
    memset(&s, 0, sizeof(s));
    s.capacity = capacity;
    s.total = count;
    for (size_t i = 0; i < count; i++) {
        s.by_thread[operations[i].thread][operations[i].index] = &operations[i];
        s.counts[operations[i].thread]++;
    }
    return place(&s);
}

/* The history without its failed operations but for one, which may be none. */
static bool check_with(const struct linear_operation *operations, size_t count, uint64_t capacity,
                       size_t kept)
{
    struct linear_operation some[SHORT_MAX];
    unsigned skipped[LINEAR_THREADS][SHORT_MAX + 1] = {0};
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        const struct linear_operation *o = &operations[i];
        unsigned *of = skipped[o->thread];
        of[o->index + 1] = of[o->index] + (o->failed && i != kept);
    }
    for (size_t i = 0; i < count; i++) {
        if (operations[i].failed && i != kept)
            continue;
        struct linear_operation *o = &some[left++];
        *o = operations[i];
        o->index -= skipped[o->thread][o->index];
        for (unsigned t = 0; t < LINEAR_THREADS; t++)
            o->before[t] = (unsigned char)(o->before[t] - skipped[t][o->before[t]]);
    }
    return linear_check(some, left, capacity);
}

bool linear_check_apart(const struct linear_operation *operations, size_t count, uint64_t capacity)
{
    bool good = check_with(operations, count, capacity, count);
    for (size_t i = 0; good && i < count; i++)
        good = !operations[i].failed || check_with(operations, count, capacity, i);
    return good;
}

const char *linear_describe(const struct linear_operation *operations, size_t count, char *text,
                            size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (size_t i = 0; i < count && used + 32 < size; i++) {
        const struct linear_operation *o = &operations[i];
        used += (size_t)snprintf(text + used, size - used, " %u:%s%s%llu", o->thread,
                                 o->is_push ? "push" : "pop", o->failed ? "!" : "=",
                                 (unsigned long long)o->value);
    }
    return text;
}

void linear_order(struct linear_operation *operations, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        memset(operations[i].before, 0, sizeof(operations[i].before));
        for (size_t k = 0; k < count; k++)
            if (operations[k].end < operations[i].start)
                operations[i].before[operations[k].thread]++;
    }
}

/* A value's life: its push, and its pop where there was one. */
struct life {
    uint64_t value, push_start, push_end, pop_start, pop_end;
    bool pushed, popped;
};

static int by_value(const void *a, const void *b)
{
    const struct linear_operation *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return (int)y->is_push - (int)x->is_push;
}

static int by_push_end(const void *a, const void *b)
{
    const struct life *x = a, *y = b;
    return x->push_end < y->push_end ? -1 : x->push_end > y->push_end;
}

static int by_push_start(const void *a, const void *b)
{
    const struct life *x = a, *y = b;
    return x->push_start < y->push_start ? -1 : x->push_start > y->push_start;
}

static char problem[256];

static const char *wrong(const char *what, uint64_t a, uint64_t b)
{
    snprintf(problem, sizeof(problem), "%s (%llu, %llu)", what, (unsigned long long)a,
             (unsigned long long)b);
    return problem;
}

/* Joins pushes and pops; the operations are sorted by value, failed ones first (value 0). */
static const char *lives_of(const struct linear_operation *o, size_t count, struct life *lives,
                            size_t *ret_count)
{
    size_t lived = 0;
    for (size_t i = 0; i < count; i++) {
        if (o[i].failed)
            continue;
        if (o[i].is_push) {
            lives[lived++] = (struct life){o[i].value, o[i].start, o[i].end, UINT64_MAX,
                                           UINT64_MAX, true,       false};
            continue;
        }
        struct life *life = lived ? &lives[lived - 1] : NULL;
        if (!life || life->value != o[i].value)
            return wrong("a value that nobody pushed", o[i].value, 0);
        if (life->popped)
            return wrong("a value came twice", o[i].value, 0);
        if (o[i].end < life->push_start)
            return wrong("a value came before it was pushed", o[i].value, 0);
        life->popped = true;
        life->pop_start = o[i].start;
        life->pop_end = o[i].end;
    }
    *ret_count = lived;
    return NULL;
}

/*
 * a was pushed before b, and b was popped before a's pop began (which is never, when there was
 * none).  Going through b by the start of its push, the a's whose push had ended by then have a
 * latest start of a pop.
 */
static const char *check_order(struct life *lives, size_t count)
{
    struct life *ended = malloc((count + 1) * sizeof(*ended));
    memcpy(ended, lives, count * sizeof(*ended));
    qsort(ended, count, sizeof(*ended), by_push_end);
    qsort(lives, count, sizeof(*lives), by_push_start);
    const char *what = NULL;
    const struct life *latest = NULL;
    for (size_t b = 0, a = 0; b < count && !what; b++) {
        for (; a < count && ended[a].push_end < lives[b].push_start; a++)
            if (!latest || ended[a].pop_start > latest->pop_start)
                latest = &ended[a];
        if (latest && lives[b].popped && lives[b].pop_end < latest->pop_start)
            what = wrong("a later value was popped before an earlier one", latest->value,
                         lives[b].value);
    }
    free(ended);
    return what;
}

/*
 * A pop found nothing.  From the end of a value's push to the start of its pop the queue held it.
 * If such spans cover the whole of the failed pop, it was wrong.
 */
static const char *check_empty(const struct linear_operation *pop, const struct life *lives,
                               size_t count)
{
    /* lives are sorted by the end of their pushes */
    uint64_t covered = pop->start;
    for (size_t i = 0; i < count && lives[i].push_end < covered; i++)
        if (lives[i].pop_start > covered)
            covered = lives[i].pop_start;
    return covered > pop->end ? wrong("empty, and it was not", pop->start, pop->end) : NULL;
}

const char *linear_check_long(struct linear_operation *operations, size_t count)
{
    struct life *lives = malloc((count + 1) * sizeof(*lives));
    size_t lived = 0;
    for (size_t i = 0; i < count; i++)
        if (operations[i].failed)
            operations[i].value = LINEAR_FAILED;
    qsort(operations, count, sizeof(*operations), by_value);
    const char *what = lives_of(operations, count, lives, &lived);
    if (!what)
        what = check_order(lives, lived);
    qsort(lives, lived, sizeof(*lives), by_push_end);
    for (size_t i = 0; i < count && !what && operations[i].failed; i++)
        if (!operations[i].is_push)
            what = check_empty(&operations[i], lives, lived);
    free(lives);
    return what;
}
