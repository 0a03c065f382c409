/* SPDX-License-Identifier: MIT */
/* pressure (PSI): the share of the time in which some, or all, tasks waited for a CPU, for memory
 * or for storage; from the totals, not from the kernel's decaying averages. */
#include "monitors/monitor.h"

#include <stdio.h>

static void parse(struct monitor_instance *i, const struct monitor_file *file,
                  struct monitor_sink *sink)
{
    struct scan s = {strbuf_text(&i->text)};
    const char *line, *kind;
    size_t length;
    sink_prefix(sink, "pressure.", file->label);
    while (scan_line(&s, &line, &length)) {
        double total_us;
        const char *end = line + length, *found = strstr(line, "total=");
        if (!scan_word(&line, &kind, &length) || length > 16 || !found || found >= end)
            continue;
        found += 6;
        if (!scan_number(&found, &total_us))
            continue;
        char name[24];
        snprintf(name, sizeof(name), "%.*s%%", (int)length, kind);
        /* total is in microseconds: for each second, divided by 1e4, it is a percentage */
        sink_put_text(sink, name, total_us / 1e4, COLUMN_RATE, "%");
    }
}

static const char *const paths[] = {"/proc/pressure/*", NULL};

const struct monitor monitor_pressure = {.name = "pressure",
                                         .what = "time lost to waiting for CPU, memory, storage",
                                         .paths = paths,
                                         .parse = parse};
