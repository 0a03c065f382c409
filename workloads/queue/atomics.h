/* SPDX-License-Identifier: MIT */
/*
 * The steps that the queues are made of: every access to memory that threads share.
 *
 * The queues call these instead of the compiler's builtins, so that one source serves three uses:
 * - as it is: the macros are the builtins, nothing else;
 * - with QUEUE_STEPS defined: queue_step() is called before each step; the stress tests put random
 *   delays there, and stop or kill threads at every place where that can happen to them;
 * - with QUEUE_EXPLORE defined: each step goes to the explorer (tests/unit/queue/explore.h), which
 *   tries the interleavings, lets loads return what a weak memory may return, and weakens one
 *   ordering after the other to see whether the tests notice.
 *
 * Q_READ and Q_WRITE are plain accesses to data that another thread may touch before or after, but
 * never at the same time: the explorer and TSan report it when that is not so.
 *
 * Q_LIGHT and Q_HEAVY are the two halves of an asymmetric barrier: as if both were sequentially
 * consistent fences, but the light one costs nothing where the kernel has membarrier(2): it only
 * keeps the compiler from reordering, and the heavy one makes every CPU that runs this process
 * execute a fence.
 */
#ifndef ASSAY_QUEUE_ATOMICS_H
#define ASSAY_QUEUE_ATOMICS_H

/* The headers are C11 and C++17; their functions that are not inline are in a C library. */
#ifdef __cplusplus
#define QUEUE_C_BEGIN extern "C" {
#define QUEUE_C_END }
#define QUEUE_ASSERT(condition, why) static_assert(condition, why)
#else
#define QUEUE_C_BEGIN
#define QUEUE_C_END
#define QUEUE_ASSERT(condition, why) _Static_assert(condition, why)
#endif

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define QUEUE_LINE 64 /* bytes that move between cores together */
#define QUEUE_ALIGNED __attribute__((aligned(QUEUE_LINE)))
#define QUEUE_INLINE static inline __attribute__((always_inline, unused))
#define QUEUE_SLOW static __attribute__((noinline, unused, cold))

#define Q_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define Q_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

#if defined(QUEUE_EXPLORE)

#include "explore.h"

#else

#define Q_relaxed __ATOMIC_RELAXED
#define Q_acquire __ATOMIC_ACQUIRE
#define Q_release __ATOMIC_RELEASE
#define Q_acq_rel __ATOMIC_ACQ_REL
#define Q_seq_cst __ATOMIC_SEQ_CST

#if defined(QUEUE_STEPS)
QUEUE_C_BEGIN
void queue_step(void);
QUEUE_C_END
#define Q_STEP() queue_step()
#else
#define Q_STEP() ((void)0)
#endif

