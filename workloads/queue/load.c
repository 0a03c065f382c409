/* SPDX-License-Identifier: MIT */
/* Runs a load: makes the queue, starts the threads together, stops the clock, asks for the sums. */
#include "load.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

static void set_failed(struct load *load)
{
    __atomic_store_n(&load->failed, 1, __ATOMIC_RELAXED);
    gate_wake(&load->items, UINT32_MAX);
    gate_wake(&load->room, UINT32_MAX);
}

/* A producer goes on when at most `backlog` items are in the queue, as far as consumers have told.
 */
void load_await_backlog(struct load_worker *w)
{
    struct load *load = w->load;
    struct queue_waiter wait = load->settings.waiter;
    while (load->settings.backlog && !__atomic_load_n(&load->failed, __ATOMIC_RELAXED)) {
        uint64_t pushed = 0;
        for (unsigned i = 0; i < load->settings.producers; i++)
            pushed += __atomic_load_n(&load->workers[i].progress, __ATOMIC_RELAXED);
        uint64_t taken = __atomic_load_n(&load->taken, __ATOMIC_RELAXED);
        if (pushed - taken < load->settings.backlog || pushed < taken)
            return;
        queue_wait_once(&wait);
    }
}

static void pin_to(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

/* All threads are there before the first item moves; and in a burst, all items are in the queue
 * before the first is taken out. */
struct start {
    pthread_barrier_t barrier, pushed;
};

struct worker_start {
    struct load_worker *worker;
    struct start *start;
};

static void *work(void *argument)
{
    struct worker_start *ws = argument;
    struct load_worker *w = ws->worker;
    const struct load_driver *driver = w->load->driver;
    bool has_join = driver->join;
    if (w->cpu >= 0)
        pin_to(w->cpu);
    if (has_join && (!(w->thread = driver->join(w->queue)) ||
                     (w->answer && !(w->answer_thread = driver->join(w->answer))))) {
        error_set(&w->err, -EAGAIN, "the queue has no slot for another thread");
        set_failed(w->load);
    }
    pthread_barrier_wait(&ws->start->barrier);
    w->start_ns = clock_now_ns();
    uint64_t cpu_start_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
    int code = w->err.code;
    bool burst = w->load->settings.burst;
    if (burst && !w->is_producer)
        pthread_barrier_wait(&ws->start->pushed);
    if (code == 0)
        code = w->load->settings.round_trip ? driver->ping(w)
               : w->is_producer             ? driver->produce(w)
                                            : driver->consume(w);
    if (burst && w->is_producer)
        pthread_barrier_wait(&ws->start->pushed);
    w->end_ns = clock_now_ns();
    w->cpu_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_start_ns;
    if (code < 0)
        set_failed(w->load);
    if (w->thread)
        driver->leave(w->queue, w->thread);
    if (w->answer_thread)
        driver->leave(w->answer, w->answer_thread);
    return NULL;
}

static uint64_t status_bytes(const char *key)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    if (file_read("/proc/self/status", &text, NULL) < 0)
        return 0;
    const char *line = strstr(strbuf_text(&text), key);
    unsigned long long kib = 0;
    if (line)
        sscanf(line + strlen(key), ": %llu", &kib);
    return kib * 1024;
}

/* The peak counts from here on, where the kernel lets us say so. */
static void reset_peak(void)
{
    file_write("/proc/self/clear_refs", "5", 1, NULL);
}

