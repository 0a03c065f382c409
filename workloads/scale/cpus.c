/* SPDX-License-Identifier: MIT */
/* See cpus.h. */
#include "cpus.h"
#include "base/fd.h"
#include "base/memory.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { CPUS_MAX = 8192 };

struct ranked {
    int cpu, rank; /* rank: how many threads of the same core stand before it */
};

static int by_rank(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->rank != y->rank ? x->rank - y->rank : x->cpu - y->cpu;
}

static int rank_in_core(int cpu, const cpu_set_t *allowed, size_t set_bytes)
{
    char path[96], line[256];
    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
             cpu);
    int *siblings = NULL, rank = 0;
    size_t count = 0;
    if (!file_read_line(path, line, sizeof(line)) ||
        parse_cpu_list(line, &siblings, &count, NULL) < 0)
        return 0;
    for (size_t i = 0; i < count; i++)
        rank += siblings[i] < cpu && CPU_ISSET_S((size_t)siblings[i], set_bytes, allowed);
    free(siblings);
    return rank;
}

int cpus_init(struct cpus *c, struct error *err)
{
    cpu_set_t *allowed = CPU_ALLOC(CPUS_MAX);
    size_t set_bytes = CPU_ALLOC_SIZE(CPUS_MAX), count = 0;
    if (!allowed || sched_getaffinity(0, set_bytes, allowed) < 0) {
        int code = error_errno(err, -errno, "finding out which CPUs can be used");
        CPU_FREE(allowed);
        return code;
    }
    struct ranked *ranked = memory_zalloc(CPUS_MAX, sizeof(*ranked));
    for (int cpu = 0; cpu < CPUS_MAX; cpu++)
        if (CPU_ISSET_S((size_t)cpu, set_bytes, allowed))
            ranked[count++] =
                (struct ranked){.cpu = cpu, .rank = rank_in_core(cpu, allowed, set_bytes)};
    qsort(ranked, count, sizeof(*ranked), by_rank);
    *c = (struct cpus){.numbers = memory_zalloc(count + 1, sizeof(int)), .count = count};
    for (size_t i = 0; i < count; i++)
        c->numbers[i] = ranked[i].cpu;
    free(ranked);
    CPU_FREE(allowed);
    return 0;
}

void cpus_done(struct cpus *c)
{
    free(c->numbers);
    *c = (struct cpus){0};
}

static bool is_among(int cpu, const int *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (numbers[i] == cpu)
            return true;
    return false;
}

void cpu_ticks_parse(const char *text, const int *numbers, size_t count,
                     struct cpu_ticks *ret_ticks)
{
    struct cpu_ticks sum = {0};
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        int cpu;
        unsigned long long v[8];
        /* user nice system idle iowait irq softirq steal */
        if (sscanf(line, "cpu%d %llu %llu %llu %llu %llu %llu %llu %llu", &cpu, &v[0], &v[1], &v[2],
                   &v[3], &v[4], &v[5], &v[6], &v[7]) != 9 ||
            !is_among(cpu, numbers, count))
            continue;
        for (size_t i = 0; i < ARRAY_COUNT(v); i++)
            sum.all += v[i];
        sum.idle += v[3] + v[4];
        sum.steal += v[7];
    }
    *ret_ticks = sum;
}

bool cpu_ticks_read(const int *numbers, size_t count, struct cpu_ticks *ret_ticks)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    if (file_read("/proc/stat", &text, NULL) < 0)
        return false;
    cpu_ticks_parse(strbuf_text(&text), numbers, count, ret_ticks);
    return ret_ticks->all > 0;
}
