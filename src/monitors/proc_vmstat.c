/* SPDX-License-Identifier: MIT */
/* proc-vmstat, numa-vmstat and numastat: lines of "name number".  What counts events is reduced to
 * last minus first, what is a state (nr_…) to its mean. */
#include "base/memory.h"
#include "monitors/monitor.h"

static bool is_state(const char *key, size_t length)
{
    static const char *const counts[] = {"nr_dirtied",           "nr_written",
                                         "nr_vmscan_write",      "nr_vmscan_immediate_reclaim",
                                         "nr_foll_pin_acquired", "nr_foll_pin_released"};
    if (length < 3 || memcmp(key, "nr_", 3) != 0)
        return false;
    for (size_t i = 0; i < ARRAY_COUNT(counts); i++)
        if (strlen(counts[i]) == length && memcmp(counts[i], key, length) == 0)
            return false;
    return true;
}

static void put_lines(struct monitor_instance *i, const char *prefix,
                      const struct monitor_file *file, struct monitor_sink *sink)
{
    struct scan s = {strbuf_text(&i->text)};
    const char *line, *key;
    size_t length;
    sink_prefix(sink, prefix, file->label);
    while (scan_line(&s, &line, &length)) {
        double value;
        if (scan_word(&line, &key, &length) && scan_number(&line, &value))
            sink_put(sink, key, length, value, is_state(key, length) ? COLUMN_MEAN : COLUMN_DELTA,
                     "");
    }
}

static void parse_proc(struct monitor_instance *i, const struct monitor_file *file,
                       struct monitor_sink *sink)
{
    put_lines(i, "proc-vmstat.", file, sink);
}

static void parse_node(struct monitor_instance *i, const struct monitor_file *file,
                       struct monitor_sink *sink)
{
    put_lines(i, "numa-vmstat.", file, sink);
}

static void parse_numastat(struct monitor_instance *i, const struct monitor_file *file,
                           struct monitor_sink *sink)
{
    put_lines(i, "numa-numastat.", file, sink);
}

static const char *const proc_paths[] = {"/proc/vmstat", NULL};
static const char *const node_paths[] = {"/sys/devices/system/node/node*/vmstat", NULL};
static const char *const numastat_paths[] = {"/sys/devices/system/node/node*/numastat", NULL};

const struct monitor monitor_proc_vmstat = {.name = "proc-vmstat",
                                            .what = "the kernel's memory-management counters",
                                            .paths = proc_paths,
                                            .parse = parse_proc};
const struct monitor monitor_numa_vmstat = {.name = "numa-vmstat",
                                            .what = "the same for each memory node",
                                            .paths = node_paths,
                                            .parse = parse_node};
const struct monitor monitor_numastat = {.name = "numastat",
                                         .what = "where memory was allocated from, for each node",
                                         .paths = numastat_paths,
                                         .parse = parse_numastat};
