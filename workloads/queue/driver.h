/* SPDX-License-Identifier: MIT */
/*
 * The loops of a load for one kind of queue.  Included once for each, with
 *   DRIVER               the name
 *   DRIVER_PUSH(q, t, items, count, bytes)   pushes up to count, returns how many
 *   DRIVER_POP(q, t, items, count, bytes)    pops up to count, returns how many
 * defined; it defines NAME_produce, NAME_consume and NAME_ping.  For 8-byte items singly and in
 * batches the sizes are constants, as they are where a queue is used for one type.
 */
#include "load.h"

#include <sched.h>

#ifndef DRIVER_PASTE
#define DRIVER_PASTE_(a, b) a##_##b
#define DRIVER_PASTE(a, b) DRIVER_PASTE_(a, b)
#define DRIVER_NAME(suffix) DRIVER_PASTE(DRIVER, suffix)

/* A consumer that found nothing so often tells how far it is. */
#define DRIVER_IDLE 8

QUEUE_INLINE void driver_fill(uint64_t *item, uint64_t word, size_t bytes)
{
    for (size_t i = 0; i < bytes / 8; i++)
        item[i] = word;
}

/* Two items at once, from any place; four pairs in a turn of a loop, each counted on by itself, so
 * that none waits for the one before. */
typedef uint64_t driver_pair __attribute__((vector_size(16), aligned(8), may_alias));
#define DRIVER_PAIR(items, i) (*(driver_pair *)(uintptr_t) & (items)[i])
#define DRIVER_RUN(w) a = {w, w + 1}, b = a + 2, c = a + 4, d = a + 6

/* Items of one word each: the numbers from `word` on. */
QUEUE_INLINE void driver_fill_run(uint64_t *items, uint64_t word, size_t count)
{
    driver_pair DRIVER_RUN(word);
    size_t i = 0;
    for (; i + 8 <= count; i += 8, a += 8, b += 8, c += 8, d += 8) {
        DRIVER_PAIR(items, i) = a;
        DRIVER_PAIR(items, i + 2) = b;
        DRIVER_PAIR(items, i + 4) = c;
        DRIVER_PAIR(items, i + 6) = d;
    }
    for (; i < count; i++)
        items[i] = word + i;
}

/* Whether they are. */
QUEUE_INLINE bool driver_is_run(const uint64_t *items, uint64_t word, size_t count)
{
    driver_pair DRIVER_RUN(word), ab = {0, 0}, cd = {0, 0};
    size_t i = 0;
    for (; i + 8 <= count; i += 8, a += 8, b += 8, c += 8, d += 8) {
        ab |= (DRIVER_PAIR(items, i) ^ a) | (DRIVER_PAIR(items, i + 2) ^ b);
        cd |= (DRIVER_PAIR(items, i + 4) ^ c) | (DRIVER_PAIR(items, i + 6) ^ d);
    }
    ab |= cd;
    uint64_t differ = ab[0] | ab[1];
    for (; i < count; i++)
        differ |= items[i] ^ (word + i);
    return differ == 0;
}

/*
 * An item that is not the one after the last: the run of numbers in hand is put down, and the one
 * that this continues is taken up.  The numbers of a producer grow at each consumer; in which gaps
 * others have taken is looked at in the end.
 */
QUEUE_INLINE int driver_switch(struct load_worker *w, uint64_t word, uint64_t *expected)
{
    unsigned producer = (unsigned)(word >> LOAD_NUMBER_BITS);
    uint64_t number = word & LOAD_NUMBER_MASK;
    w->seen[*expected >> LOAD_NUMBER_BITS].next = *expected & LOAD_NUMBER_MASK;
    if (Q_UNLIKELY(producer >= w->load->settings.producers))
        return load_out_of_order(w, producer, number, 0);
    struct load_seen *seen = &w->seen[producer];
    *expected = word;
    if (number == seen->next)
        return 0;
    if (number < seen->next)
        return load_out_of_order(w, producer, number, seen->next);
    load_mark_run(seen, seen->run_start, seen->next);
    seen->run_start = number;
    return 0;
}

/* Checks items: their copies and their places in their producers' order.  *expected is the first
 * word of the item that continues the run in hand. */
