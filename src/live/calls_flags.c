/* SPDX-License-Identifier: MIT */
/* The words that numbers in arguments of system calls stand for: see calls.h. */
#include "base/memory.h"
#include "live/calls.h"

#include <asm/ioctls.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define W(name)                 \
    {                           \
        (uint64_t)(name), #name \
    }
#define ALL UINT64_MAX

static const struct call_word opens[] = {
    W(O_RDONLY),
    W(O_WRONLY),
    W(O_RDWR),
    W(O_CREAT),
    W(O_EXCL),
    W(O_NOCTTY),
    W(O_TRUNC),
    W(O_APPEND),
    W(O_NONBLOCK),
    W(O_SYNC),
    W(O_DSYNC),
    W(O_DIRECT),
    W(O_DIRECTORY),
    W(O_NOFOLLOW),
    W(O_NOATIME),
    W(O_CLOEXEC),
    W(O_PATH),
    {020000000, "O_TMPFILE"},
    {0100000, "O_LARGEFILE"},
};
static const struct call_word ats[] = {
    W(AT_SYMLINK_NOFOLLOW), W(AT_REMOVEDIR),  W(AT_SYMLINK_FOLLOW),
    W(AT_NO_AUTOMOUNT),     W(AT_EMPTY_PATH),
};
static const struct call_word prots[] = {W(PROT_NONE), W(PROT_READ), W(PROT_WRITE), W(PROT_EXEC)};
static const struct call_word maps[] = {
    W(MAP_SHARED),    W(MAP_PRIVATE),         W(MAP_SHARED_VALIDATE), W(MAP_FIXED),
    W(MAP_ANONYMOUS), W(MAP_GROWSDOWN),       W(MAP_DENYWRITE),       W(MAP_LOCKED),
    W(MAP_NORESERVE), W(MAP_POPULATE),        W(MAP_NONBLOCK),        W(MAP_STACK),
    W(MAP_HUGETLB),   W(MAP_FIXED_NOREPLACE),
};
static const struct call_word whences[] = {W(SEEK_SET), W(SEEK_CUR), W(SEEK_END), W(SEEK_DATA),
                                           W(SEEK_HOLE)};
static const struct call_word accesses[] = {W(F_OK), W(R_OK), W(W_OK), W(X_OK)};
static const struct call_word families[] = {W(AF_UNSPEC),  W(AF_UNIX),   W(AF_INET), W(AF_INET6),
                                            W(AF_NETLINK), W(AF_PACKET), W(AF_ALG),  W(AF_VSOCK)};
