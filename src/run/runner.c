/* SPDX-License-Identifier: MIT */
/* Runs one command once and measures it: see runner.h. */
#include "run/runner.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "counters/accounting.h"
#include "run/memfile.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define TICK_NS (100 * NS_PER_MS)     /* how often a long run is looked at */
#define FLOOD_TICK_NS (5 * NS_PER_MS) /* one that writes much */
#define FLOOD_BYTES (4 << 20)         /* between two looks: that is much */
#define STALL_NS (500 * NS_PER_MS)    /* a look that comes so much late: assay stood still */
#define KILL_AFTER_NS (2 * NS_PER_S)  /* from the first signal to SIGKILL */
#define CPUS_MAX 8192
#define METRICS_NAME "ASSAY_METRICS_FD"
#define PADDING_NAME "ASSAY_PADDING"

extern char **environ;

/* A run under way. */
struct run {
    struct runner *r;
    const struct run_spec *spec;
    struct run_result *result;
    int stdin_fd, pipe_fd, file_fd; /* -1 for none; pipe_fd is the end that assay reads */
    int pipe_write_fd;
    pid_t pid;
    size_t kept_bytes; /* written to memory by the last look */
    bool is_flooding;  /* much of that since the look before */
    unsigned long old_cpus[CPUS_MAX / 8 / sizeof(unsigned long)];
};

/* The highest one-digit number that assay itself has no use for: dash can redirect to no other. */
static int free_number(int fallback)
{
    for (int number = 9; number > 2; number--)
        if (fcntl(number, F_GETFD) < 0 && errno == EBADF)
            return number;
    return fallback;
}

static int open_memfiles(struct runner *r, struct error *err)
{
    fd_closep(&r->metrics_fd);
    fd_closep(&r->stdout_fd);
    fd_closep(&r->stderr_fd);
    int res = r->metrics_fd = memfile_open("assay-metrics", err);
    if (res >= 0)
        res = r->stdout_fd = memfile_open("assay-stdout", err);
    if (res >= 0)
        res = r->stderr_fd = memfile_open("assay-stderr", err);
    return res < 0 ? res : 0;
}

static int open_counters(struct runner *r, struct error *err)
{
    const struct counter_target moves = {.kind = TARGET_CHILDREN};
    const struct counter_target target = {.kind = TARGET_CHILDREN, .may_account = true};
    int res = counters_open(&r->counters, r->events, &target, err);
    if (res == 0)
        res = counters_open(&r->moves, &r->move_events, &moves, err);
    memset(r->last, 0, r->events->count * sizeof(*r->last));
    r->last_moves = 0;
    return res;
}

int runner_open(struct runner *r, const struct event_list *events, struct error *err)
{
    *r = (struct runner){.events = events,
                         .counters.guard_fds = {-1, -1},
                         .moves.guard_fds = {-1, -1},
                         .null_fd = -1,
                         .metrics_fd = -1,
                         .stdout_fd = -1,
                         .stderr_fd = -1};
    r->last = memory_zalloc(events->count + 1, sizeof(*r->last));
    r->now = memory_zalloc(events->count + 1, sizeof(*r->now));
    disturbance_meter_open(&r->meter, "/sys/devices/system/cpu");
    r->metrics_number = free_number(3);
    int res = event_list_parse(&r->move_events, "cpu-migrations", err);
    if (res == 0)
        res = open_memfiles(r, err);
    if (res == 0) {
        r->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        res = r->null_fd < 0 ? error_errno(err, -errno, "/dev/null") : 0;
    }
    if (res == 0)
        res = open_counters(r, err);
    if (res < 0) {
        runner_done(r);
        return res;
    }
    snprintf(r->metrics_variable, sizeof(r->metrics_variable), METRICS_NAME "=%d",
             r->metrics_number);
    return 0;
}

