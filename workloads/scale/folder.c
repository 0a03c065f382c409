/* SPDX-License-Identifier: MIT */
/* See folder.h. */
#include "folder.h"
#include "base/memory.h"
#include "base/portable.h"
#include "base/strings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH_BYTES_MAX = 400, DEPTH_MAX = 8 };

/* Removes what is in the folder; the descriptor is closed. */
static int empty(int dir_fd, int depth)
{
    DIR *dir = dir_fd < 0 ? NULL : fdopendir(dir_fd);
    if (!dir)
        return -errno;
    int code = 0;
    for (struct dirent *e; (e = readdir(dir));) {
        if (str_eq(e->d_name, ".") || str_eq(e->d_name, ".."))
            continue;
        if (unlinkat(dirfd(dir), e->d_name, 0) == 0)
            continue;
        if ((errno == EISDIR || errno == EPERM) && depth < DEPTH_MAX)
            code = empty(
                openat(dirfd(dir), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
                depth + 1);
        if (unlinkat(dirfd(dir), e->d_name, AT_REMOVEDIR) < 0)
            code = -errno;
    }
    closedir(dir);
    return code;
}

int folder_remove(const char *path, struct error *err)
{
    int code = empty(open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), 0);
    if (rmdir(path) < 0)
        code = -errno;
    return code < 0 ? error_errno(err, code, "removing %s", path) : 0;
}

/* In the keeper: until the last writer is gone. */
static int keep(int fd, const char *path)
{
    char byte;
    ssize_t got;
    prctl(PR_SET_NAME, "assay-keeper");
    while ((got = read(fd, &byte, 1)) != 0)
        if (got < 0 && errno != EINTR)
            break;
    return folder_remove(path, NULL) < 0;
}

static int start_keeper(struct folder *f, struct error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_errno(err, -errno, "pipe2");
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before); /* what ends the others must not end the keeper */
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        if (ends[0] != 3)
            dup2(ends[0], 3);
        close_fds(0, 2);
        close_fds(4, ~0u);
        close(ends[1] == 3 ? -1 : ends[1]); /* where close_range is missing */
        _exit(keep(3, f->path));
    }
    int failure = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(ends[0]);
    if (pid < 0) {
        close(ends[1]);
        return error_errno(err, -failure, "fork");
    }
    f->keeper = pid;
    f->fd = ends[1];
    return 0;
}

int folder_open(struct folder *f, const char *parent, struct error *err)
{
    if (strlen(parent) > PATH_BYTES_MAX)
        return error_set(err, -ENAMETOOLONG, "--folder: the path must be at most %d bytes long",
                         PATH_BYTES_MAX);
    char *path = memory_printf("%s/assay-scale.XXXXXX", parent);
    if (!mkdtemp(path)) {
        int code = error_errno(
            err, -errno, "cannot create a temporary directory in %s (choose another with --folder)",
            parent);
        free(path);
        return code;
    }
    *f = (struct folder){.path = path, .fd = -1};
    int code = start_keeper(f, err);
    if (code < 0) {
        rmdir(path);
        free(path);
        *f = (struct folder){.fd = -1};
    }
    return code;
}

int folder_close(struct folder *f, struct error *err)
{
    if (!f->path)
        return 0;
    int status = 0;
    close(f->fd);
    while (waitpid(f->keeper, &status, 0) < 0 && errno == EINTR)
        ;
    /* A keeper that somebody killed has left the work to us. */
    int code = status == 0 ? 0 : folder_remove(f->path, err);
    free(f->path);
    *f = (struct folder){.fd = -1};
    return code;
}
