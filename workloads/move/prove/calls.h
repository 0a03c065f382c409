/* SPDX-License-Identifier: MIT */
/*
 * The system calls of the hot loops.  The C library's wrappers are points where a thread may be
 * cancelled, and in a process with several threads each call pays for that with locked
 * instructions. Nothing is cancelled here.
 */
#ifndef ASSAY_MOVE_CALLS_H
#define ASSAY_MOVE_CALLS_H

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static inline ssize_t call_send(int fd, const void *bytes, size_t count, int flags)
{
    return syscall(SYS_sendto, fd, bytes, count, flags, NULL, 0);
}

static inline ssize_t call_sendmsg(int fd, const struct msghdr *message, int flags)
{
    return syscall(SYS_sendmsg, fd, message, flags);
}

static inline ssize_t call_recv(int fd, void *bytes, size_t room, int flags)
{
    return syscall(SYS_recvfrom, fd, bytes, room, flags, NULL, NULL);
}

static inline ssize_t call_write(int fd, const void *bytes, size_t count)
{
    return syscall(SYS_write, fd, bytes, count);
}

static inline ssize_t call_writev(int fd, const struct iovec *pieces, size_t count)
{
    return syscall(SYS_writev, fd, pieces, count);
}

static inline ssize_t call_read(int fd, void *bytes, size_t room)
{
    return syscall(SYS_read, fd, bytes, room);
}

#endif
