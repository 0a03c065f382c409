/* SPDX-License-Identifier: MIT */
/*
 * Latency: messages that come back.  One process asks, the other sends every message back; what is
 * reported is the distribution of the time from when a message was due to when it was back.
 *
 * With a rate the messages are due by the clock, whether or not earlier ones are back (an open
 * loop): a stall counts for every message that should have been sent during it, where a loop that
 * awaits each answer would leave them out.  Without one, each is due when the one before is back.
 */
#ifndef ASSAY_MOVE_PING_H
#define ASSAY_MOVE_PING_H

#include "settings.h"

#include <sys/types.h>

/* How an end waits, and what is set on its sockets: the words of --ping=WORDS. */
struct ping_how {
    bool spin;      /* looks again and again instead of sleeping in the kernel */
    bool busy_poll; /* SO_BUSY_POLL */
    bool nagle;     /* leaves TCP_NODELAY off */
    bool quickack;  /* TCP_QUICKACK before each receive */
};

int ping_how_parse(const char *words, struct ping_how *ret, struct error *err);

/* ping_wire.c: one process's end of the connection. */
struct ping_lane; /* one direction in shared memory */

struct ping_end {
    enum transport transport;
    struct ping_how how;
    int in_fd, out_fd;
    struct ping_lane *in, *out;
    size_t message_bytes;
    bool may_block;               /* calls may sleep until there is something */
    size_t in_offset, out_offset; /* bytes of the present message that are through */
};

struct ping_pair {
    struct ping_end client, echo;
    void *shared;
    size_t shared_bytes;
};

int ping_pair_open(const struct settings *s, const struct ping_how *how, struct ping_pair *ret,
                   struct error *err);
void ping_pair_close(struct ping_pair *p);
void ping_end_close(struct ping_end *e);

/* A whole message: 1 when it is through, 0 when it is not yet, a negative errno; -EPIPE when the
 * other end is gone. */
int ping_put(struct ping_end *e, const void *message);
int ping_get(struct ping_end *e, void *message);
/* Sleeps until something came, or room if one is wanted, or until the time; at once with spin. */
void ping_wait(struct ping_end *e, bool wants_room, uint64_t until_ns);

/* The distribution: 64 buckets for each power of two, so a value is known to 1.6 %. */
enum { PING_BUCKETS = 64 * 64 };

struct ping_times {
    uint64_t buckets[PING_BUCKETS];
    uint64_t count, max_ns, sum_ns;
};

void ping_times_add(struct ping_times *t, uint64_t ns);
/* The smallest value that no less than the share of all stays at or below; NAN for none. */
double ping_times_quantile(const struct ping_times *t, double share);
/* What bucket b begins with. */
double ping_bucket_ns(size_t b);

struct ping_result {
    struct ping_times times;
    uint64_t sent;       /* with a rate: all that were due, sent or not */
    uint64_t unanswered; /* of these */
    uint64_t late;       /* sent more than one interval after they were due */
    uint64_t wall_ns, client_cpu_ns, echo_cpu_ns;
};

/* ping.c: a whole run; ping_report.c: its result. */
int ping_run(const struct settings *s, struct ping_result *ret, struct error *err);
void ping_report(const struct settings *s, const struct ping_result *r);

#endif
