/* SPDX-License-Identifier: MIT */
/* One measurement: see measure.h. */
#include "counters/measure.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "counters/accounting.h"
#include "counters/entities.h"
#include "counters/launcher.h"
#include "counters/online.h"
#include "counters/threads.h"
#include "machine/machine.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KILL_AFTER_NS (2 * NS_PER_S) /* from SIGTERM to SIGKILL when the time is over */

/* A measurement under way. */
struct session {
    const struct measure_spec *spec;
    struct measurement *m;
    struct counters counters;
    struct accounting accounting;
    struct thread_counters threads;
    bool threads_open;
    struct counter_value *last;     /* totals at the last reading, where counters stay open */
    struct counter_value *interval; /* totals at the last interval's end */
    pid_t *tasks;                   /* threads of spec->pids */
    size_t task_count, task_capacity;
    int *cpus;
    size_t cpu_count;
    int cgroup_fd;
    uint64_t start_ns, interval_start_ns;
    struct launcher launcher;
    char *program; /* the command's file, once it was looked for */
};

/* So many runs are started by the launcher, so that their peak RSS is the command's own: that costs
 * each of them some microseconds. */
enum { SMALL_STARTS_MAX = 20 };

static struct counter_value *new_values(const struct measurement *m)
{
    return memory_zalloc(m->event_count, sizeof(struct counter_value));
}

static void remember_states(struct session *s)
{
    for (size_t i = 0; i < s->m->event_count; i++) {
        if (!s->m->why[i] && s->counters.items[i].why)
            s->m->why[i] = memory_strdup(s->counters.items[i].why);
        s->m->accounted[i] |= s->counters.items[i].accounted;
        s->m->user_only[i] |= s->counters.items[i].user_only;
        s->m->restricted[i] |= s->counters.items[i].restricted;
    }
}

static int open_counters(struct session *s, const struct counter_target *target, struct error *err)
{
    int r = counters_open(&s->counters, s->spec->events, target, err);
    if (r == 0) {
        remember_states(s);
        memset(s->last, 0, s->m->event_count * sizeof(*s->last));
    }
    return r;
}

/* Events on the commands that this thread starts; they stay open from run to run. */
static int open_on_children(struct session *s, struct error *err)
{
    struct counter_target target = {.kind = TARGET_CHILDREN,
                                    .may_account = !s->spec->per_thread && !s->spec->interval_ns};
    int r = open_counters(s, &target, err);
    if (r == 0 && s->spec->per_thread) {
        r = thread_counters_open(&s->threads, &s->counters, s->m, err);
        s->threads_open = r == 0;
    }
    return r;
}

static int open_on_target(struct session *s, struct error *err)
{
    struct counter_target target = {.kind = s->spec->kind,
                                    .tasks = s->tasks,
                                    .task_count = s->task_count,
                                    .cpus = s->cpus,
                                    .cpu_count = s->cpu_count,
                                    .cgroup_fd = s->cgroup_fd,
                                    .start_paused = true,
                                    .no_inherit = s->spec->per_thread};
    return open_counters(s, &target, err);
}

/* Leaves each number once: what is named twice is not counted twice. */
static size_t unique(int *numbers, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        bool seen = false;
        for (size_t j = 0; j < kept && !seen; j++)
            seen = numbers[j] == numbers[i];
        if (!seen)
            numbers[kept++] = numbers[i];
    }
    return kept;
}

static int find_target(struct session *s, struct error *err)
{
    const struct measure_spec *spec = s->spec;
    for (size_t i = 0; i < spec->pid_count; i++) {
        int r = online_threads(spec->pids[i], &s->tasks, &s->task_count, &s->task_capacity, err);
        if (r < 0)
            return r;
    }
    s->task_count = unique(s->tasks, s->task_count);
    if (spec->kind == TARGET_CGROUP) {
        s->cgroup_fd = online_cgroup(spec->cgroup, err);
        if (s->cgroup_fd < 0)
            return s->cgroup_fd;
    }
    if (spec->kind != TARGET_CPUS && spec->kind != TARGET_CGROUP)
        return 0;
    int r = online_cpus(&s->cpus, &s->cpu_count, err);
    if (r < 0 || !spec->cpus)
        return r;
    for (size_t i = 0; i < spec->cpu_count; i++) {
        bool online = false;
        for (size_t j = 0; j < s->cpu_count; j++)
            online |= s->cpus[j] == spec->cpus[i];
        if (!online)
            return error_set(err, -EINVAL, "CPU %d is not online", spec->cpus[i]);
    }
    s->cpus = memory_resize(s->cpus, spec->cpu_count, sizeof(*s->cpus));
    memcpy(s->cpus, spec->cpus, spec->cpu_count * sizeof(*s->cpus));
    s->cpu_count = unique(s->cpus, spec->cpu_count);
    return 0;
}

