/* SPDX-License-Identifier: MIT */
/* What musl and older versions of the GNU C library lack, so that assay builds with them:
 * close_range (2.34), epoll_pwait2 (2.35), scandirat (not in musl), pwritev2 (musl 1.2.5).  For
 * names of errors and signals (2.32) there are errno_name of error.h and signal_name of process.h.
 */
#ifndef ASSAY_BASE_PORTABLE_H
#define ASSAY_BASE_PORTABLE_H

#include <dirent.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

#ifndef RWF_DSYNC
#define RWF_DSYNC 0x2

static inline ssize_t pwritev2(int fd, const struct iovec *pieces, int count, off_t at, int flags)
{
    return syscall(SYS_pwritev2, fd, pieces, count, at, 0, flags);
}

static inline ssize_t preadv2(int fd, const struct iovec *pieces, int count, off_t at, int flags)
{
    return syscall(SYS_preadv2, fd, pieces, count, at, 0, flags);
}
#endif

/* Closes all from the first to the last; before Linux 5.9 it closes nothing. */
static inline void close_fds(unsigned first, unsigned last)
{
    (void)!syscall(SYS_close_range, first, last, 0);
}

/* epoll_wait with a limit in nanoseconds; -1 with ENOSYS before Linux 5.11. */
static inline int epoll_wait_precisely(int fd, struct epoll_event *events, int count_max,
                                       const struct timespec *limit)
{
    return (int)syscall(SYS_epoll_pwait2, fd, events, count_max, limit, NULL, 0);
}

/* scandir, of a folder that is named within another one. */
static inline int scan_folder(int folder_fd, const char *name, struct dirent ***ret_list,
                              int (*is_wanted)(const struct dirent *),
                              int (*compare)(const struct dirent **, const struct dirent **))
{
#ifdef __GLIBC__
    return scandirat(folder_fd, name, ret_list, is_wanted, compare);
#else
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", folder_fd, name);
    return scandir(path, ret_list, is_wanted, compare);
#endif
}

#endif
