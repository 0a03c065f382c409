/* SPDX-License-Identifier: MIT */
/*
 * Records put into the order of time.
 *
 * Each CPU's ring is in order by itself, so what is queued consists of a few rising runs: one for
 * each ring that was emptied, and what an earlier release left behind.  Sorting merges runs that
 * are neighbours until one is left, which is stable and takes log2(runs) passes.
 */
#include "base/memory.h"
#include "sampler/perfdata_internal.h"

void queue_add(struct queue *q, const struct queue_entry *entry)
{
    if (q->released == q->given && q->given) {
        /* All that was released has been given: what waits moves to the front. */
        memmove(q->entries, q->entries + q->given, (q->count - q->given) * sizeof(*q->entries));
        q->count -= q->given;
        q->given = q->released = 0;
    }
    ARRAY_PUSH(q->entries, q->count, q->capacity) = *entry;
    if (entry->time_ns > q->newest_ns)
        q->newest_ns = entry->time_ns;
}

/* The end of the rising run that starts at `start`. */
static size_t run_end(const struct queue_entry *entries, size_t start, size_t count)
{
    size_t end = start + 1;
    while (end < count && entries[end - 1].time_ns <= entries[end].time_ns)
        end++;
    return end;
}

static void merge(const struct queue_entry *from, size_t start, size_t middle, size_t end,
                  struct queue_entry *to)
{
    size_t a = start, b = middle;
    for (size_t i = start; i < end; i++) {
        bool take_a = b >= end || (a < middle && from[a].time_ns <= from[b].time_ns);
        to[i] = from[take_a ? a++ : b++];
    }
}

/* Merges neighbouring runs once; returns how many runs are left. */
static size_t merge_pass(const struct queue_entry *from, size_t start, size_t count,
                         struct queue_entry *to)
{
    size_t runs = 0;
    while (start < count) {
        size_t middle = run_end(from, start, count);
        size_t end = middle < count ? run_end(from, middle, count) : middle;
        merge(from, start, middle, end, to);
        start = end;
        runs++;
    }
    return runs;
}

/* Sorts entries[given..count). */
static void sort(struct queue *q)
{
    if (q->given >= q->count || run_end(q->entries, q->given, q->count) == q->count)
        return;
    q->scratch = memory_grow(q->scratch, &q->scratch_capacity, q->count, sizeof(*q->scratch));
    size_t runs;
    do {
        runs = merge_pass(q->entries, q->given, q->count, q->scratch);
        struct queue_entry *swap = q->entries;
        size_t swap_capacity = q->capacity;
        q->entries = q->scratch;
        q->capacity = q->scratch_capacity;
        q->scratch = swap;
        q->scratch_capacity = swap_capacity;
    } while (runs > 1);
}

/* The first entry that is newer than time_ns. */
static size_t upper_bound(const struct queue *q, uint64_t time_ns)
{
    size_t low = q->given, high = q->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (q->entries[middle].time_ns <= time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void queue_finish_round(struct queue *q)
{
    if (q->round_newest_ns) {
        sort(q);
        q->released = upper_bound(q, q->round_newest_ns);
    }
    q->round_newest_ns = q->newest_ns;
}

void queue_release_half(struct queue *q)
{
    sort(q);
    q->released = q->given + (q->count - q->given + 1) / 2;
}

void queue_release_all(struct queue *q)
{
    sort(q);
    q->released = q->count;
}

const struct queue_entry *queue_next(struct queue *q)
{
    return &q->entries[q->given++];
}

void queue_done(struct queue *q)
{
    free(q->entries);
    free(q->scratch);
    *q = (struct queue){0};
}
