/* SPDX-License-Identifier: MIT */
#include "base/memory.h"
#include "monitors/monitor.h"
#include "test.h"

#include <math.h>

/* Two readings of one file, as if a run had lasted two seconds. */
struct replay {
    struct monitors m;
    struct monitor_instance instance;
    struct monitor_file file;
};

static void read_text(struct replay *r, const struct monitor *monitor, const char *label,
                      const char *text)
{
    struct monitor_sink sink = {.m = &r->m};
    r->instance.monitor = monitor;
    r->instance.files = &r->file;
    r->instance.file_count = 1;
    strcpy(r->file.label, label);
    strbuf_clear(&r->instance.text);
    strbuf_puts(&r->instance.text, text);
    monitor->parse(&r->instance, &r->file, &sink);
    if (monitor->finish)
        monitor->finish(&r->instance, &sink);
    r->instance.has_previous = true;
    r->m.tick_count++;
}

static double value_at(const struct replay *r, const char *name, size_t tick)
{
    for (size_t i = 0; i < r->m.column_count; i++)
        if (str_eq(r->m.columns[i].name, name))
            return tick < r->m.columns[i].capacity ? r->m.columns[i].values[tick] : NAN;
    test_fail(__FILE__, __LINE__, "there is no %s", name);
    return NAN;
}

static enum column_mode mode_of(const struct replay *r, const char *name)
{
    for (size_t i = 0; i < r->m.column_count; i++)
        if (str_eq(r->m.columns[i].name, name))
            return r->m.columns[i].mode;
    test_fail(__FILE__, __LINE__, "there is no %s", name);
    return COLUMN_MEAN;
}

static void done(struct replay *r)
{
    for (size_t i = 0; i < r->m.column_count; i++) {
        free(r->m.columns[i].name);
        free(r->m.columns[i].values);
    }
    free(r->m.columns);
    strbuf_done(&r->instance.text);
}

TEST(mpstat_gives_shares_of_an_interval)
{
    CLEANUP(done) struct replay r = {0};
    read_text(&r, &monitor_mpstat, "", "cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 1 2 3\n");
    read_text(&r, &monitor_mpstat, "", "cpu  160 0 70 910 55 0 5 0 0 0\n");
    CHECK_NEAR(value_at(&r, "mpstat.cpu.all.usr%", 1), 30, 1e-9);
    CHECK_NEAR(value_at(&r, "mpstat.cpu.all.sys%", 1), 10, 1e-9);
    CHECK_NEAR(value_at(&r, "mpstat.cpu.all.idle%", 1), 55, 1e-9);
    CHECK_NEAR(value_at(&r, "mpstat.cpu.all.soft%", 1), 2.5, 1e-9);
    CHECK(isnan(value_at(&r, "mpstat.cpu.all.usr%", 0)));
}

TEST(vmstat_reads_three_files)
{
    CLEANUP(done) struct replay r = {0};
    read_text(&r, &monitor_vmstat, "",
              "cpu  1 1 1 1\nintr 500 1 2\nctxt 900\nprocs_running 3\nprocs_blocked 1\n");
    r.m.tick_count = 0;
    read_text(&r, &monitor_vmstat, "",
              "MemTotal: 100 kB\nMemFree:  60 kB\nBuffers: 5 kB\nCached: 10 kB\nSReclaimable: 2 "
              "kB\nSwapTotal: 9 kB\nSwapFree: 4 kB\n");
    r.m.tick_count = 0;
    read_text(&r, &monitor_vmstat, "", "nr_free_pages 1\npgpgin 70\npgpgout 80\npswpin 1\n");
    CHECK_NEAR(value_at(&r, "vmstat.system.in", 0), 500, 0);
    CHECK_NEAR(value_at(&r, "vmstat.system.cs", 0), 900, 0);
    CHECK_INT(mode_of(&r, "vmstat.system.cs"), COLUMN_RATE);
    CHECK_NEAR(value_at(&r, "vmstat.procs.r", 0), 3, 0);
    CHECK_NEAR(value_at(&r, "vmstat.memory.cache", 0), 12, 0);
    CHECK_NEAR(value_at(&r, "vmstat.memory.swpd", 0), 5, 0);
    CHECK_NEAR(value_at(&r, "vmstat.io.bo", 0), 80, 0);
}

TEST(states_and_counts_are_told_apart)
{
    CLEANUP(done) struct replay r = {0};
    read_text(&r, &monitor_proc_vmstat, "",
              "nr_free_pages 10\npgfault 20\nnuma_hit 30\nnr_dirtied 4\n");
    CHECK_INT(mode_of(&r, "proc-vmstat.nr_free_pages"), COLUMN_MEAN);
    CHECK_INT(mode_of(&r, "proc-vmstat.pgfault"), COLUMN_DELTA);
    CHECK_INT(mode_of(&r, "proc-vmstat.numa_hit"), COLUMN_DELTA);
    CHECK_INT(mode_of(&r, "proc-vmstat.nr_dirtied"), COLUMN_DELTA);
    read_text(&r, &monitor_numastat, "node0", "numa_hit 7\nlocal_node 6\n");
    CHECK_NEAR(value_at(&r, "numa-numastat.node0.local_node", 1), 6, 0);
    read_text(&r, &monitor_numa_vmstat, "node1", "nr_free_pages 9\n");
    CHECK_NEAR(value_at(&r, "numa-vmstat.node1.nr_free_pages", 2), 9, 0);
}

