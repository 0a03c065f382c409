/* SPDX-License-Identifier: MIT */
/*
 * thermal: the temperature of each zone.  turbostat: the figures of the program of that name that
 * can be had without its access to model-specific registers: watts from the energy counters of
 * RAPL (PkgWatt, RAMWatt, CorWatt), the packages' temperature, and the mean clock rate.
 */
#include "base/fd.h"
#include "base/memory.h"
#include "monitors/monitor.h"

#include <stdio.h>

static void parse_thermal(struct monitor_instance *i, const struct monitor_file *file,
                          struct monitor_sink *sink)
{
    const char *text = strbuf_text(&i->text);
    double millidegrees;
    if (!scan_number(&text, &millidegrees))
        return;
    sink_prefix(sink, "thermal.", file->label);
    sink_put_text(sink, "temp", millidegrees / 1000, COLUMN_MEAN, "°C");
}

/* What one tick adds up over the domains and CPUs. */
struct power {
    double package_uj, memory_uj, core_uj, khz_sum;
    bool has_package, has_memory, has_core;
    size_t khz_count;
};

/* The domain's kind stands in a file beside its counter. */
static void add_energy(struct power *p, const struct monitor_file *file, double microjoules)
{
    char path[128], name[32];
    snprintf(path, sizeof(path), "/sys/class/powercap/%s/name", file->label);
    if (!file_read_line(path, name, sizeof(name)))
        return;
    if (str_has_prefix(name, "package")) {
        p->package_uj += microjoules;
        p->has_package = true;
    } else if (str_eq(name, "dram")) {
        p->memory_uj += microjoules;
        p->has_memory = true;
    } else if (str_eq(name, "core")) {
        p->core_uj += microjoules;
        p->has_core = true;
    }
}

static void parse_turbostat(struct monitor_instance *i, const struct monitor_file *file,
                            struct monitor_sink *sink)
{
    (void)sink;
    if (!i->extra)
        i->extra = memory_zalloc(1, sizeof(struct power));
    struct power *p = i->extra;
    const char *text = strbuf_text(&i->text);
    double value;
    if (!scan_number(&text, &value))
        return;
    if (str_has_prefix(file->label, "cpu")) {
        p->khz_sum += value;
        p->khz_count++;
    } else {
        add_energy(p, file, value);
    }
}

static void finish_turbostat(struct monitor_instance *i, struct monitor_sink *sink)
{
    struct power *p = i->extra;
    if (!p)
        return;
    sink_prefix(sink, "turbostat.", NULL);
    if (p->has_package)
        sink_put_text(sink, "PkgWatt", p->package_uj / 1e6, COLUMN_RATE, "W");
    if (p->has_memory)
        sink_put_text(sink, "RAMWatt", p->memory_uj / 1e6, COLUMN_RATE, "W");
    if (p->has_core)
        sink_put_text(sink, "CorWatt", p->core_uj / 1e6, COLUMN_RATE, "W");
    if (p->khz_count)
        sink_put_text(sink, "Bzy_MHz", p->khz_sum / (double)p->khz_count / 1000, COLUMN_MEAN,
                      "MHz");
    *p = (struct power){0};
}

static void done_turbostat(struct monitor_instance *i)
{
    free(i->extra);
}

static const char *const thermal_paths[] = {"/sys/class/thermal/thermal_zone*/temp", NULL};
static const char *const turbostat_paths[] = {
    "/sys/class/powercap/*/energy_uj", "/sys/devices/system/cpu/cpu*/cpufreq/scaling_cur_freq",
    NULL};

const struct monitor monitor_thermal = {
    .name = "thermal", .what = "temperatures", .paths = thermal_paths, .parse = parse_thermal};
const struct monitor monitor_turbostat = {.name = "turbostat",
                                          .what = "watts (RAPL) and clock rates",
                                          .paths = turbostat_paths,
                                          .parse = parse_turbostat,
                                          .finish = finish_turbostat,
                                          .done = done_turbostat};
