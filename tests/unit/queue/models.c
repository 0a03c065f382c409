/* SPDX-License-Identifier: MIT */
/*
 * The cores of the queues under the explorer: two producers and two consumers (one and one for
 * spsc) with three operations each, in rings and segments so small that they wrap.  Then each
 * ordering in them is weakened, one at a time, and some scenario must fail.
 *
 * QUEUE_DEEP=1 searches deeper, for some minutes; QUEUE_ONLY=spsc,mpmc some queues alone,
 * QUEUE_HOLDS=1 without weakening; QUEUE_VERBOSE=1 shows how each weakened ordering fails.
 */
#define QUEUE_EXPLORE
#define QUEUE_THREADS_MAX 4
#define RECLAIM_BATCH 1
#define NODES_MAGAZINE 1
#define SPSC_CELL_WORDS 1
#define FAA_SLOTS faa_slots
#define FAA_SPARES 1
#define FAA_LATE 0
#define QUEUE_PATIENCE 0
#define MPMC_CELL_WORDS 2
#include <stdint.h>
/* Two make segments come round soon, more let threads meet in one. */
static uint64_t faa_slots = 2;
#include "../../../workloads/queue/faa.h"
#include "../../../workloads/queue/gate.h"
#include "../../../workloads/queue/mpmc.h"
#include "../../../workloads/queue/ms.h"
#include "../../../workloads/queue/spsc.h"

#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the queues ask of the system. */
int nodes_init(struct nodes *n, enum nodes_kind kind, size_t item_bytes, uint64_t nodes_max)
{
    *n = (struct nodes){.kind = kind, .node_bytes = nodes_bytes_for(item_bytes)};
    n->base = kind == NODES_MALLOC ? NULL : explore_alloc((nodes_max + 1) * n->node_bytes);
    n->unit_end = (nodes_max + 1) * n->node_bytes / NODES_UNIT;
    n->fresh = 1;
    return 0;
}

void nodes_done(struct nodes *n)
{
    (void)n;
}

void *faa_memory_get(size_t bytes)
{
    return explore_alloc_heap(bytes, true);
}

void faa_memory_put(void *memory, size_t bytes)
{
    (void)bytes;
    explore_free_heap(memory);
}

/* One queue at a time. */
static struct spsc *spsc_q;
static struct mpmc *mpmc_q;
static bool as_batch; /* mpmc: the code for batches, with one item each */
static struct ms *ms_q;
static struct faa *faa_q;
static struct ms_thread *ms_threads;
static struct faa_thread *faa_threads;

/* Thread t's k-th value. */
static uint64_t value_of(unsigned thread, unsigned k)
{
    return thread * 10 + k + 1;
}

static size_t push(unsigned t, uint64_t value)
{
    return spsc_q   ? spsc_try_push(spsc_q, &value, 8)
           : mpmc_q ? (as_batch ? mpmc_push_batch(mpmc_q, &value, 1, 8)
                                : mpmc_try_push(mpmc_q, &value, 8))
           : ms_q   ? ms_push(ms_q, &ms_threads[t], &value, 8)
                    : faa_push(faa_q, &faa_threads[t], &value, 8);
}

static uint64_t pop(unsigned t)
{
    uint64_t value = 0;
    bool found = spsc_q   ? spsc_try_pop(spsc_q, &value, 8)
                 : mpmc_q ? (as_batch ? mpmc_pop_batch(mpmc_q, &value, 1, 8)
                                      : mpmc_try_pop(mpmc_q, &value, 8))
                 : ms_q   ? ms_try_pop(ms_q, &ms_threads[t], &value, 8)
                          : faa_try_pop(faa_q, &faa_threads[t], &value, 8);
    return !found ? EXPLORE_EMPTY : value ? value : 9999; /* nobody pushes 0 */
}

static void do_push(unsigned t, unsigned k)
{
    explore_begin(true, value_of(t, k));
    explore_end(push(t, value_of(t, k)));
}

static bool do_pop(unsigned t)
{
    explore_begin(false, 0);
    uint64_t value = pop(t);
    explore_end(value);
    return value != EXPLORE_EMPTY;
}

static void run_pairs(unsigned t)
{
    for (unsigned k = 0; k < 3; k++)
        t < 2 ? do_push(t, k) : (void)do_pop(t);
}