static int place_workers(struct load *load, void *queue, void *answer, struct error *err)
{
    const struct load_settings *s = &load->settings;
    CLEANUP(memory_freep) int *cpus = NULL;
    size_t cpu_count = 0;
    int code = s->pin ? parse_cpu_list(s->pin, &cpus, &cpu_count, err) : 0;
    if (code < 0)
        return error_wrap(err, code, "--pin");
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof(allowed), &allowed);
    size_t cpus_used = cpu_count ? cpu_count : (size_t)CPU_COUNT(&allowed);
    for (size_t i = 0; i < cpu_count; i++)
        if (cpus[i] >= CPU_SETSIZE || !CPU_ISSET((unsigned)cpus[i], &allowed))
            return error_set(err, -EINVAL, "--pin: this process is not allowed to use CPU %d",
                             cpus[i]);
    load->worker_count = (unsigned)(s->producers + s->consumers);
    /* Who has no CPU of its own lets others run at once. */
    if (load->worker_count > cpus_used)
        load->settings.waiter.yield_after = 1;
    load->workers = aligned_alloc(QUEUE_LINE, load->worker_count * sizeof(*load->workers));
    if (!load->workers)
        return error_set(err, -ENOMEM, "no memory for the threads");
    memset(load->workers, 0, load->worker_count * sizeof(*load->workers));
    for (unsigned i = 0; i < load->worker_count; i++) {
        struct load_worker *w = &load->workers[i];
        w->load = load;
        w->queue = queue;
        w->answer = answer;
        w->is_producer = i < s->producers;
        w->index = w->is_producer ? i : i - (unsigned)s->producers;
        /* Producers from the front of the list, consumers from its end. */
        w->cpu = cpu_count == 0   ? -1
                 : w->is_producer ? cpus[w->index % cpu_count]
                                  : cpus[cpu_count - 1 - w->index % cpu_count];
        w->buffer = memory_zalloc(LOAD_CHUNK + s->batch, s->payload_bytes);
        uint64_t share = s->items / s->producers;
        if (w->is_producer)
            w->count = share + (i < s->items % s->producers);
        else
            w->seen = memory_zalloc(s->producers, sizeof(*w->seen));
        for (uint64_t p = 0; w->seen && p < s->producers; p++)
            w->seen[p].blocks =
                memory_zalloc((share + 1) / LOAD_BLOCK + 1, sizeof(struct load_block));
    }
    return 0;
}

static void free_workers(struct load *load)
{
    for (unsigned i = 0; i < load->worker_count; i++) {
        struct load_worker *w = &load->workers[i];
        free(w->buffer);
        for (uint64_t p = 0; w->seen && p < load->settings.producers; p++)
            free(w->seen[p].blocks);
        free(w->seen);
    }
    free(load->workers);
    free(load->sent_at_ns);
}

/* Starts all, lets them go at once, and awaits them. */
static int run_threads(struct load *load, uint64_t *ret_wall_ns, struct error *err)
{
    struct start start;
    CLEANUP(memory_freep) pthread_t *threads = memory_zalloc(load->worker_count, sizeof(*threads));
    CLEANUP(memory_freep)
    struct worker_start *starts = memory_zalloc(load->worker_count, sizeof(*starts));
    pthread_barrier_init(&start.barrier, NULL, load->worker_count + 1);
    pthread_barrier_init(&start.pushed, NULL, load->worker_count);
    for (unsigned i = 0; i < load->worker_count; i++) {
        starts[i] = (struct worker_start){&load->workers[i], &start};
        int code = pthread_create(&threads[i], NULL, work, &starts[i]);
        if (code) {
            /* Those that wait at the barrier already cannot be called back. */
            error_errno(err, -code, "thread %u of %u", i + 1, load->worker_count);
            fprintf(stderr, "assay-queue: %s\n", err->message);
            _exit(1);
        }
    }
    pthread_barrier_wait(&start.barrier);
    /* From the first thread that set off to the last that came home. */
    uint64_t start_ns = UINT64_MAX, end_ns = 0;
    for (unsigned i = 0; i < load->worker_count; i++) {
        const struct load_worker *w = &load->workers[i];
        pthread_join(threads[i], NULL);
        end_ns = w->end_ns > end_ns ? w->end_ns : end_ns;
        start_ns = w->start_ns < start_ns ? w->start_ns : start_ns;
    }
    pthread_barrier_destroy(&start.barrier);
    pthread_barrier_destroy(&start.pushed);
    *ret_wall_ns = end_ns > start_ns ? end_ns - start_ns : 1;
    for (unsigned i = 0; i < load->worker_count; i++) {
        if (load->workers[i].err.code < 0) {
            *err = load->workers[i].err;
            return err->code;
        }
    }
    return 0;
}