void runner_done(struct runner *r)
{
    launcher_done(&r->launcher);
    counters_done(&r->counters);
    counters_done(&r->moves);
    event_list_done(&r->move_events);
    disturbance_meter_done(&r->meter);
    fd_closep(&r->null_fd);
    fd_closep(&r->metrics_fd);
    fd_closep(&r->stdout_fd);
    fd_closep(&r->stderr_fd);
    free(r->last);
    free(r->now);
    free(r->environment);
    r->last = r->now = NULL;
    r->environment = NULL;
}

int runner_renew(struct runner *r, struct error *err)
{
    launcher_done(&r->launcher); /* the next one inherits the new counters */
    counters_done(&r->counters);
    counters_done(&r->moves);
    int res = open_counters(r, err);
    return res == 0 ? open_memfiles(r, err) : res;
}

static bool same_name(const char *variable, const char *other)
{
    size_t length = strcspn(variable, "=");
    return strncmp(variable, other, length) == 0 && other[length] == '=';
}

static bool is_replaced(const char *variable, char *const *added)
{
    for (size_t i = 0; added && added[i]; i++)
        if (same_name(added[i], variable))
            return true;
    return same_name(METRICS_NAME "=", variable) || same_name(PADDING_NAME "=", variable);
}

/* assay's own environment, what the spec adds, the metrics' descriptor, and the padding. */
static char *const *make_environment(struct runner *r, const struct run_spec *spec)
{
    size_t own = 0, added = 0, count = 0;
    while (environ[own])
        own++;
    while (spec->environment_added && spec->environment_added[added])
        added++;
    r->environment = memory_grow(r->environment, &r->environment_capacity, own + added + 3,
                                 sizeof(*r->environment));
    for (size_t i = 0; i < own; i++)
        if (!is_replaced(environ[i], spec->environment_added))
            r->environment[count++] = environ[i];
    for (size_t i = 0; i < added; i++)
        r->environment[count++] = spec->environment_added[i];
    r->environment[count++] = r->metrics_variable;
    if (spec->padding_bytes) {
        size_t head = sizeof(PADDING_NAME "=") - 1;
        size_t size = spec->padding_bytes < RUN_PADDING_MAX ? spec->padding_bytes : RUN_PADDING_MAX;
        memcpy(r->padding_variable, PADDING_NAME "=", head);
        memset(r->padding_variable + head, 'x', size);
        r->padding_variable[head + size] = '\0';
        r->environment[count++] = r->padding_variable;
    }
    r->environment[count] = NULL;
    return r->environment;
}

static size_t keep_bytes(const struct run_spec *spec)
{
    return spec->keep_bytes ? spec->keep_bytes : RUN_KEEP_BYTES;
}

static int open_file(const char *path, int flags, const char *what, int *ret_fd, struct error *err)
{
    CLEANUP(fd_closep) int low = open(path, flags | O_CLOEXEC, 0666);
    if (low < 0)
        return error_errno(err, -errno, "%s '%s'", what, path);
    *ret_fd = fcntl(low, F_DUPFD_CLOEXEC, 10);
    return *ret_fd < 0 ? error_errno(err, -errno, "%s '%s'", what, path) : 0;
}

static int open_pipe(struct run *run, struct error *err)
{
    int ends[2] = {-1, -1};
    int r = output_pipe(ends, err);
    run->pipe_fd = ends[0];
    run->pipe_write_fd = ends[1];
    return r;
}

/* Everything that the command's descriptors need. */
static int open_streams(struct run *run, struct error *err)
{
    const struct run_spec *spec = run->spec;
    int r = 0;
    memfile_reset(run->r->metrics_fd);
    if (spec->stdout_to == RUN_KEEP)
        memfile_reset(run->r->stdout_fd);
    if (spec->stderr_to == RUN_KEEP)
        memfile_reset(run->r->stderr_fd);
    if (spec->input_path)
        r = open_file(spec->input_path, O_RDONLY, "standard input from", &run->stdin_fd, err);
    if (r == 0 && (spec->stdout_to == RUN_PIPE || spec->stderr_to == RUN_PIPE))
        r = open_pipe(run, err);
    if (r == 0 && (spec->stdout_to == RUN_FILE || spec->stderr_to == RUN_FILE))
        r = open_file(spec->output_path, O_WRONLY | O_CREAT | O_TRUNC, "output to", &run->file_fd,
                      err);
    return r;
}

