/* SPDX-License-Identifier: MIT */
/* schedstat: of each CPU and of all, how long tasks ran, how long they waited for it, and how many
 * times one was put on it (fields 7 to 9 of the cpuN lines); needs a kernel with CONFIG_SCHEDSTATS.
 */
#include "monitors/monitor.h"

#include <ctype.h>
#include <stdio.h>

static void put(struct monitor_sink *sink, const char *label, const double values[3])
{
    sink_prefix(sink, "schedstat.", label);
    sink_put_text(sink, "run_ms", values[0] / 1e6, COLUMN_DELTA, "ms");
    sink_put_text(sink, "wait_ms", values[1] / 1e6, COLUMN_DELTA, "ms");
    sink_put_text(sink, "timeslices", values[2], COLUMN_DELTA, "");
}

static void parse(struct monitor_instance *i, const struct monitor_file *file,
                  struct monitor_sink *sink)
{
    (void)file;
    struct scan s = {strbuf_text(&i->text)};
    const char *line, *key;
    size_t length;
    double sums[3] = {0};
    bool any = false;
    while (scan_line(&s, &line, &length)) {
        double values[9];
        size_t count = 0;
        if (!scan_word(&line, &key, &length) || length < 4 || length > 12 ||
            memcmp(key, "cpu", 3) != 0 || !isdigit((unsigned char)key[3]))
            continue;
        while (count < 9 && scan_number(&line, &values[count]))
            count++;
        if (count < 9)
            continue;
        char label[16];
        snprintf(label, sizeof(label), "%.*s", (int)length, key);
        put(sink, label, values + 6);
        for (size_t k = 0; k < 3; k++)
            sums[k] += values[6 + k];
        any = true;
    }
    if (any)
        put(sink, NULL, sums);
}

static const char *const paths[] = {"/proc/schedstat", NULL};

const struct monitor monitor_schedstat = {.name = "schedstat",
                                          .what = "how long tasks ran and waited on each CPU",
                                          .paths = paths,
                                          .parse = parse};