static void prepare_latency(struct load *load)
{
    const struct load_settings *s = &load->settings;
    load->latency_stride = 1;
    if (!s->latency)
        return;
    while (s->items / load->latency_stride > 65536 * s->producers)
        load->latency_stride *= 2;
    load->samples_each = (s->items / s->producers + 1) / load->latency_stride + 1;
    load->sent_at_ns = memory_zalloc(s->producers * load->samples_each, sizeof(uint64_t));
}

static void sum_up(struct load *load, uint64_t wall_ns, struct load_result *r)
{
    static const double quantiles[4] = {0.5, 0.9, 0.99, 0.999};
    struct load_latency *all = memory_zalloc(1, sizeof(*all));
    uint64_t cpu_ns = 0;
    for (unsigned i = 0; i < load->worker_count; i++) {
        const struct load_latency *one = &load->workers[i].latency;
        cpu_ns += load->workers[i].cpu_ns;
        for (size_t b = 0; b < LOAD_LATENCY_BUCKETS; b++)
            all->buckets[b] += one->buckets[b];
        all->count += one->count;
        all->max_ns = one->max_ns > all->max_ns ? one->max_ns : all->max_ns;
    }
    double items = (double)load->settings.items;
    r->wall_s = (double)wall_ns / 1e9;
    r->mops = items / (double)wall_ns * 1e3;
    r->cpu_ns_per_op = (double)cpu_ns / items;
    r->round_trip_ns = load->settings.round_trip ? (double)wall_ns / items : NAN;
    for (size_t i = 0; i < 4; i++)
        r->latency_ns[i] = all->count ? load_latency_quantile(all, quantiles[i]) : NAN;
    r->latency_max_ns = all->count ? (double)all->max_ns : NAN;
    free(all);
}

int load_run(struct load_settings *settings, const struct load_driver *driver,
             struct load_result *ret_result, struct error *err)
{
    struct load *load = aligned_alloc(QUEUE_LINE, sizeof(*load));
    if (!load)
        return error_set(err, -ENOMEM, "no memory for the load");
    memset(load, 0, sizeof(*load));
    load->settings = *settings;
    load->driver = driver;
    load->cheap = !settings->full_fence && queue_barrier_is_cheap();
    gate_init(&load->items, false);
    gate_init(&load->room, false);
    prepare_latency(load);
    void *queue = NULL, *answer = NULL;
    struct load_result r = {0};
    r.base_bytes = status_bytes("VmRSS");
    reset_peak();
    int code = driver->create(load, &queue, err);
    if (code == 0 && settings->round_trip)
        code = driver->create(load, &answer, err);
    if (code == 0)
        code = place_workers(load, queue, answer, err);
    uint64_t wall_ns = 0;
    if (code == 0) {
        int a = load->workers[0].cpu, b = load->workers[settings->producers].cpu;
        r.core_before_ns = load_core_to_core_ns(a, b);
        code = run_threads(load, &wall_ns, err);
        r.core_after_ns = load_core_to_core_ns(a, b);
    }
    r.peak_bytes = status_bytes("VmHWM");
    r.after_bytes = status_bytes("VmRSS");
    if (code == 0 && !settings->round_trip)
        code = load_verify(load, err);
    if (code == 0) {
        sum_up(load, wall_ns, &r);
        *ret_result = r;
    }
    free_workers(load);
    if (queue)
        driver->destroy(load, queue);
    if (answer)
        driver->destroy(load, answer);
    free(load);
    return code;
}
