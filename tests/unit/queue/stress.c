/* SPDX-License-Identifier: MIT */
/*
 * The queues under real threads, with random delays between every two steps: recorded histories
 * must be those of a queue; threads that stop at any step hold nobody up where the header says so;
 * bounded queues work between processes; and sleepers are woken.
 *
 * Built with the sanitizers of the build, and once more with TSan (tests/meson.build).
 */
#ifndef QUEUE_STEPS
#define QUEUE_STEPS
#endif
#define QUEUE_BACKOFF 2
#include "../../../workloads/queue/faa.h"
#include "../../../workloads/queue/gate.h"
#include "../../../workloads/queue/mpmc.h"
#include "../../../workloads/queue/ms.h"
#include "../../../workloads/queue/mutex.h"
#include "../../../workloads/queue/spsc.h"
#include "linear.h"
#include "test.h"

#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(QUEUE_SHORT)
#define OPERATIONS 800
#define PAIRS 60
#define STOPS 20
#else
#define OPERATIONS 3000
#define PAIRS 600 /* a push and a pop each, while another thread stands still */
#define STOPS 48  /* at how many different steps it does */
#endif
#define CAPACITY 16

static __thread uint64_t seed;
static __thread long steps_to_stop; /* 0: never */
static sem_t stopped, go_on;

void queue_step(void)
{
    if (steps_to_stop && --steps_to_stop == 0) {
        sem_post(&stopped);
        while (sem_wait(&go_on) != 0)
            ;
    }
    if (!seed)
        return;
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    /* Yielding is rare: on a machine that is busy it costs milliseconds. */
    unsigned dice = (unsigned)(seed >> 40) & 2047;
    if (dice == 0)
        sched_yield();
    for (unsigned i = 0; dice % 64 == 1 && i < 200; i++)
        __asm__ volatile("" ::: "memory");
}

enum kind { SPSC, MPMC, FAA, MUTEX, MS };

struct subject {
    const char *name;
    enum kind kind;
    enum nodes_kind nodes;
    enum reclaim_kind reclaim;
    bool cheap;
};

static const struct subject subjects[] = {
    {"spsc", SPSC, 0, 0, 0},
    {"mpmc", MPMC, 0, 0, 0},
    {"faa", FAA, 0, 0, 0},
    {"mutex", MUTEX, 0, 0, 0},
    {"ms malloc hazard", MS, NODES_MALLOC, RECLAIM_HAZARD, true},
    {"ms malloc hazard fenced", MS, NODES_MALLOC, RECLAIM_HAZARD, false},
    {"ms malloc epoch", MS, NODES_MALLOC, RECLAIM_EPOCH, true},
    {"ms pool hazard", MS, NODES_POOL, RECLAIM_HAZARD, true},
    {"ms pool epoch", MS, NODES_POOL, RECLAIM_EPOCH, false},
    {"ms pool tagged", MS, NODES_POOL, RECLAIM_TAGGED, true},
    {"ms cache hazard", MS, NODES_CACHE, RECLAIM_HAZARD, true},
    {"ms cache epoch", MS, NODES_CACHE, RECLAIM_EPOCH, true},
    {"ms cache tagged", MS, NODES_CACHE, RECLAIM_TAGGED, true},
};
enum { SUBJECTS = sizeof(subjects) / sizeof(subjects[0]) };

struct queue {
    const struct subject *subject;
    void *memory; /* of the bounded ones */
    struct ms *ms;
    struct faa *faa;
};

struct handle {
    struct ms_thread ms;
    struct faa_thread faa;
};

static void queue_make(struct queue *q, const struct subject *subject)
{
    *q = (struct queue){.subject = subject};
    bool cheap = subject->cheap && queue_barrier_is_cheap();
    switch (subject->kind) {
    case SPSC:
        q->memory = aligned_alloc(64, (spsc_bytes(CAPACITY, 8) + 63) / 64 * 64);
        memset(q->memory, 0, spsc_bytes(CAPACITY, 8));
        spsc_init(q->memory, CAPACITY, 8);
        break;
    case MPMC:
        q->memory = aligned_alloc(64, (mpmc_bytes(CAPACITY, 8) + 63) / 64 * 64);
        mpmc_init(q->memory, CAPACITY, 8);
        break;
    case MUTEX:
        q->memory = aligned_alloc(64, (mutex_bytes(CAPACITY, 8) + 63) / 64 * 64);
        mutex_init(q->memory, CAPACITY, 8);
        break;
    case FAA:
        q->faa = aligned_alloc(64, sizeof(*q->faa));
        faa_init(q->faa, 8);
        break;
    case MS:
        q->ms = aligned_alloc(64, sizeof(*q->ms));
        nodes_init(&q->ms->nodes, subject->nodes, 8, 1 << 20);
        ms_init(q->ms, subject->reclaim, cheap, 16);
        break;
    }
}

