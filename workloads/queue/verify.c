/* SPDX-License-Identifier: MIT */
/* Did every item come, once, and in its producer's order?  And how long were they on their way? */
#include "base/clock.h"
#include "base/memory.h"
#include "load.h"

#include <errno.h>
#include <math.h>
#include <sched.h>

/* The sum of i and of i² for i below n, modulo 2^64. */
static uint64_t sum_below(uint64_t n)
{
    return n % 2 ? n * ((n - 1) / 2) : n / 2 * (n - 1);
}

static uint64_t squares_below(uint64_t n)
{
    if (n == 0)
        return 0;
    unsigned __int128 a = (unsigned __int128)n * (n - 1);
    /* (n - 1) n (2 n - 1) / 6, divided while it still fits. */
    unsigned __int128 half = a / 2, odd = 2 * (unsigned __int128)n - 1;
    return half % 3 == 0 ? (uint64_t)((half / 3) * odd) : (uint64_t)(half * (odd / 3));
}

static void block_add(struct load_block *block, uint64_t from, uint64_t to)
{
    block->count += to - from;
    block->sum += sum_below(to) - sum_below(from);
    block->squares += squares_below(to) - squares_below(from);
}

/* The numbers [from, to) have come. */
void load_mark_run(struct load_seen *seen, uint64_t from, uint64_t to)
{
    while (from < to) {
        uint64_t end = (from / LOAD_BLOCK + 1) * LOAD_BLOCK;
        end = end < to ? end : to;
        block_add(&seen->blocks[from / LOAD_BLOCK], from, end);
        from = end;
    }
}

int load_out_of_order(struct load_worker *w, unsigned producer, uint64_t number, uint64_t next)
{
    if (producer >= w->load->settings.producers)
        return error_set(&w->err, -EBADMSG,
                         "consumer %u got an item that nobody sent: producer %u, number %llu",
                         w->index, producer, (unsigned long long)number);
    return error_set(&w->err, -EBADMSG,
                     "consumer %u got item %llu of producer %u after its item %llu: repeated or "
                     "out of order",
                     w->index, (unsigned long long)number, producer,
                     (unsigned long long)(next ? next - 1 : 0));
}

int load_torn(struct load_worker *w, uint64_t word, uint64_t copy)
{
    return error_set(&w->err, -EBADMSG,
                     "consumer %u got a torn item: it starts with number %llu of producer %u, but "
                     "contains number %llu of producer %u",
                     w->index, (unsigned long long)(word & ((1ULL << LOAD_NUMBER_BITS) - 1)),
                     (unsigned)(word >> LOAD_NUMBER_BITS),
                     (unsigned long long)(copy & ((1ULL << LOAD_NUMBER_BITS) - 1)),
                     (unsigned)(copy >> LOAD_NUMBER_BITS));
}

/* Names what is wrong with the numbers [from, to) of a producer. */
static int block_error(unsigned producer, uint64_t from, uint64_t to, const struct load_block *got,
                       const struct load_block *want, struct error *err)
{
    const char *what = got->count < want->count ? "lost" : "repeated";
    uint64_t off = got->count < want->count ? want->count - got->count : got->count - want->count;
    uint64_t number = got->count < want->count ? want->sum - got->sum : got->sum - want->sum;
    if (off == 1 && number >= from && number < to)
        return error_set(err, -EBADMSG, "item %llu of producer %u was %s",
                         (unsigned long long)number, producer, what);
    if (off == 0)
        return error_set(
            err, -EBADMSG,
            "of the items %llu to %llu of producer %u, some were lost and as many were repeated",
            (unsigned long long)from, (unsigned long long)to - 1, producer);
    return error_set(err, -EBADMSG, "%llu of the items %llu to %llu of producer %u were %s",
                     (unsigned long long)off, (unsigned long long)from, (unsigned long long)to - 1,
                     producer, what);
}

int load_verify(struct load *load, struct error *err)
{
    const struct load_settings *s = &load->settings;
    for (unsigned p = 0; p < s->producers; p++) {
        uint64_t count = load->workers[p].count;
        for (unsigned c = 0; c < s->consumers; c++) {
            struct load_seen *seen = &load->workers[s->producers + c].seen[p];
            if (seen->next > count)
                return error_set(err, -EBADMSG, "item %llu of producer %u was never sent",
                                 (unsigned long long)seen->next - 1, p);
            load_mark_run(seen, seen->run_start, seen->next);
        }
        for (uint64_t from = 0; from < count; from += LOAD_BLOCK) {
            uint64_t to = from + LOAD_BLOCK < count ? from + LOAD_BLOCK : count;
            struct load_block got = {0}, want = {0};
            block_add(&want, from, to);
            for (unsigned c = 0; c < s->consumers; c++) {
                const struct load_block *b =
                    &load->workers[s->producers + c].seen[p].blocks[from / LOAD_BLOCK];
                got.count += b->count;
                got.sum += b->sum;
                got.squares += b->squares;
            }
            if (got.count != want.count || got.sum != want.sum || got.squares != want.squares)
                return block_error(p, from, to, &got, &want, err);
        }
    }
    return 0;
}

