/* SPDX-License-Identifier: MIT */
/* mpstat: how all CPUs together spent each interval, in percent, from /proc/stat. */
#include "base/memory.h"
#include "monitors/monitor.h"

static const char *const paths[] = {"/proc/stat", NULL};

/* The fields of the line "cpu", in its order; guest times are contained in user and nice. */
static const char *const names[] = {"usr%",    "nice%", "sys%",  "idle%",
                                    "iowait%", "irq%",  "soft%", "steal%"};

static void parse(struct monitor_instance *i, const struct monitor_file *file,
                  struct monitor_sink *sink)
{
    (void)file;
    const char *line = strbuf_text(&i->text);
    if (!str_has_prefix(line, "cpu "))
        return;
    line += 4;
    double now[ARRAY_COUNT(names)] = {0}, sum = 0;
    for (size_t k = 0; k < ARRAY_COUNT(names) && scan_number(&line, &now[k]); k++)
        sum += now[k] - i->previous[k];
    sink_prefix(sink, "mpstat.cpu.all.", NULL);
    for (size_t k = 0; k < ARRAY_COUNT(names); k++) {
        if (i->has_previous && sum > 0)
            sink_put_text(sink, names[k], 100 * (now[k] - i->previous[k]) / sum, COLUMN_MEAN, "%");
        i->previous[k] = now[k];
    }
}

const struct monitor monitor_mpstat = {
    .name = "mpstat", .what = "how the CPUs spent their time", .paths = paths, .parse = parse};
