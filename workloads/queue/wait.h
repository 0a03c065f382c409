/* SPDX-License-Identifier: MIT */
/*
 * wait: what a thread does between two looks at a queue that had nothing for it.
 *
 * The queues' own calls do not wait: a try_ call fails, and what happens next is chosen here, by
 * whoever calls.  How long a thread waits decides more of its speed than most of what is inside a
 * queue, so two queues are comparable only with the same strategy (docs/QUEUES.md).
 *
 * QUEUE_WAIT_SPIN      looks again at once: the shortest way if a CPU is to spare for it.  It takes
 *                      the cache line from the one who is about to write it.
 * QUEUE_WAIT_PAUSE     `pauses` of the processor's pause instruction between two looks.
 * QUEUE_WAIT_YIELD     lets others run between two looks: for more threads than CPUs.
 * QUEUE_WAIT_SLEEP     some looks, then sleeps on the futex of a gate (gate.h).  Costs no CPU while
 *                      there is nothing; the other side pays a fence for each notification.
 * QUEUE_WAIT_ADAPTIVE  the default.  Two sides that follow each other closely move each line
 * several times; if one waits for a while the other gets some lines ahead, and both run at full
 * speed.  Whether that helps is known only afterwards: so the wait is doubled, up to `pauses`, when
 * more than one item was got since the last one, and halved when it was one, or none.  A stream is
 * waited for, an answer to a question is not.
 *
 * All but SPIN and SLEEP give the CPU up after `yield_after` looks in vain.
 *
 *   struct queue_waiter w = QUEUE_WAITER;                       a thread's own, for one side of a
 * queue QUEUE_WAIT_FOR(&w, mpmc_try_pop(q, &item, 8));              comes back with an item
 *
 * With QUEUE_WAIT_SLEEP, `gate` is one that the other side notifies after each of its calls.
 */
#ifndef ASSAY_QUEUE_WAIT_H
#define ASSAY_QUEUE_WAIT_H

#include "gate.h"

#include <errno.h>
#include <stdlib.h>

enum queue_wait_kind {
    QUEUE_WAIT_ADAPTIVE,
    QUEUE_WAIT_SPIN,
    QUEUE_WAIT_PAUSE,
    QUEUE_WAIT_YIELD,
    QUEUE_WAIT_SLEEP
};

#ifndef QUEUE_WAIT_PAUSES
#define QUEUE_WAIT_PAUSES 256
#endif
/* One pause a look: some µs before others may run. */
#define QUEUE_WAIT_LOOKS 64
/* The first wait that is longer than one pause. */
#define QUEUE_WAIT_FIRST 8

struct queue_waiter {
    enum queue_wait_kind kind;
    uint32_t pauses;      /* PAUSE: between two looks; ADAPTIVE: at most */
    uint32_t yield_after; /* looks in vain; SLEEP sleeps after as many */
    uint32_t patience;    /* ADAPTIVE: pauses of the last wait */
    uint32_t looks;       /* in vain, since something was got */
    uint64_t got;         /* items since the last look in vain */
    struct gate *gate;    /* SLEEP */
};

#define QUEUE_WAITER                                                                        \
    {                                                                                       \
        QUEUE_WAIT_ADAPTIVE, QUEUE_WAIT_PAUSES, QUEUE_WAIT_LOOKS, 0, 0, 0, (struct gate *)0 \
    }

/* `count` items were got, or placed. */
QUEUE_INLINE void queue_wait_got(struct queue_waiter *w, uint64_t count)
{
    w->got += count;
    w->looks = 0;
}

QUEUE_INLINE uint32_t queue_wait_adapt(struct queue_waiter *w)
{
    if (w->got <= 1)
        w->patience /= 2;
    else if (w->patience < QUEUE_WAIT_FIRST)
        w->patience = QUEUE_WAIT_FIRST;
    else
        w->patience *= 2;
    if (w->patience > w->pauses)
        w->patience = w->pauses;
    w->got = 0;
    return w->patience ? w->patience : 1;
}

/* There was nothing: waits as the strategy says.  SLEEP does so in QUEUE_WAIT_FOR; here it pauses.
 */
QUEUE_INLINE void queue_wait_once(struct queue_waiter *w)
{
    if (w->kind == QUEUE_WAIT_SPIN)
        return;
    if (w->kind == QUEUE_WAIT_YIELD ||
        (++w->looks >= w->yield_after && w->kind != QUEUE_WAIT_SLEEP)) {
        w->got = w->patience = 0;
        Q_YIELD();
        return;
    }
    queue_wait(w->kind == QUEUE_WAIT_ADAPTIVE ? queue_wait_adapt(w)
               : w->kind == QUEUE_WAIT_PAUSE  ? w->pauses
                                              : 1);
}

/* Evaluates the expression, how many items it got, until that is not zero. */
#define QUEUE_WAIT_FOR(waiter, expression)                                                   \
    do {                                                                                     \
        struct queue_waiter *waiter_ = (waiter);                                             \
        uint64_t got_ = 0;                                                                   \
        if (waiter_->kind == QUEUE_WAIT_SLEEP)                                               \
            GATE_WAIT(waiter_->gate, waiter_->yield_after, (got_ = (uint64_t)(expression))); \
        else                                                                                 \
            while (!(got_ = (uint64_t)(expression)))                                         \
                queue_wait_once(waiter_);                                                    \
        queue_wait_got(waiter_, got_);                                                       \
    } while (0)

/* Reads a strategy's name: adaptive, spin, yield, sleep, pause, and pause:N or adaptive:N with the
 * number of pauses.  0, or -EINVAL. */
static inline int queue_wait_parse(struct queue_waiter *w, const char *text)
{
    static const char *const names[] = {"adaptive", "spin", "pause", "yield", "sleep"};
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t length = strlen(names[i]);
        if (strncmp(text, names[i], length) != 0)
            continue;
        w->kind = (enum queue_wait_kind)i;
        if (text[length] == '\0')
            return 0;
        char *end;
        unsigned long pauses = strtoul(text + length + 1, &end, 10);
        if (text[length] != ':' || text[length + 1] < '0' || text[length + 1] > '9' || *end ||
            pauses == 0 || pauses > 1000000 ||
            (w->kind != QUEUE_WAIT_ADAPTIVE && w->kind != QUEUE_WAIT_PAUSE))
            return -EINVAL;
        w->pauses = (uint32_t)pauses;
        return 0;
    }
    return -EINVAL;
}

#endif
