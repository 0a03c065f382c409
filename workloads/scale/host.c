/* SPDX-License-Identifier: MIT */
/* See host.h.  From the fork on errors go to the stage: only the measuring process prints. */
#include "host.h"
#include "base/memory.h"
#include "calls.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STACK_BYTES = 512 * 1024 };

struct job {
    const struct host_spec *spec;
    struct stage *stage;
    unsigned index;
};

static int pin(int cpu, struct error *err)
{
    size_t bytes = CPU_ALLOC_SIZE((size_t)cpu + 1);
    cpu_set_t *set = CPU_ALLOC((size_t)cpu + 1);
    if (!set)
        return error_set(err, -ENOMEM, "memory for a set of CPUs");
    CPU_ZERO_S(bytes, set);
    CPU_SET_S((size_t)cpu, bytes, set);
    int code = sched_setaffinity(0, bytes, set) < 0 ? -errno : 0;
    CPU_FREE(set);
    return code < 0 ? error_errno(err, code, "running on CPU %d only", cpu) : 0;
}

static int run_task(const struct job *job)
{
    const struct host_spec *spec = job->spec;
    struct slot *slot = &job->stage->slots[job->index];
    struct error *err = &slot->error;
    struct task task = {.index = job->index,
                        .folder = spec->host.folder,
                        .threads = spec->host.threads,
                        .stage = job->stage,
                        .slot = slot};
    slot->tid = (pid_t)syscall(SYS_gettid);
    slot->cpu = spec->cpus[job->index % spec->cpu_count];
    int code = pin(slot->cpu, err);
    if (code == 0 && spec->count_calls)
        code = calls_open(&task.calls, err);
    if (code == 0)
        code = spec->test->run(&task, err);
    if (code == 0 && task.calls)
        code = calls_read(task.calls, slot->calls, err);
    calls_close(task.calls);
    return code;
}

/* When one task gives up, the measurement is over: threads take their process with them. */
static void *run_thread(void *argument)
{
    if (run_task(argument) < 0)
        _exit(1);
    return NULL;
}

static int run_threads(struct job *jobs, unsigned count, struct error *err)
{
    pthread_t *threads = memory_zalloc(count, sizeof(*threads));
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    size_t stack_bytes = STACK_BYTES > PTHREAD_STACK_MIN ? STACK_BYTES : PTHREAD_STACK_MIN;
    pthread_attr_setstacksize(&attributes, stack_bytes);
    for (unsigned i = 0; i < count; i++) {
        int code = pthread_create(&threads[i], &attributes, run_thread, &jobs[i]);
        if (code)
            return error_errno(err, -code, "starting thread %u of %u", i + 1, count);
    }
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

static void kill_all(const pid_t *pids, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (pids[i] > 0)
            kill(pids[i], SIGKILL);
}

/* Waits for all; when one fails, ends the others, which may wait for it. */
static int await_processes(pid_t *pids, unsigned count, struct error *err)
{
    int code = 0, status;
    for (unsigned left = count; left > 0; left--) {
        pid_t pid = waitpid(-1, &status, 0);
        if (pid < 0)
            break;
        for (unsigned i = 0; i < count; i++)
            if (pids[i] == pid)
                pids[i] = 0;
        if (status == 0 || code < 0)
            continue;
        code = -EIO;
        if (WIFSIGNALED(status))
            error_set(err, code, "a task was killed by signal %d (%s)", WTERMSIG(status),
                      strsignal(WTERMSIG(status)));
        kill_all(pids, count);
    }
    return code;
}

static int run_processes(struct job *jobs, unsigned count, struct error *err)
{
    pid_t *pids = memory_zalloc(count, sizeof(*pids)), host = getpid();
    for (unsigned i = 0; i < count; i++) {
        pids[i] = fork();
        if (pids[i] < 0) {
            int code = error_errno(err, -errno, "starting process %u of %u", i + 1, count);
            kill_all(pids, i);
            return code;
        }
        if (pids[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != host)
                _exit(1);
            _exit(run_task(&jobs[i]) < 0);
        }
    }
    return await_processes(pids, count, err);
}

/* Neighbours differ in what is allowed, so that the kernel does not make one of them. */
static int add_mappings(uint64_t count, struct error *err)
{
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    for (uint64_t i = 0; i < count; i++) {
        int allowed = i % 2 ? PROT_READ : PROT_READ | PROT_WRITE;
        if (mmap(NULL, page_bytes, allowed, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
            return error_errno(err, -errno, "mapping %llu of %llu", (unsigned long long)i + 1,
                               (unsigned long long)count);
    }
    return 0;
}

/* The measurement's folder gets a name relative to its parent, so that the files of tests have
 * paths of two parts (three with a folder of their own), as those of the original: what a path
 * costs is its parts. */
static int enter_folder(struct host_spec *spec, struct error *err)
{
    const char *slash = strrchr(spec->host.folder, '/');
    CLEANUP(memory_freep)
    char *parent = memory_strndup(spec->host.folder, (size_t)(slash - spec->host.folder));
    if (chdir(parent) < 0)
        return error_errno(err, -errno, "entering %s", parent);
    spec->host.folder = slash + 1;
    return 0;
}

static int run_host(const struct host_spec *absolute, struct stage *stage)
{
    struct host_spec relative = *absolute, *spec = &relative;
    unsigned count = spec->host.task_count;
    int code = enter_folder(spec, &stage->error);
    if (code == 0)
        code = add_mappings(spec->mappings, &stage->error);
    if (code == 0 && spec->test->prepare)
        code = spec->test->prepare(&spec->host, &stage->error);
    if (code < 0)
        return code;
    struct job *jobs = memory_zalloc(count, sizeof(*jobs));
    for (unsigned i = 0; i < count; i++)
        jobs[i] = (struct job){.spec = spec, .stage = stage, .index = i};
    return spec->host.threads ? run_threads(jobs, count, &stage->error)
                              : run_processes(jobs, count, &stage->error);
}

int host_start(const struct host_spec *spec, struct stage *stage, pid_t *ret_pid, struct error *err)
{
    pid_t parent = getpid();
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        return error_errno(err, -errno, "fork");
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        /* The terminal's signals come to all; the measuring process decides. */
        static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
        for (size_t i = 0; i < ARRAY_COUNT(signals); i++)
            signal(signals[i], SIG_IGN);
        _exit(run_host(spec, stage) < 0);
    }
    *ret_pid = pid;
    return 0;
}
