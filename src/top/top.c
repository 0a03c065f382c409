/* SPDX-License-Identifier: MIT */
/* What runs now: see top.h. */
#include "top/top.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "counters/explain.h"
#include "counters/online.h"
#include "top/samples.h"
#include "top/threads.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define CGROUP_DEPTH_MAX 16

struct top {
    struct top_spec spec;
    enum samples_whom whom;
    bool own_only; /* the processes of this user, for lack of permission */
    int cgroup_fd;
    struct recent window;
    struct samples samples;
    struct threads threads;
    uint32_t *pids; /* SAMPLES_PROCESSES: those that are looked at */
    size_t pid_count, pid_capacity;
    uint32_t *strangers; /* processes of this user that nothing follows, in the last scan */
    size_t stranger_count, stranger_capacity;
    struct pollfd *polls;
    size_t poll_count, poll_capacity;
    uint64_t turn_ns;  /* when the last interval ended */
    uint64_t spent_ns; /* by assay until then */
    double own_share;
    bool is_frozen;
    char *target;
    struct strbuf notes;
};

static uint64_t spent_ns(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return timeval_ns(u.ru_utime) + timeval_ns(u.ru_stime);
}

static bool is_listed(const uint32_t *pids, size_t count, uint32_t pid)
{
    for (size_t i = 0; i < count; i++)
        if (pids[i] == pid)
            return true;
    return false;
}

static void add_pid(struct top *t, uint32_t pid)
{
    if (!is_listed(t->pids, t->pid_count, pid))
        ARRAY_PUSH(t->pids, t->pid_count, t->pid_capacity) = pid;
}

static void note_fork(void *context, uint32_t parent, uint32_t child)
{
    (void)parent; /* who is followed */
    add_pid(context, child);
}

static void each_process(void (*f)(struct top *t, pid_t pid), struct top *t, bool own_only)
{
    DIR *folder = opendir("/proc");
    uid_t user = geteuid();
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        uint64_t pid;
        struct stat st;
        if (entry->d_name[0] < '0' || entry->d_name[0] > '9' ||
            parse_u64(entry->d_name, &pid, NULL) < 0)
            continue;
        if (own_only && (fstatat(dirfd(folder), entry->d_name, &st, 0) < 0 || st.st_uid != user))
            continue;
        f(t, (pid_t)pid);
    }
    if (folder)
        closedir(folder);
}

/* Those of the cgroup and all below it. */
static void each_in_cgroup(void (*f)(struct top *t, pid_t pid), struct top *t, int folder_fd,
                           unsigned depth)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    if (file_read_at(folder_fd, "cgroup.procs", &text, NULL) == 0)
        for (const char *at = strbuf_text(&text); *at;) {
            char *end;
            f(t, (pid_t)strtol(at, &end, 10));
            at = *end ? end + 1 : end;
        }
    int copy = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = copy >= 0 ? fdopendir(copy) : NULL;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        if (entry->d_type != DT_DIR || entry->d_name[0] == '.' || depth == CGROUP_DEPTH_MAX)
            continue;
        CLEANUP(fd_closep)
        int below = openat(folder_fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (below >= 0)
            each_in_cgroup(f, t, below, depth + 1);
    }
    if (folder)
        closedir(folder);
}

static void scan_process(struct top *t, pid_t pid)
{
    threads_process(&t->threads, pid);
}

/* A process that nothing follows yet.  The record of its fork may still be on its way: only who was
 * there in the last scan, too, is a stranger. */
static void find_stranger(struct top *t, pid_t pid)
{
    if (is_listed(t->pids, t->pid_count, (uint32_t)pid))
        return;
    ARRAY_PUSH(t->strangers, t->stranger_count, t->stranger_capacity) = (uint32_t)pid;
}

/* One that only waits for its parent to look has ended. */
static bool is_alive(uint32_t pid)
{
    char path[32], line[512];
    snprintf(path, sizeof(path), "/proc/%u/stat", pid);
    const char *end = file_read_line(path, line, sizeof(line)) ? strrchr(line, ')') : NULL;
    return end && end[1] == ' ' && end[2] != 'Z' && end[2] != 'X';
}

static void forget_ended(struct top *t)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->pid_count; i++)
        if (is_alive(t->pids[i]))
            t->pids[kept++] = t->pids[i];
    t->pid_count = kept;
}

static void collect_own(struct top *t, pid_t pid)
{
    add_pid(t, (uint32_t)pid);
}

