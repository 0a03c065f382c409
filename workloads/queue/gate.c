/* SPDX-License-Identifier: MIT */
/* The slow side of gate.h: futex and eventfd. */
#include "gate.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

static long futex(struct gate *g, int operation, uint32_t value)
{
    return syscall(SYS_futex, &g->sequence, operation | (g->shared ? 0 : FUTEX_PRIVATE_FLAG), value,
                   NULL, NULL, 0);
}

void gate_init(struct gate *g, bool shared)
{
    *g = (struct gate){.shared = shared, .event_fd = -1};
}

void gate_done(struct gate *g)
{
    if (g->event_fd >= 0)
        close(g->event_fd);
    g->event_fd = -1;
}

int gate_fd(struct gate *g)
{
    if (g->event_fd < 0)
        g->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return g->event_fd < 0 ? -errno : g->event_fd;
}

void gate_arm(struct gate *g)
{
    Q_STORE(&g->armed, 1, relaxed);
    /* Partner: the fence in gate_notify. */
    Q_FENCE(seq_cst);
}

void gate_disarm(struct gate *g)
{
    Q_STORE(&g->armed, 0, relaxed);
    uint64_t count;
    while (read(g->event_fd, &count, sizeof(count)) > 0 || errno == EINTR)
        ;
}

uint32_t gate_prepare(struct gate *g)
{
    Q_ADD(&g->waiters, 1, relaxed);
    uint32_t sequence = Q_LOAD(&g->sequence, relaxed);
    /* Partner: the fence in gate_notify. */
    Q_FENCE(seq_cst);
    return sequence;
}

void gate_cancel(struct gate *g)
{
    Q_ADD(&g->waiters, (uint32_t)-1, relaxed);
}

void gate_sleep(struct gate *g, uint32_t sequence)
{
    /* Whatever ends it, the caller looks again. */
    futex(g, FUTEX_WAIT, sequence);
    gate_cancel(g);
}

void gate_wake(struct gate *g, uint32_t count)
{
    /* Who has read it before and is not asleep yet does not fall asleep. */
    Q_ADD(&g->sequence, 1, relaxed);
    futex(g, FUTEX_WAKE, count > INT32_MAX ? INT32_MAX : count);
    if (Q_LOAD(&g->armed, relaxed) && Q_SWAP(&g->armed, 0, relaxed)) {
        uint64_t one = 1;
        while (write(g->event_fd, &one, sizeof(one)) < 0 && errno == EINTR)
            ;
    }
}
