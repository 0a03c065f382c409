/* SPDX-License-Identifier: MIT */
/*
 * A ring of messages in shared memory between one writer and one reader, in two processes or two
 * threads of one.
 *
 * All messages have one size and the ring holds a whole number of them, so that a message always
 * lies in one piece.  Positions count messages and only grow.  Each end keeps what it last saw of
 * the other's position and looks again only when that does not suffice; the reader gives room back
 * an eighth of the ring at a time.  So the lines that both processors write travel seldom.
 *
 * A waiting end spins for some microseconds and then sleeps on a futex, so that more threads than
 * processors do not burn each other's time.  Two ends that are pinned to one processor do not spin,
 * and wake each other only when the ring is full or empty: a wake-up for every message would be a
 * switch for every message.
 */
#ifndef ASSAY_MOVE_SHM_RING_H
#define ASSAY_MOVE_SHM_RING_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Lines are fetched in pairs: what two processors write is kept 128 bytes apart. */
#define RING_APART_BYTES 128

/* What both ends see; the messages follow on the next page. */
struct shm_ring_shared {
    alignas(
        RING_APART_BYTES) _Atomic uint64_t written;   /* by the writer, release; reader acquires */
    alignas(RING_APART_BYTES) _Atomic uint64_t taken; /* by the reader, release; writer acquires */
    alignas(RING_APART_BYTES) _Atomic uint32_t reader_sleeps; /* futex words: 1 while asleep */
    _Atomic uint32_t writer_sleeps;
    _Atomic uint32_t is_closed; /* by either end: nobody waits any more */
    /* The processor that an end is pinned to, plus one; 0 when it is not pinned. */
    _Atomic uint32_t writer_pin, reader_pin;
};

/* One end; private to its thread. */
struct shm_ring_end {
    struct shm_ring_shared *shared;
    unsigned char *messages;
    size_t message_bytes;
    uint64_t slots;
    uint64_t position;  /* own, published or not, in messages */
    uint64_t slot;      /* position modulo slots */
    uint64_t published; /* own, as the other end may see it */
    uint64_t theirs;    /* what was last seen of the other end's */
    uint64_t sleep_count;

    bool has_membarrier;
    uint32_t pin;             /* own */
    _Atomic uint32_t *sleeps; /* own word in shared */
    _Atomic uint32_t *other_sleeps;
    const _Atomic uint32_t *other_pin;
};

/* How much zeroed shared memory a ring takes that holds about `ring_bytes` of messages. */
size_t shm_ring_shared_bytes(size_t ring_bytes, size_t message_bytes);
/* By the thread that will use it, after it was pinned. */
void shm_ring_open(struct shm_ring_end *e, void *shared, size_t ring_bytes, size_t message_bytes,
                   bool is_writer);

/* The writer: where the next message goes; waits for room.  NULL when the ring is closed or nothing
 * happened for `limit_ms`.  shm_ring_wrote adds the message, shm_ring_publish shows all added ones,
 * shm_ring_flush shows them and wakes the reader in any case. */
void *shm_ring_claim(struct shm_ring_end *e, unsigned limit_ms);
void shm_ring_wrote(struct shm_ring_end *e);
void shm_ring_publish(struct shm_ring_end *e);
void shm_ring_flush(struct shm_ring_end *e);

/* Waits until the reader has taken all that was written. */
bool shm_ring_drained(struct shm_ring_end *e, unsigned limit_ms);

/* The reader: the next message; waits for it.  NULL when the ring is closed and empty, or nothing
 * happened for `limit_ms`.  shm_ring_took lets go of it. */
const void *shm_ring_peek(struct shm_ring_end *e, unsigned limit_ms);
void shm_ring_took(struct shm_ring_end *e);

/* From either end: what was published can still be read, nothing is waited for. */
void shm_ring_close(struct shm_ring_end *e);
bool shm_ring_is_closed(const struct shm_ring_end *e);

#endif