/* Threads of these processes; one that ended meanwhile has none. */
static int sample_processes(struct top *t, const uint32_t *pids, size_t pid_count,
                            struct error *err)
{
    pid_t *tasks = NULL;
    size_t count = 0, capacity = 0;
    int r = 0;
    for (size_t i = 0; i < pid_count && r == 0; i++) {
        r = online_threads((pid_t)pids[i], &tasks, &count, &capacity, err);
        if (r == -ESRCH && t->own_only)
            r = 0;
    }
    if (r == 0)
        r = samples_add_tasks(&t->samples, tasks, count, err);
    free(tasks);
    return r;
}

/* Samples processes of this user that came from elsewhere. */
static void follow_strangers(struct top *t)
{
    CLEANUP(memory_freep) uint32_t *before = t->strangers;
    size_t before_count = t->stranger_count, found = 0;
    t->strangers = NULL;
    t->stranger_count = t->stranger_capacity = 0;
    each_process(find_stranger, t, true);
    for (size_t i = 0; i < before_count; i++)
        if (is_listed(t->strangers, t->stranger_count, before[i]))
            before[found++] = before[i];
    if (!found)
        return;
    for (size_t i = 0; i < found; i++)
        add_pid(t, before[i]);
    if (sample_processes(t, before, found, NULL) == -E2BIG) {
        samples_close(&t->samples);
        sample_processes(t, t->pids, t->pid_count, NULL);
    }
}

static void scan(struct top *t, uint64_t length_ns)
{
    threads_begin(&t->threads);
    switch (t->whom) {
    case SAMPLES_MACHINE:
        each_process(scan_process, t, false);
        break;
    case SAMPLES_CGROUP:
        each_in_cgroup(scan_process, t, t->cgroup_fd, 0);
        break;
    case SAMPLES_PROCESSES:
        if (t->own_only)
            follow_strangers(t);
        forget_ended(t);
        for (size_t i = 0; i < t->pid_count; i++)
            scan_process(t, (pid_t)t->pids[i]);
        break;
    }
    threads_end(&t->threads, length_ns);
}

static int open_samples(struct top *t, struct error *err)
{
    struct samples_spec spec = {
        .whom = t->whom, .cgroup_fd = t->cgroup_fd, .frequency_hz = t->spec.frequency_hz};
    int r = samples_open(&t->samples, &spec, &t->window, err);
    t->samples.forked = t->whom == SAMPLES_PROCESSES ? note_fork : NULL;
    t->samples.forked_context = t;
    return r == 0 && t->whom == SAMPLES_PROCESSES ? sample_processes(t, t->pids, t->pid_count, err)
                                                  : r;
}

/* The whole machine needs permission: without it, what belongs to this user. */
static int open_machine(struct top *t, struct error *err)
{
    int r = open_samples(t, err);
    if (r == 0 || explain_refusal(r) != REFUSAL_PERMISSION)
        return r;
    samples_done(&t->samples);
    strbuf_printf(&t->notes,
                  "only your own processes: no permission to sample others; run as root, with "
                  "CAP_PERFMON, or run: sudo sysctl kernel.perf_event_paranoid=0 (now %d)\n",
                  explain_paranoid());
    t->whom = SAMPLES_PROCESSES;
    t->own_only = true;
    free(t->target);
    t->target = memory_strdup("your processes");
    each_process(collect_own, t, true);
    return open_samples(t, err);
}

static int choose(struct top *t, struct error *err)
{
    const struct top_spec *spec = &t->spec;
    if (spec->cgroup) {
        t->cgroup_fd = online_cgroup(spec->cgroup, err);
        if (t->cgroup_fd < 0)
            return t->cgroup_fd;
        t->whom = SAMPLES_CGROUP;
        t->target = memory_printf("cgroup %s", spec->cgroup);
        return open_samples(t, err);
    }
    if (spec->pid_count) {
        t->whom = SAMPLES_PROCESSES;
        for (size_t i = 0; i < spec->pid_count; i++)
            add_pid(t, (uint32_t)spec->pids[i]);
        t->target = spec->pid_count == 1 ? memory_printf("process %d", (int)spec->pids[0])
                                         : memory_printf("%zu processes", spec->pid_count);
        return open_samples(t, err);
    }
    t->target = memory_strdup("machine");
    return open_machine(t, err);
}

