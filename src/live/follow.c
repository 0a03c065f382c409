/* SPDX-License-Identifier: MIT */
/* Following a command: see follow.h. */
#include "live/follow.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "counters/online.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAUSE_NS (NS_PER_S / 10)

static int find_tasks(struct follow *f, struct error *err)
{
    for (size_t i = 0; i < f->spec.pid_count; i++) {
        int r = online_threads(f->spec.pids[i], &f->tasks, &f->task_count, &f->task_capacity, err);
        if (r < 0)
            return r;
    }
    if (f->spec.command)
        ARRAY_PUSH(f->tasks, f->task_count, f->task_capacity) = f->held.pid;
    return 0;
}

/* A command that is not there is noticed before anything is opened. */
static int hold_command(struct follow *f, struct error *err)
{
    if (!f->spec.command)
        return 0;
    CLEANUP(memory_freep) char *path = NULL;
    int r = process_find(f->spec.command->argv[0], &path, err);
    f->exec_failed = r < 0;
    return r < 0 ? r : process_hold(f->spec.command, &f->held, err);
}

int follow_start(struct follow *f, const struct follow_spec *spec, struct error *err)
{
    *f = (struct follow){.spec = *spec, .held = {.go_fd = -1, .error_fd = -1}};
    process_signals_catch();
    int r = hold_command(f, err);
    if (r == 0)
        r = find_tasks(f, err);
    if (r < 0)
        return r;
    struct trace_spec trace = spec->trace;
    trace.tasks = f->tasks;
    trace.task_count = f->task_count;
    trace.on_exec = spec->command != NULL;
    trace.whole_machine = spec->whole_machine;
    r = trace_open(&f->trace, &trace, err);
    f->has_trace = true;
    return r;
}

static int release_command(struct follow *f, struct error *err)
{
    if (!f->spec.command)
        return 0;
    process_signals_target(f->held.pid);
    int r = process_release(&f->held, err);
    f->exec_failed = r < 0;
    f->is_released = r == 0;
    if (r < 0)
        f->held.pid = 0; /* awaited by process_release */
    return r;
}

/* The rings, then what is waited for. */
static struct pollfd *make_polls(struct follow *f, size_t *ret_count, size_t *ret_processes)
{
    struct pollfd *polls = NULL;
    size_t count = 0, capacity = 0;
    for (size_t s = 0; s < TRACE_SOURCES; s++) {
        const struct trace_source *source = &f->trace.sources[s];
        for (size_t i = 0; source->is_sampling && i < source->sampling.rings.count; i++)
            ARRAY_PUSH(polls, count, capacity) =
                (struct pollfd){.fd = source->sampling.rings.items[i].fd, .events = POLLIN};
    }
    *ret_processes = count;
    size_t processes = f->spec.command ? 1 : f->spec.pid_count;
    for (size_t i = 0; i < processes; i++) {
        pid_t pid = f->spec.command ? f->held.pid : f->spec.pids[i];
        ARRAY_PUSH(polls, count, capacity) =
            (struct pollfd){.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
    }
    *ret_count = count;
    return polls;
}

/* Whether all that was waited for has ended. */
static bool have_ended(struct pollfd *processes, size_t count)
{
    size_t alive = 0;
    for (size_t i = 0; i < count; i++) {
        if (processes[i].fd >= 0 && processes[i].revents)
            fd_closep(&processes[i].fd);
        alive += processes[i].fd >= 0;
    }
    return count && !alive;
}

static bool is_over(struct follow *f)
{
    f->signal = process_signals_caught();
    if (f->spec.command)
        return false;
    return f->signal ||
           (f->spec.duration_ns && clock_now_ns() - f->start_ns >= f->spec.duration_ns);
}

static void carry(struct follow *f, trace_fn *take, void *context)
{
    size_t count, rings;
    struct pollfd *polls = make_polls(f, &count, &rings);
    bool over = false;
    while (!over && !is_over(f)) {
        uint64_t end_ns = clock_now_ns() + PAUSE_NS;
        if (f->spec.duration_ns && !f->spec.command && f->start_ns + f->spec.duration_ns < end_ns)
            end_ns = f->start_ns + f->spec.duration_ns;
        process_poll_fds(polls, count, end_ns, !f->spec.command);
        over = have_ended(polls + rings, count - rings);
        for (size_t i = 0; i < rings; i++)
            if (polls[i].revents & (POLLHUP | POLLERR))
                polls[i].fd = -1;
        trace_drain(&f->trace, take, context);
        if (f->spec.pause)
            f->spec.pause(context);
    }
    for (size_t i = rings; i < count; i++)
        fd_closep(&polls[i].fd);
    free(polls);
}

int follow_run(struct follow *f, trace_fn *take, void *context, struct error *err)
{
    int r = trace_start(&f->trace, err);
    if (r < 0)
        return r;
    f->start_ns = clock_now_ns();
    r = release_command(f, err);
    if (r < 0)
        return r;
    carry(f, take, context);
    f->wall_ns = clock_now_ns() - f->start_ns;
    trace_stop(&f->trace, take, context);
    if (!f->is_released)
        return 0;
    struct process_result result;
    r = process_wait(f->held.pid, &result, err);
    f->is_released = false;
    f->has_ended = r == 0;
    f->status = r == 0 ? result.status : 0;
    return r;
}

void follow_done(struct follow *f)
{
    if (f->held.pid > 0 && !f->is_released && !f->has_ended)
        process_abandon(&f->held);
    process_signals_restore();
    if (f->has_trace)
        trace_close(&f->trace);
    free(f->tasks);
    *f = (struct follow){0};
}

int follow_exit_code(const struct follow *f)
{
    return f->has_ended ? process_exit_code(f->status) : 0;
}
