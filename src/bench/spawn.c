/* SPDX-License-Identifier: MIT */
/* See spawn.h. */
#include "bench/spawn.h"
#include "base/fd.h"
#include "base/memory.h"
#include "bench/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* Descriptors in the new process. */
enum {
    WORKER_IN = 200,
    WORKER_OUT = 201,
    WORKER_PRELOAD = 202,
    WORKER_COUNTERS = 203, /* and on */
    BESIDE_IN = 220,
    BESIDE_OUT = 221
};

/* The words and the environment of the new process. */
struct plan {
    char **argv, **environment;
    char *variables[5];
    const char *program;
};

static void plan_done(struct plan *p)
{
    free(p->argv);
    free(p->environment);
    for (size_t i = 0; i < ARRAY_COUNT(p->variables); i++)
        free(p->variables[i]);
}

static bool is_replaced(const char *variable, bool preload)
{
    return str_has_prefix(variable, "ASSAY_WORKER=") || str_has_prefix(variable, "ASSAY_ONCE=") ||
           str_has_prefix(variable, "ASSAY_COUNTERS=") ||
           (preload && str_has_prefix(variable, "LD_PRELOAD="));
}

static void plan_make(struct plan *p, const struct bench_target *t, const struct bench_start *how)
{
    size_t words = 0, count = 0, variables = 0;
    while (how->before && how->before[words])
        words++;
    p->argv = memory_zalloc(words + 5, sizeof(*p->argv));
    for (size_t i = 0; i < words; i++)
        p->argv[i] = how->before[i];
    bool shared = t->kind == BENCH_SHARED;
    if (shared)
        p->argv[words++] = (char *)(how->before ? "/proc/self/exe" : BENCH_RUNNER_NAME);
    if (shared && how->before)
        p->argv[words - 1] = (char *)bench_runner_path();
    p->argv[words++] = t->path;
    if (how->beside)
        p->argv[words++] = how->beside->path;
    p->program = how->before ? how->before[0] : shared ? "/proc/self/exe" : t->path;
    while (environ[count])
        count++;
    p->environment = memory_zalloc(count + ARRAY_COUNT(p->variables) + 1, sizeof(char *));
    p->variables[0] = how->once     ? memory_printf("ASSAY_ONCE=%s", how->once)
                      : how->beside ? memory_printf("ASSAY_WORKER=%d,%d,%d,%d", WORKER_IN,
                                                    WORKER_OUT, BESIDE_IN, BESIDE_OUT)
                                    : memory_printf("ASSAY_WORKER=%d,%d", WORKER_IN, WORKER_OUT);
    p->variables[1] =
        how->preload_fd ? memory_printf("LD_PRELOAD=/proc/self/fd/%d", WORKER_PRELOAD) : NULL;
    p->variables[2] = shared ? memory_printf(BENCH_RUNNER_VARIABLE "=1") : NULL;
    p->variables[3] = how->preload_fd ? memory_strdup("ASSAY_ALLOCATIONS=1") : NULL;
    p->variables[4] =
        how->counters ? memory_printf("ASSAY_COUNTERS=%d,%d", WORKER_COUNTERS, WORKER_COUNTERS + 1)
                      : NULL;
    for (size_t i = 0; i < count; i++)
        if (!is_replaced(environ[i], how->preload_fd))
            p->environment[variables++] = environ[i];
    for (size_t i = 0; i < ARRAY_COUNT(p->variables); i++)
        if (p->variables[i])
            p->environment[variables++] = p->variables[i];
}

/* In the new process, between fork and exec. */
static void become(const struct plan *p, const struct bench_start *how, int in, int out, int errors,
                   int report)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    sigset_t none;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);
    for (size_t i = 0; i < ARRAY_COUNT(signals); i++)
        signal(signals[i], SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, STDIN_FILENO);
    dup2(how->show_output ? STDERR_FILENO : nothing, STDOUT_FILENO);
    if (!how->show_output)
        dup2(errors, STDERR_FILENO);
    if (in >= 0)
        dup2(in, WORKER_IN);
    if (out >= 0)
        dup2(out, WORKER_OUT);
    if (how->beside) {
        dup2(how->beside_in, BESIDE_IN);
        dup2(how->beside_out, BESIDE_OUT);
    }
    if (how->preload_fd)
        dup2(*how->preload_fd, WORKER_PRELOAD);
    if (how->counters)
        bench_counters_open(WORKER_COUNTERS);
    if (how->cpu >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET((unsigned)how->cpu, &set);
        sched_setaffinity(0, sizeof(set), &set);
    }
    if (!how->folder || chdir(how->folder) == 0)
        execve(p->program, p->argv, p->environment);
    int code = errno;
    if (write(report, &code, sizeof(code)) != sizeof(code))
        _exit(126);
    _exit(127);
}

static int open_pipes(int pipes[4][2], struct error *err)
{
    for (size_t i = 0; i < 4; i++)
        if (pipe2(pipes[i], O_CLOEXEC) < 0)
            return error_errno(err, -errno, "creating a pipe");
    return 0;
}

static void close_pipes(int pipes[4][2])
{
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 2; k++)
            fd_closep(&pipes[i][k]);
}

static int take(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

int bench_spawn(struct bench_worker *w, const struct bench_start *how, struct error *err)
{
    int pipes[4][2] = {{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}}, code = 0;
    CLEANUP(plan_done) struct plan plan = {0};
    int r = open_pipes(pipes, err);
    plan_make(&plan, w->target, how);
    pid_t parent = getpid();
    pid_t pid = r == 0 ? fork() : -1;
    if (r == 0 && pid < 0)
        r = error_errno(err, -errno, "starting %s", w->target->path);
    if (pid == 0) {
        become(&plan, how, pipes[0][0], pipes[1][1], pipes[2][1], pipes[3][1]);
        _exit(getppid() == parent ? 127 : 126);
    }
    if (r == 0) {
        fd_closep(&pipes[3][1]);
        if (read(pipes[3][0], &code, sizeof(code)) == sizeof(code)) {
            waitpid(pid, NULL, 0);
            r = error_errno(err, -code, "%s", w->target->path);
        } else {
            w->pid = pid;
            w->to = take(&pipes[0][1]);
            w->from = take(&pipes[1][0]);
            w->errors = take(&pipes[2][0]);
            fcntl(w->errors, F_SETFL, O_NONBLOCK);
        }
    }
    close_pipes(pipes);
    return r;
}
