/* SPDX-License-Identifier: MIT */
/* Who ends a wait: see waking.h. */
#include "tracepoints/waking.h"

#include <sys/syscall.h>

/* Bits of common_flags, TRACE_FLAG_… of the kernel: what the CPU was at. */
enum { IN_HARDIRQ = 0x08, IN_SOFTIRQ = 0x10, IN_NMI = 0x40 };

/* Calls within which a softirq that wakes somebody is the doing of the caller: what it sends
 * arrives at once, over the loopback device. */
static bool sends(int64_t call)
{
    switch (call) {
    case SYS_write:
    case SYS_writev:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_sendfile:
    case SYS_splice:
    case SYS_connect:
    case SYS_shutdown:
    case SYS_close:
    case SYS_exit_group:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_read:
        return true;
    default:
        return false;
    }
}

bool waking_is_by_thread(uint32_t tid, uint64_t flags, int64_t call)
{
    if (!tid || flags & (IN_HARDIRQ | IN_NMI))
        return false;
    return !(flags & IN_SOFTIRQ) || sends(call);
}
