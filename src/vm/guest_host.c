/* SPDX-License-Identifier: MIT */
/* See guest_internal.h: the host's files as a command's own, and the moment at which a machine is
 * kept. */
#include "base/fd.h"
#include "base/memory.h"
#include "vm/guest_internal.h"
#include "vm/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Random numbers are drawn from a new seed every minute once the machine is up for two. */
#define SETTLE_S 200
#define SLICE_NS "500000000"
#define DATE_S 1893456000 /* 2030-01-01, the date at which every command begins */

static bool mount_in(const char *source, const char *path, const char *type, unsigned long flags,
                     const char *options)
{
    mkdir(path, 0755);
    return mount(source, path, type, flags, options) == 0;
}

/* What programs expect below /dev. */
static void fill_dev(void)
{
    static const char *const links[][2] = {{"/proc/self/fd", GUEST_ROOT "/dev/fd"},
                                           {"/proc/self/fd/0", GUEST_ROOT "/dev/stdin"},
                                           {"/proc/self/fd/1", GUEST_ROOT "/dev/stdout"},
                                           {"/proc/self/fd/2", GUEST_ROOT "/dev/stderr"}};
    for (size_t i = 0; i < ARRAY_COUNT(links); i++)
        if (symlink(links[i][0], links[i][1]) < 0 && errno != EEXIST)
            fprintf(stderr, "init: %s: %s\n", links[i][1], strerror(errno));
    mount_in("tmpfs", GUEST_ROOT "/dev/shm", "tmpfs", 0, "mode=1777");
    mount_in("devpts", GUEST_ROOT "/dev/pts", "devpts", 0, "ptmxmode=0666");
}

bool guest_host_mount(const char **ret_failed)
{
    static bool is_mounted;
    if (is_mounted)
        return true;
    *ret_failed = "mounting the host's files (9p)";
    if (!mount_in(VM_SHARE_TAG, "/host", "9p", MS_RDONLY | MS_NOATIME,
                  "trans=virtio,version=9p2000.L,cache=loose,access=any,msize=512000"))
        return false;
    *ret_failed = "mounting a file system over the host's (overlay)";
    if (!mount_in("tmpfs", "/over", "tmpfs", 0, "mode=0755,size=80%") ||
        mkdir("/over/upper", 0755) < 0 || mkdir("/over/work", 0755) < 0 ||
        !mount_in("overlay", GUEST_ROOT, "overlay", MS_NOATIME,
                  "lowerdir=/host,upperdir=/over/upper,workdir=/over/work"))
        return false;
    *ret_failed = "mounting /proc, /sys and /dev over the host's";
    if (!mount_in("proc", GUEST_ROOT "/proc", "proc", 0, NULL) ||
        !mount_in("sysfs", GUEST_ROOT "/sys", "sysfs", 0, NULL) ||
        !mount_in("devtmpfs", GUEST_ROOT "/dev", "devtmpfs", 0, NULL))
        return false;
    fill_dev();
    is_mounted = true;
    return true;
}

bool guest_host_bind(const char *tree, const char *seen_as)
{
    CLEANUP(memory_freep) char *from = memory_printf("%s%s", GUEST_ROOT, tree);
    CLEANUP(memory_freep) char *to = memory_printf("%s%s", GUEST_ROOT, seen_as);
    return mount(from, to, NULL, MS_BIND, NULL) == 0;
}

void guest_set_date(void)
{
    struct timespec date = {.tv_sec = DATE_S};
    if (clock_settime(CLOCK_REALTIME, &date) < 0)
        fprintf(stderr, "init: setting the clock: %s\n", strerror(errno));
}

/* Which task runs when decides how much threads get into each other's way, and is to depend on the
 * tasks alone: one goes on until it sleeps, or has had this much of virtual time.  Kernels
 * since 6.6 have the last file only, earlier ones the others. */
static void set_scheduler(void)
{
    static const char *const names[] = {"latency_ns", "min_granularity_ns", "wakeup_granularity_ns",
                                        "base_slice_ns"};
    bool is_set = false;
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        char path[128];
        snprintf(path, sizeof(path), "/sys/kernel/debug/sched/%s", names[i]);
        CLEANUP(fd_closep) int fd = open(path, O_WRONLY | O_CLOEXEC);
        is_set |= fd >= 0 && write(fd, SLICE_NS, strlen(SLICE_NS)) == (ssize_t)strlen(SLICE_NS);
    }
    if (!is_set)
        fprintf(stderr, "init: the scheduler's slices cannot be set\n");
}

void guest_await_tick(void)
{
    struct timespec first, now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &first);
    do
        clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    while (now.tv_nsec == first.tv_nsec);
}

/* Works until a request comes, and does not sleep: virtual time would pass with that of the host.
 */
void guest_serve_hold(const struct guest *g)
{
    struct timespec rest = {.tv_sec = SETTLE_S};
    set_scheduler();
    while (nanosleep(&rest, &rest) < 0 && errno == EINTR)
        continue;
    CLEANUP(fd_closep) int random = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    if (random >= 0 && ioctl(random, RNDRESEEDCRNG) < 0)
        fprintf(stderr, "init: RNDRESEEDCRNG: %s\n", strerror(errno));
    guest_send_status(g, 0);
    struct pollfd port = {.fd = g->port, .events = POLLIN};
    while (poll(&port, 1, 0) == 0)
        continue;
}
