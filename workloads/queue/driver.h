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

#ifndef DRIVER_PASTE
#define DRIVER_PASTE_(a, b) a##_##b
#define DRIVER_PASTE(a, b) DRIVER_PASTE_(a, b)
#define DRIVER_NAME(suffix) DRIVER_PASTE(DRIVER, suffix)

/* Pushes of other threads are looked at every so many items. */
#define DRIVER_CHUNK 1024

QUEUE_INLINE void driver_fill(uint64_t *item, uint64_t word, size_t bytes)
{
    for (size_t i = 0; i < bytes / 8; i++)
        item[i] = word;
}

/* Checks one item: its copies and its place in its producer's order.  The numbers of a producer
 * grow at each consumer; in which gaps others have taken is looked at in the end. */
QUEUE_INLINE int driver_check(struct load_worker *w, const uint64_t *item, size_t bytes, bool timed)
{
    uint64_t word = item[0];
    for (size_t i = 1; i < bytes / 8; i++)
        if (Q_UNLIKELY(item[i] != word))
            return load_torn(w, word, item[i]);
    unsigned producer = (unsigned)(word >> LOAD_NUMBER_BITS);
    uint64_t number = word & ((1ULL << LOAD_NUMBER_BITS) - 1);
    if (Q_UNLIKELY(producer >= w->load->settings.producers))
        return load_out_of_order(w, producer, number, 0);
    struct load_seen *seen = &w->seen[producer];
    if (Q_UNLIKELY(number != seen->next)) {
        if (number < seen->next)
            return load_out_of_order(w, producer, number, seen->next);
        load_mark_run(seen, seen->run_start, seen->next);
        seen->run_start = number;
    }
    seen->next = number + 1;
    if (timed && (number & (w->load->latency_stride - 1)) == 0)
        load_received(w, producer, number);
    return 0;
}

/* In a round trip somebody always answers soon. */
QUEUE_INLINE void driver_poll(unsigned *tries)
{
    if (++*tries > 10000)
        load_relax(tries);
}

QUEUE_INLINE bool driver_ended(struct load *load)
{
    return __atomic_load_n(&load->taken, __ATOMIC_RELAXED) >= load->settings.items ||
           __atomic_load_n(&load->failed, __ATOMIC_RELAXED);
}

/* Adds what this consumer took since *known to the total; true when that was the last item. */
QUEUE_INLINE bool driver_report(struct load_worker *w, uint64_t *known)
{
    struct load *load = w->load;
    uint64_t more = w->count - *known;
    if (!more)
        return false;
    *known = w->count;
    __atomic_store_n(&w->progress, w->count, __ATOMIC_RELAXED);
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
    void *q = w->queue, *t = w->thread;
    uint64_t base = (uint64_t)w->index << LOAD_NUMBER_BITS, sent = 0;
    while (sent < w->count) {
        if (__atomic_load_n(&load->failed, __ATOMIC_RELAXED))
            return 0;
        load_await_backlog(w);
        uint64_t chunk_end = sent + DRIVER_CHUNK < w->count ? sent + DRIVER_CHUNK : w->count;
        while (sent < chunk_end) {
            size_t count = batch < chunk_end - sent ? batch : chunk_end - sent, done = 0;
            uint64_t one[QUEUE_ITEM_BYTES_MAX / 8] = {0}, *items = batch == 1 ? one : w->buffer;
            for (size_t i = 0; i < count; i++) {
                driver_fill(&items[i * (bytes / 8)], base + sent + i, bytes);
                if (timed && ((sent + i) & (load->latency_stride - 1)) == 0)
                    load_sent(w, sent + i);
            }
            unsigned tries = 0;
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
                    if (blocking)
                        gate_notify(&load->items, (uint32_t)now);
                    continue;
                }
                load_relax(&tries);
                if (__atomic_load_n(&load->failed, __ATOMIC_RELAXED))
                    return 0;
            }
            sent += count;
        }
        __atomic_store_n(&w->progress, sent, __ATOMIC_RELAXED);
    }
    return 0;
}

