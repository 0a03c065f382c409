/* SPDX-License-Identifier: MIT */
/* meminfo and numa-meminfo: "Name: number kB", a node's lines with "Node 0" before.  Means. */
#include "monitors/monitor.h"

static void put_lines(struct monitor_instance *i, const char *prefix,
                      const struct monitor_file *file, struct monitor_sink *sink)
{
    struct scan s = {strbuf_text(&i->text)};
    const char *line, *key;
    size_t length;
    sink_prefix(sink, prefix, file->label);
    while (scan_line(&s, &line, &length)) {
        double value;
        bool there = scan_word(&line, &key, &length);
        if (there && length == 4 && memcmp(key, "Node", 4) == 0 && scan_number(&line, &value))
            there = scan_word(&line, &key, &length);
        if (!there || length < 2 || key[length - 1] != ':' || !scan_number(&line, &value))
            continue;
        bool in_kib = strncmp(line, " kB", 3) == 0;
        sink_put(sink, key, length - 1, value, COLUMN_MEAN, in_kib ? "KiB" : "");
    }
}

static void parse(struct monitor_instance *i, const struct monitor_file *file,
                  struct monitor_sink *sink)
{
    put_lines(i, "meminfo.", file, sink);
}

static void parse_node(struct monitor_instance *i, const struct monitor_file *file,
                       struct monitor_sink *sink)
{
    put_lines(i, "numa-meminfo.", file, sink);
}

static const char *const paths[] = {"/proc/meminfo", NULL};
static const char *const node_paths[] = {"/sys/devices/system/node/node*/meminfo", NULL};

const struct monitor monitor_meminfo = {
    .name = "meminfo", .what = "what memory is used for", .paths = paths, .parse = parse};
const struct monitor monitor_numa_meminfo = {.name = "numa-meminfo",
                                             .what = "the same for each memory node",
                                             .paths = node_paths,
                                             .parse = parse_node};