static void run_done(struct run *run)
{
    fd_closep(&run->stdin_fd);
    fd_closep(&run->pipe_fd);
    fd_closep(&run->pipe_write_fd);
    fd_closep(&run->file_fd);
}

static int stream_fd(const struct run *run, enum run_output to, int kept_fd)
{
    switch (to) {
    case RUN_DISCARD:
        return run->r->null_fd;
    case RUN_KEEP:
        return kept_fd;
    case RUN_PIPE:
        return run->pipe_write_fd;
    case RUN_FILE:
        return run->file_fd;
    case RUN_SHOW:
        return -1;
    }
    return -1;
}

/* The command inherits the CPUs of the thread that starts it. */
static int take_cpus(struct run *run, struct error *err)
{
    unsigned long wanted[ARRAY_COUNT(run->old_cpus)] = {0};
    if (!run->spec->cpu_count)
        return 0;
    if (sched_getaffinity(0, sizeof(run->old_cpus), (cpu_set_t *)run->old_cpus) < 0)
        return error_errno(err, -errno, "sched_getaffinity");
    for (size_t i = 0; i < run->spec->cpu_count; i++) {
        size_t cpu = (size_t)run->spec->cpus[i], bits = 8 * sizeof(*wanted);
        if (cpu < CPUS_MAX)
            wanted[cpu / bits] |= 1UL << cpu % bits;
    }
    if (sched_setaffinity(0, sizeof(wanted), (cpu_set_t *)wanted) < 0)
        return error_errno(err, -errno,
                           "running on the chosen CPUs (are they online and allowed?)");
    return 0;
}

static void give_cpus_back(struct run *run)
{
    if (run->spec->cpu_count)
        sched_setaffinity(0, sizeof(run->old_cpus), (cpu_set_t *)run->old_cpus);
}

/* The next signal for a command that must end: the one given, then SIGKILL. */
struct ending {
    bool asked;
    uint64_t kill_ns;
};

static void end_command(const struct run *run, struct ending *e, int signal, uint64_t now_ns)
{
    if (!e->asked) {
        kill(-run->pid, signal);
        e->asked = true;
        e->kill_ns = now_ns + KILL_AFTER_NS;
    } else if (now_ns >= e->kill_ns) {
        kill(-run->pid, SIGKILL);
        e->kill_ns = now_ns + KILL_AFTER_NS;
    }
}

/* What a long run is looked at for: signals, its time limit, and how much it has written. */
static void look_at(struct run *run, struct ending *e, uint64_t now_ns)
{
    const struct run_spec *spec = run->spec;
    struct run_result *result = run->result;
    int signal = process_signals_caught();
    if (signal && !result->timed_out) {
        result->signal = signal;
        end_command(run, e, signal, now_ns);
    } else if (spec->timeout_ns && now_ns - result->start_ns >= spec->timeout_ns) {
        result->timed_out = true;
        end_command(run, e, SIGTERM, now_ns);
    }
    size_t written = memfile_trim(run->r->metrics_fd, METRICS_BYTES_MAX, 0);
    if (spec->stdout_to == RUN_KEEP)
        written += memfile_trim(run->r->stdout_fd, 0, keep_bytes(spec));
    if (spec->stderr_to == RUN_KEEP)
        written += memfile_trim(run->r->stderr_fd, 0, keep_bytes(spec));
    run->is_flooding = written > run->kept_bytes + FLOOD_BYTES;
    run->kept_bytes = written;
    if (spec->on_tick)
        spec->on_tick(spec->tick_context);
}

