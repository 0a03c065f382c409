/* SPDX-License-Identifier: MIT */
/* diskstats: requests, sectors and times of each disk that has ever been used; counts.  Times are
 * in milliseconds as the kernel gives them (Documentation/admin-guide/iostats.rst). */
#include "base/memory.h"
#include "monitors/monitor.h"

#include <stdio.h>

static const struct {
    const char *name, *unit;
    enum column_mode mode;
} fields[] = {
    {"reads", "", COLUMN_DELTA},
    {"reads_merged", "", COLUMN_DELTA},
    {"sectors_read", "", COLUMN_DELTA},
    {"read_time", "ms", COLUMN_DELTA},
    {"writes", "", COLUMN_DELTA},
    {"writes_merged", "", COLUMN_DELTA},
    {"sectors_written", "", COLUMN_DELTA},
    {"write_time", "ms", COLUMN_DELTA},
    {"in_flight", "", COLUMN_MEAN},
    {"io_time", "ms", COLUMN_DELTA},
    {"weighted_io_time", "ms", COLUMN_DELTA},
};

static void parse(struct monitor_instance *i, const struct monitor_file *file,
                  struct monitor_sink *sink)
{
    (void)file;
    struct scan s = {strbuf_text(&i->text)};
    const char *line, *name;
    size_t length, count;
    while (scan_line(&s, &line, &length)) {
        double major, minor, values[ARRAY_COUNT(fields)], sum = 0;
        if (!scan_number(&line, &major) || !scan_number(&line, &minor) ||
            !scan_word(&line, &name, &length) || length > 60)
            continue;
        for (count = 0; count < ARRAY_COUNT(fields) && scan_number(&line, &values[count]); count++)
            sum += values[count];
        if (sum <= 0) /* loop devices that nobody uses */
            continue;
        char label[64];
        snprintf(label, sizeof(label), "%.*s", (int)length, name);
        sink_prefix(sink, "diskstats.", label);
        for (size_t k = 0; k < count; k++)
            sink_put_text(sink, fields[k].name, values[k], fields[k].mode, fields[k].unit);
    }
}

static const char *const paths[] = {"/proc/diskstats", NULL};

const struct monitor monitor_diskstats = {.name = "diskstats",
                                          .what = "requests, sectors and times for each disk",
                                          .paths = paths,
                                          .parse = parse};
