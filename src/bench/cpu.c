/* SPDX-License-Identifier: MIT */
/* Which CPU to measure on: see measure.h. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "bench/measure.h"

#include <sched.h>
#include <stdio.h>

enum { LOOK_MS = 20 };

/* Idle ticks of every CPU that /proc/stat shows. */
static void read_idle(uint64_t *idle, size_t count)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    if (file_read("/proc/stat", &text, NULL) < 0)
        return;
    for (const char *line = strbuf_text(&text); line; line = strchr(line, '\n')) {
        unsigned cpu;
        unsigned long long user, nice, system, rest, wait;
        line += *line == '\n';
        if (sscanf(line, "cpu%u %llu %llu %llu %llu %llu", &cpu, &user, &nice, &system, &rest,
                   &wait) == 6 &&
            cpu < count)
            idle[cpu] = rest + wait;
    }
}

uint32_t bench_cpu_khz(int cpu)
{
    char path[96];
    int64_t khz;
    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", cpu);
    return cpu >= 0 && file_read_i64(path, &khz) && khz > 0 && khz < UINT32_MAX ? (uint32_t)khz : 0;
}

bool bench_can_use_cpu(int cpu)
{
    cpu_set_t before, one;
    CPU_ZERO(&one);
    if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(before), &before) < 0)
        return false;
    CPU_SET((unsigned)cpu, &one);
    bool can = sched_setaffinity(0, sizeof(one), &one) == 0;
    sched_setaffinity(0, sizeof(before), &before);
    return can;
}

int bench_idle_cpu(void)
{
    uint64_t before[CPU_SETSIZE] = {0}, after[CPU_SETSIZE] = {0};
    cpu_set_t set;
    int best = -1;
    if (sched_getaffinity(0, sizeof(set), &set) < 0)
        return -1;
    read_idle(before, CPU_SETSIZE);
    const struct timespec moment = timespec_from_ns(LOOK_MS * NS_PER_MS);
    nanosleep(&moment, NULL);
    read_idle(after, CPU_SETSIZE);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET((unsigned)cpu, &set) &&
            (best < 0 || after[cpu] - before[cpu] >= after[best] - before[best]))
            best = cpu;
    return best;
}