/* The first looks come soon, so that a command that writes gigabytes is noticed before it has
 * filled the memory. */
static uint64_t tick_ns(const struct run *run, uint64_t now_ns)
{
    uint64_t age_ns = now_ns - run->result->start_ns;
    if (run->is_flooding)
        return FLOOD_TICK_NS;
    return age_ns < FLOOD_TICK_NS ? FLOOD_TICK_NS : age_ns < TICK_NS ? age_ns : TICK_NS;
}

static uint64_t next_look_ns(const struct run *run, const struct ending *e, uint64_t now_ns)
{
    uint64_t limit_ns = run->result->start_ns + run->spec->timeout_ns;
    uint64_t wake_ns = now_ns + tick_ns(run, now_ns);
    if (run->spec->timeout_ns && !e->asked && limit_ns < wake_ns)
        wake_ns = limit_ns > now_ns ? limit_ns : now_ns;
    return wake_ns;
}

/* Waits for the end of the first process, which stays to be reaped; sets the elapsed time. */
static void await_end(struct run *run)
{
    CLEANUP(fd_closep) int fd = (int)syscall(SYS_pidfd_open, run->pid, 0);
    struct pollfd fds[2] = {{.fd = fd, .events = POLLIN}, {.fd = run->pipe_fd, .events = POLLIN}};
    struct ending ending = {0};
    uint64_t now_ns = clock_now_ns();
    while (fd >= 0 && !(fds[0].revents & POLLIN)) {
        uint64_t wake_ns = next_look_ns(run, &ending, now_ns);
        struct timespec left = timespec_from_ns(wake_ns - now_ns);
        uint64_t before_ns = now_ns;
        int ready = ppoll(fds, 2, &left, NULL);
        now_ns = clock_now_ns();
        if (now_ns - before_ns > TICK_NS + STALL_NS)
            run->result->disturbance.stalled_ns += now_ns - before_ns - TICK_NS;
        if (ready <= 0)
            fds[0].revents = fds[1].revents = 0;
        if (fds[1].revents & POLLIN)
            output_drain(run->pipe_fd, run->r->null_fd);
        else if (fds[1].revents)
            fds[1].fd = -1;
        if (!(fds[0].revents & POLLIN))
            look_at(run, &ending, now_ns);
    }
    if (fd < 0) { /* a kernel without pidfds: no limits, but a measurement */
        siginfo_t info;
        while (waitid(P_PID, (id_t)run->pid, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
            ;
        now_ns = clock_now_ns();
    }
    run->result->wall_ns = now_ns - run->result->start_ns;
}

/* Ends what the command has left in its process group.  Zombies go to assay, which adopts
 * orphans, or to init. */
static bool end_group(pid_t group)
{
    if (kill(-group, 0) < 0)
        return false;
    for (int i = 0; i < 400 && kill(-group, SIGKILL) == 0; i++) {
        struct timespec pause = timespec_from_ns(5 * NS_PER_MS);
        if (waitpid(-group, NULL, WNOHANG) <= 0)
            nanosleep(&pause, NULL);
    }
    return true;
}

/* Counts since the last reading, which becomes the new one. */
static int take_counts(struct run *run, struct error *err)
{
    struct runner *r = run->r;
    struct run_result *result = run->result;
    struct counter_value moves = {0};
    int res = counters_read(&r->counters, r->now, err);
    if (res == 0)
        res = counters_read(&r->moves, &moves, err);
    if (res < 0)
        return res;
    for (size_t i = 0; i < r->events->count; i++)
        result->values[i] = counter_difference(&r->now[i], &r->last[i]);
    memcpy(r->last, r->now, r->events->count * sizeof(*r->last));
    result->disturbance.has_migrations = !r->moves.items[0].why;
    result->disturbance.migrations = moves.raw - r->last_moves;
    r->last_moves = moves.raw;
    return 0;
}

/* Deals with processes that outlive the command: those of its group are ended, daemons go on, and
 * neither counts into the next run. */
static int clear_up(struct run *run, struct error *err)
{
    struct run_result *result = run->result;
    if (run->spec->leave_others)
        return 0;
    result->left_behind = end_group(run->pid);
    if (!run->spec->beside_others)
        result->left_behind |= process_orphans_alive();
    if (!result->left_behind)
        return 0;
    return runner_renew(run->r, err);
}

/* The loader goes on without a library that LD_PRELOAD names; what was measured then is not what
 * was asked for. */
static bool is_without_preload(const struct strbuf *words)
{
    static const char said[] = "from LD_PRELOAD cannot be preloaded (cannot open shared object";
    return words->length && memmem(words->data, words->length, said, sizeof(said) - 1);
}

static void read_streams(struct run *run)
{
    const struct run_spec *spec = run->spec;
    struct run_result *result = run->result;
    CLEANUP(strbuf_done) struct strbuf lines = {0};
    result->metrics.truncated = memfile_read_head(run->r->metrics_fd, METRICS_BYTES_MAX, &lines);
    metrics_parse(&result->metrics, lines.data, lines.length);
    if (spec->stdout_to == RUN_KEEP)
        memfile_read_tail(run->r->stdout_fd, keep_bytes(spec), &result->kept_stdout);
    if (spec->stderr_to == RUN_KEEP)
        memfile_read_tail(run->r->stderr_fd, keep_bytes(spec), &result->kept_stderr);
    result->not_preloaded = is_without_preload(&result->kept_stderr);
}

static void clear_result(const struct runner *r, struct run_result *result)
{
    struct counter_value *values = result->values;
    if (result->value_count != r->events->count)
        values = memory_resize(values, r->events->count + 1, sizeof(*values));
    metrics_clear(&result->metrics);
    strbuf_clear(&result->kept_stdout);
    strbuf_clear(&result->kept_stderr);
    *result = (struct run_result){.values = values,
                                  .value_count = r->events->count,
                                  .metrics = result->metrics,
                                  .kept_stdout = result->kept_stdout,
                                  .kept_stderr = result->kept_stderr};
}

/* The command inherits the memory of the process that starts it until its exec, and the kernel
 * counts that as its peak. */
static uint64_t own_peak_bytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_maxrss * 1024;
}

/* By the launcher; false when that does not do, and the usual way has to say why. */
static bool start_small(struct run *run, const struct process_spec *process)
{
    struct launcher *l = &run->r->launcher;
    unsigned long cpus[ARRAY_COUNT(run->old_cpus)];
    size_t cpu_bytes = run->spec->cpu_count ? sizeof(cpus) : 0;
    CLEANUP(memory_freep) char *found = NULL;
    struct process_spec known = *process;
    if (!known.program && process_find(known.argv[0], &found, NULL) < 0)
        return false;
    known.program = known.program ? known.program : found;
    if (!launcher_ready(l) ||
        (cpu_bytes && sched_getaffinity(0, sizeof(cpus), (cpu_set_t *)cpus) < 0) ||
        launcher_spawn(l, &known, cpus, cpu_bytes, &run->pid, &run->result->start_ns) < 0)
        return false;
    run->result->rss_bytes_floor = l->rss_bytes;
    return true;
}

static int start(struct run *run, struct error *err)
{
    struct runner *r = run->r;
    const struct run_spec *spec = run->spec;
    const struct process_fd metrics = {.fd = r->metrics_fd, .as = r->metrics_number};
    struct process_spec process = {
        .argv = spec->argv,
        .program = spec->program,
        .environment = make_environment(r, spec),
        .stdin_fd = run->stdin_fd >= 0 ? run->stdin_fd : r->null_fd,
        .stdout_fd = stream_fd(run, spec->stdout_to, r->stdout_fd),
        .stderr_fd = stream_fd(run, spec->stderr_to, r->stderr_fd),
        .fds = &metrics,
        .fd_count = 1,
        .working_dir = spec->working_dir,
        .own_group = true,
    };
    int res = take_cpus(run, err);
    if (res < 0)
        return res;
    if (spec->on_ready)
        spec->on_ready(spec->context);
    run->result->start_ns = clock_now_ns();
    if (!spec->small_start || !start_small(run, &process))
        res = run->result->start_code = process_spawn(&process, &run->pid, err);
    give_cpus_back(run);
    fd_closep(&run->pipe_write_fd);
    return res;
}

int runner_run(struct runner *r, const struct run_spec *spec, struct run_result *result,
               struct error *err)
{
    CLEANUP(run_done)
    struct run run = {.r = r,
                      .spec = spec,
                      .result = result,
                      .stdin_fd = -1,
                      .pipe_fd = -1,
                      .pipe_write_fd = -1,
                      .file_fd = -1};
    struct disturbance_totals early, late;
    clear_result(r, result);
    int res = open_streams(&run, err);
    if (res < 0)
        return res;
    result->rss_bytes_floor = own_peak_bytes();
    disturbance_read(&r->meter, &early);
    res = start(&run, err);
    if (res < 0)
        return res;
    await_end(&run);
    struct process_result ended = {0};
    struct accounting accounting;
    accounting_read(&r->counters, run.pid, &accounting);
    res = process_wait(run.pid, &ended, err);
    if (res == 0)
        res = take_counts(&run, err);
    if (res == 0)
        accounting_fill(&r->counters, &accounting, &ended.usage, result->wall_ns, result->values);
    disturbance_read(&r->meter, &late);
    uint64_t own_ns = timeval_ns(ended.usage.ru_utime) + timeval_ns(ended.usage.ru_stime);
    disturbance_between(&r->meter, &early, &late, own_ns, &result->disturbance);
    result->status = ended.status;
    result->usage = ended.usage;
    result->disturbance.no_storage = ended.usage.ru_inblock + ended.usage.ru_oublock == 0;
    result->disturbance.involuntary_switches = (uint64_t)ended.usage.ru_nivcsw;
    read_streams(&run);
    if (res == 0)
        res = clear_up(&run, err);
    return res;
}

bool run_failed(const struct run_result *result)
{
    return result->status != 0 || result->timed_out || result->signal || result->not_preloaded;
}

void run_describe_end(const struct run_result *result, struct strbuf *out)
{
    if (result->timed_out)
        strbuf_puts(out, "it exceeded its time limit");
    else if (WIFSIGNALED(result->status))
        strbuf_printf(out, "signal %d (%s)", WTERMSIG(result->status),
                      strsignal(WTERMSIG(result->status)));
    else if (result->not_preloaded)
        strbuf_puts(out, "it ran without the library in LD_PRELOAD, which the loader could not "
                         "find; install it or give its full path");
    else
        strbuf_printf(out, "exit code %d", WEXITSTATUS(result->status));
}

void run_result_done(struct run_result *result)
{
    free(result->values);
    metrics_done(&result->metrics);
    strbuf_done(&result->kept_stdout);
    strbuf_done(&result->kept_stderr);
    *result = (struct run_result){0};
}

int run_check(const struct run_result *result, const char *command, struct error *err)
{
    if (result->signal)
        return error_set(err, -EINTR, "interrupted");
    if (!run_failed(result))
        return 0;
    CLEANUP(strbuf_done) struct strbuf end = {0}, said = {0};
    run_describe_end(result, &end);
    size_t length = result->kept_stderr.length;
    while (length && result->kept_stderr.data[length - 1] == '\n')
        length--;
    strbuf_put_safe(&said, strbuf_text(&result->kept_stderr), length, 300);
    return error_set(err, -ECANCELED, "'%s' failed: %s%s%s", command, strbuf_text(&end),
                     said.length ? "; its output: " : "", strbuf_text(&said));
}
