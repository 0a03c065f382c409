/* SPDX-License-Identifier: MIT */
/* What threads do between samples: see threads.h. */
#include "top/threads.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#define TICK_NS (50 * NS_PER_MS)
#define TICK_NS_MAX NS_PER_S
#define TICK_COST 400         /* one part of so many of the time may go into looking at states */
#define FDS_MAX 4096          /* kept open */
#define FLAG_KTHREAD 0x200000 /* PF_KTHREAD in /proc/PID/stat */

void threads_init(struct threads *t, struct recent *window)
{
    *t = (struct threads){.window = window, .calls = calls_new(), .tick_ns = TICK_NS};
    idtable_init(&t->table, 8);
}

static void close_task(struct threads *t, struct threads_task *task)
{
    int *fds[] = {&task->schedstat_fd, &task->syscall_fd, &task->wchan_fd};
    for (size_t i = 0; i < ARRAY_COUNT(fds); i++) {
        t->fd_count -= *fds[i] >= 0;
        fd_closep(fds[i]);
    }
}

void threads_done(struct threads *t)
{
    for (size_t i = 0; i < t->task_count; i++)
        close_task(t, &t->tasks[i]);
    free(t->tasks);
    idtable_done(&t->table);
    calls_free(t->calls);
    *t = (struct threads){0};
}

static const struct recent_thread *thread_of(const struct threads *t,
                                             const struct threads_task *task)
{
    return &t->window->threads[task->thread];
}

