/* SPDX-License-Identifier: MIT */
/*
 * interrupts and softirqs: tables with a column for each CPU.  Each gives a count for each CPU and
 * one for all: interrupts.CPU0.LOC:Local_timer_interrupts, interrupts.LOC:Local_timer_interrupts,
 * softirqs.CPU0.RCU, softirqs.RCU.
 */
#include "monitors/monitor.h"

#include <ctype.h>
#include <stdio.h>

enum { CPUS_MAX = 1024 };

/* The table's head: how many columns, and which CPU each is. */
static size_t read_head(const char *line, unsigned *cpus)
{
    size_t count = 0;
    const char *word;
    size_t length;
    while (count < CPUS_MAX && scan_word(&line, &word, &length)) {
        double number;
        const char *digits = word + 3;
        if (length < 4 || memcmp(word, "CPU", 3) != 0 || !scan_number(&digits, &number))
            break;
        cpus[count++] = (unsigned)number;
    }
    return count;
}

/* The name of a row: "LOC:Local_timer_interrupts", "26:IO-APIC.4-edge.ttyS0", "RCU". */
static void row_name(const char *key, size_t key_length, const char *rest, char *name, size_t size)
{
    const char glue = isdigit((unsigned char)key[0]) ? '.' : '_';
    size_t used = 0, length;
    const char *word;
    for (size_t k = 0; k < key_length && used + 2 < size; k++)
        name[used++] = key[k];
    bool first = true;
    while (scan_word(&rest, &word, &length)) {
        if (used + length + 2 >= size)
            break;
        name[used++] = first ? ':' : glue;
        memcpy(name + used, word, length);
        used += length;
        first = false;
    }
    name[used] = '\0';
}

static void put_table(struct monitor_instance *i, const char *prefix, struct monitor_sink *sink)
{
    struct scan s = {strbuf_text(&i->text)};
    unsigned cpus[CPUS_MAX];
    const char *line, *key;
    size_t length;
    if (!scan_line(&s, &line, &length))
        return;
    size_t count = read_head(line, cpus);
    while (count && scan_line(&s, &line, &length)) {
        if (!scan_word(&line, &key, &length) || key[length - 1] != ':')
            continue;
        double values[CPUS_MAX], sum = 0;
        size_t found = 0;
        for (; found < count && scan_number(&line, &values[found]); found++)
            sum += values[found];
        char name[128];
        row_name(key, length - 1, line, name, sizeof(name));
        if (found == 0)
            continue;
        sink_prefix(sink, prefix, NULL);
        sink_put_text(sink, name, sum, COLUMN_DELTA, "");
        for (size_t c = 0; c < found && found == count; c++) {
            char label[24];
            snprintf(label, sizeof(label), "CPU%u", cpus[c]);
            sink_prefix(sink, prefix, label);
            sink_put_text(sink, name, values[c], COLUMN_DELTA, "");
        }
    }
}

static void parse_interrupts(struct monitor_instance *i, const struct monitor_file *file,
                             struct monitor_sink *sink)
{
    (void)file;
    put_table(i, "interrupts.", sink);
}

static void parse_softirqs(struct monitor_instance *i, const struct monitor_file *file,
                           struct monitor_sink *sink)
{
    (void)file;
    put_table(i, "softirqs.", sink);
}

static const char *const interrupt_paths[] = {"/proc/interrupts", NULL};
static const char *const softirq_paths[] = {"/proc/softirqs", NULL};

const struct monitor monitor_interrupts = {.name = "interrupts",
                                           .what = "interrupts by kind and CPU",
                                           .paths = interrupt_paths,
                                           .parse = parse_interrupts};
const struct monitor monitor_softirqs = {.name = "softirqs",
                                         .what = "soft interrupts by kind and CPU",
                                         .paths = softirq_paths,
                                         .parse = parse_softirqs};