void load_sent(struct load_worker *w, uint64_t number)
{
    struct load *load = w->load;
    load->sent_at_ns[w->index * load->samples_each + number / load->latency_stride] =
        clock_now_ns();
}

void load_received(struct load_worker *w, unsigned producer, uint64_t number)
{
    struct load *load = w->load;
    uint64_t sent_ns =
        load->sent_at_ns[producer * load->samples_each + number / load->latency_stride];
    load_latency_add(&w->latency, clock_now_ns() - sent_ns);
}

/* 32 buckets for each power of two: a value is known to 3 %. */
static size_t bucket_of(uint64_t ns)
{
    if (ns < 32)
        return ns;
    unsigned power = 63 - (unsigned)__builtin_clzll(ns);
    return (power - 4) * 32 + (ns >> (power - 5)) - 32;
}

static double bucket_middle(size_t bucket)
{
    if (bucket < 32)
        return (double)bucket;
    size_t power = bucket / 32 + 4;
    double width = ldexp(1, (int)power - 5);
    return ldexp(1, (int)power) + ((double)(bucket % 32) + 0.5) * width;
}

void load_latency_add(struct load_latency *l, uint64_t ns)
{
    l->buckets[bucket_of(ns)]++;
    l->count++;
    l->max_ns = ns > l->max_ns ? ns : l->max_ns;
}

double load_latency_quantile(const struct load_latency *l, double q)
{
    uint64_t before = 0, wanted = (uint64_t)ceil(q * (double)l->count);
    for (size_t b = 0; b < LOAD_LATENCY_BUCKETS; b++) {
        before += l->buckets[b];
        if (before >= wanted && before > 0)
            return bucket_middle(b) < (double)l->max_ns ? bucket_middle(b) : (double)l->max_ns;
    }
    return NAN;
}

/* A word in a line of its own goes to and fro between two threads. */
struct pingpong {
    QUEUE_ALIGNED uint64_t ball;
    int cpu;
};

/* The median of several short series: a preempted one does not count. */
#define PINGPONG_SERIES 21
#define PINGPONG_ROUNDS 200

static void pingpong_side(struct pingpong *p, uint64_t from, uint64_t mine)
{
    for (uint64_t i = from; i < from + PINGPONG_ROUNDS; i++) {
        unsigned tries = 0;
        while (__atomic_load_n(&p->ball, __ATOMIC_ACQUIRE) != 2 * i + mine)
            if (++tries > 100000)
                sched_yield();
        __atomic_store_n(&p->ball, 2 * i + mine + 1, __ATOMIC_RELEASE);
    }
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static void set_cpu(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

static void *pingpong_other(void *argument)
{
    struct pingpong *p = argument;
    set_cpu(p->cpu);
    for (uint64_t series = 0; series < PINGPONG_SERIES; series++)
        pingpong_side(p, series * PINGPONG_ROUNDS, 1);
    return NULL;
}

/* Two CPUs that may be used, for threads that are not pinned. */
static bool choose_cpus(int *a, int *b)
{
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof(allowed), &allowed);
    for (int cpu = 0; (*a < 0 || *b < 0) && cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET((unsigned)cpu, &allowed))
            continue;
        if (*a < 0)
            *a = cpu;
        else if (cpu != *a)
            *b = cpu;
    }
    return *a >= 0 && *b >= 0 && *a != *b;
}

double load_core_to_core_ns(int cpu_a, int cpu_b)
{
    struct pingpong *p = aligned_alloc(QUEUE_LINE, sizeof(*p));
    cpu_set_t before;
    pthread_t other;
    double ns = NAN;
    if (p && choose_cpus(&cpu_a, &cpu_b)) {
        *p = (struct pingpong){.cpu = cpu_b};
        sched_getaffinity(0, sizeof(before), &before);
        if (pthread_create(&other, NULL, pingpong_other, p) == 0) {
            set_cpu(cpu_a);
            double each_ns[PINGPONG_SERIES];
            for (uint64_t series = 0; series < PINGPONG_SERIES; series++) {
                uint64_t start_ns = clock_now_ns();
                pingpong_side(p, series * PINGPONG_ROUNDS, 0);
                each_ns[series] = (double)(clock_now_ns() - start_ns) / PINGPONG_ROUNDS;
            }
            pthread_join(other, NULL);
            qsort(each_ns, PINGPONG_SERIES, sizeof(each_ns[0]), by_size);
            ns = each_ns[PINGPONG_SERIES / 2];
            sched_setaffinity(0, sizeof(before), &before);
        }
    }
    free(p);
    return ns;
}