static int open_file(const struct threads *t, const struct threads_task *task, const char *name)
{
    char path[80];
    const struct recent_thread *thread = thread_of(t, task);
    snprintf(path, sizeof(path), "/proc/%u/task/%u/%s", thread->pid, thread->tid, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* Reads a small file of the thread through a descriptor that is kept; -errno, or how much it is. */
static ssize_t read_file(struct threads *t, const struct threads_task *task, const char *name,
                         int *fd, char *text, size_t size)
{
    int own = *fd >= 0 ? *fd : open_file(t, task, name);
    if (own < 0)
        return -errno;
    ssize_t length = pread(own, text, size - 1, 0);
    int code = errno;
    if (length >= 0)
        text[length] = '\0';
    if (*fd < 0 && length >= 0 && t->fd_count < FDS_MAX) {
        *fd = own;
        t->fd_count++;
    } else if (*fd < 0) {
        close(own);
    }
    return length >= 0 ? length : -code;
}

/* "PID (name) S 1 2 …": the name, and whether it is a thread of the kernel. */
static bool read_identity(const struct threads *t, const struct threads_task *task, char *comm,
                          size_t size, bool *ret_is_kernel)
{
    char text[1024];
    unsigned flags = 0;
    CLEANUP(fd_closep) int fd = open_file(t, task, "stat");
    ssize_t length = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    if (length <= 0)
        return false;
    text[length] = '\0';
    char *open_at = strchr(text, '('), *end = strrchr(text, ')');
    if (!open_at || !end || end < open_at)
        return false;
    snprintf(comm, size, "%.*s", (int)(end - open_at - 1), open_at + 1);
    if (sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %u", &flags) == 1)
        *ret_is_kernel = flags & FLAG_KTHREAD;
    return true;
}

static uint64_t task_hash(const void *context, uint32_t id)
{
    const struct threads *t = context;
    const struct recent_thread *thread = thread_of(t, &t->tasks[id]);
    return hash_mix(thread->pid, thread->tid);
}

static struct threads_task *find_task(struct threads *t, uint32_t pid, uint32_t tid)
{
    uint32_t slot, id;
    IDTABLE_EACH(&t->table, hash_mix(pid, tid), slot, id)
    {
        const struct recent_thread *thread = thread_of(t, &t->tasks[id]);
        if (thread->pid == pid && thread->tid == tid)
            return &t->tasks[id];
    }
    struct threads_task task = {.thread = recent_thread(t->window, pid, tid, NULL),
                                .schedstat_fd = -1,
                                .syscall_fd = -1,
                                .wchan_fd = -1,
                                .place = WINDOW_NONE,
                                .has_run = true}; /* not known yet: it is looked at */
    char comm[64];
    if (!read_identity(t, &task, comm, sizeof(comm), &task.is_kernel))
        return NULL;
    recent_name_thread(t->window, task.thread, comm);
    t->window->threads[task.thread].is_kernel = task.is_kernel;
    id = (uint32_t)t->task_count;
    ARRAY_PUSH(t->tasks, t->task_count, t->task_capacity) = task;
    idtable_put(&t->table, slot, id);
    if (idtable_is_crowded(&t->table))
        idtable_grow(&t->table, task_hash, t);
    return &t->tasks[id];
}

void threads_begin(struct threads *t)
{
    t->scan++;
}

void threads_process(struct threads *t, pid_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        uint64_t tid;
        if (parse_u64(entry->d_name, &tid, NULL) < 0)
            continue;
        struct threads_task *task = find_task(t, (uint32_t)pid, (uint32_t)tid);
        if (task)
            task->seen = t->scan;
    }
    if (folder)
        closedir(folder);
}

/* Whether the thread is behind the descriptor's first argument, and its file. */
static bool read_target(struct threads *t, const struct threads_task *task, uint32_t number,
                        uint64_t argument, char *file, size_t size)
{
    char path[64];
    const struct call_shape *shape = calls_shape(t->calls, number);
    if (!shape || shape->kinds[0] != CALL_FD)
        return false;
    snprintf(path, sizeof(path), "/proc/%u/fd/%d", thread_of(t, task)->pid, (int)argument);
    ssize_t length = readlink(path, file, size - 1);
    if (length <= 0)
        return false;
    file[length] = '\0';
    /* Numbers of pipes and sockets would make a row of each. */
    if (str_has_prefix(file, "pipe:["))
        snprintf(file, size, "pipe");
    else if (str_has_prefix(file, "socket:["))
        snprintf(file, size, "socket");
    return true;
}

/* Where the thread waits; WINDOW_NONE when it runs or wants to. */
static uint32_t find_place(struct threads *t, struct threads_task *task)
{
    char text[256], function[80] = "", file[256], room[32];
    int64_t number;
    uint64_t argument = 0;
    struct recent_thread *thread = &t->window->threads[task->thread];
    ssize_t length = read_file(t, task, "syscall", &task->syscall_fd, text, sizeof(text));
    thread->is_shut = length == -EPERM || length == -EACCES;
    if (length <= 0 || sscanf(text, "%" SCNd64 " %" SCNx64, &number, &argument) < 1)
        return WINDOW_NONE; /* "running" */
    if (read_file(t, task, "wchan", &task->wchan_fd, function, sizeof(function)) <= 0 ||
        str_eq(function, "0"))
        function[0] = '\0';
    if (number < 0)
        return recent_place(t->window, NULL, function, NULL);
    bool has_file = read_target(t, task, (uint32_t)number, argument, file, sizeof(file));
    return recent_place(t->window, calls_name(t->calls, (uint32_t)number, room, sizeof(room)),
                        function, has_file ? file : NULL);
}

static void read_figures(struct threads *t, struct threads_task *task, uint64_t length_ns)
{
    char text[128];
    uint64_t run_ns, ready_ns, slices;
    if (read_file(t, task, "schedstat", &task->schedstat_fd, text, sizeof(text)) <= 0 ||
        sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64, &run_ns, &ready_ns, &slices) != 3)
        return;
    task->has_run = !task->has_read || slices != task->slices || run_ns != task->run_ns;
    if (task->has_read)
        recent_add_run(t->window, task->thread, run_ns - task->run_ns, ready_ns - task->ready_ns);
    bool was_read = task->has_read, was_looked_at = task->is_looked_at;
    task->is_looked_at = false;
    task->run_ns = run_ns;
    task->ready_ns = ready_ns;
    task->slices = slices;
    task->has_read = true;
    if (task->has_run || task->is_kernel)
        return;
    if (task->place == WINDOW_NONE)
        task->place = find_place(t, task);
    if (task->place != WINDOW_NONE && was_read)
        recent_add_state(t->window, task->thread, task->place, was_looked_at ? 0 : length_ns, true);
}

/* Names change with exec, which only threads that ran can have done. */
static void read_name(struct threads *t, struct threads_task *task)
{
    char comm[64];
    bool is_kernel;
    if (read_identity(t, task, comm, sizeof(comm), &is_kernel))
        recent_name_thread(t->window, task->thread, comm);
}

void threads_end(struct threads *t, uint64_t length_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->task_count; i++) {
        struct threads_task *task = &t->tasks[i];
        t->window->threads[task->thread].is_alive = task->seen == t->scan;
        if (task->seen != t->scan) {
            close_task(t, task);
            continue;
        }
        read_figures(t, task, length_ns);
        if (task->has_run)
            read_name(t, task);
        t->tasks[kept++] = *task;
    }
    if (kept == t->task_count)
        return;
    t->task_count = kept;
    idtable_clear(&t->table);
    for (size_t i = 0; i < kept; i++) {
        uint32_t slot = (uint32_t)task_hash(t, (uint32_t)i) & t->table.mask;
        while (t->table.slots[slot])
            slot = (slot + 1) & t->table.mask;
        idtable_put(&t->table, slot, (uint32_t)i);
    }
}

void threads_look(struct threads *t)
{
    uint64_t now_ns = clock_now_ns(), before_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
    uint64_t passed_ns = t->last_tick_ns ? now_ns - t->last_tick_ns : t->tick_ns;
    t->last_tick_ns = now_ns;
    for (size_t i = 0; i < t->task_count; i++) {
        struct threads_task *task = &t->tasks[i];
        if (task->is_kernel || !task->has_run)
            continue;
        task->place = find_place(t, task);
        if (task->place != WINDOW_NONE)
            recent_add_state(t->window, task->thread, task->place, passed_ns, false);
        task->is_looked_at = true;
    }
    uint64_t cost_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns;
    t->tick_ns = cost_ns * TICK_COST;
    t->tick_ns = t->tick_ns < TICK_NS       ? TICK_NS
                 : t->tick_ns > TICK_NS_MAX ? TICK_NS_MAX
                                            : t->tick_ns;
}