TEST(meminfo_of_the_machine_and_of_a_node)
{
    CLEANUP(done) struct replay r = {0};
    read_text(&r, &monitor_meminfo, "", "MemTotal:  8087772 kB\nHugePages_Total:    3\n");
    CHECK_NEAR(value_at(&r, "meminfo.MemTotal", 0), 8087772, 0);
    CHECK_NEAR(value_at(&r, "meminfo.HugePages_Total", 0), 3, 0);
    read_text(&r, &monitor_numa_meminfo, "node0", "Node 0 MemFree:     55 kB\n");
    CHECK_NEAR(value_at(&r, "numa-meminfo.node0.MemFree", 1), 55, 0);
}

TEST(interrupts_by_cpu_and_in_all)
{
    CLEANUP(done) struct replay r = {0};
    read_text(&r, &monitor_interrupts, "",
              "            CPU0       CPU3       \n"
              "  26:          4         15  IO-APIC   4-edge      ttyS0\n"
              " LOC:        100        200   Local timer interrupts\n"
              " ERR:          5\n");
    CHECK_NEAR(value_at(&r, "interrupts.LOC:Local_timer_interrupts", 0), 300, 0);
    CHECK_NEAR(value_at(&r, "interrupts.CPU3.LOC:Local_timer_interrupts", 0), 200, 0);
    CHECK_NEAR(value_at(&r, "interrupts.CPU0.26:IO-APIC.4-edge.ttyS0", 0), 4, 0);
    CHECK_NEAR(value_at(&r, "interrupts.ERR", 0), 5, 0);
    read_text(&r, &monitor_softirqs, "", "   CPU0  CPU1\n  RCU:   1   2\n");
    CHECK_NEAR(value_at(&r, "softirqs.CPU1.RCU", 1), 2, 0);
    CHECK_NEAR(value_at(&r, "softirqs.RCU", 1), 3, 0);
}

TEST(tables_of_caches_and_disks)
{
    CLEANUP(done) struct replay r = {0};
    read_text(
        &r, &monitor_slabinfo, "",
        "slabinfo - version: 2.1\n# name            <active_objs> <num_objs>\n"
        "dentry   11  22  192  21  1 : tunables    0    0    0 : slabdata      33    44    0\n");
    CHECK_NEAR(value_at(&r, "slabinfo.dentry.active_objs", 0), 11, 0);
    CHECK_NEAR(value_at(&r, "slabinfo.dentry.num_objs", 0), 22, 0);
    CHECK_NEAR(value_at(&r, "slabinfo.dentry.active_slabs", 0), 33, 0);
    CHECK_NEAR(value_at(&r, "slabinfo.dentry.num_slabs", 0), 44, 0);
    size_t before = r.m.column_count;
    read_text(
        &r, &monitor_diskstats, "",
        "   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0\n 254  0 vda 1 2 3 4 5 6 7 8 9 10 11 0 0\n");
    CHECK_INT(r.m.column_count - before, 11);
    CHECK_NEAR(value_at(&r, "diskstats.vda.sectors_written", 1), 7, 0);
}

