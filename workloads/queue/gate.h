/* SPDX-License-Identifier: MIT */
/*
 * gate: sleeping instead of spinning, beside any of the queues.
 *
 * A side that finds nothing to do waits at a gate, and the other side notifies it after each
 * operation.  Waiting spins for a while, then sleeps on a futex; or a descriptor is made readable,
 * to be polled together with others.  The gate may lie in shared memory (processes have then to
 * agree on `shared`; the descriptor works in one process and in children that inherited it).
 *
 *   consumer:  GATE_WAIT(&items, spins, found = mpmc_try_pop(q, &item, 8));
 *   producer:  while (!mpmc_try_push(q, &item, 8)) …;   gate_notify(&items, 1);
 *
 * Cost       a fence for each notification, a system call only when somebody sleeps.
 * Why nobody sleeps for ever: a waiter makes itself known, then fences, then looks at the queue a
 * last time; a notifier changes the queue, then fences, then looks for waiters.  Of the two fences
 * one is first, so either the waiter sees the change or the notifier sees the waiter, and changes
 * `sequence`, on which the futex compares.  The waiter reads it before its fence and the notifier
 * changes it after its own, so a waiter that has read it changed comes second and sees the queue
 * changed, too.  A sleeper takes back only what it has counted itself, so none is ever overlooked
 * because of another.  The fences are all the order there is; the rest is relaxed.
 */
#ifndef ASSAY_QUEUE_GATE_H
#define ASSAY_QUEUE_GATE_H

#include "atomics.h"

struct gate {
    QUEUE_ALIGNED uint32_t waiters; /* sleepers */
    uint32_t sequence;              /* changes with each wake-up */
    uint32_t armed;                 /* whether the descriptor is waited for */
    bool shared;
    int event_fd; /* -1 for none */
};

QUEUE_C_BEGIN
void gate_init(struct gate *g, bool shared);
void gate_done(struct gate *g);

/* The descriptor that becomes readable when there is something to do after gate_arm; made when
 * first asked for.  A negative errno when it cannot be had. */
int gate_fd(struct gate *g);
/* From now on the next notification makes the descriptor readable, once.  Look at the queue again
 * after this and before polling.  A gate's descriptor is for one thread. */
void gate_arm(struct gate *g);
/* Takes the readiness back; the gate is not armed afterwards. */
void gate_disarm(struct gate *g);

/* For GATE_WAIT. */
uint32_t gate_prepare(struct gate *g);
void gate_cancel(struct gate *g);
void gate_sleep(struct gate *g, uint32_t sequence);
void gate_wake(struct gate *g, uint32_t count);
QUEUE_C_END

/* Something was done `count` times that may let others go on. */
QUEUE_INLINE void gate_notify(struct gate *g, uint32_t count)
{
    /* Partner: the fences in gate_prepare and gate_arm. */
    Q_FENCE(seq_cst);
    if (Q_UNLIKELY(Q_LOAD(&g->waiters, relaxed) | Q_LOAD(&g->armed, relaxed)))
        gate_wake(g, count);
}

/* Evaluates the expression until it is not zero. */
#define GATE_WAIT(g, spins, expression)                \
    do {                                               \
        unsigned gate_left_ = (spins);                 \
        for (;;) {                                     \
            if (expression)                            \
                break;                                 \
            if (gate_left_ > 0) {                      \
                gate_left_--;                          \
                Q_PAUSE();                             \
                continue;                              \
            }                                          \
            uint32_t gate_sequence_ = gate_prepare(g); \
            if (expression) {                          \
                gate_cancel(g);                        \
                break;                                 \
            }                                          \
            gate_sleep(g, gate_sequence_);             \
        }                                              \
    } while (0)

#endif