static const struct call_word sockets[] = {
    W(SOCK_STREAM),    W(SOCK_DGRAM),    W(SOCK_RAW),
    W(SOCK_SEQPACKET), W(SOCK_NONBLOCK), W(SOCK_CLOEXEC),
};
static const struct call_word messages[] = {
    W(MSG_OOB),  W(MSG_PEEK),     W(MSG_DONTROUTE), W(MSG_TRUNC),        W(MSG_DONTWAIT),
    W(MSG_EOR),  W(MSG_WAITALL),  W(MSG_CONFIRM),   W(MSG_ERRQUEUE),     W(MSG_NOSIGNAL),
    W(MSG_MORE), W(MSG_ZEROCOPY), W(MSG_FASTOPEN),  W(MSG_CMSG_CLOEXEC),
};
static const struct call_word clones[] = {
    W(CLONE_VM),
    W(CLONE_FS),
    W(CLONE_FILES),
    W(CLONE_SIGHAND),
    W(CLONE_PIDFD),
    W(CLONE_PTRACE),
    W(CLONE_VFORK),
    W(CLONE_PARENT),
    W(CLONE_THREAD),
    W(CLONE_NEWNS),
    W(CLONE_SYSVSEM),
    W(CLONE_SETTLS),
    W(CLONE_PARENT_SETTID),
    W(CLONE_CHILD_CLEARTID),
    W(CLONE_CHILD_SETTID),
    W(CLONE_NEWUSER),
    W(CLONE_NEWPID),
    W(CLONE_NEWNET),
    W(CLONE_NEWUTS),
    W(CLONE_NEWIPC),
    W(CLONE_IO),
    {SIGCHLD, "SIGCHLD"},
};
static const struct call_word futexes[] = {
    W(FUTEX_WAIT),        W(FUTEX_WAKE),        W(FUTEX_REQUEUE),      W(FUTEX_CMP_REQUEUE),
    W(FUTEX_WAKE_OP),     W(FUTEX_LOCK_PI),     W(FUTEX_UNLOCK_PI),    W(FUTEX_TRYLOCK_PI),
    W(FUTEX_WAIT_BITSET), W(FUTEX_WAKE_BITSET), W(FUTEX_PRIVATE_FLAG), W(FUTEX_CLOCK_REALTIME),
};
static const struct call_word madvises[] = {
    W(MADV_NORMAL),    W(MADV_RANDOM),   W(MADV_SEQUENTIAL), W(MADV_WILLNEED), W(MADV_DONTNEED),
    W(MADV_FREE),      W(MADV_HUGEPAGE), W(MADV_NOHUGEPAGE), W(MADV_DONTDUMP), W(MADV_DONTFORK),
    W(MADV_MERGEABLE), W(MADV_COLD),     W(MADV_PAGEOUT),
};
static const struct call_word fcntls[] = {
    W(F_DUPFD),         W(F_GETFD),     W(F_SETFD),     W(F_GETFL),      W(F_SETFL),
    W(F_GETLK),         W(F_SETLK),     W(F_SETLKW),    W(F_SETOWN),     W(F_GETOWN),
    W(F_DUPFD_CLOEXEC), W(F_OFD_GETLK), W(F_OFD_SETLK), W(F_OFD_SETLKW), W(F_SETPIPE_SZ),
    W(F_GETPIPE_SZ),    W(F_ADD_SEALS), W(F_GET_SEALS),
};
static const struct call_word clocks[] = {
    W(CLOCK_REALTIME),          W(CLOCK_MONOTONIC),     W(CLOCK_PROCESS_CPUTIME_ID),
    W(CLOCK_THREAD_CPUTIME_ID), W(CLOCK_MONOTONIC_RAW), W(CLOCK_REALTIME_COARSE),
    W(CLOCK_MONOTONIC_COARSE),  W(CLOCK_BOOTTIME),      W(CLOCK_TAI),
};
static const struct call_word epolls[] = {W(EPOLL_CTL_ADD), W(EPOLL_CTL_DEL), W(EPOLL_CTL_MOD)};
static const struct call_word epoll_creates[] = {W(EPOLL_CLOEXEC)};
static const struct call_word pipes[] = {W(O_CLOEXEC), W(O_DIRECT), W(O_NONBLOCK)};
static const struct call_word shutdowns[] = {W(SHUT_RD), W(SHUT_WR), W(SHUT_RDWR)};
static const struct call_word levels[] = {
    W(SOL_SOCKET), {0, "SOL_IP"}, {6, "SOL_TCP"}, {17, "SOL_UDP"}, {41, "SOL_IPV6"}};
static const struct call_word resources[] = {
    W(RLIMIT_AS),     W(RLIMIT_CORE),   W(RLIMIT_CPU),        W(RLIMIT_DATA),
    W(RLIMIT_FSIZE),  W(RLIMIT_LOCKS),  W(RLIMIT_MEMLOCK),    W(RLIMIT_MSGQUEUE),
    W(RLIMIT_NICE),   W(RLIMIT_NOFILE), W(RLIMIT_NPROC),      W(RLIMIT_RSS),
    W(RLIMIT_RTPRIO), W(RLIMIT_RTTIME), W(RLIMIT_SIGPENDING), W(RLIMIT_STACK),
};
static const struct call_word waits[] = {W(WNOHANG), W(WUNTRACED), W(WCONTINUED),
                                         W(WEXITED), W(WNOWAIT),   {0x40000000, "__WALL"}};
static const struct call_word sigmasks[] = {W(SIG_BLOCK), W(SIG_UNBLOCK), W(SIG_SETMASK)};
static const struct call_word randoms[] = {W(GRND_NONBLOCK), W(GRND_RANDOM)};
static const struct call_word locks[] = {W(LOCK_SH), W(LOCK_EX), W(LOCK_UN), W(LOCK_NB)};
static const struct call_word prctls[] = {
    W(PR_SET_PDEATHSIG),    W(PR_GET_DUMPABLE),   W(PR_SET_DUMPABLE),
    W(PR_SET_NAME),         W(PR_GET_NAME),       W(PR_SET_SECCOMP),
    W(PR_CAPBSET_READ),     W(PR_SET_TIMERSLACK), W(PR_SET_CHILD_SUBREAPER),
    W(PR_SET_NO_NEW_PRIVS), W(PR_SET_PTRACER),    {0x53564d41, "PR_SET_VMA"},
};
static const struct call_word arch_prctls[] = {
    {0x1001, "ARCH_SET_GS"}, {0x1002, "ARCH_SET_FS"},     {0x1003, "ARCH_GET_FS"},
    {0x1004, "ARCH_GET_GS"}, {0x3001, "ARCH_CET_STATUS"}, {0x5001, "ARCH_SHSTK_ENABLE"}};
