/* SPDX-License-Identifier: MIT */
/*
 * An explorer of interleavings: runs the real code of the queues with every step of theirs (see
 * workloads/queue/atomics.h) under its control, and tries all orders in which the steps of the
 * threads may come, and all values that loads may return.
 *
 * Threads are coroutines on small stacks, and everything they touch lies in one arena; so a state
 * can be saved and gone back to, and the search is depth first with a table of states that were
 * seen.  A thread's local state is known by what it has read: a hash of that stands for it.
 *
 * Memory is that of C11 without the rarest effects: each location has a list of the values that
 * were stored to it; a thread's view says how much of each list it must have seen; a load may
 * return any value from there on, and an acquiring load of a releasing store joins the storing
 * thread's view; read-modify-writes read the last value and continue release sequences; fences
 * that are sequentially consistent join one common view.  (Stores come to the end of the list, so
 * what needs a store to go before an earlier one, or a load to see a later store of its own
 * thread, is not found.)  Plain data must be ordered, reads against writes and frees, too.
 *
 * What is bounded is said by the caller: how often a thread that could go on is interrupted, and
 * how often a load returns an old value, in one execution.
 *
 * Each use of a Q_ macro is a site.  One can be weakened: then the test must fail.
 */
#ifndef ASSAY_TESTS_QUEUE_EXPLORE_H
#define ASSAY_TESTS_QUEUE_EXPLORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum explore_order {
    EXPLORE_relaxed = 0,
    EXPLORE_acquire = 1,
    EXPLORE_release = 2,
    EXPLORE_acq_rel = 3,
    EXPLORE_seq_cst = 4, /* of fences */
};

struct explore_site {
    const char *file, *function;
    int line;
    const char *what;
    unsigned order;    /* bits of explore_order */
    unsigned weakened; /* bits taken away */
    unsigned needed;   /* bits without which something failed */
    bool known;
    bool used; /* since explore_forget_uses */
    struct explore_site *next;
};

uint64_t explore_load(struct explore_site *site, const void *p);
void explore_store(struct explore_site *site, const void *p, uint64_t value);
enum explore_rmw { EXPLORE_ADD, EXPLORE_SWAP };
uint64_t explore_rmw(struct explore_site *site, const void *p, enum explore_rmw kind,
                     uint64_t value, uint64_t mask);
bool explore_cas(struct explore_site *site, const void *p, uint64_t *expected, uint64_t value);
void explore_fence(struct explore_site *site);
void explore_light(struct explore_site *site);
void explore_heavy(struct explore_site *site);
uint64_t explore_read(const void *p);
void explore_write(const void *p, uint64_t value);
void explore_pause(void);
uint64_t explore_enter(void);
void explore_again(uint64_t entry, uint64_t carried);
void *explore_alloc(size_t bytes); /* private or permanent memory */
/* Memory whose use after its end is an error; full of rubbish unless `zero`. */
void *explore_alloc_heap(size_t bytes, bool zero);
void explore_free_heap(void *memory);
/* As a futex: sleeps until woken if *p is `value`; wakes some of those who sleep there. */
void explore_sleep(const uint32_t *p, uint32_t value);
void explore_wake(const uint32_t *p, unsigned count);

