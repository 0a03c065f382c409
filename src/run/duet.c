/* SPDX-License-Identifier: MIT */
/* Two commands at the same time: see duet.h. */
#include "run/duet.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>

#define CPU_FOLDER "/sys/devices/system/cpu"
#define CHOICE_MAX 64 /* CPUs looked at: all pairs of them are compared */

/* What makes a CPU like another. */
struct cpu {
    int number;
    char siblings[128], cache[256];
    int64_t package, speed;
};

static void describe_cpu(struct cpu *c, int number)
{
    char path[128];
    *c = (struct cpu){.number = number};
    snprintf(path, sizeof(path), CPU_FOLDER "/cpu%d/topology/thread_siblings_list", number);
    file_read_line(path, c->siblings, sizeof(c->siblings));
    snprintf(path, sizeof(path), CPU_FOLDER "/cpu%d/topology/physical_package_id", number);
    file_read_i64(path, &c->package);
    snprintf(path, sizeof(path), CPU_FOLDER "/cpu%d/cache/index3/shared_cpu_list", number);
    file_read_line(path, c->cache, sizeof(c->cache));
    snprintf(path, sizeof(path), CPU_FOLDER "/cpu%d/cpu_capacity", number);
    if (file_read_i64(path, &c->speed))
        return;
    snprintf(path, sizeof(path), CPU_FOLDER "/cpu%d/cpufreq/cpuinfo_max_freq", number);
    file_read_i64(path, &c->speed);
}

static bool share_core(const struct cpu *a, const struct cpu *b)
{
    return *a->siblings && str_eq(a->siblings, b->siblings);
}

/* Alike first, then apart, then near, then not the CPU that gets most interrupts. */
static int score(const struct cpu *a, const struct cpu *b)
{
    return 16 * (a->speed == b->speed) + 8 * !share_core(a, b) + 4 * (a->package == b->package) +
           2 * str_eq(a->cache, b->cache) + (a->number != 0 && b->number != 0);
}

int duet_choose_cpus(int ret_cpus[2], bool *ret_share_core, struct error *err)
{
    cpu_set_t allowed;
    struct cpu cpus[CHOICE_MAX];
    size_t count = 0, first = 0, second = 0;
    int best = -1;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
        return error_errno(err, -errno, "which CPUs may be used");
    for (int i = 0; i < CPU_SETSIZE && count < CHOICE_MAX; i++)
        if (CPU_ISSET(i, &allowed))
            describe_cpu(&cpus[count++], i);
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < count; j++)
            if (score(&cpus[i], &cpus[j]) > best) {
                best = score(&cpus[i], &cpus[j]);
                first = i;
                second = j;
            }
    if (best < 0)
        return error_set(err, -ENODEV, "a duet needs two CPUs, but this process may use only one");
    ret_cpus[0] = cpus[first].number;
    ret_cpus[1] = cpus[second].number;
    *ret_share_core = share_core(&cpus[first], &cpus[second]);
    return 0;
}

/* Both sides start when both are ready.  Each spins on its own CPU for the moment that the other
 * takes, so that neither starts with a wake-up behind it.  The add pairs with the load. */
static void stand_at_start(void *context)
{
    struct duet *d = context;
    __atomic_add_fetch(&d->ready_count, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&d->ready_count, __ATOMIC_SEQ_CST) < 2)
        sched_yield();
}

static void open_side(void *context)
{
    struct duet_side *side = context;
    side->code = runner_open(&side->runner, side->duet->events, &side->err);
    side->runner_opened = side->code == 0;
}

static void close_side(void *context)
{
    struct duet_side *side = context;
    if (side->runner_opened)
        runner_done(&side->runner);
    side->runner_opened = false;
}

static void run_side(void *context)
{
    struct duet_side *side = context;
    struct duet *d = side->duet;
    side->code = d->reopen ? runner_renew(&side->runner, &side->err) : 0;
    struct run_spec spec = *side->spec;
    spec.cpus = &d->cpus[side - d->sides];
    spec.cpu_count = 1;
    spec.beside_others = true;
    spec.on_ready = stand_at_start;
    spec.context = d;
    if (side->code == 0)
        side->code = runner_run(&side->runner, &spec, side->result, &side->err);
    /* A side that never came to the start must not keep the other waiting. */
    __atomic_add_fetch(&d->ready_count, 2, __ATOMIC_SEQ_CST);
}

static int both(struct duet *d, void (*task)(void *context), struct error *err)
{
    for (size_t i = 0; i < 2; i++)
        worker_begin(&d->sides[i].worker, task, &d->sides[i]);
    for (size_t i = 0; i < 2; i++)
        worker_wait(&d->sides[i].worker);
    for (size_t i = 0; i < 2; i++)
        if (d->sides[i].code < 0) {
            if (err)
                *err = d->sides[i].err;
            return d->sides[i].code;
        }
    return 0;
}

int duet_open(struct duet *d, const struct event_list *events, const int cpus[2], struct error *err)
{
    *d = (struct duet){.events = events, .cpus = {cpus[0], cpus[1]}};
    int r = 0;
    for (size_t i = 0; i < 2 && r == 0; i++) {
        d->sides[i].duet = d;
        r = worker_start(&d->sides[i].worker, err);
        d->sides[i].worker_started = r == 0;
    }
    if (r == 0)
        r = both(d, open_side, err);
    if (r < 0)
        duet_done(d);
    return r;
}

int duet_run(struct duet *d, const struct run_spec *const specs[2],
             struct run_result *const results[2], struct error *err)
{
    for (size_t i = 0; i < 2; i++) {
        d->sides[i].spec = specs[i];
        d->sides[i].result = results[i];
    }
    d->ready_count = 0;
    int r = both(d, run_side, err);
    d->reopen = process_orphans_alive();
    for (size_t i = 0; i < 2; i++)
        results[i]->left_behind |= d->reopen;
    return r;
}

void duet_done(struct duet *d)
{
    for (size_t i = 0; i < 2; i++) {
        struct duet_side *side = &d->sides[i];
        if (!side->worker_started)
            continue;
        worker_begin(&side->worker, close_side, side);
        worker_wait(&side->worker);
        worker_stop(&side->worker);
        side->worker_started = false;
    }
}