/* Each thread pushes and pops. */
static void run_mixed(unsigned t)
{
    do_push(t, 0);
    do_pop(t);
    do_pop(t);
}

static void run_turns(unsigned t)
{
    do_push(t, 0);
    do_pop(t);
    do_push(t, 1);
    do_pop(t);
}

/* Long enough that memory comes round. */
static void run_stream(unsigned t)
{
    for (unsigned k = 0; k < 5; k++)
        t == 0 ? do_push(t, k) : (void)do_pop(t);
}

/* Both find the segment full. */
static void run_pushes(unsigned t)
{
    do_push(t, 0);
    do_push(t, 1);
    do_pop(t);
}

/* A stream, and another producer beside it. */
static void run_aside(unsigned t)
{
    if (t == 2)
        do_push(t, 0);
    else
        run_stream(t);
}

/* Segments of two that come round: the last push links one that was used before. */
static void run_rounds(void)
{
    for (unsigned k = 0; k < 3; k++)
        do_push(0, k);
    for (unsigned k = 0; k < 3; k++)
        do_pop(0);
    for (unsigned k = 3; k < 5; k++)
        do_push(0, k);
}

/* It is linked by one thread, made the last by a second that pushes, and used by a third. */
static void run_relay(unsigned t)
{
    t == 0 ? run_rounds() : do_push(t, 0);
}

/* The same with a second one that pops. */
static void run_relay_pop(unsigned t)
{
    if (t == 0)
        run_rounds();
    if (t == 1)
        do_pop(t), (void)do_pop(t);
    if (t == 2)
        do_push(t, 0);
}

/* Places that name the same segment for the second time. */
static void run_again(unsigned t)
{
    if (t == 0)
        run_rounds();
    if (t == 1)
        do_pop(t);
    if (t > 0)
        do_push(t, 0);
    if (t == 2)
        do_pop(t);
}

/* The node that was the first when a pop began is the last when it goes on. */
static void run_recycle(unsigned t)
{
    do_push(t, 0);
    do_pop(t);
    if (t == 1)
        do_push(t, 1);
}

/* Who finds tail behind, and who comes after it was helped on. */
static void run_three(unsigned t)
{
    if (t == 1)
        do_pop(t);
    do_push(t, 0);
    if (t == 2)
        do_pop(t);
}

/* Room for an epoch that is long over when it is noted: one thread moves it on by several. */
static void run_epochs(unsigned t)
{
    if (t == 1) {
        for (unsigned k = 0; k < 7; k++)
            do_push(t, k);
        do_pop(t);
        do_pop(t);
    }
    do_pop(t);
    do_pop(t);
}

static void run_spsc(unsigned t)
{
    for (unsigned k = 0; k < 4; k++)
        t == 0 ? do_push(t, k) : (void)do_pop(t);
}

static void drain(void)
{
    unsigned as = 0;
    while (do_pop(as))
        ;
}

static void forget_all(void)
{
    spsc_q = NULL;
    mpmc_q = NULL;
    ms_q = NULL;
    faa_q = NULL;
}

static void setup_spsc(void)
{
    forget_all();
    spsc_q = spsc_init(explore_alloc(spsc_bytes(2, 8)), 2, 8);
}

static void privates_spsc(unsigned t)
{
    if (t == 0)
        explore_private(&spsc_q->tail, 32);
    else
        explore_private(&spsc_q->tail_seen, 24);
}

static void setup_mpmc(void)
{
    forget_all();
    mpmc_q = mpmc_init(explore_alloc(mpmc_bytes(2, 8)), 2, 8);
    as_batch = false;
}

static void setup_mpmc_batch(void)
{
    setup_mpmc();
    as_batch = true;
}

static void setup_ms(enum nodes_kind nodes, enum reclaim_kind kind)
{
    forget_all();
    ms_q = explore_alloc(sizeof(*ms_q));
    ms_threads = explore_alloc(4 * sizeof(*ms_threads));
    nodes_init(&ms_q->nodes, nodes, 8, 16);
    ms_init(ms_q, kind, true, 1);
    for (unsigned t = 0; t < 4; t++) {
        ms_join(ms_q, &ms_threads[t]);
        for (unsigned i = 0; kind != RECLAIM_TAGGED && i < 3; i++) {
            struct reclaim_list *list = &ms_threads[t].reclaim->lists[i];
            list->capacity = 8;
            list->words = explore_alloc(list->capacity * 8);
        }
    }
}