static void queue_free(struct queue *q)
{
    if (q->subject->kind == MUTEX)
        mutex_done(q->memory);
    if (q->ms)
        ms_done(q->ms);
    if (q->faa)
        faa_done(q->faa);
    free(q->memory);
    free(q->ms);
    free(q->faa);
}

static struct handle *queue_join(struct queue *q)
{
    struct handle *h = aligned_alloc(64, sizeof(*h));
    if (q->ms)
        ms_join(q->ms, &h->ms);
    if (q->faa)
        faa_join(q->faa, &h->faa);
    return h;
}

static void queue_leave(struct queue *q, struct handle *h)
{
    if (q->ms)
        ms_leave(q->ms, &h->ms);
    if (q->faa)
        faa_leave(q->faa, &h->faa);
    free(h);
}

static bool queue_push(struct queue *q, struct handle *h, uint64_t value)
{
    switch (q->subject->kind) {
    case SPSC:
        return spsc_try_push(q->memory, &value, 8);
    case MPMC:
        return mpmc_try_push(q->memory, &value, 8);
    case MUTEX:
        return mutex_try_push(q->memory, &value, 8);
    case FAA:
        return faa_push(q->faa, &h->faa, &value, 8);
    case MS:
        return ms_push(q->ms, &h->ms, &value, 8);
    }
    return false;
}

static bool queue_pop(struct queue *q, struct handle *h, uint64_t *value)
{
    switch (q->subject->kind) {
    case SPSC:
        return spsc_try_pop(q->memory, value, 8);
    case MPMC:
        return mpmc_try_pop(q->memory, value, 8);
    case MUTEX:
        return mutex_try_pop(q->memory, value, 8);
    case FAA:
        return faa_try_pop(q->faa, &h->faa, value, 8);
    case MS:
        return ms_try_pop(q->ms, &h->ms, value, 8);
    }
    return false;
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

struct recorder {
    struct queue *queue;
    unsigned index;
    bool pushes, pops;
    struct linear_operation *operations;
    size_t count;
};

static void *record(void *argument)
{
    struct recorder *r = argument;
    struct handle *h = queue_join(r->queue);
    seed = r->index * 77 + 1;
    for (unsigned k = 0; k < OPERATIONS; k++) {
        struct linear_operation *o = &r->operations[r->count++];
        bool push = r->pushes && (!r->pops || k % 2 == 0);
        uint64_t value = (uint64_t)(r->index + 1) << 32 | k;
        o->thread = r->index;
        o->is_push = push;
        o->start = now_ns();
        atomic_thread_fence(memory_order_seq_cst);
        o->failed = push ? !queue_push(r->queue, h, value) : !queue_pop(r->queue, h, &value);
        /* A store may wait in the processor when the call has returned; "before" is meant as others
         * see it.  A common counter in place of the clock would order the threads for TSan. */
        atomic_thread_fence(memory_order_seq_cst);
        o->end = now_ns();
        o->value = o->failed ? LINEAR_FAILED : value;
    }
    seed = 0;
    queue_leave(r->queue, h);
    return NULL;
}

/* Two producers and two consumers, or four threads that do both; one and one for spsc. */
static void check_history(const struct subject *subject, bool both)
{
    struct queue q;
    queue_make(&q, subject);
    unsigned threads = subject->kind == SPSC ? 2 : 4;
    struct recorder r[4];
    pthread_t ids[4];
    size_t total = 0;
    struct linear_operation *all = calloc(7 * OPERATIONS + 64, sizeof(*all));
    for (unsigned i = 0; i < threads; i++) {
        bool pushes = both || i % 2 == 0;
        r[i] =
            (struct recorder){&q, i, pushes, both || !pushes, calloc(OPERATIONS, sizeof(*all)), 0};
        pthread_create(&ids[i], NULL, record, &r[i]);
    }
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        memcpy(all + total, r[i].operations, r[i].count * sizeof(*all));
        total += r[i].count;
        free(r[i].operations);
    }
    /* The rest, so that a lost item is seen. */
    struct handle *h = queue_join(&q);
    uint64_t value;
    while (total < 7 * OPERATIONS + 60 && queue_pop(&q, h, &value)) {
        uint64_t at = now_ns();
        all[total++] = (struct linear_operation){.value = value, .start = at, .end = at + 1};
    }
    queue_leave(&q, h);
    size_t pushed = 0, popped = 0;
    for (size_t i = 0; i < total; i++) {
        pushed += all[i].is_push && !all[i].failed;
        popped += !all[i].is_push && !all[i].failed;
    }
    const char *problem = linear_check_long(all, total);
    if (problem)
        test_fail(__FILE__, __LINE__, "%s: %s", subject->name, problem);
    if (pushed != popped)
        test_fail(__FILE__, __LINE__, "%s: %zu pushed, %zu popped", subject->name, pushed, popped);
    free(all);
    queue_free(&q);
}