QUEUE_INLINE int DRIVER_NAME(consume_as)(struct load_worker *w, size_t batch, size_t bytes,
                                         bool timed, bool blocking)
{
    struct load *load = w->load;
    void *q = w->queue, *t = w->thread;
    uint64_t one[QUEUE_ITEM_BYTES_MAX / 8] = {0}, *items = batch == 1 ? one : w->buffer;
    uint64_t known = 0, next_report = DRIVER_CHUNK, total = load->settings.items;
    unsigned tries = 0;
    if (load->settings.consumers == 1 && total < next_report)
        next_report = total;
    for (;;) {
        size_t found = DRIVER_POP(q, t, items, batch, bytes);
        if (blocking && !found) {
            if (driver_report(w, &known))
                return 0;
            GATE_WAIT(&load->items, 200,
                      (found = DRIVER_POP(q, t, items, batch, bytes)) || driver_ended(load));
        }
        for (size_t i = 0; i < found; i++) {
            int code = driver_check(w, &items[i * (bytes / 8)], bytes, timed);
            if (Q_UNLIKELY(code < 0))
                return code;
        }
        w->count += found;
        if (blocking && found)
            gate_notify(&load->room, (uint32_t)found);
        if (Q_LIKELY(found && w->count < next_report)) {
            tries = 0;
            continue;
        }
        /* Now and then, and whenever there is nothing: tell the others, look for the end. */
        next_report = w->count + DRIVER_CHUNK;
        if (load->settings.consumers == 1 && total < next_report)
            next_report = total;
        if (driver_report(w, &known))
            return 0;
        if (!found) {
            if (driver_ended(load))
                return 0;
            load_relax(&tries);
        }
    }
}

static int DRIVER_NAME(produce)(struct load_worker *w)
{
    const struct load_settings *s = &w->load->settings;
    if (s->latency || s->blocking)
        return DRIVER_NAME(produce_as)(w, s->batch, s->payload_bytes, s->latency, s->blocking);
    if (s->payload_bytes != 8)
        return DRIVER_NAME(produce_as)(w, s->batch, s->payload_bytes, false, false);
    if (s->batch == 1)
        return DRIVER_NAME(produce_as)(w, 1, 8, false, false);
    return DRIVER_NAME(produce_as)(w, s->batch, 8, false, false);
}

static int DRIVER_NAME(consume)(struct load_worker *w)
{
    const struct load_settings *s = &w->load->settings;
    if (s->latency || s->blocking)
        return DRIVER_NAME(consume_as)(w, s->batch, s->payload_bytes, s->latency, s->blocking);
    if (s->payload_bytes != 8)
        return DRIVER_NAME(consume_as)(w, s->batch, s->payload_bytes, false, false);
    if (s->batch == 1)
        return DRIVER_NAME(consume_as)(w, 1, 8, false, false);
    return DRIVER_NAME(consume_as)(w, s->batch, 8, false, false);
}

/* Round trips: the producer sends an item and awaits it back, the consumer sends each back. */
static int DRIVER_NAME(ping)(struct load_worker *w)
{
    uint64_t item[QUEUE_ITEM_BYTES_MAX / 8] = {0};
    for (uint64_t i = 0; i < w->load->settings.items; i++) {
        unsigned tries = 0;
        if (w->is_producer) {
            item[0] = i;
            while (!DRIVER_PUSH(w->queue, w->thread, item, 1, 8))
                driver_poll(&tries);
            while (!DRIVER_POP(w->answer, w->answer_thread, item, 1, 8))
                driver_poll(&tries);
            if (item[0] != i)
                return load_out_of_order(w, 0, item[0], i);
        } else {
            while (!DRIVER_POP(w->queue, w->thread, item, 1, 8))
                driver_poll(&tries);
            while (!DRIVER_PUSH(w->answer, w->answer_thread, item, 1, 8))
                driver_poll(&tries);
        }
    }
    return 0;
}

#undef DRIVER
#undef DRIVER_PUSH
#undef DRIVER_POP