/* Ends one interval at these totals: keeps what was counted since the one before. */
static void keep_interval(struct session *s, const struct counter_value *now)
{
    struct measurement *m = s->m;
    uint64_t now_ns = clock_now_ns();
    struct measured_interval *interval =
        &ARRAY_PUSH(m->intervals, m->interval_count, m->interval_capacity);
    *interval = (struct measured_interval){.end_ns = now_ns - s->start_ns,
                                           .length_ns = now_ns - s->interval_start_ns,
                                           .run = m->run_count,
                                           .values = new_values(m)};
    for (size_t i = 0; i < m->event_count; i++)
        interval->values[i] = counter_difference(&now[i], &s->interval[i]);
    memcpy(s->interval, now, m->event_count * sizeof(*now));
    s->interval_start_ns = now_ns;
    if (s->spec->on_interval)
        s->spec->on_interval(m, s->spec->context);
}

static int take_interval(struct session *s, struct error *err)
{
    CLEANUP(memory_freep) struct counter_value *now = new_values(s->m);
    int r = counters_read(&s->counters, now, err);
    if (r == 0)
        keep_interval(s, now);
    return r;
}

/* What the session waits for: the command, or the processes it was told to watch. */
struct waited {
    struct pollfd *fds; /* -1 for one that has ended */
    size_t count;
    bool until_signal; /* ends the watching of others; a command decides for itself what it means */
};

static void waited_done(struct waited *w)
{
    for (size_t i = 0; i < w->count; i++)
        if (w->fds[i].fd >= 0)
            close(w->fds[i].fd);
    free(w->fds);
}

static int waited_init(struct waited *w, const struct session *s, pid_t command, struct error *err)
{
    const pid_t *pids = command ? &command : s->spec->pids;
    size_t count = command ? 1 : s->spec->pid_count;
    *w =
        (struct waited){.fds = memory_zalloc(count + 1, sizeof(*w->fds)), .until_signal = !command};
    for (size_t i = 0; i < count; i++) {
        int fd = (int)syscall(SYS_pidfd_open, pids[i], 0);
        if (fd < 0 && errno != ESRCH)
            return error_errno(err, -errno, "watching process %d", (int)pids[i]);
        w->fds[w->count++] = (struct pollfd){.fd = fd, .events = POLLIN};
    }
    return 0;
}

static bool all_ended(const struct waited *w)
{
    for (size_t i = 0; i < w->count; i++)
        if (w->fds[i].fd >= 0)
            return false;
    return w->count > 0;
}

/* Waits until the time; true when all processes have ended. */
static bool waited_poll(struct waited *w, uint64_t deadline_ns)
{
    if (!all_ended(w) && process_poll_fds(w->fds, w->count, deadline_ns, w->until_signal) > 0)
        for (size_t i = 0; i < w->count; i++)
            if (w->fds[i].revents && w->fds[i].fd >= 0) {
                close(w->fds[i].fd);
                w->fds[i].fd = -1; /* poll passes it over from now on */
            }
    return all_ended(w);
}

