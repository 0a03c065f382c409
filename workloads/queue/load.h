/* SPDX-License-Identifier: MIT */
/*
 * A load for queues: producers that push numbered items, consumers that check them, and the clocks
 * around both.  assay-queue runs it on the queues of this folder, bench/queue on those of others.
 *
 * An item's first word is its producer << 48 | its number; what a larger payload has besides are
 * copies of it, which are checked, too.
 */
#ifndef ASSAY_QUEUE_LOAD_H
#define ASSAY_QUEUE_LOAD_H

#include "wait.h"

#include <pthread.h>

QUEUE_C_BEGIN
#include "base/error.h"

#define LOAD_BATCH_MAX 512
/* Every so many items a worker looks at what others have done. */
#define LOAD_CHUNK 1024
#define LOAD_THREADS_MAX 48 /* of each kind; leaves room in QUEUE_THREADS_MAX for both in tests */
#define LOAD_NUMBER_BITS 48
#define LOAD_NUMBER_MASK ((1ULL << LOAD_NUMBER_BITS) - 1)

struct load_settings {
    const char *queue, *nodes, *reclaim, *pin, *wait;
    uint64_t producers, consumers, items, batch, payload_bytes, capacity, backlog;
    struct queue_waiter waiter; /* what `wait` says */
    bool latency, round_trip, full_fence, burst;
};

struct load;
struct load_worker;

/* One kind of queue under load.  The loops are made by driver.h for each, so that the queue's
 * operations are inlined into them. */
struct load_driver {
    const char *name;
    bool is_bounded;
    unsigned producers_max, consumers_max; /* 0 for any number */
    /* Refuses settings that make no sense, with a reason.  May be NULL. */
    int (*check)(const struct load_settings *s, struct error *err);
    int (*create)(struct load *load, void **ret_queue, struct error *err);
    void (*destroy)(struct load *load, void *queue);
    /* A thread's own part of the queue; may be NULL. */
    void *(*join)(void *queue);
    void (*leave)(void *queue, void *thread);
    int (*produce)(struct load_worker *w);
    int (*consume)(struct load_worker *w);
    int (*ping)(struct load_worker *w); /* sends and awaits, or answers */
};

/* How often each number of a producer has come, by blocks of numbers: how many, their sum and the
 * sum of their squares.  Small, and a lost or repeated number shows in its block. */
#define LOAD_BLOCK 4096
struct load_block {
    uint64_t count, sum, squares;
};

/* What a consumer has seen of one producer. */
struct load_seen {
    uint64_t run_start, next; /* the numbers [run_start, next) came one after the other */
    struct load_block *blocks;
};

#define LOAD_LATENCY_BUCKETS (64 * 32)
struct load_latency {
    uint64_t buckets[LOAD_LATENCY_BUCKETS];
    uint64_t count, max_ns;
};

struct load_worker {
    struct load *load;
    void *queue;  /* what it pushes to or pops from */
    void *answer; /* round trips: the queue back */
    void *thread, *answer_thread;
    unsigned index;
    bool is_producer;
    int cpu;        /* -1 for any */
    uint64_t count; /* producer: items to push; consumer: items popped */
    struct load_seen *seen;
    uint64_t *buffer; /* a chunk of items and a batch */
    struct load_latency latency;
    uint64_t cpu_ns, start_ns, end_ns;
    struct error err;
    /* How many items the worker has pushed or popped so far; read by producers for the backlog. */
    QUEUE_ALIGNED uint64_t progress;
};

struct load {
    struct load_settings settings;
    const struct load_driver *driver;
    struct load_worker *workers;
    unsigned worker_count;
    uint64_t latency_stride; /* every how many numbers one is timed; a power of two */
    uint64_t *sent_at_ns;    /* [producer][number / stride] */
    uint64_t samples_each;
    struct gate items, room;      /* for --wait sleep */
    bool cheap;                   /* reclamation without fences */
    QUEUE_ALIGNED uint64_t taken; /* items popped by all, for consumers to know the end */
    QUEUE_ALIGNED uint32_t failed;
};

struct load_result {
    double wall_s, mops, cpu_ns_per_op, round_trip_ns;
    double core_before_ns,
        core_after_ns; /* a cache line to the other core and back; NAN for none */
    /* Resident: before the queue was made, the most, and when all items are out of it. */
    uint64_t base_bytes, peak_bytes, after_bytes;
    double latency_ns[4]; /* 50, 90, 99, 99.9 %; NAN without --latency */
    double latency_max_ns;
};

/* Runs the load once.  -EBADMSG when an item was lost, repeated or out of order: err names it. */
int load_run(struct load_settings *settings, const struct load_driver *driver,
             struct load_result *ret_result, struct error *err);

/* main() of a program that offers these drivers. */
int load_main(int argc, char **argv, const char *program, const struct load_driver *const *drivers);

/* The drivers of this folder's queues; NULL ends the list. */
extern const struct load_driver *const load_drivers[];

/* For driver.h. */
void load_mark_run(struct load_seen *seen, uint64_t from, uint64_t to);
int load_out_of_order(struct load_worker *w, unsigned producer, uint64_t number, uint64_t next);
int load_torn(struct load_worker *w, uint64_t word, uint64_t copy);
void load_sent(struct load_worker *w, uint64_t number);
void load_received(struct load_worker *w, unsigned producer, uint64_t number);
void load_await_backlog(struct load_worker *w);
int load_verify(struct load *load, struct error *err);
double load_core_to_core_ns(int cpu_a, int cpu_b);

void load_latency_add(struct load_latency *l, uint64_t ns);
double load_latency_quantile(const struct load_latency *l, double q);

QUEUE_C_END

#endif