#define Q_LOAD(p, order) (Q_STEP(), __atomic_load_n((p), Q_##order))
#define Q_STORE(p, value, order) (Q_STEP(), __atomic_store_n((p), (value), Q_##order))
#define Q_ADD(p, value, order) (Q_STEP(), __atomic_fetch_add((p), (value), Q_##order))
#define Q_SWAP(p, value, order) (Q_STEP(), __atomic_exchange_n((p), (value), Q_##order))
/* Compares with *expected, which is updated when it differs (then with order `relaxed`). */
#define Q_CAS(p, expected, value, order) \
    (Q_STEP(), __atomic_compare_exchange_n((p), (expected), (value), false, Q_##order, Q_relaxed))
#define Q_FENCE(order) (Q_STEP(), __atomic_thread_fence(Q_##order))
#define Q_READ(p) (*(p))
#define Q_WRITE(p, value) ((void)(*(p) = (value)))
/* A loop that tries again, in which nothing is carried over from the last try but `carried`. */
#define Q_FOREVER(carried) for (;;)
/* The line will be written soon.  For x86-64 compilers make a prefetch for reading of the builtin,
 * unless told for which CPU; where that lacks the instruction, it does nothing. */
#if defined(__x86_64__)
#define Q_PREFETCH(p) __asm__ volatile("prefetchw (%0)" ::"r"(p))
#else
#define Q_PREFETCH(p) __builtin_prefetch((const void *)(p), 1)
#endif

/* Whether membarrier(2) is there, asked once for each process; on_heavy is the system call. */
QUEUE_C_BEGIN
bool queue_barrier_is_cheap(void);
void queue_barrier_heavy(void);
QUEUE_C_END

#define Q_LIGHT(cheap)                        \
    do {                                      \
        Q_STEP();                             \
        if (Q_LIKELY(cheap))                  \
            __atomic_signal_fence(Q_seq_cst); \
        else                                  \
            __atomic_thread_fence(Q_seq_cst); \
    } while (0)
#define Q_HEAVY(cheap)                        \
    do {                                      \
        Q_STEP();                             \
        if (cheap)                            \
            queue_barrier_heavy();            \
        else                                  \
            __atomic_thread_fence(Q_seq_cst); \
    } while (0)

/* Whoever is waited for may need this CPU. */
#define Q_YIELD() (Q_STEP(), (void)sched_yield())

#if defined(__x86_64__) || defined(__i386__)
#define Q_PAUSE() (Q_STEP(), __builtin_ia32_pause())
#elif defined(__aarch64__)
#define Q_PAUSE() (Q_STEP(), ({ __asm__ volatile("yield"); }))
#else
#define Q_PAUSE() Q_STEP()
#endif

#endif /* !QUEUE_EXPLORE */

/* The compiler does not know the value any more: it cannot choose it without a branch. */
#define Q_KEEP(value) __asm__("" : "+r"(value))

/*
 * Items are copied by whole words, or several at once; the explorer sees each.  `bytes` is a
 * multiple of 8.  Where it is not a constant, two copies that overlap in the middle do for up to
 * seven words, whatever their number: loops of that length are mispredicted.
 */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push /* without optimisation it takes the branches not taken for real */
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#pragma GCC diagnostic ignored "-Wstringop-overread"
#endif
QUEUE_INLINE void queue_copy(void *to, const void *from, size_t bytes)
{
    if (__builtin_constant_p(bytes) || bytes >= 64) {
        memcpy(to, from, bytes);
    } else if (bytes >= 32) {
        memcpy(to, from, 32);
        memcpy((char *)to + bytes - 32, (const char *)from + bytes - 32, 32);
    } else if (bytes >= 16) {
        memcpy(to, from, 16);
        memcpy((char *)to + bytes - 16, (const char *)from + bytes - 16, 16);
    } else {
        memcpy(to, from, 8);
    }
}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

QUEUE_INLINE void queue_copy_in(uint64_t *slot, const void *item, size_t bytes)
{
#if defined(QUEUE_EXPLORE)
    for (size_t i = 0; i < bytes / 8; i++) {
        uint64_t word;
        memcpy(&word, (const char *)item + i * 8, 8);
        Q_WRITE(&slot[i], word);
    }
#else
    queue_copy(slot, item, bytes);
#endif
}

QUEUE_INLINE void queue_copy_out(void *item, uint64_t *slot, size_t bytes)
{
#if defined(QUEUE_EXPLORE)
    for (size_t i = 0; i < bytes / 8; i++) {
        uint64_t word = Q_READ(&slot[i]);
        memcpy((char *)item + i * 8, &word, 8);
    }
#else
    queue_copy(item, slot, bytes);
#endif
}

/*
 * A thread that lost a compare-and-swap to another of its own side leaves it alone for some pauses:
 * undisturbed for a moment that one does hundreds of items, where two that take turns move the
 * lines of index and slots at every item.  Only who has met another waits.  (What to do when a
 * queue is empty or full is not decided in here: wait.h.)
 */
#ifndef QUEUE_BACKOFF
#define QUEUE_BACKOFF 128
#endif

QUEUE_INLINE void queue_wait(uint64_t pauses)
{
    for (; pauses > 0; pauses--)
        Q_PAUSE();
}

/* The result of a blocking or of a batch operation is a count, of a try_ operation a bool. */
#define QUEUE_ITEM_BYTES_MAX 1024

static inline bool queue_item_bytes_valid(size_t bytes)
{
    return bytes >= 8 && bytes <= QUEUE_ITEM_BYTES_MAX && bytes % 8 == 0;
}

static inline uint64_t queue_power_of_two(uint64_t at_least)
{
    uint64_t power = 1;
    while (power < at_least)
        power *= 2;
    return power;
}

#endif
