/* SPDX-License-Identifier: MIT */
#include "shm_ring.h"

#include "base/clock.h"

#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Some ten microseconds: longer than a message takes, shorter than a sleep and a wake-up. */
#define SPINS_BEFORE_SLEEP 1000
#define HEAD_BYTES 4096

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static uint64_t slots_in(size_t ring_bytes, size_t message_bytes)
{
    uint64_t slots = ring_bytes / message_bytes;
    return slots < 4 ? 4 : slots;
}

size_t shm_ring_shared_bytes(size_t ring_bytes, size_t message_bytes)
{
    return HEAD_BYTES + slots_in(ring_bytes, message_bytes) * message_bytes;
}

/*
 * An end that goes to sleep and one that publishes must not miss each other: both write a word and
 * then read the other's.  A fence between the two would cost the publisher for every message, so
 * the sleeper pays for both: membarrier makes every processor that runs a registered process pass
 * a fence.  Where the kernel has none, both use one.
 */
static bool register_membarrier(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

/* The one processor that this thread may use, plus one; 0 when there are several. */
static uint32_t own_pin(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) < 0 || CPU_COUNT(&set) != 1)
        return 0;
    return (uint32_t)sched_getcpu() + 1;
}

void shm_ring_open(struct shm_ring_end *e, void *shared, size_t ring_bytes, size_t message_bytes,
                   bool is_writer)
{
    struct shm_ring_shared *s = shared;
    *e = (struct shm_ring_end){.shared = s,
                               .messages = (unsigned char *)shared + HEAD_BYTES,
                               .message_bytes = message_bytes,
                               .slots = slots_in(ring_bytes, message_bytes),
                               .has_membarrier = register_membarrier(),
                               .pin = own_pin(),
                               .sleeps = is_writer ? &s->writer_sleeps : &s->reader_sleeps,
                               .other_sleeps = is_writer ? &s->reader_sleeps : &s->writer_sleeps,
                               .other_pin = is_writer ? &s->reader_pin : &s->writer_pin};
    atomic_store_explicit(is_writer ? &s->writer_pin : &s->reader_pin, e->pin,
                          memory_order_relaxed);
}

static inline bool shares_processor(const struct shm_ring_end *e)
{
    return __builtin_expect(e->pin != 0, 0) &&
           e->pin == atomic_load_explicit(e->other_pin, memory_order_relaxed);
}

static inline void wake(const struct shm_ring_end *e)
{
    _Atomic uint32_t *word = e->other_sleeps;
    /* Partner: sleeper_fence. */
    if (e->has_membarrier)
        atomic_signal_fence(memory_order_seq_cst);
    else
        atomic_thread_fence(memory_order_seq_cst);
    if (__builtin_expect(atomic_load_explicit(word, memory_order_relaxed), 0) &&
        atomic_exchange_explicit(word, 0, memory_order_relaxed))
        syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void sleeper_fence(const struct shm_ring_end *e)
{
    /* Partner: the fence in wake. */
    atomic_thread_fence(memory_order_seq_cst);
    if (e->has_membarrier)
        syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

static bool has_reached(struct shm_ring_end *e, _Atomic uint64_t *position, uint64_t wanted)
{
    e->theirs = atomic_load_explicit(position, memory_order_acquire);
    return e->theirs >= wanted;
}

/* Waits until the other end's position has reached `wanted`. */
static bool await(struct shm_ring_end *e, _Atomic uint64_t *position, uint64_t wanted,
                  unsigned limit_ms)
{
    unsigned spins = shares_processor(e) ? 1 : SPINS_BEFORE_SLEEP;
    for (unsigned i = 0; i < spins; i++) {
        if (has_reached(e, position, wanted))
            return true;
        relax();
    }
    wake(e);
    bool is_there = false;
    uint64_t now_ns = clock_now_ns(), end_ns = now_ns + limit_ms * NS_PER_MS;
    for (; !is_there && now_ns < end_ns; now_ns = clock_now_ns()) {
        atomic_store_explicit(e->sleeps, 1, memory_order_relaxed);
        sleeper_fence(e);
        /* In this order: what was published before the closing is still seen. */
        bool is_closed = shm_ring_is_closed(e);
        is_there = has_reached(e, position, wanted);
        if (is_there || is_closed)
            break;
        e->sleep_count++;
        struct timespec limit = timespec_from_ns(end_ns - now_ns);
        syscall(SYS_futex, e->sleeps, FUTEX_WAIT, 1, &limit, NULL, 0);
        is_there = has_reached(e, position, wanted);
    }
    atomic_store_explicit(e->sleeps, 0, memory_order_relaxed);
    return is_there;
}

static inline void next_slot(struct shm_ring_end *e)
{
    e->position++;
    if (++e->slot == e->slots)
        e->slot = 0;
}

void *shm_ring_claim(struct shm_ring_end *e, unsigned limit_ms)
{
    if (__builtin_expect(e->position - e->theirs >= e->slots, 0)) {
        /* What is not published would never be taken. */
        shm_ring_publish(e);
        if (!await(e, &e->shared->taken, e->position - e->slots + 1, limit_ms))
            return NULL;
    }
    return e->messages + e->slot * e->message_bytes;
}

void shm_ring_wrote(struct shm_ring_end *e)
{
    next_slot(e);
}

void shm_ring_publish(struct shm_ring_end *e)
{
    if (e->published == e->position)
        return;
    e->published = e->position;
    /* Partner: the acquire of `written` in shm_ring_peek. */
    atomic_store_explicit(&e->shared->written, e->position, memory_order_release);
    if (!shares_processor(e))
        wake(e);
}

void shm_ring_flush(struct shm_ring_end *e)
{
    shm_ring_publish(e);
    wake(e);
}

bool shm_ring_drained(struct shm_ring_end *e, unsigned limit_ms)
{
    shm_ring_flush(e);
    return await(e, &e->shared->taken, e->position, limit_ms);
}

static void give_back(struct shm_ring_end *e)
{
    e->published = e->position;
    /* Partner: the acquire of `taken` in shm_ring_claim. */
    atomic_store_explicit(&e->shared->taken, e->position, memory_order_release);
    if (!shares_processor(e))
        wake(e);
}

const void *shm_ring_peek(struct shm_ring_end *e, unsigned limit_ms)
{
    if (__builtin_expect(e->position == e->theirs, 0)) {
        e->theirs = atomic_load_explicit(&e->shared->written, memory_order_acquire);
        if (e->position == e->theirs) {
            /* The writer may be waiting for what was not given back yet. */
            if (e->published != e->position)
                give_back(e);
            if (!await(e, &e->shared->written, e->position + 1, limit_ms))
                return NULL;
        }
    }
    return e->messages + e->slot * e->message_bytes;
}

void shm_ring_took(struct shm_ring_end *e)
{
    next_slot(e);
    if (e->position - e->published > e->slots / 8)
        give_back(e);
}

void shm_ring_close(struct shm_ring_end *e)
{
    atomic_store_explicit(&e->shared->is_closed, 1, memory_order_release);
    wake(e);
}

bool shm_ring_is_closed(const struct shm_ring_end *e)
{
    return atomic_load_explicit(&e->shared->is_closed, memory_order_acquire);
}