static uint64_t earlier(uint64_t a_ns, uint64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

/* Waits for the end of the run, with intervals and time limit; the command is still to be reaped.
 */
static int wait_for_end(struct session *s, pid_t command, struct measured_run *run,
                        struct error *err)
{
    const struct measure_spec *spec = s->spec;
    CLEANUP(waited_done) struct waited w;
    int r = waited_init(&w, s, command, err);
    if (r < 0)
        return r;
    uint64_t tick_ns = spec->interval_ns ? s->start_ns + spec->interval_ns : UINT64_MAX;
    uint64_t limit_ns = spec->timeout_ns ? s->start_ns + spec->timeout_ns : UINT64_MAX;
    /* Rings of per-thread counts are emptied now and then, so that they do not overflow. */
    uint64_t drain_ns = s->threads_open ? 20 * NS_PER_MS : 0;
    for (;;) {
        uint64_t wake_ns = earlier(tick_ns, limit_ns);
        if (drain_ns)
            wake_ns = earlier(wake_ns, clock_now_ns() + drain_ns);
        bool ended = waited_poll(&w, wake_ns);
        uint64_t now_ns = clock_now_ns();
        if (drain_ns)
            thread_counters_drain(&s->threads);
        if (ended || (!command && process_signals_caught()))
            return 0;
        if (now_ns >= tick_ns) {
            r = take_interval(s, err);
            if (r < 0)
                return r;
            while (tick_ns <= now_ns)
                tick_ns += spec->interval_ns;
        }
        if (now_ns >= limit_ns && !command) {
            run->timed_out = true;
            return 0;
        }
        if (now_ns >= limit_ns) {
            kill(command, run->timed_out ? SIGKILL : SIGTERM);
            run->timed_out = true;
            limit_ns = now_ns + KILL_AFTER_NS;
        }
    }
}

/* Sleeps through -D; *ret_go is false when the processes ended or a signal came before its end. */
static int sleep_through_delay(const struct session *s, pid_t command, bool *ret_go,
                               struct error *err)
{
    CLEANUP(waited_done) struct waited w;
    int r = waited_init(&w, s, command, err);
    uint64_t end_ns = clock_now_ns() + s->spec->delay_ns;
    bool go = r == 0;
    while (go && clock_now_ns() < end_ns)
        go = !waited_poll(&w, end_ns) && (command || !process_signals_caught());
    *ret_go = go;
    return r;
}

static void start_clock(struct session *s)
{
    s->start_ns = clock_now_ns();
    s->interval_start_ns = s->start_ns;
}

/* Reads the totals and sets the run's counts to what came since the last reading. */
static int take_counts(struct session *s, struct measured_run *run, struct error *err)
{
    CLEANUP(memory_freep) struct counter_value *now = new_values(s->m);
    int r = counters_read(&s->counters, now, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < s->m->event_count; i++)
        run->values[i] = counter_difference(&now[i], &s->last[i]);
    if (run->has_command)
        accounting_fill(&s->counters, &s->accounting, &run->usage, run->wall_ns, run->values);
    /* What came after the last full interval is an interval, too. */
    if (s->spec->interval_ns)
        keep_interval(s, now);
    memcpy(s->last, now, s->m->event_count * sizeof(*now));
    return 0;
}

static int finish_command(struct session *s, pid_t pid, struct measured_run *run, struct error *err)
{
    struct process_result result;
    bool timers = s->spec->interval_ns || s->spec->timeout_ns || s->threads_open;
    int r = timers ? wait_for_end(s, pid, run, err) : 0;
    if (r < 0) {
        kill(pid, SIGKILL);
        process_wait(pid, &result, NULL);
        return r;
    }
    process_await_end(pid);
    run->wall_ns = clock_now_ns() - s->start_ns;
    accounting_read(&s->counters, pid, &s->accounting);
    r = process_wait(pid, &result, err);
    process_signals_target(0);
    run->has_command = true;
    run->status = result.status;
    run->usage = result.usage;
    return r;
}

static bool start_small(struct session *s, const struct process_spec *command, pid_t *ret_pid,
                        struct measured_run *run)
{
    struct process_spec known = *command;
    if (s->m->run_count >= SMALL_STARTS_MAX || s->threads_open ||
        (!s->program && process_find(command->argv[0], &s->program, NULL) < 0) ||
        !launcher_ready(&s->launcher))
        return false;
    known.program = s->program;
    if (launcher_spawn(&s->launcher, &known, NULL, 0, ret_pid, &s->start_ns) < 0)
        return false;
    s->interval_start_ns = s->start_ns;
    run->rss_bytes_floor = s->launcher.rss_bytes;
    return true;
}

/* The common case: the command alone is counted, from its exec on. */
static int run_counted_command(struct session *s, const struct process_spec *command,
                               struct measured_run *run, int *ret_start_code, struct error *err)
{
    pid_t pid;
    memcpy(s->interval, s->last, s->m->event_count * sizeof(*s->last));
    start_clock(s);
    int r = start_small(s, command, &pid, run) ? 0 : process_spawn(command, &pid, err);
    if (r < 0) {
        *ret_start_code = r;
        return r;
    }
    process_signals_target(pid);
    r = finish_command(s, pid, run, err);
    if (r == 0)
        r = take_counts(s, run, err);
    run->left_behind = process_orphans_alive();
    if (s->threads_open)
        thread_counters_drain(&s->threads);
    /* What goes on would count into the next run: start afresh. */
    if (r == 0 && run->left_behind && s->m->run_count < s->spec->repeat_count) {
        if (s->threads_open)
            thread_counters_done(&s->threads);
        s->threads_open = false;
        counters_done(&s->counters);
        launcher_done(&s->launcher); /* the next one inherits the new counters */
        r = open_on_children(s, err);
    }
    return r;
}

/* With -D: the command is held until its events are open, and they count after the delay. */
static int run_delayed_command(struct session *s, const struct process_spec *command,
                               struct measured_run *run, int *ret_start_code, struct error *err)
{
    struct process_held held;
    int r = process_hold(command, &held, err);
    if (r < 0) {
        *ret_start_code = r;
        return r;
    }
    struct counter_target target = {
        .kind = TARGET_TASKS, .tasks = &held.pid, .task_count = 1, .start_paused = true};
    int opened = open_counters(s, &target, err);
    if (opened < 0) {
        process_abandon(&held);
        return opened;
    }
    r = process_release(&held, err);
    if (r < 0) {
        *ret_start_code = r;
    } else {
        process_signals_target(held.pid);
        bool go;
        r = sleep_through_delay(s, held.pid, &go, err);
        if (go)
            r = counters_enable(&s->counters, err);
        memset(s->interval, 0, s->m->event_count * sizeof(*s->interval));
        start_clock(s);
        int ended = finish_command(s, held.pid, run, r < 0 ? NULL : err);
        r = r < 0 ? r : ended;
    }
    if (r == 0)
        r = take_counts(s, run, err);
    run->left_behind = process_orphans_alive();
    counters_done(&s->counters);
    return r;
}

/* Starts the command, if there is one, and the counting: before the command, so that nothing of it
 * is missed, or after the delay. */
static int start_on_target(struct session *s, const struct process_spec *command, pid_t *ret_pid,
                           int *ret_start_code, struct error *err)
{
    bool go = true;
    int r = 0;
    start_clock(s);
    if (!s->spec->delay_ns)
        r = counters_enable(&s->counters, err);
    if (r == 0 && command->argv) {
        r = process_spawn(command, ret_pid, err);
        if (r < 0)
            *ret_start_code = r;
        process_signals_target(*ret_pid);
    }
    if (r < 0 || !s->spec->delay_ns)
        return r;
    r = sleep_through_delay(s, *ret_pid, &go, err);
    start_clock(s);
    return r == 0 && go ? counters_enable(&s->counters, err) : r;
}

/* Something that runs already, or whole CPUs, for as long as the command (if any) takes. */
static int run_on_target(struct session *s, const struct process_spec *command,
                         struct measured_run *run, int *ret_start_code, struct error *err)
{
    pid_t pid = 0;
    int r = open_on_target(s, err);
    if (r < 0)
        return r;
    CLEANUP(memory_freep) int *numbers = NULL; /* that CPUs count for */
    bool by_cpu = s->spec->per_cpu || s->spec->per_core;
    if (s->spec->per_thread)
        entities_name_threads(s->m, s->tasks, s->task_count);
    if (by_cpu)
        numbers = entities_name_cpus(s->m, s->cpus, s->cpu_count, s->spec->per_core);
    memset(s->interval, 0, s->m->event_count * sizeof(*s->interval));
    r = start_on_target(s, command, &pid, ret_start_code, err);
    if (pid) {
        int ended = finish_command(s, pid, run, r < 0 ? NULL : err);
        r = r < 0 ? r : ended;
    } else if (r == 0) {
        r = wait_for_end(s, 0, run, err);
        run->wall_ns = clock_now_ns() - s->start_ns;
    }
    if (r == 0)
        r = counters_disable(&s->counters, err);
    if (r == 0)
        r = take_counts(s, run, err);
    if (r == 0 && (s->spec->per_thread || by_cpu))
        r = entities_keep(s->m, &s->counters, by_cpu ? numbers : s->tasks, err);
    counters_done(&s->counters);
    return r;
}

static int run_once(struct session *s, int *ret_start_code, struct error *err)
{
    struct measurement *m = s->m;
    struct process_spec command = {
        .argv = s->spec->argv, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
    struct measured_run run = {.values = new_values(m)};
    /* A command's threads are others in each run. */
    size_t first_thread = s->spec->kind == TARGET_CHILDREN ? m->thread_count : 0;
    int r;
    if (s->spec->kind != TARGET_CHILDREN)
        r = run_on_target(s, &command, &run, ret_start_code, err);
    else if (s->spec->delay_ns)
        r = run_delayed_command(s, &command, &run, ret_start_code, err);
    else
        r = run_counted_command(s, &command, &run, ret_start_code, err);
    if (r < 0) {
        free(run.values);
        return r;
    }
    for (size_t i = first_thread; i < m->thread_count; i++)
        m->threads[i].wall_ns += run.wall_ns;
    ARRAY_PUSH(m->runs, m->run_count, m->run_capacity) = run;
    if (s->spec->on_run)
        s->spec->on_run(m, s->spec->context);
    return r;
}

static void session_done(struct session *s)
{
    launcher_done(&s->launcher);
    if (s->threads_open)
        thread_counters_done(&s->threads);
    counters_done(&s->counters);
    fd_closep(&s->cgroup_fd);
    free(s->program);
    free(s->last);
    free(s->interval);
    free(s->tasks);
    free(s->cpus);
}

/* Half a run is no run: of several, the one that the signal cut short would spoil the mean. Threads
 * are summed over all runs, so that none can be taken back. */
static void leave_out_cut_run(struct measurement *m)
{
    const struct measured_run *last = m->run_count > 1 ? &m->runs[m->run_count - 1] : NULL;
    if (!m->signal || !last || !last->has_command || m->thread_count ||
        process_exit_code(last->status) != 128 + m->signal)
        return;
    free(last->values);
    m->run_count--;
    m->left_out_last = true;
}

int measure(const struct measure_spec *spec, struct measurement *m, int *ret_start_code,
            struct error *err)
{
    *m = (struct measurement){.event_count = spec->events->count};
    m->why = memory_zalloc(m->event_count, sizeof(*m->why));
    m->user_only = memory_zalloc(m->event_count, sizeof(*m->user_only));
    m->accounted = memory_zalloc(m->event_count, sizeof(*m->accounted));
    m->restricted = memory_zalloc(m->event_count, sizeof(*m->restricted));
    CLEANUP(session_done)
    struct session s = {.spec = spec, .m = m, .cgroup_fd = -1, .counters.guard_fds = {-1, -1}};
    s.last = new_values(m);
    s.interval = new_values(m);
    int r = find_target(&s, err);
    if (r == 0 && spec->kind == TARGET_CHILDREN && !spec->delay_ns)
        r = open_on_children(&s, err);
    if (r < 0)
        return r;
    process_adopt_orphans();
    process_signals_catch();
    uint64_t steal_before_ns = 0, steal_after_ns = 0;
    bool has_steal = machine_steal_ns(&steal_before_ns);
    while (r == 0 && m->run_count < spec->repeat_count && !process_signals_caught())
        r = run_once(&s, ret_start_code, err);
    /* A thread whose beginning was not seen has its process's name. */
    for (size_t i = 0; i < m->thread_count; i++)
        for (size_t j = 0; j < m->thread_count && !*m->threads[i].name; j++)
            if (m->threads[j].tid == m->threads[i].pid)
                memcpy(m->threads[i].name, m->threads[j].name, sizeof(m->threads[i].name));
    m->signal = process_signals_caught();
    leave_out_cut_run(m);
    uint64_t own_bytes = launcher_peak_bytes(getpid());
    for (size_t i = 0; i < m->run_count; i++) {
        struct measured_run *run = &m->runs[i];
        uint64_t floor = run->rss_bytes_floor ? run->rss_bytes_floor : own_bytes;
        run->rss_is_bound = (uint64_t)run->usage.ru_maxrss * 1024 <= floor;
    }
    if (has_steal && machine_steal_ns(&steal_after_ns) && steal_after_ns > steal_before_ns)
        m->steal_ns = steal_after_ns - steal_before_ns;
    process_signals_restore();
    return r;
}

void measurement_done(struct measurement *m)
{
    for (size_t i = 0; i < m->run_count; i++)
        free(m->runs[i].values);
    for (size_t i = 0; i < m->interval_count; i++)
        free(m->intervals[i].values);
    for (size_t i = 0; i < m->thread_count; i++)
        free(m->threads[i].values);
    for (size_t i = 0; i < m->event_count; i++)
        free(m->why[i]);
    free(m->runs);
    free(m->intervals);
    free(m->threads);
    free(m->why);
    free(m->user_only);
    free(m->accounted);
    free(m->restricted);
    *m = (struct measurement){0};
}
