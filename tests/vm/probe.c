/* SPDX-License-Identifier: MIT */
/*
 * What the emulated PMU itself can do, asked of the kernel without assay: when a test of assay
 * fails here and the probe does not, the fault is assay's.  Prints one line for each event:
 *
 *   NAME TYPE:CONFIG VALUE ENABLED_NS RUNNING_NS     or     NAME TYPE:CONFIG error WHY
 *
 * The counted work is 6,000,000 instructions in user mode.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct event {
    const char *name;
    uint32_t type;
    uint64_t config;
};

static const struct event events[] = {
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    {"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
    {"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
    {"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    {"sw-incr", PERF_TYPE_RAW, 0x00},
    {"inst-retired", PERF_TYPE_RAW, 0x08},
    {"cpu-cycles", PERF_TYPE_RAW, 0x11},
    {"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
};

static void work(void)
{
    uint64_t count = 1000 * 1000;
    __asm__ volatile("1: nop\n nop\n nop\n nop\n subs %0, %0, #1\n b.ne 1b" : "+r"(count) : : "cc");
}

static void count(const struct event *event)
{
    struct perf_event_attr attr = {
        .size = sizeof attr,
        .type = event->type,
        .config = event->config,
        .disabled = 1,
        .exclude_kernel = 1,
        .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
    };
    uint64_t values[3] = {0};
    printf("%s %u:%#llx ", event->name, event->type, (unsigned long long)event->config);
    int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0) {
        printf("error %s\n", strerror(errno));
        return;
    }
    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
    work();
    ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
    if (read(fd, values, sizeof values) != (ssize_t)sizeof values)
        printf("error read: %s\n", strerror(errno));
    else
        printf("%llu %llu %llu\n", (unsigned long long)values[0], (unsigned long long)values[1],
               (unsigned long long)values[2]);
    close(fd);
}

int main(void)
{
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
        count(&events[i]);
    return 0;
}