TEST(pressure_and_schedstat)
{
    CLEANUP(done) struct replay r = {0};
    read_text(&r, &monitor_pressure, "cpu",
              "some avg10=98.78 avg60=98.41 avg300=91.43 total=2000000\n"
              "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
    CHECK_NEAR(value_at(&r, "pressure.cpu.some%", 0), 200, 1e-9); /* of which the rate is taken */
    CHECK_INT(mode_of(&r, "pressure.cpu.some%"), COLUMN_RATE);
    read_text(&r, &monitor_schedstat, "",
              "version 15\ntimestamp 1\ncpu0 0 0 0 0 0 0 3000000 4000000 5\n"
              "domain0 3 1 2\ncpu1 0 0 0 0 0 0 1000000 1000000 2\n");
    CHECK_NEAR(value_at(&r, "schedstat.cpu0.run_ms", 1), 3, 1e-9);
    CHECK_NEAR(value_at(&r, "schedstat.wait_ms", 1), 5, 1e-9);
    CHECK_NEAR(value_at(&r, "schedstat.timeslices", 1), 7, 0);
}

#define SCHED_DEBUG(a, b)                                                                 \
    "Sched Debug Version: v0.11, 6.18 #1\nktime   : 25050053.497272\n\nsysctl_sched\n"    \
    "  .sysctl_sched_base_slice : 1.400000\n\ncpu#0, 2596.144 MHz\n  .nr_running   : 2\n" \
    "  .nr_switches  : " a "\n  .curr->pid    : 16763\n\ncfs_rq[0]:/autogroup-4569\n"     \
    "  .load_avg     : 77\n\ncfs_rq[0]:/\n  .load_avg     : 10\n  .se->vruntime : 3\n"    \
    "\nrt_rq[0]:/\n  .rt_time      : 0.5\n\ncpu#1, 2596.144 MHz\n  .nr_running   : 0\n"   \
    "  .nr_switches  : " b                                                                \
    "\n\ncfs_rq[1]:/\n  .load_avg     : 30\n\nrunnable tasks:\n S task PID\n"

TEST(sched_debug_is_summed_over_the_cpus)
{
    CLEANUP(done) struct replay r = {0};
    read_text(&r, &monitor_sched_debug, "", SCHED_DEBUG("1000", "500"));
    read_text(&r, &monitor_sched_debug, "", SCHED_DEBUG("1100", "550"));
    CHECK_NEAR(value_at(&r, "sched_debug.cpu.nr_running.avg", 1), 1, 1e-12);
    CHECK_NEAR(value_at(&r, "sched_debug.cpu.nr_running.max", 1), 2, 1e-12);
    CHECK_NEAR(value_at(&r, "sched_debug.cpu.nr_running.stddev", 1), 1, 1e-12);
    CHECK_INT(mode_of(&r, "sched_debug.cpu.nr_running.avg"), COLUMN_MEAN);
    /* What only grows is counted from the first reading on. */
    CHECK_NEAR(value_at(&r, "sched_debug.cpu.nr_switches.max", 0), 0, 1e-12);
    CHECK_NEAR(value_at(&r, "sched_debug.cpu.nr_switches.max", 1), 100, 1e-12);
    CHECK_NEAR(value_at(&r, "sched_debug.cpu.nr_switches.min", 1), 50, 1e-12);
    CHECK_INT(mode_of(&r, "sched_debug.cpu.nr_switches.avg"), COLUMN_LAST);
    /* Groups below the root are not mixed in. */
    CHECK_NEAR(value_at(&r, "sched_debug.cfs_rq:/.load_avg.avg", 1), 20, 1e-12);
    CHECK_NEAR(value_at(&r, "sched_debug.rt_rq:/.rt_time.avg", 1), 0.5, 1e-12);
    for (size_t i = 0; i < r.m.column_count; i++) {
        CHECK(!strstr(r.m.columns[i].name, "pid"));
        CHECK(!strstr(r.m.columns[i].name, "se->"));
        CHECK(!strstr(r.m.columns[i].name, "autogroup"));
    }
    monitor_sched_debug.done(&r.instance);
}

/* Nothing that a kernel could print makes a parser run over the end. */
TEST(odd_texts_are_harmless)
{
    static const char *const texts[] = {"",
                                        "\n",
                                        "cpu",
                                        "cpu \n",
                                        ":",
                                        " : ",
                                        "CPU0",
                                        "x 1",
                                        "Node",
                                        "Node 0",
                                        "a:\n",
                                        "1 2",
                                        "1 2 name",
                                        "some total=",
                                        "cpu9 1",
                                        "   CPU0\n X",
                                        "   CPU0\n X:",
                                        "slabinfo",
                                        "- - -\n-",
                                        "cpu#",
                                        "cpu#0\n .x",
                                        "cpu#0\n .x :",
                                        "cfs_rq[",
                                        "cfs_rq[0]:/\n .",
                                        "cpu#4294967295\n .nr_switches : 1"};
    const char *names[MONITORS_MAX];
    size_t count = monitor_names(names);
    for (size_t n = 0; n < count; n++) {
        const struct monitor *monitor = monitor_find(names[n]);
        CHECK(monitor_what(monitor)[0] != '\0');
        if (!monitor->parse)
            continue;
        CLEANUP(done) struct replay r = {0};
        for (size_t i = 0; i < ARRAY_COUNT(texts); i++)
            read_text(&r, monitor, "x", texts[i]);
        if (monitor->done)
            monitor->done(&r.instance);
    }
}

TEST(a_real_run_is_watched)
{
    const char *names[MONITORS_MAX];
    size_t count = monitor_names(names);
    struct monitors m;
    struct error err = {0};
    CHECK_INT(monitors_open(&m, names, count, MONITOR_READS, 20000000, &err), 0);
    for (int run = 0; run < 2; run++) {
        monitors_start(&m);
        struct timespec pause = {.tv_nsec = 100000000};
        nanosleep(&pause, NULL);
        monitors_stop(&m);
        CHECK(m.tick_count >= 2);
        bool found = false;
        for (size_t c = 0; c < m.column_count; c++)
            if (str_eq(m.columns[c].name, "vmstat.system.cs"))
                found = isfinite(m.columns[c].value) && m.columns[c].value >= 0;
        CHECK(found);
    }
    monitors_done(&m);
    const char *wrong = "no-such";
    CHECK(monitors_open(&m, &wrong, 1, MONITOR_READS, 20000000, &err) < 0);
}