static void setup_ms_hazard(void)
{
    setup_ms(NODES_MALLOC, RECLAIM_HAZARD);
}

/* Nodes that come round, so that a place may name the same one for the second time. */
static void setup_ms_hazard_pool(void)
{
    setup_ms(NODES_POOL, RECLAIM_HAZARD);
}

/* With fences in place of membarrier(2). */
static void setup_ms_hazard_fenced(void)
{
    setup_ms(NODES_MALLOC, RECLAIM_HAZARD);
    ms_q->reclaim.cheap = false;
}

static void setup_ms_epoch_fenced(void)
{
    setup_ms(NODES_MALLOC, RECLAIM_EPOCH);
    ms_q->reclaim.cheap = false;
}

/* Lists that are never looked through: the queue's own orderings alone. */
static void setup_ms_hazard_idle(void)
{
    setup_ms(NODES_MALLOC, RECLAIM_HAZARD);
    ms_q->reclaim.batch = 100;
}

static void setup_ms_epoch(void)
{
    setup_ms(NODES_MALLOC, RECLAIM_EPOCH);
}

static void setup_ms_epoch_idle(void)
{
    setup_ms(NODES_MALLOC, RECLAIM_EPOCH);
    ms_q->reclaim.batch = 100;
}

static void setup_ms_tagged(void)
{
    setup_ms(NODES_POOL, RECLAIM_TAGGED);
}

static void setup_ms_cache(void)
{
    setup_ms(NODES_CACHE, RECLAIM_TAGGED);
}

static void private_lists(const struct reclaim_thread *r)
{
    for (unsigned i = 0; i < 3; i++) {
        explore_private(&r->lists[i].count, 8);
        explore_private(&r->lists[i].epoch, 8);
        explore_private(r->lists[i].words, r->lists[i].count * 8);
    }
    explore_private(&r->since_advance, 8);
}

static void privates_ms(unsigned t)
{
    private_lists(ms_threads[t].reclaim);
    explore_private(&ms_threads[t].nodes, sizeof(ms_threads[t].nodes));
}

static void setup_faa_wide(uint64_t slots)
{
    forget_all();
    faa_slots = slots;
    faa_q = explore_alloc(sizeof(*faa_q));
    faa_threads = explore_alloc(4 * sizeof(*faa_threads));
    faa_init(faa_q, 8);
    faa_q->reclaim.batch = 1;
    for (unsigned t = 0; t < 4; t++) {
        faa_join(faa_q, &faa_threads[t]);
        struct reclaim_list *list = &faa_threads[t].reclaim->lists[0];
        list->capacity = 8;
        list->words = explore_alloc(list->capacity * 8);
    }
}

static void setup_faa(void)
{
    setup_faa_wide(2);
}

static void setup_faa_four(void)
{
    setup_faa_wide(4);
}

static void setup_faa_no_spares(void)
{
    setup_faa();
    faa_q->spare_count = 0;
}

static void privates_faa(unsigned t)
{
    private_lists(faa_threads[t].reclaim);
    explore_private(&faa_threads[t].pop_at, 16);
}