QUEUE_INLINE int driver_check(struct load_worker *w, const uint64_t *items, size_t count,
                              size_t bytes, bool timed, uint64_t *expected)
{
    if (bytes == 8 && !timed && count > 1 && driver_is_run(items, *expected, count)) {
        *expected += count;
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        const uint64_t *item = &items[i * (bytes / 8)];
        uint64_t word = item[0];
        for (size_t k = 1; k < bytes / 8; k++)
            if (Q_UNLIKELY(item[k] != word))
                return load_torn(w, word, item[k]);
        if (Q_UNLIKELY(word != *expected)) {
            int code = driver_switch(w, word, expected);
            if (code < 0)
                return code;
        }
        ++*expected;
        if (timed && (word & (w->load->latency_stride - 1)) == 0)
            load_received(w, (unsigned)(word >> LOAD_NUMBER_BITS), word & LOAD_NUMBER_MASK);
    }
    return 0;
}

QUEUE_INLINE bool driver_ended(struct load *load)
{
    return __atomic_load_n(&load->taken, __ATOMIC_RELAXED) >= load->settings.items ||
           __atomic_load_n(&load->failed, __ATOMIC_RELAXED);
}

/* Adds what this consumer took since *known to the total; true when that was the last item. */
QUEUE_INLINE bool driver_report(struct load_worker *w, uint64_t count, uint64_t *known)
{
    struct load *load = w->load;
    uint64_t more = count - *known;
    if (!more)
        return false;
    *known = count;
    __atomic_store_n(&w->progress, count, __ATOMIC_RELAXED);
    if (__atomic_add_fetch(&load->taken, more, __ATOMIC_RELAXED) < load->settings.items)
        return false;
    gate_notify(&load->items, UINT32_MAX);
    return true;
}
#endif

QUEUE_INLINE int DRIVER_NAME(produce_as)(struct load_worker *w, size_t batch, size_t bytes,
                                         bool timed, bool blocking)
{
    struct load *load = w->load;
    struct queue_waiter wait = load->settings.waiter;
    void *q = w->queue, *t = w->thread;
    uint64_t base = (uint64_t)w->index << LOAD_NUMBER_BITS, sent = 0;
    /* Batches of words are made a chunk at a time: a queue that copies them with wide loads does
     * not stall on stores that are still under way, and the making of them costs each queue as
     * little as it can. */
    bool ahead = bytes == 8 && !timed && batch > 1;
    uint64_t one[QUEUE_ITEM_BYTES_MAX / 8] = {0}, *items = batch == 1 ? one : w->buffer;
    while (sent < w->count) {
        if (__atomic_load_n(&load->failed, __ATOMIC_RELAXED))
            return 0;
        load_await_backlog(w);
        uint64_t chunk_end = sent + LOAD_CHUNK < w->count ? sent + LOAD_CHUNK : w->count;
        if (ahead)
            driver_fill_run(items = w->buffer, base + sent, chunk_end - sent);
        while (sent < chunk_end) {
            size_t count = batch < chunk_end - sent ? batch : chunk_end - sent, done = 0;
            for (size_t i = 0; !ahead && i < count; i++) {
                driver_fill(&items[i * (bytes / 8)], base + sent + i, bytes);
                if (timed && ((sent + i) & (load->latency_stride - 1)) == 0)
                    load_sent(w, sent + i);
            }
            while (done < count) {
                size_t now = 0;
                if (blocking)
                    GATE_WAIT(&load->room, 200,
                              (now = DRIVER_PUSH(q, t, &items[done * (bytes / 8)], count - done,
                                                 bytes)) ||
                                  __atomic_load_n(&load->failed, __ATOMIC_RELAXED));
                else
                    now = DRIVER_PUSH(q, t, &items[done * (bytes / 8)], count - done, bytes);
                done += now;
                if (Q_LIKELY(now)) {
                    queue_wait_got(&wait, now);
                    if (blocking)
                        gate_notify(&load->items, (uint32_t)now);
                    continue;
                }
                queue_wait_once(&wait);
                if (__atomic_load_n(&load->failed, __ATOMIC_RELAXED))
                    return 0;
            }
            sent += count;
            if (ahead)
                items += count;
        }
        __atomic_store_n(&w->progress, sent, __ATOMIC_RELAXED);
    }
    return 0;
}