TEST(recorded_histories_are_those_of_a_queue)
{
    for (unsigned i = 0; i < SUBJECTS; i++) {
        check_history(&subjects[i], false);
        if (subjects[i].kind != SPSC)
            check_history(&subjects[i], true);
    }
}

/* A thread that pushes and pops and stops at one of its steps. */
struct victim {
    struct queue *queue;
    long stop_at;
};

static void *stop_inside(void *argument)
{
    struct victim *v = argument;
    struct handle *h = queue_join(v->queue);
    uint64_t value = 7;
    steps_to_stop = v->stop_at;
    for (unsigned k = 0; k < 4; k++) {
        queue_push(v->queue, h, (1ull << 40) + k);
        queue_pop(v->queue, h, &value);
    }
    bool went_through = steps_to_stop > 0;
    steps_to_stop = 0;
    if (went_through)
        sem_post(&stopped);
    queue_leave(v->queue, h);
    return NULL;
}

static void *do_pairs(void *argument)
{
    struct queue *q = argument;
    struct handle *h = queue_join(q);
    for (uint64_t k = 0; k < PAIRS; k++) {
        uint64_t value;
        queue_push(q, h, k + 1);
        queue_pop(q, h, &value);
    }
    queue_leave(q, h);
    return NULL;
}

static size_t segments_of(const struct faa *q)
{
    size_t count = 0;
    for (uint64_t s = q->head; s; s = ((struct faa_segment *)(uintptr_t)s)->next)
        count++;
    for (unsigned t = 0; t < QUEUE_THREADS_MAX; t++)
        count += q->reclaim.threads[t].lists[0].count;
    return count;
}

static void check_stop(const struct subject *subject, long stop_at)
{
    struct queue q;
    pthread_t victim, others[2];
    queue_make(&q, subject);
    struct victim v = {&q, stop_at};
    pthread_create(&victim, NULL, stop_inside, &v);
    while (sem_wait(&stopped) != 0)
        ;
    /* If these were held up, the test would run out of time. */
    for (unsigned i = 0; i < 2; i++)
        pthread_create(&others[i], NULL, do_pairs, &q);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(others[i], NULL);
    if (q.ms && subject->nodes != NODES_MALLOC && subject->reclaim != RECLAIM_EPOCH &&
        q.ms->nodes.fresh > 3 * (4 * NODES_MAGAZINE + 16 + 9) + 64)
        test_fail(__FILE__, __LINE__, "%s: %llu nodes for a few items", subject->name,
                  (unsigned long long)q.ms->nodes.fresh);
    if (q.faa && segments_of(q.faa) > 6)
        test_fail(__FILE__, __LINE__, "faa: %zu segments for a few items", segments_of(q.faa));
    sem_post(&go_on);
    pthread_join(victim, NULL);
    while (sem_trywait(&go_on) == 0)
        ;
    queue_free(&q);
}

TEST(a_thread_that_stops_inside_holds_nobody_up)
{
    sem_init(&stopped, 0, 0);
    sem_init(&go_on, 0, 0);
    for (unsigned i = 0; i < SUBJECTS; i++)
        if (subjects[i].kind == FAA || subjects[i].kind == MS)
            for (long at = 1; at <= STOPS; at++)
                check_stop(&subjects[i], at);
}