/* The last ones are tried first. */
static const struct explore_scenario scenarios[] = {
    {"spsc", 2, 2, setup_spsc, run_spsc, drain, privates_spsc, 8, 4},
    {"mpmc", 4, 2, setup_mpmc, run_pairs, drain, NULL, 1, 1},
    {"mpmc", 2, 2, setup_mpmc, run_turns, drain, NULL, 2, 2},
    {"mpmc-batch", 4, 2, setup_mpmc_batch, run_pairs, drain, NULL, 1, 1},
    {"mpmc-batch", 2, 2, setup_mpmc_batch, run_turns, drain, NULL, 2, 2},
    {"ms-hazard", 3, 0, setup_ms_hazard_idle, run_three, drain, privates_ms, 2, 1},
    {"ms-hazard", 2, 0, setup_ms_hazard_pool, run_stream, drain, privates_ms, 2, 1},
    {"ms-hazard", 4, 0, setup_ms_hazard, run_pairs, drain, privates_ms, 1, 0},
    {"ms-hazard", 2, 0, setup_ms_hazard, run_mixed, drain, privates_ms, 2, 1},
    {"ms-hazard", 2, 0, setup_ms_hazard_fenced, run_mixed, drain, privates_ms, 2, 1},
    {"ms-hazard", 2, 0, setup_ms_hazard_idle, run_turns, drain, privates_ms, 2, 1},
    {"ms-epoch", 3, 0, setup_ms_epoch, run_three, drain, privates_ms, 2, 1},
    {"ms-epoch", 4, 0, setup_ms_epoch, run_pairs, drain, privates_ms, 1, 0},
    {"ms-epoch", 2, 0, setup_ms_epoch, run_stream, drain, privates_ms, 2, 1},
    {"ms-epoch", 2, 0, setup_ms_epoch_fenced, run_stream, drain, privates_ms, 2, 1},
    {"ms-epoch", 2, 0, setup_ms_epoch_idle, run_turns, drain, privates_ms, 2, 1},
    {"ms-epoch", 2, 0, setup_ms_epoch, run_epochs, drain, privates_ms, 2, 0},
    {"ms-epoch", 3, 0, setup_ms_epoch_fenced, run_epochs, drain, privates_ms, 1, 0},
    {"ms-epoch", 2, 0, setup_ms_epoch_fenced, run_epochs, drain, privates_ms, 2, 0},
    {"ms-tagged", 3, 0, setup_ms_tagged, run_three, drain, privates_ms, 2, 1},
    {"ms-tagged", 2, 0, setup_ms_tagged, run_recycle, drain, privates_ms, 2, 1},
    {"ms-tagged", 4, 0, setup_ms_tagged, run_pairs, drain, privates_ms, 1, 0},
    {"ms-tagged", 2, 0, setup_ms_tagged, run_stream, drain, privates_ms, 2, 1},
    {"ms-tagged", 2, 0, setup_ms_tagged, run_turns, drain, privates_ms, 2, 1},
    {"ms-cache", 4, 0, setup_ms_cache, run_pairs, drain, privates_ms, 1, 0},
    {"ms-cache", 2, 0, setup_ms_cache, run_stream, drain, privates_ms, 2, 1},
    {"faa", 3, 0, setup_faa, run_again, drain, privates_faa, 1, 1},
    {"faa", 3, 0, setup_faa, run_relay, drain, privates_faa, 1, 0},
    {"faa", 3, 0, setup_faa, run_relay_pop, drain, privates_faa, 1, 0},
    {"faa", 2, 0, setup_faa_four, run_turns, drain, privates_faa, 2, 2},
    {"faa", 4, 0, setup_faa, run_pairs, drain, privates_faa, 1, 1},
    {"faa", 3, 0, setup_faa, run_aside, drain, privates_faa, 2, 1},
    {"faa", 2, 0, setup_faa, run_stream, drain, privates_faa, 3, 1},
    {"faa", 2, 0, setup_faa_no_spares, run_stream, drain, privates_faa, 3, 1},
    {"faa", 2, 0, setup_faa, run_pushes, drain, privates_faa, 3, 1},
    {"faa", 2, 0, setup_faa, run_mixed, drain, privates_faa, 3, 1},
};
enum { SCENARIOS = sizeof(scenarios) / sizeof(scenarios[0]) };

#define STATES_MAX 60000000
#define WEAKENED_MAX (is_deep() ? 3000000 : 60000)
#define RANDOM_EXECUTIONS (is_deep() ? 1000000 : 20000)

static bool is_deep(void)
{
    return getenv("QUEUE_DEEP") != NULL;
}

/* How many interruptions fewer than the scenario says. */
static unsigned less;

static struct explore_limits limits_for(const struct explore_scenario *s, bool weak,
                                        uint64_t states_max)
{
    unsigned preemptions = s->preemptions + is_deep();
    return (struct explore_limits){weak, preemptions > less ? preemptions - less : 0,
                                   weak ? s->stale_reads + is_deep() : 0, states_max};
}

