/* SPDX-License-Identifier: MIT */
/*
 * See measure.h.
 *
 * The counters are read while the tasks run on.  Rates come from the time between two readings as
 * the clock shows it, not as it was asked for: on a busy machine one second of sleep is longer.
 */
#include "measure.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "folder.h"
#include "host.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Limits that only a machine in trouble reaches. */
#define START_LIMIT_NS (120 * NS_PER_S)
#define STOP_LIMIT_NS (60 * NS_PER_S)
#define FIRST_LIMIT_NS (5 * NS_PER_S)
#define STEP_NS (2 * NS_PER_MS)

struct show {
    const struct measure_spec *spec;
    struct stage *stage;
    pid_t host;
    int host_status;
    bool host_ended;
};

/* A reading of all counters. */
struct reading {
    uint64_t now_ns, ops_sum;
    uint64_t *ops, *cpu_ns; /* of each task; cpu_ns UINT64_MAX when not known */
    struct cpu_ticks ticks;
    bool has_ticks;
};

static void reading_done(struct reading *r)
{
    free(r->ops);
    free(r->cpu_ns);
}

/* How long a task has been running: the first number of its schedstat. */
static uint64_t task_cpu_ns(pid_t tid)
{
    char path[64], line[128];
    snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)tid);
    return file_read_line(path, line, sizeof(line)) && line[0] ? strtoull(line, NULL, 10)
                                                               : UINT64_MAX;
}

static size_t used_cpus(const struct measure_spec *spec)
{
    return spec->task_count < spec->cpus->count ? spec->task_count : spec->cpus->count;
}

static uint64_t sum_ops(const struct stage *stage)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < stage->task_count; i++)
        sum += atomic_load_explicit(&stage->slots[i].ops, memory_order_relaxed);
    return sum;
}

/* The counters are read last at the beginning and first at the end, next to the clock. */
static void read_slow(const struct show *show, struct reading *r)
{
    const struct stage *stage = show->stage;
    r->cpu_ns = memory_zalloc(stage->task_count, sizeof(*r->cpu_ns));
    for (unsigned i = 0; i < stage->task_count; i++)
        r->cpu_ns[i] = task_cpu_ns(stage->slots[i].tid);
    r->has_ticks = cpu_ticks_read(show->spec->cpus->numbers, used_cpus(show->spec), &r->ticks);
}

static void read_counters(const struct stage *stage, struct reading *r)
{
    r->ops = memory_zalloc(stage->task_count, sizeof(*r->ops));
    r->ops_sum = 0;
    r->now_ns = clock_now_ns();
    for (unsigned i = 0; i < stage->task_count; i++) {
        r->ops[i] = atomic_load_explicit(&stage->slots[i].ops, memory_order_relaxed);
        r->ops_sum += r->ops[i];
    }
}

static bool has_ended(struct show *show)
{
    if (!show->host_ended && waitpid(show->host, &show->host_status, WNOHANG) == show->host)
        show->host_ended = true;
    return show->host_ended;
}

/* Why the tasks are gone, from what they left on the stage. */
static int explain_end(const struct show *show, struct error *err)
{
    const struct stage *stage = show->stage;
    for (unsigned i = 0; i < stage->task_count; i++)
        if (stage->slots[i].error.code < 0)
            return error_set(err, stage->slots[i].error.code, "task %u: %s", i,
                             stage->slots[i].error.message);
    if (stage->error.code < 0)
        return error_set(err, stage->error.code, "%s", stage->error.message);
    if (WIFSIGNALED(show->host_status))
        return error_set(err, -EIO, "the tasks were killed by signal %d (%s)",
                         WTERMSIG(show->host_status), strsignal(WTERMSIG(show->host_status)));
    return error_set(err, -EIO, "the tasks exited too early");
}

/* Sleeps until the deadline; an error when the tasks end meanwhile or a signal comes. */
static int sleep_until(struct show *show, int host_fd, uint64_t deadline_ns, struct error *err)
{
    struct pollfd p = {.fd = host_fd, .events = POLLIN};
    for (;;) {
        if (process_signals_caught())
            return error_set(err, -EINTR, "interrupted");
        if (has_ended(show))
            return explain_end(show, err);
        if (clock_now_ns() >= deadline_ns)
            return 0;
        process_poll_fds(&p, host_fd >= 0, deadline_ns, true);
    }
}

static int await_ready(struct show *show, struct error *err)
{
    uint64_t limit_ns = clock_now_ns() + START_LIMIT_NS;
    /* Acquire: with the release in task_start, what tasks wrote into their slots is seen. */
    while (atomic_load_explicit(&show->stage->ready, memory_order_acquire) <
           show->spec->task_count) {
        int code = sleep_until(show, -1, clock_now_ns() + STEP_NS, err);
        if (code < 0)
            return code;
        if (clock_now_ns() > limit_ns)
            return error_set(err, -ETIMEDOUT, "the tasks were not ready after two minutes");
    }
    return 0;
}

