/* SPDX-License-Identifier: MIT */
/* See keeper.h.  The child runs in a copy of a process with threads, so that it calls only what is
 * safe in a signal handler. */
#include "run/keeper.h"
#include "base/fd.h"
#include "base/portable.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { GROUPS_MAX = 64, GRACE_MS = 2000, STEP_MS = 20 };

/* What comes through the pipe: a group to be kept, or with a minus one to be forgotten; 0 is the
 * quiet end. */
static void follow(int fd)
{
    pid_t groups[GROUPS_MAX] = {0}, message;
    ssize_t got;
    while ((got = read(fd, &message, sizeof(message))) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got != (ssize_t)sizeof(message) || message == 0)
            return;
        pid_t wanted = message > 0 ? 0 : -message;
        for (int i = 0; i < GROUPS_MAX; i++)
            if (groups[i] == wanted) {
                groups[i] = message > 0 ? message : 0;
                break;
            }
    }
    for (int waited_ms = 0; waited_ms <= GRACE_MS; waited_ms += STEP_MS) {
        int left = 0;
        for (int i = 0; i < GROUPS_MAX; i++)
            left += groups[i] && kill(-groups[i], waited_ms ? 0 : SIGTERM) == 0;
        if (!left)
            return;
        nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000L}, NULL);
    }
    for (int i = 0; i < GROUPS_MAX; i++)
        if (groups[i])
            kill(-groups[i], SIGKILL);
}

int keeper_start(struct keeper *k, struct error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_errno(err, -errno, "pipe2");
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* what ends assay must not end the keeper first */
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        prctl(PR_SET_NAME, "assay-keeper");
        /* What assay has open is not the keeper's: a pipe that somebody reads must end with assay.
         */
        if (ends[0] != 3)
            dup2(ends[0], 3);
        close_fds(0, 2);
        close_fds(4, ~0u);
        follow(3);
        _exit(0);
    }
    int failure = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(ends[0]);
    if (pid < 0) {
        close(ends[1]);
        return error_errno(err, -failure, "fork");
    }
    *k = (struct keeper){.pid = pid, .fd = ends[1]};
    return 0;
}

static void tell(struct keeper *k, pid_t message)
{
    if (k->pid)
        (void)fd_write_all(k->fd, (const char *)&message, sizeof(message));
}

void keeper_add(struct keeper *k, pid_t group)
{
    tell(k, group);
}

void keeper_forget(struct keeper *k, pid_t group)
{
    tell(k, -group);
}

void keeper_stop(struct keeper *k)
{
    if (!k->pid)
        return;
    tell(k, 0);
    close(k->fd);
    waitpid(k->pid, NULL, 0);
    *k = (struct keeper){0};
}