/* Runs the scenarios of a queue; true when all of them hold. */
static bool explore_all(const char *name, bool weak, uint64_t states_max, bool must_complete,
                        uint64_t *states, char *failure, size_t size)
{
    for (unsigned i = SCENARIOS; i-- > 0;) {
        if (strcmp(scenarios[i].name, name) != 0)
            continue;
        struct explore_report r;
        struct explore_limits limits = limits_for(&scenarios[i], weak, states_max);
        explore_run(&scenarios[i], &limits, &r);
        *states += r.states;
        if (getenv("QUEUE_VERBOSE") && must_complete)
            printf("# %s %u threads weak %d: %llu states\n", name, scenarios[i].thread_count, weak,
                   (unsigned long long)r.states);
        if (r.failed || (!r.complete && must_complete)) {
            snprintf(failure, size, "%u threads: %s", scenarios[i].thread_count,
                     r.failed ? r.failure : "the limit on states was reached");
            return false;
        }
    }
    return true;
}

/* The same by chance, far from the orders that a search begins with. */
static bool random_all(const char *name, char *failure, size_t size)
{
    for (unsigned i = SCENARIOS; i-- > 0;) {
        if (strcmp(scenarios[i].name, name) != 0)
            continue;
        struct explore_report r;
        explore_random(&scenarios[i], &(struct explore_limits){.weak = true}, RANDOM_EXECUTIONS,
                       &r);
        if (r.failed) {
            snprintf(failure, size, "%u threads, by chance: %s", scenarios[i].thread_count,
                     r.failure);
            return false;
        }
    }
    return true;
}

/* Every interleaving of a strong memory and of a weak one, within limits. */
static void check_holds(const char *name)
{
    char failure[600] = "";
    uint64_t states = 0;
    for (int weak = 0; weak < 2; weak++)
        if (!explore_all(name, weak, STATES_MAX, true, &states, failure, sizeof(failure)))
            test_fail(__FILE__, __LINE__, "%s, %s memory: %s", name, weak ? "weak" : "strong",
                      failure);
    if (!random_all(name, failure, sizeof(failure)))
        test_fail(__FILE__, __LINE__, "%s: %s", name, failure);
    printf("# %s: %llu states\n", name, (unsigned long long)states);
}

static const char *bit_name(unsigned bit)
{
    return bit == EXPLORE_acquire ? "acquire" : bit == EXPLORE_release ? "release" : "the fence";
}

static bool weakened_fails(const char *name, struct explore_site *s, unsigned bit, char *failure,
                           size_t size)
{
    uint64_t states = 0;
    bool held = true;
    s->weakened = bit;
    /* The nearest first: few interruptions show most. */
    for (less = 2; held; less--) {
        held = explore_all(name, true, WEAKENED_MAX, false, &states, failure, size);
        if (less == 0)
            break;
    }
    less = 0;
    if (held)
        held = random_all(name, failure, size);
    s->weakened = 0;
    return !held;
}

/* QUEUE_SITE=reclaim_: only the orderings of functions whose names begin so. */
static bool is_wanted(const struct explore_site *s)
{
    const char *only = getenv("QUEUE_SITE");
    return !only || strncmp(only, s->function, strlen(only)) == 0;
}

/* Takes each ordering away, one at a time; something must fail then. */
static void check_needs_all(const char *name)
{
    char failure[600] = "";
    for (struct explore_site *s = explore_sites(); s; s = s->next) {
        for (unsigned bit = 1; bit <= EXPLORE_seq_cst; bit *= 2) {
            if (!(s->order & bit) || (s->needed & bit) || !is_wanted(s))
                continue;
            if (!weakened_fails(name, s, bit, failure, sizeof(failure)))
                continue;
            s->needed |= bit;
            const char *slash = strrchr(s->file, '/');
            if (getenv("QUEUE_VERBOSE"))
                printf("# %s:%d %s without %s: %s\n", slash ? slash + 1 : s->file, s->line, s->what,
                       bit_name(bit), failure);
        }
    }
}

/* QUEUE_ONLY holds names with commas between them. */
static bool is_chosen(const char *name)
{
    const char *only = getenv("QUEUE_ONLY");
    size_t length = strlen(name);
    for (const char *at = only; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == length && strncmp(at, name, length) == 0)
            return true;
    return !only;
}