#define EXPLORE_SITE(what_, order_)                           \
    static struct explore_site site_ = {.file = __FILE__,     \
                                        .function = __func__, \
                                        .line = __LINE__,     \
                                        .what = what_,        \
                                        .order = EXPLORE_##order_}
#define EXPLORE_TYPE(p) __typeof__((__typeof__(*(p)))0)

#define Q_LOAD(p, order)                           \
    ({                                             \
        EXPLORE_SITE("load", order);               \
        (EXPLORE_TYPE(p)) explore_load(&site_, p); \
    })
/* The word itself is written, too: a thread may read what it alone writes without a step. */
#define Q_STORE(p, value, order)                              \
    ({                                                        \
        EXPLORE_SITE("store", order);                         \
        __typeof__(*(p)) stored_ = (__typeof__(*(p)))(value); \
        explore_store(&site_, p, (uint64_t)stored_);          \
        *(p) = stored_;                                       \
    })
#define Q_ADD(p, value, order)                                                      \
    ({                                                                              \
        EXPLORE_SITE("fetch-and-add", order);                                       \
        (EXPLORE_TYPE(p)) explore_rmw(&site_, p, EXPLORE_ADD, (uint64_t)(value),    \
                                      sizeof(*(p)) == 4 ? UINT32_MAX : UINT64_MAX); \
    })
#define Q_SWAP(p, value, order)                                                                \
    ({                                                                                         \
        EXPLORE_SITE("exchange", order);                                                       \
        (EXPLORE_TYPE(p)) explore_rmw(&site_, p, EXPLORE_SWAP, (uint64_t)(value), UINT64_MAX); \
    })
#define Q_CAS(p, expected, value, order)                                    \
    ({                                                                      \
        EXPLORE_SITE("compare-and-swap", order);                            \
        uint64_t expected_ = *(expected);                                   \
        bool done_ = explore_cas(&site_, p, &expected_, (uint64_t)(value)); \
        *(expected) = (__typeof__(*(expected)))expected_;                   \
        done_;                                                              \
    })
#define Q_FENCE(order)                \
    ({                                \
        EXPLORE_SITE("fence", order); \
        explore_fence(&site_);        \
    })
/* Where they are not cheap, both are ordinary fences. */
#define Q_LIGHT(cheap)                                           \
    ({                                                           \
        EXPLORE_SITE("light fence", seq_cst);                    \
        (cheap) ? explore_light(&site_) : explore_fence(&site_); \
    })
#define Q_HEAVY(cheap)                                           \
    ({                                                           \
        EXPLORE_SITE("heavy fence", seq_cst);                    \
        (cheap) ? explore_heavy(&site_) : explore_fence(&site_); \
    })
#define Q_READ(p) ((EXPLORE_TYPE(p))explore_read(p))
#define Q_WRITE(p, value) explore_write(p, (uint64_t)(value))
#define Q_PREFETCH(p) ((void)(p))
#define Q_PAUSE() explore_pause()
#define Q_YIELD() explore_pause()
#define Q_FOREVER(carried) \
    for (uint64_t entry_ = explore_enter();; explore_again(entry_, (uint64_t)(carried)))
#define Q_ALLOC(bytes) explore_alloc(bytes)
#define Q_FREE(memory) ((void)(memory))
#define Q_ALLOC_NODE(bytes) explore_alloc_heap(bytes, false)
#define Q_FREE_NODE(node) explore_free_heap(node)

/* The search. */

#define EXPLORE_THREADS 4
#define EXPLORE_OPERATIONS 36
#define EXPLORE_EMPTY 0 /* the result of a pop or push that failed */

struct explore_scenario {
    const char *name;
    unsigned thread_count;
    uint64_t capacity;   /* 0 for unbounded: pushes never fail */
    void (*setup)(void); /* makes the queue with explore_alloc and plain stores */
    void (*run)(unsigned thread);
    void (*drain)(void); /* pops until empty, after all threads; may be NULL */
    /* Private memory of a thread, which is part of its state: calls explore_private. */
    void (*privates)(unsigned thread);
    unsigned preemptions, stale_reads; /* how deep it is searched */
};

struct explore_limits {
    bool weak;
    unsigned preemptions, stale_reads;
    uint64_t states_max;
};

struct explore_report {
    uint64_t states, executions;
    bool complete; /* within the limits on preemptions and stale reads */
    bool failed;
    char failure[512];
};

void explore_private(const void *memory, size_t bytes);
/* What a scenario's thread does: operations with their results, for the specification of a queue.
 */
void explore_begin(bool is_push, uint64_t value);
void explore_end(uint64_t result); /* EXPLORE_EMPTY: full or empty; else the value */
/* A call for several items is as many operations that begin and end together: this is one more,
 * after explore_end. */
void explore_also(bool is_push, uint64_t value, uint64_t result);

/*
 * Directed schedules, for what lies deep: explore_await stops a thread until the execution has come
 * to a stage, so that no interruption is used up on the way there.  It orders nothing in memory:
 * what is left out are schedules, never effects.
 */
void explore_reach(unsigned stage);
void explore_await(unsigned stage);

void explore_run(const struct explore_scenario *s, const struct explore_limits *limits,
                 struct explore_report *ret_report);
/* Executions by chance, with any number of interruptions and stale reads: for what lies deeper than
 * a search can go. */
void explore_random(const struct explore_scenario *s, const struct explore_limits *limits,
                    unsigned executions, struct explore_report *ret_report);
/* All sites that were ever used, see explore_site; explore_forget_uses clears `used` of each. */
struct explore_site *explore_sites(void);
void explore_forget_uses(void);
void explore_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
