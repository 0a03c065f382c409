/* SPDX-License-Identifier: MIT */
/* vmstat: the columns of the program of that name, from /proc/stat, /proc/meminfo and
 * /proc/vmstat.  Rates are per second, memory in KiB. */
#include "base/memory.h"
#include "monitors/monitor.h"

static const char *const paths[] = {"/proc/stat", "/proc/meminfo", "/proc/vmstat", NULL};

/* Places in previous[]: what was counted up to the last tick. */
enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, TIMES };

/* Where a line's number goes, or what it adds to. */
struct line {
    const char *key, *name;
    enum column_mode mode;
    const char *unit;
};

static const struct line stat_lines[] = {
    {"intr", "system.in", COLUMN_RATE, "/s"},
    {"ctxt", "system.cs", COLUMN_RATE, "/s"},
    {"procs_running", "procs.r", COLUMN_MEAN, ""},
    {"procs_blocked", "procs.b", COLUMN_MEAN, ""},
    {NULL, NULL, 0, NULL},
};

static const struct line vmstat_lines[] = {
    {"pgpgin", "io.bi", COLUMN_RATE, "KiB/s"},
    {"pgpgout", "io.bo", COLUMN_RATE, "KiB/s"},
    {"pswpin", "swap.si", COLUMN_RATE, "pages/s"},
    {"pswpout", "swap.so", COLUMN_RATE, "pages/s"},
    {NULL, NULL, 0, NULL},
};

static const struct line *find_line(const struct line *lines, const char *key, size_t length)
{
    for (; lines->key; lines++)
        if (strlen(lines->key) == length && memcmp(lines->key, key, length) == 0)
            return lines;
    return NULL;
}

static void put_lines(const char *text, const struct line *lines, struct monitor_sink *sink)
{
    struct scan s = {text};
    const char *line, *key;
    size_t length;
    while (scan_line(&s, &line, &length)) {
        double value;
        if (!scan_word(&line, &key, &length))
            continue;
        const struct line *known = find_line(lines, key, length);
        if (known && scan_number(&line, &value))
            sink_put_text(sink, known->name, value, known->mode, known->unit);
    }
}

static void put_times(struct monitor_instance *i, const char *line, struct monitor_sink *sink)
{
    double now[TIMES] = {0}, spent[TIMES], sum = 0;
    for (size_t k = 0; k < TIMES && scan_number(&line, &now[k]); k++)
        ;
    for (size_t k = 0; k < TIMES; k++) {
        spent[k] = now[k] - i->previous[k];
        sum += spent[k];
        i->previous[k] = now[k];
    }
    if (!i->has_previous || sum <= 0)
        return;
    sink_put_text(sink, "cpu.us", 100 * (spent[USER] + spent[NICE]) / sum, COLUMN_MEAN, "%");
    sink_put_text(sink, "cpu.sy", 100 * (spent[SYSTEM] + spent[IRQ] + spent[SOFTIRQ]) / sum,
                  COLUMN_MEAN, "%");
    sink_put_text(sink, "cpu.id", 100 * spent[IDLE] / sum, COLUMN_MEAN, "%");
    sink_put_text(sink, "cpu.wa", 100 * spent[IOWAIT] / sum, COLUMN_MEAN, "%");
    sink_put_text(sink, "cpu.st", 100 * spent[STEAL] / sum, COLUMN_MEAN, "%");
}

static void put_memory(const char *text, struct monitor_sink *sink)
{
    static const char *const keys[] = {
        "MemFree:", "Buffers:", "Cached:", "SReclaimable:", "SwapTotal:", "SwapFree:"};
    double values[ARRAY_COUNT(keys)] = {0};
    struct scan s = {text};
    const char *line, *key;
    size_t length;
    while (scan_line(&s, &line, &length)) {
        if (!scan_word(&line, &key, &length))
            continue;
        for (size_t k = 0; k < ARRAY_COUNT(keys); k++)
            if (strlen(keys[k]) == length && memcmp(keys[k], key, length) == 0)
                scan_number(&line, &values[k]);
    }
    sink_put_text(sink, "memory.swpd", values[4] - values[5], COLUMN_MEAN, "KiB");
    sink_put_text(sink, "memory.free", values[0], COLUMN_MEAN, "KiB");
    sink_put_text(sink, "memory.buff", values[1], COLUMN_MEAN, "KiB");
    sink_put_text(sink, "memory.cache", values[2] + values[3], COLUMN_MEAN, "KiB");
}

static void parse(struct monitor_instance *i, const struct monitor_file *file,
                  struct monitor_sink *sink)
{
    (void)file;
    const char *text = strbuf_text(&i->text);
    sink_prefix(sink, "vmstat.", NULL);
    if (str_has_prefix(text, "cpu ")) {
        put_times(i, text + 4, sink);
        put_lines(text, stat_lines, sink);
    } else if (str_has_prefix(text, "MemTotal")) {
        put_memory(text, sink);
    } else {
        put_lines(text, vmstat_lines, sink);
    }
}

const struct monitor monitor_vmstat = {.name = "vmstat",
                                       .what = "processes, memory, swap, I/O, switches, CPUs",
                                       .paths = paths,
                                       .parse = parse};