static void check_model(const char *name)
{
    if (!is_chosen(name))
        return;
    check_holds(name);
    if (!getenv("QUEUE_HOLDS"))
        check_needs_all(name);
}

#define MODEL(id, name)    \
    TEST(id)               \
    {                      \
        check_model(name); \
    }

MODEL(spsc_holds_and_is_weakened, "spsc")
MODEL(mpmc_holds_and_is_weakened, "mpmc")
MODEL(mpmc_batch_holds_and_is_weakened, "mpmc-batch")
MODEL(ms_hazard_holds_and_is_weakened, "ms-hazard")
MODEL(ms_epoch_holds_and_is_weakened, "ms-epoch")
MODEL(ms_tagged_holds_and_is_weakened, "ms-tagged")
MODEL(ms_cache_holds_and_is_weakened, "ms-cache")
MODEL(faa_holds_and_is_weakened, "faa")

/* The seed's rule: a node is freed as soon as it was taken out. */
static void setup_ms_unsafe(void)
{
    setup_ms(NODES_MALLOC, RECLAIM_HAZARD);
    ms_q->reclaim.kind = (enum reclaim_kind)3; /* none: no protection, no waiting */
}

TEST(the_unsafe_rule_is_caught)
{
    static const struct explore_scenario unsafe = {
        "ms-unsafe", 2, 0, setup_ms_unsafe, run_mixed, drain, privates_ms, 2, 0};
    struct explore_report r;
    explore_run(&unsafe, &(struct explore_limits){false, 2, 0, STATES_MAX}, &r);
    CHECK(r.failed);
    CHECK_CONTAINS(r.failure, "use after free");
}

/*
 * Orderings that are needed for reasons of which the explorer knows nothing, or that lie deeper
 * than it searches; each with the reason.  All others must be shown.
 */
static const struct {
    const char *function, *what;
    unsigned bit;
} not_shown[] = {
    /* A segment that comes round, is linked by one thread, made the tail by a second and used by a
     * third, where a fourth has read a slot of it in its first life: five interruptions at least.
     */
    {"faa_drop", "compare-and-swap", EXPLORE_release},
    {"faa_extend", "load", EXPLORE_acquire},
    /* Epochs: memory is released three epochs later, and each of them comes with a fence of whoever
     * starts it, which makes up for an order that is missing here.  Kept all the same: the argument
     * in reclaim.h is by these, and they cost nothing. */
    {"reclaim_enter", "load", EXPLORE_acquire},
    {"reclaim_advance", "load", EXPLORE_acquire},
    {"reclaim_advance", "compare-and-swap", EXPLORE_release},
    /* The load of next: whoever goes only as far as limit, which it read with acquire, sees all
     * nodes up to there. */
    {"ms_pop_some", "load", EXPLORE_acquire},
    {NULL, NULL, 0},
};

static bool is_listed(const struct explore_site *s, unsigned bit)
{
    for (size_t i = 0; not_shown[i].function; i++)
        if (strcmp(s->function, not_shown[i].function) == 0 &&
            strcmp(s->what, not_shown[i].what) == 0 && bit == not_shown[i].bit)
            return true;
    return false;
}

/* Runs last: what no model was seen to need. */
TEST(z_every_ordering_was_seen_to_be_needed)
{
    bool all = !getenv("QUEUE_ONLY") && !getenv("QUEUE_HOLDS") && !getenv("QUEUE_SITE");
    unsigned needed = 0, open = 0;
    for (struct explore_site *s = explore_sites(); s; s = s->next) {
        for (unsigned bit = 1; bit <= EXPLORE_seq_cst; bit *= 2) {
            if (!(s->order & bit))
                continue;
            if (s->needed & bit) {
                needed++;
                continue;
            }
            const char *slash = strrchr(s->file, '/');
            printf("# not shown: %s of the %s in %s, %s:%d\n", bit_name(bit), s->what, s->function,
                   slash ? slash + 1 : s->file, s->line);
            open++;
            if (all && !is_listed(s, bit))
                test_fail(__FILE__, __LINE__, "nothing fails without %s of the %s in %s, %s:%d",
                          bit_name(bit), s->what, s->function, slash ? slash + 1 : s->file,
                          s->line);
        }
    }
    printf("# %u orderings shown to be needed, %u not\n", needed, open);
}