QUEUE_INLINE int DRIVER_NAME(consume_as)(struct load_worker *w, size_t batch, size_t bytes,
                                         bool timed, bool blocking)
{
    struct load *load = w->load;
    struct queue_waiter wait = load->settings.waiter;
    void *q = w->queue, *t = w->thread;
    uint64_t one[QUEUE_ITEM_BYTES_MAX / 8] = {0}, *items = batch == 1 ? one : w->buffer;
    uint64_t count = 0, known = 0, next_report = LOAD_CHUNK, total = load->settings.items;
    uint64_t expected = 0;
    /* Likewise, batches of words are checked a chunk at a time where they come one after the other
     * from one producer; else at once, since the runs of numbers mostly end with a batch. */
    bool later = bytes == 8 && !timed && !blocking && batch > 1 && load->worker_count == 2;
    size_t unchecked = 0;
    unsigned idle = 0;
    int code = 0;
    if (load->settings.consumers == 1 && total < next_report)
        next_report = total;
    for (;;) {
        size_t found = DRIVER_POP(q, t, &items[unchecked], batch, bytes);
        if (blocking && !found) {
            if (driver_report(w, count, &known))
                break;
            GATE_WAIT(&load->items, 200,
                      (found = DRIVER_POP(q, t, items, batch, bytes)) || driver_ended(load));
        }
        count += found;
        unchecked += found;
        if (Q_LIKELY(found)) {
            queue_wait_got(&wait, found);
            idle = 0;
        }
        if (later && Q_LIKELY(found && count < next_report))
            continue;
        code = driver_check(w, items, unchecked, bytes, timed, &expected);
        if (Q_UNLIKELY(code < 0))
            break;
        unchecked = 0;
        if (blocking && found)
            gate_notify(&load->room, (uint32_t)found);
        if (Q_LIKELY(found && count < next_report))
            continue;
        /* Now and then, and when there is nothing for a while: tell the others, look for the end.
         */
        if (found || ++idle > DRIVER_IDLE) {
            next_report = count + LOAD_CHUNK;
            if (load->settings.consumers == 1 && total < next_report)
                next_report = total;
            if (driver_report(w, count, &known) || (!found && driver_ended(load)))
                break;
        }
        if (!found)
            queue_wait_once(&wait);
    }
    w->seen[expected >> LOAD_NUMBER_BITS].next = expected & LOAD_NUMBER_MASK;
    w->count = count;
    return code;
}

static int DRIVER_NAME(produce)(struct load_worker *w)
{
    const struct load_settings *s = &w->load->settings;
    bool blocking = s->waiter.kind == QUEUE_WAIT_SLEEP;
    if (s->latency || blocking)
        return DRIVER_NAME(produce_as)(w, s->batch, s->payload_bytes, s->latency, blocking);
    if (s->payload_bytes != 8)
        return DRIVER_NAME(produce_as)(w, s->batch, s->payload_bytes, false, false);
    if (s->batch == 1)
        return DRIVER_NAME(produce_as)(w, 1, 8, false, false);
    return DRIVER_NAME(produce_as)(w, s->batch, 8, false, false);
}

static int DRIVER_NAME(consume)(struct load_worker *w)
{
    const struct load_settings *s = &w->load->settings;
    bool blocking = s->waiter.kind == QUEUE_WAIT_SLEEP;
    if (s->latency || blocking)
        return DRIVER_NAME(consume_as)(w, s->batch, s->payload_bytes, s->latency, blocking);
    if (s->payload_bytes != 8)
        return DRIVER_NAME(consume_as)(w, s->batch, s->payload_bytes, false, false);
    if (s->batch == 1)
        return DRIVER_NAME(consume_as)(w, 1, 8, false, false);
    return DRIVER_NAME(consume_as)(w, s->batch, 8, false, false);
}

/* Round trips: the producer sends an item and awaits it back, the consumer sends each back. */
static int DRIVER_NAME(ping)(struct load_worker *w)
{
    struct queue_waiter there = w->load->settings.waiter, back = there;
    uint64_t item[QUEUE_ITEM_BYTES_MAX / 8] = {0};
    for (uint64_t i = 0; i < w->load->settings.items; i++) {
        item[0] = i;
        if (w->is_producer)
            QUEUE_WAIT_FOR(&there, DRIVER_PUSH(w->queue, w->thread, item, 1, 8));
        QUEUE_WAIT_FOR(&back, w->is_producer ? DRIVER_POP(w->answer, w->answer_thread, item, 1, 8)
                                             : DRIVER_POP(w->queue, w->thread, item, 1, 8));
        if (item[0] != i)
            return load_out_of_order(w, 0, item[0], i);
        if (!w->is_producer)
            QUEUE_WAIT_FOR(&there, DRIVER_PUSH(w->answer, w->answer_thread, item, 1, 8));
    }
    return 0;
}

#undef DRIVER
#undef DRIVER_PUSH
#undef DRIVER_POP