static void let_go(struct stage *stage)
{
    atomic_store_explicit(&stage->go, 1, memory_order_release);
    syscall(SYS_futex, &stage->go, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Tells the tasks to end, waits for them, and does not leave without. */
static int stop(struct show *show, int host_fd, struct error *err)
{
    struct pollfd p = {.fd = host_fd, .events = POLLIN};
    uint64_t limit_ns = clock_now_ns() + STOP_LIMIT_NS;
    for (unsigned i = 0; i < show->stage->task_count; i++)
        atomic_store_explicit(&show->stage->slots[i].limit, 0, memory_order_relaxed);
    let_go(show->stage); /* where it failed early, they still wait for it */
    while (!has_ended(show) && clock_now_ns() < limit_ns)
        process_poll_fds(&p, host_fd >= 0, clock_now_ns() + (host_fd >= 0 ? NS_PER_S : STEP_NS),
                         false);
    if (!show->host_ended) {
        kill(show->host, SIGKILL);
        waitpid(show->host, &show->host_status, 0);
        show->host_ended = true;
        return error_set(err, -ETIMEDOUT, "the tasks did not stop when asked; they were killed");
    }
    return show->host_status == 0 ? 0 : explain_end(show, err);
}

static void fill_result(const struct show *show, const struct reading *a, const struct reading *b,
                        struct measure_result *r)
{
    const struct stage *stage = show->stage;
    double seconds = (double)(b->now_ns - a->now_ns) / (double)NS_PER_S;
    r->elapsed_ns = b->now_ns - a->now_ns;
    r->ops = b->ops_sum - a->ops_sum;
    r->ops_per_second = (double)r->ops / seconds;
    r->ops_per_second_per_task = r->ops_per_second / stage->task_count;
    r->each = memory_zalloc(stage->task_count, sizeof(*r->each));
    double cpu_sum = 0;
    for (unsigned i = 0; i < stage->task_count; i++) {
        uint64_t ops = b->ops[i] - a->ops[i];
        bool known = a->cpu_ns && b->cpu_ns && a->cpu_ns[i] != UINT64_MAX &&
                     b->cpu_ns[i] != UINT64_MAX && b->cpu_ns[i] >= a->cpu_ns[i];
        r->each[i] = (struct task_result){
            .cpu = stage->slots[i].cpu,
            .ops = ops,
            .ops_per_second = (double)ops / seconds,
            .cpu_share = known ? (double)(b->cpu_ns[i] - a->cpu_ns[i]) / (seconds * 1e9) : NAN};
        cpu_sum += r->each[i].cpu_share;
    }
    r->cpu_share = cpu_sum / stage->task_count;
    double ticks = (double)(b->ticks.all - a->ticks.all);
    bool has_ticks = a->has_ticks && b->has_ticks && ticks > 0;
    r->idle_share = has_ticks ? (double)(b->ticks.idle - a->ticks.idle) / ticks : NAN;
    r->steal_share = has_ticks ? (double)(b->ticks.steal - a->ticks.steal) / ticks : NAN;
}

/* A task that has not run yet is not warm.  Where CPUs are shared that takes its time; some tests
 * may do nothing for long, so that it is not waited for without a limit. */
static int await_first_ops(struct show *show, struct error *err)
{
    uint64_t limit_ns = clock_now_ns() + FIRST_LIMIT_NS;
    for (unsigned i = 0; i < show->stage->task_count;) {
        if (atomic_load_explicit(&show->stage->slots[i].ops, memory_order_relaxed) > 0 ||
            clock_now_ns() > limit_ns) {
            i++;
            continue;
        }
        int code = sleep_until(show, -1, clock_now_ns() + STEP_NS, err);
        if (code < 0)
            return code;
    }
    return 0;
}

/* The measured time, interval by interval. */
static int watch(struct show *show, int host_fd, struct measure_result *r, struct error *err)
{
    const struct measure_spec *spec = show->spec;
    int code = await_first_ops(show, err);
    if (code == 0)
        code = sleep_until(show, host_fd, clock_now_ns() + spec->warmup_ns, err);
    if (code < 0)
        return code;
    CLEANUP(reading_done) struct reading first = {0}, last = {0};
    read_slow(show, &first);
    read_counters(show->stage, &first);
    uint64_t end_ns = first.now_ns + spec->duration_ns;
    uint64_t before_ns = first.now_ns, before_ops = first.ops_sum;
    while (before_ns < end_ns && code == 0) {
        uint64_t next_ns = before_ns + spec->interval_ns;
        /* No scrap of an interval at the end. */
        next_ns = next_ns + spec->interval_ns / 2 > end_ns ? end_ns : next_ns;
        code = sleep_until(show, host_fd, next_ns, err);
        uint64_t now_ns = clock_now_ns(), ops = sum_ops(show->stage);
        double rate = (double)(ops - before_ops) * 1e9 / (double)(now_ns - before_ns);
        if (code == 0)
            ARRAY_PUSH(r->intervals, r->interval_count, r->interval_capacity) = rate;
        before_ns = now_ns;
        before_ops = ops;
        progress_show(spec->progress, "%s: %.0f s of %.0f, %.4g operations per second",
                      spec->progress_text, (double)(now_ns - first.now_ns) / 1e9,
                      (double)spec->duration_ns / 1e9, rate);
    }
    if (code < 0)
        return code;
    read_counters(show->stage, &last);
    read_slow(show, &last);
    fill_result(show, &first, &last, r);
    return 0;
}

/* A number of operations: the tasks take the times themselves. */
static int watch_ops(struct show *show, int host_fd, struct measure_result *r, struct error *err)
{
    struct pollfd p = {.fd = host_fd, .events = POLLIN};
    while (!has_ended(show)) {
        if (process_signals_caught())
            return error_set(err, -EINTR, "interrupted");
        progress_show(show->spec->progress, "%s: %llu operations", show->spec->progress_text,
                      (unsigned long long)sum_ops(show->stage));
        uint64_t step_ns = host_fd >= 0 ? NS_PER_S : STEP_NS;
        process_poll_fds(&p, host_fd >= 0, clock_now_ns() + step_ns, true);
    }
    if (show->host_status != 0)
        return explain_end(show, err);
    CLEANUP(reading_done) struct reading first = {.now_ns = UINT64_MAX}, last = {0};
    read_counters(show->stage, &last);
    last.now_ns = 0;
    first.ops = memory_zalloc(show->stage->task_count, sizeof(*first.ops));
    for (unsigned i = 0; i < show->stage->task_count; i++) {
        const struct slot *slot = &show->stage->slots[i];
        first.now_ns = slot->start_ns < first.now_ns ? slot->start_ns : first.now_ns;
        last.now_ns = slot->end_ns > last.now_ns ? slot->end_ns : last.now_ns;
    }
    if (last.now_ns == first.now_ns)
        last.now_ns++;
    fill_result(show, &first, &last, r);
    return 0;
}

static void collect_calls(const struct show *show, struct measure_result *r)
{
    r->has_calls = show->spec->count_calls;
    for (unsigned i = 0; i < show->stage->task_count; i++)
        for (size_t k = 0; k < CALLS_MAX; k++)
            r->calls[k] += show->stage->slots[i].calls[k];
}

static int perform(struct show *show, const char *folder, struct measure_result *r,
                   struct error *err)
{
    const struct measure_spec *spec = show->spec;
    for (unsigned i = 0; i < spec->task_count; i++)
        show->stage->slots[i].limit = spec->by_ops ? spec->ops : UINT64_MAX;
    const struct host_spec host = {
        .test = spec->test,
        .host = {.folder = folder, .task_count = spec->task_count, .threads = spec->threads},
        .cpus = spec->cpus->numbers,
        .cpu_count = spec->cpus->count,
        .count_calls = spec->count_calls,
        .mappings = spec->mappings};
    int code = host_start(&host, show->stage, &show->host, err);
    if (code < 0)
        return code;
    CLEANUP(fd_closep) int host_fd = (int)syscall(SYS_pidfd_open, show->host, 0);
    code = await_ready(show, err);
    if (code == 0) {
        let_go(show->stage);
        code = spec->by_ops ? watch_ops(show, host_fd, r, err) : watch(show, host_fd, r, err);
    }
    int stopped = stop(show, host_fd, code < 0 ? NULL : err);
    if (code == 0)
        collect_calls(show, r);
    return code < 0 ? code : stopped;
}

int measure(const struct measure_spec *spec, struct measure_result *ret_result, struct error *err)
{
    struct measure_result r = {
        .test = spec->test, .threads = spec->threads, .task_count = spec->task_count};
    CLEANUP(memory_freep) char *folder = memory_printf("%s/run.XXXXXX", spec->folder);
    if (!mkdtemp(folder))
        return error_errno(err, -errno, "creating the directory %s", folder);
    struct show show = {.spec = spec, .stage = stage_new(spec->task_count, err)};
    int code = show.stage ? perform(&show, folder, &r, err) : -ENOMEM;
    stage_free(show.stage);
    int removed = folder_remove(folder, code < 0 ? NULL : err);
    if (code == 0)
        code = removed;
    if (code < 0)
        measure_result_done(&r);
    else
        *ret_result = r;
    return code;
}

void measure_result_done(struct measure_result *r)
{
    free(r->intervals);
    free(r->each);
    *r = (struct measure_result){0};
}