/* Items 1 … count through shared memory, from a child that may be killed on the way. */
static void *shared_memory(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* A producer that is a lap ahead, in the cell that the consumer has yet to finish. */
TEST(a_full_ring_goes_round_item_by_item)
{
    struct spsc *q = shared_memory(65536);
    CHECK(q != NULL);
    spsc_init(q, 20, 8);
    uint64_t pushed = 0, popped = 0, item = 0, wrong = 0;
    for (uint64_t ahead = 0; ahead <= 3 * q->capacity; ahead++) {
        while (spsc_try_push(q, &pushed, 8))
            pushed++;
        wrong += pushed - popped != q->capacity;
        for (uint64_t i = 0; i < ahead; i++) {
            wrong += !spsc_try_pop(q, &item, 8) || item != popped++;
            wrong += !spsc_try_push(q, &pushed, 8);
            pushed++;
        }
        while (spsc_try_pop(q, &item, 8))
            wrong += item != popped++;
        wrong += popped != pushed;
    }
    CHECK_INT(wrong, 0);
    munmap(q, 65536);
}

TEST(bounded_queues_work_between_processes)
{
    for (int kind = 0; kind < 3; kind++) {
        struct gate *gates = shared_memory(2 * sizeof(*gates));
        gate_init(&gates[0], true);
        gate_init(&gates[1], true);
        void *m = shared_memory(65536);
        CHECK(m != NULL);
        kind == 0   ? (void)spsc_init(m, 64, 8)
        : kind == 1 ? (void)mpmc_init(m, 64, 8)
                    : (void)mutex_init(m, 64, 8);
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            for (uint64_t i = 1; i <= 20000; i++) {
                GATE_WAIT(&gates[1], 20,
                          kind == 0   ? spsc_try_push(m, &i, 8)
                          : kind == 1 ? mpmc_try_push(m, &i, 8)
                                      : mutex_try_push(m, &i, 8));
                gate_notify(&gates[0], 1);
            }
            _exit(0);
        }
        uint64_t item = 0, wrong = 0;
        for (uint64_t i = 1; i <= 20000; i++) {
            GATE_WAIT(&gates[0], 20,
                      kind == 0   ? spsc_try_pop(m, &item, 8)
                      : kind == 1 ? mpmc_try_pop(m, &item, 8)
                                  : mutex_try_pop(m, &item, 8));
            gate_notify(&gates[1], 1);
            wrong += item != i;
        }
        CHECK_INT(wrong, 0);
        CHECK_INT(waitpid(child, NULL, 0), child);
        munmap(m, 65536);
        munmap(gates, 2 * sizeof(*gates));
    }
}

TEST(what_a_killed_process_had_pushed_is_there)
{
    for (int stop = 1; stop <= 12; stop++) {
        struct spsc *q = spsc_init(shared_memory(65536), 64, 8);
        uint64_t *sent = shared_memory(4096);
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            sem_init(&stopped, 0, 0);
            sem_init(&go_on, 0, 0);
            for (uint64_t i = 1; i <= 20; i++) {
                if (i == 20)
                    raise(SIGKILL);
                spsc_try_push(q, &i, 8);
                *(volatile uint64_t *)sent = i;
                if ((int)i == stop)
                    raise(SIGKILL);
            }
        }
        waitpid(child, NULL, 0);
        uint64_t item = 0, expected = 0;
        while (spsc_try_pop(q, &item, 8))
            CHECK_INT(item, ++expected);
        CHECK_INT(expected, *sent);
        munmap(q, 65536);
        munmap(sent, 4096);
    }
}

static void *sleeper(void *argument)
{
    struct gate *g = argument;
    GATE_WAIT(g, 0, Q_LOAD(&g[1].armed, acquire) != 0); /* any word will do as the queue */
    return NULL;
}

TEST(sleepers_are_woken_and_the_descriptor_becomes_readable)
{
    struct gate *g = aligned_alloc(64, 2 * sizeof(*g));
    pthread_t ids[3];
    gate_init(&g[0], false);
    gate_init(&g[1], false);
    for (unsigned i = 0; i < 3; i++)
        pthread_create(&ids[i], NULL, sleeper, g);
    int fd = gate_fd(&g[0]);
    CHECK(fd >= 0);
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    CHECK_INT(poll(&poller, 1, 0), 0);
    gate_arm(&g[0]);
    Q_STORE(&g[1].armed, 1, release);
    gate_notify(&g[0], 3);
    CHECK_INT(poll(&poller, 1, 30000), 1);
    gate_disarm(&g[0]);
    CHECK_INT(poll(&poller, 1, 0), 0);
    for (unsigned i = 0; i < 3; i++)
        pthread_join(ids[i], NULL);
    CHECK_INT(g[0].waiters, 0);
    gate_done(&g[0]);
    free(g);
}