static const struct call_word mremaps[] = {W(MREMAP_MAYMOVE), W(MREMAP_FIXED)};
static const struct call_word msyncs[] = {W(MS_ASYNC), W(MS_INVALIDATE), W(MS_SYNC)};
static const struct call_word fallocates[] = {{1, "FALLOC_FL_KEEP_SIZE"},
                                              {2, "FALLOC_FL_PUNCH_HOLE"},
                                              {8, "FALLOC_FL_COLLAPSE_RANGE"},
                                              {16, "FALLOC_FL_ZERO_RANGE"}};
static const struct call_word ioctls[] = {
    W(TCGETS),
    W(TCSETS),
    W(TCSETSW),
    W(TCSETSF),
    W(TIOCGWINSZ),
    W(TIOCSWINSZ),
    W(TIOCGPGRP),
    W(TIOCSPGRP),
    W(TIOCSCTTY),
    W(TIOCGPTN),
    W(TIOCSPTLCK),
    W(FIONREAD),
    W(FIONBIO),
    W(FIOCLEX),
    W(FICLONE),
    W(BLKGETSIZE64),
    {0x2400, "PERF_EVENT_IOC_ENABLE"},
    {0x2401, "PERF_EVENT_IOC_DISABLE"},
    {0x2403, "PERF_EVENT_IOC_RESET"},
};
static const struct call_word eventfds[] = {W(EFD_CLOEXEC), W(EFD_NONBLOCK), W(EFD_SEMAPHORE)};
static const struct call_word timerfds[] = {W(TFD_CLOEXEC), W(TFD_NONBLOCK)};
static const struct call_word settimes[] = {W(TIMER_ABSTIME)};

#define SET(words, mask)                \
    {                                   \
        words, ARRAY_COUNT(words), mask \
    }

const struct call_words call_sets[SET_COUNT] = {
    [SET_OPEN] = SET(opens, O_ACCMODE),   [SET_AT] = SET(ats, 0),
    [SET_PROT] = SET(prots, 0),           [SET_MAP] = SET(maps, 3),
    [SET_WHENCE] = SET(whences, ALL),     [SET_ACCESS] = SET(accesses, 0),
    [SET_FAMILY] = SET(families, ALL),    [SET_SOCKET] = SET(sockets, 15),
    [SET_MSG] = SET(messages, 0),         [SET_CLONE] = SET(clones, 255),
    [SET_FUTEX] = SET(futexes, 127),      [SET_MADVISE] = SET(madvises, ALL),
    [SET_FCNTL] = SET(fcntls, ALL),       [SET_CLOCK] = SET(clocks, ALL),
    [SET_EPOLL] = SET(epolls, ALL),       [SET_EPOLL_CREATE] = SET(epoll_creates, 0),
    [SET_PIPE] = SET(pipes, 0),           [SET_SHUTDOWN] = SET(shutdowns, ALL),
    [SET_LEVEL] = SET(levels, ALL),       [SET_RESOURCE] = SET(resources, ALL),
    [SET_WAIT] = SET(waits, 0),           [SET_SIGMASK] = SET(sigmasks, ALL),
    [SET_RANDOM] = SET(randoms, 0),       [SET_LOCK] = SET(locks, 0),
    [SET_PRCTL] = SET(prctls, ALL),       [SET_ARCH_PRCTL] = SET(arch_prctls, ALL),
    [SET_MREMAP] = SET(mremaps, 0),       [SET_MSYNC] = SET(msyncs, 0),
    [SET_FALLOCATE] = SET(fallocates, 0), [SET_IOCTL] = SET(ioctls, ALL),
    [SET_EVENTFD] = SET(eventfds, 0),     [SET_TIMERFD] = SET(timerfds, 0),
    [SET_SETTIME] = SET(settimes, 0),
};
