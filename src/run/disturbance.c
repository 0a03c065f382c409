/* SPDX-License-Identifier: MIT */
/* What disturbed a run from outside: see disturbance.h. */
#include "run/disturbance.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/strings.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

/* From this share of the run on, time that was taken away is worth a mark. */
#define SHARE 0.02
/* The run's own threads wait for each other, too, so pressure must be clear; and who waits for
 * nobody but its own is not disturbed.  Others' time is counted in ticks: short runs say nothing.
 */
#define PRESSURE_SHARE 0.1
#define OTHERS_SHARE 0.05
#define OTHERS_WALL_NS (200 * NS_PER_MS)
#define MIGRATIONS_PER_S 200

/* Where the CPUs have them: x86 with thermal interrupts. */
static void open_throttles(struct disturbance_meter *m, const char *cpu_folder)
{
    CLEANUP(memory_freep)
    char *pattern = memory_printf("%s/cpu[0-9]*/thermal_throttle/*_throttle_count", cpu_folder);
    glob_t found;
    m->throttle_fds = NULL;
    m->throttle_count = 0;
    if (glob(pattern, 0, NULL, &found) != 0)
        return;
    m->throttle_fds = memory_zalloc(found.gl_pathc, sizeof(*m->throttle_fds));
    for (size_t i = 0; i < found.gl_pathc; i++) {
        int fd = open(found.gl_pathv[i], O_RDONLY | O_CLOEXEC);
        if (fd >= 0)
            m->throttle_fds[m->throttle_count++] = fd;
    }
    globfree(&found);
}

void disturbance_meter_open(struct disturbance_meter *m, const char *cpu_folder)
{
    open_throttles(m, cpu_folder);
    m->stat_fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
    m->cpu_fd = open("/proc/pressure/cpu", O_RDONLY | O_CLOEXEC);
    m->io_fd = open("/proc/pressure/io", O_RDONLY | O_CLOEXEC);
    m->memory_fd = open("/proc/pressure/memory", O_RDONLY | O_CLOEXEC);
}

void disturbance_meter_done(struct disturbance_meter *m)
{
    fd_closep(&m->stat_fd);
    fd_closep(&m->cpu_fd);
    fd_closep(&m->io_fd);
    fd_closep(&m->memory_fd);
    for (size_t i = 0; i < m->throttle_count; i++)
        fd_closep(&m->throttle_fds[i]);
    free(m->throttle_fds);
    m->throttle_fds = NULL;
    m->throttle_count = 0;
}

static bool read_head(int fd, char *text, size_t size)
{
    ssize_t got = fd < 0 ? -1 : pread(fd, text, size - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

/* Of processes only: interrupts belong to nobody. */
static void read_stat(int fd, uint64_t *ret_steal_ns, uint64_t *ret_busy_ns)
{
    char text[256];
    unsigned long long user, nice, system, steal;
    uint64_t tick_ns = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
    *ret_steal_ns = *ret_busy_ns = 0;
    if (!read_head(fd, text, sizeof(text)) ||
        sscanf(text, "cpu %llu %llu %llu %*u %*u %*u %*u %llu", &user, &nice, &system, &steal) != 4)
        return;
    *ret_steal_ns = steal * tick_ns;
    *ret_busy_ns = (user + nice + system) * tick_ns;
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234", in microseconds. */
static uint64_t read_pressure_ns(int fd)
{
    char text[256];
    unsigned long long total_us = 0;
    if (!read_head(fd, text, sizeof(text)))
        return 0;
    text[strcspn(text, "\n")] = '\0';
    const char *total = strstr(text, "total=");
    if (!total || sscanf(total, "total=%llu", &total_us) != 1)
        return 0;
    return total_us * NS_PER_US;
}

static uint64_t read_throttles(const struct disturbance_meter *m)
{
    uint64_t total = 0;
    for (size_t i = 0; i < m->throttle_count; i++) {
        char text[32];
        if (read_head(m->throttle_fds[i], text, sizeof(text)))
            total += strtoull(text, NULL, 10);
    }
    return total;
}

void disturbance_read(const struct disturbance_meter *m, struct disturbance_totals *ret_totals)
{
    read_stat(m->stat_fd, &ret_totals->steal_ns, &ret_totals->busy_ns);
    ret_totals->pressure_cpu_ns = read_pressure_ns(m->cpu_fd);
    ret_totals->pressure_io_ns = read_pressure_ns(m->io_fd);
    ret_totals->pressure_memory_ns = read_pressure_ns(m->memory_fd);
    ret_totals->throttles = read_throttles(m);
}

static uint64_t since(uint64_t early, uint64_t late)
{
    return late > early ? late - early : 0;
}

void disturbance_between(const struct disturbance_meter *m, const struct disturbance_totals *early,
                         const struct disturbance_totals *late, uint64_t own_ns,
                         struct disturbance *d)
{
    d->has_steal = d->has_others = m->stat_fd >= 0;
    d->others_ns = since(own_ns, since(early->busy_ns, late->busy_ns));
    d->has_pressure = m->cpu_fd >= 0;
    d->steal_ns = since(early->steal_ns, late->steal_ns);
    d->pressure_cpu_ns = since(early->pressure_cpu_ns, late->pressure_cpu_ns);
    d->pressure_io_ns = since(early->pressure_io_ns, late->pressure_io_ns);
    d->pressure_memory_ns = since(early->pressure_memory_ns, late->pressure_memory_ns);
    d->has_throttles = m->throttle_count > 0;
    d->throttles = since(early->throttles, late->throttles);
}

static bool others_ran(const struct disturbance *d, uint64_t wall_ns)
{
    return !d->has_others || wall_ns < OTHERS_WALL_NS ||
           (double)d->others_ns > OTHERS_SHARE * (double)wall_ns;
}

const char *disturbance_reason(const struct disturbance *d, uint64_t wall_ns)
{
    double limit_ns = SHARE * (double)wall_ns;
    if (d->stalled_ns)
        return "assay or the machine was suspended";
    /* One tick of steal may have been a part of a tick only. */
    if ((double)d->steal_ns > limit_ns && d->steal_ns > 10 * NS_PER_MS)
        return "the host took CPU time away";
    if (d->throttles)
        return "a CPU was too hot and ran slower";
    if ((double)d->pressure_memory_ns > limit_ns)
        return "memory ran short";
    if ((double)d->pressure_cpu_ns > PRESSURE_SHARE * (double)wall_ns && others_ran(d, wall_ns))
        return "more tasks were ready than there were CPUs";
    /* Whoever waits at an io_uring counts as waiting for storage, whatever it waits for. */
    if ((double)d->pressure_io_ns > PRESSURE_SHARE * (double)wall_ns && !d->no_storage)
        return "tasks waited for storage";
    if (d->has_migrations &&
        (double)d->migrations > 2 + MIGRATIONS_PER_S * (double)wall_ns / (double)NS_PER_S)
        return "it moved between CPUs often";
    return NULL;
}
