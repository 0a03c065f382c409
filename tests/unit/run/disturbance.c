/* SPDX-License-Identifier: MIT */
/* What marks a run as disturbed. */
#include "run/disturbance.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/strings.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void write_count(const char *folder, const char *name, int count)
{
    CLEANUP(memory_freep) char *path = memory_printf("%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    fprintf(file, "%d\n", count);
    fclose(file);
}

TEST(heat_marks_a_run)
{
    char folder[] = "/tmp/assay-throttle-XXXXXX";
    CHECK(mkdtemp(folder) != NULL);
    CLEANUP(memory_freep) char *cpu = memory_printf("%s/cpu0", folder);
    CLEANUP(memory_freep) char *inner = memory_printf("%s/thermal_throttle", cpu);
    CHECK_INT(mkdir(cpu, 0700), 0);
    CHECK_INT(mkdir(inner, 0700), 0);
    write_count(inner, "core_throttle_count", 5);
    write_count(inner, "package_throttle_count", 7);
    write_count(inner, "core_throttle_total_time_ms", 1000);
    struct disturbance_meter meter;
    disturbance_meter_open(&meter, folder);
    struct disturbance_totals early, late;
    disturbance_read(&meter, &early);
    CHECK_INT(early.throttles, 12);
    write_count(inner, "core_throttle_count", 8);
    disturbance_read(&meter, &late);
    struct disturbance d = {0};
    disturbance_between(&meter, &early, &late, 0, &d);
    CHECK(d.has_throttles);
    CHECK_INT(d.throttles, 3);
    d.steal_ns = d.pressure_cpu_ns = d.pressure_io_ns = d.pressure_memory_ns = 0;
    CHECK_STR(disturbance_reason(&d, NS_PER_S), "a CPU was too hot and ran slower");
    disturbance_meter_done(&meter);
    CLEANUP(memory_freep) char *remove = memory_printf("rm -r '%s'", folder);
    CHECK_INT(system(remove), 0);
}

TEST(shares_of_the_run_decide)
{
    struct disturbance d = {0};
    CHECK(!disturbance_reason(&d, NS_PER_S));
    d.steal_ns = 15 * NS_PER_MS;
    CHECK(!disturbance_reason(&d, NS_PER_S)); /* 1.5 % */
    d.steal_ns = 30 * NS_PER_MS;
    CHECK_STR(disturbance_reason(&d, NS_PER_S), "the host took CPU time away");
    d = (struct disturbance){.pressure_cpu_ns = 90 * NS_PER_MS};
    CHECK(!disturbance_reason(&d, NS_PER_S));
    d.pressure_cpu_ns = 110 * NS_PER_MS;
    CHECK_STR(disturbance_reason(&d, NS_PER_S), "more tasks were ready than there were CPUs");
    /* Its own processes waited for each other: nobody else ran. */
    d.has_others = true;
    d.others_ns = 40 * NS_PER_MS;
    CHECK(!disturbance_reason(&d, NS_PER_S));
    d.others_ns = 60 * NS_PER_MS;
    CHECK_STR(disturbance_reason(&d, NS_PER_S), "more tasks were ready than there were CPUs");
    d = (struct disturbance){.pressure_io_ns = 110 * NS_PER_MS};
    CHECK_STR(disturbance_reason(&d, NS_PER_S), "tasks waited for storage");
    d.no_storage = true;
    CHECK(!disturbance_reason(&d, NS_PER_S));
    d = (struct disturbance){.has_migrations = true, .migrations = 202};
    CHECK(!disturbance_reason(&d, NS_PER_S));
    d.migrations = 203;
    CHECK_STR(disturbance_reason(&d, NS_PER_S), "it moved between CPUs often");
}
