/* SPDX-License-Identifier: MIT */
/* A byte goes to a partner on the same CPU and comes back: each way the one must leave the CPU and
 * the other take it.  The partner is a process or a thread, as the task is. */
#include "base/fd.h"
#include "scale.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct pair {
    int to[2], from[2]; /* seen from the task; [0] is read, [1] is written */
};

/* Sends back what comes until there is no more. */
static void *answer(void *argument)
{
    struct pair *p = argument;
    char byte;
    while (read(p->to[0], &byte, 1) == 1 && write(p->from[1], &byte, 1) == 1)
        ;
    fd_closep(&p->to[0]);
    fd_closep(&p->from[1]);
    return NULL;
}

static pid_t start_process(struct pair *p)
{
    pid_t parent = getpid(), pid = fork();
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    fd_closep(&p->to[1]);
    fd_closep(&p->from[0]);
    answer(p);
    _exit(0);
}

static int loop(struct task *t, const struct pair *p, struct error *err)
{
    char byte = 0;
    task_start(t);
    do {
        if (write(p->to[1], &byte, 1) != 1 || read(p->from[0], &byte, 1) != 1)
            return task_failed(err, "a byte to the partner");
    } while (task_count(t, 2));
    return 0;
}

static int run(struct task *t, struct error *err)
{
    struct pair p = {{-1, -1}, {-1, -1}};
    pthread_t thread;
    pid_t pid = 0;
    if (pipe2(p.to, O_CLOEXEC) < 0 || pipe2(p.from, O_CLOEXEC) < 0)
        return task_failed(err, "pipe2");
    if (t->threads) {
        int code = pthread_create(&thread, NULL, answer, &p);
        if (code)
            return error_errno(err, -code, "the partner thread");
    } else {
        pid = start_process(&p);
        if (pid < 0)
            return task_failed(err, "the partner process: fork");
        fd_closep(&p.to[0]);
        fd_closep(&p.from[1]);
    }
    int code = loop(t, &p, err);
    fd_closep(&p.to[1]); /* the partner reads the end of the file and ends */
    if (t->threads)
        pthread_join(thread, NULL);
    else
        waitpid(pid, NULL, 0);
    fd_closep(&p.from[0]);
    return code;
}

SCALE_TEST(context_switch1,
           .summary = "a byte to a partner on the same CPU and back: two switches, two operations",
           .calls = "write/2 read/2", .run = run);