/* Events take a descriptor for each thread and CPU, and threads have files that are kept open. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

int top_open(struct top **ret_top, const struct top_spec *spec, struct error *err)
{
    struct top *t = memory_zalloc(1, sizeof(*t));
    t->spec = *spec;
    t->cgroup_fd = -1;
    raise_descriptor_limit();
    recent_init(&t->window, spec->interval_count);
    threads_init(&t->threads, &t->window);
    int r = choose(t, err);
    if (r < 0) {
        top_free(t);
        return r;
    }
    strbuf_puts(&t->notes, strbuf_text(&t->samples.notes));
    scan(t, 0);
    recent_empty(&t->window);
    t->turn_ns = t->threads.last_tick_ns = t->samples.begin_ns = clock_now_ns();
    t->spent_ns = spent_ns();
    *ret_top = t;
    return 0;
}

void top_free(struct top *t)
{
    if (!t)
        return;
    if (t->samples.symbols)
        samples_done(&t->samples);
    threads_done(&t->threads);
    recent_done(&t->window);
    fd_closep(&t->cgroup_fd);
    strbuf_done(&t->notes);
    free(t->pids);
    free(t->strangers);
    free(t->polls);
    free(t->target);
    free(t);
}

static void turn(struct top *t, uint64_t now_ns)
{
    uint64_t length_ns = now_ns - t->turn_ns, spent = spent_ns();
    samples_read(&t->samples);
    scan(t, length_ns);
    if (t->is_frozen)
        recent_empty(&t->window);
    else
        recent_turn(&t->window, length_ns);
    t->own_share = length_ns ? (double)(spent - t->spent_ns) / (double)length_ns : 0;
    t->turn_ns = now_ns;
    t->spent_ns = spent;
}

/* The rings, then the input.  Rings of threads that ended stay ready for ever and are left out. */
static void prepare_polls(struct top *t, int input_fd)
{
    size_t count = samples_poll_count(&t->samples) + 1;
    if (count != t->poll_count) {
        t->polls = memory_grow(t->polls, &t->poll_capacity, count, sizeof(*t->polls));
        samples_poll(&t->samples, t->polls);
        t->poll_count = count;
    }
    for (size_t i = 0; i + 1 < count; i++)
        if (t->polls[i].revents & (POLLHUP | POLLERR))
            t->polls[i].fd = -1;
    t->polls[count - 1] = (struct pollfd){.fd = input_fd, .events = POLLIN};
}

enum top_event top_wait(struct top *t, int input_fd)
{
    for (;;) {
        uint64_t now_ns = clock_now_ns(), due_ns = t->turn_ns + t->spec.interval_ns;
        uint64_t look_ns = t->threads.last_tick_ns + t->threads.tick_ns;
        if (process_signals_caught())
            return TOP_SIGNAL;
        if (now_ns >= due_ns) {
            turn(t, now_ns);
            return t->whom == SAMPLES_PROCESSES && !t->pid_count ? TOP_ENDED : TOP_TURNED;
        }
        if (now_ns >= look_ns) {
            /* The maps of a process can be read while it is there: soon after its first sample. */
            samples_read(&t->samples);
            threads_look(&t->threads);
            continue;
        }
        prepare_polls(t, input_fd);
        uint64_t wake_ns = look_ns < due_ns ? look_ns : due_ns;
        int ready = process_poll_fds(t->polls, t->poll_count, wake_ns, true);
        if (ready > 0 && t->polls[t->poll_count - 1].revents)
            return TOP_INPUT;
        if (ready > 0)
            samples_read(&t->samples);
    }
}

struct recent *top_window(struct top *t)
{
    return &t->window;
}

void top_freeze(struct top *t, bool frozen)
{
    t->is_frozen = frozen;
}

const char *top_target(const struct top *t)
{
    return t->target;
}

size_t top_cpu_count(const struct top *t)
{
    return t->samples.cpu_count;
}

uint64_t top_frequency_hz(const struct top *t)
{
    return t->spec.frequency_hz;
}

double top_own_share(const struct top *t)
{
    return t->own_share;
}

const char *top_notes(const struct top *t)
{
    return strbuf_text(&t->notes);
}

int top_save(struct top *t, const char *path, char *const *command_line, uint64_t *ret_samples,
             bool *ret_is_cut, struct error *err)
{
    samples_read(&t->samples);
    *ret_is_cut = t->samples.has_dropped;
    return samples_save(&t->samples, path, command_line, ret_samples, err);
}
