/* SPDX-License-Identifier: MIT */
/* What the CPU counts of a worker: see worker.h.  The worker reads them before and after each
 * batch, outside of its time; only user mode counts, so that reading itself is hardly seen. */
#include "base/memory.h"
#include "bench/worker.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
    const char *name;
    uint64_t config;
} events[] = {{"instructions", PERF_COUNT_HW_INSTRUCTIONS}, {"cycles", PERF_COUNT_HW_CPU_CYCLES}};

static int open_event(size_t index)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE,
                                   .size = sizeof(attr),
                                   .config = events[index].config,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1,
                                   .inherit = 1};
    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

const char *const *bench_counters(void)
{
    static const char *names[ARRAY_COUNT(events) + 1];
    static bool known;
    for (size_t i = 0; !known && i < ARRAY_COUNT(events); i++) {
        int fd = open_event(i);
        if (fd < 0) { /* all of them or none: they are read by place */
            names[0] = NULL;
            break;
        }
        close(fd);
        names[i] = events[i].name;
    }
    known = true;
    return names;
}

void bench_counters_open(int first)
{
    for (size_t i = 0; i < ARRAY_COUNT(events); i++) {
        int fd = open_event(i);
        dup2(fd, first + (int)i); /* one that fails leaves nothing there: it reads as 0 */
    }
}
