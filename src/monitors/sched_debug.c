/* SPDX-License-Identifier: MIT */
/*
 * sched_debug: what the scheduler tells of each CPU's queues in debugfs, over all CPUs.
 *
 *   what is read       what follows
 *   "cpu#N"            sched_debug.cpu.FIELD.{avg,max,min,stddev}
 *   "cfs_rq[N]:/"      sched_debug.cfs_rq:/.FIELD.…; groups below the root are left out
 *   "rt_rq[N]:/"       sched_debug.rt_rq:/.FIELD.…
 *   "dl_rq[N]:"        sched_debug.dl_rq:.FIELD.…
 *
 * States are means over the readings.  What only grows (the table below) is counted from the run's
 * first reading, where the kernel test robot has the value since the machine started.
 */
#include "base/memory.h"
#include "machine/tracefs.h"
#include "monitors/monitor.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>

static const char *const growing[] = {"nr_switches",  "sched_count",  "sched_goidle",
                                      "ttwu_count",   "ttwu_local",   "yld_count",
                                      "min_vruntime", "avg_vruntime", "zero_vruntime"};
/* Moments and names, of which no mean makes sense. */
static const char *const left_out[] = {"next_balance",  "curr->pid",     "clock",
                                       "clock_task",    "left_deadline", "left_vruntime",
                                       "right_vruntime"};

enum { SECTION_MAX = 16, FIELD_MAX = 64 };

struct sched_field {
    char name[SECTION_MAX + FIELD_MAX];
    bool grows;
    double *first; /* by CPU, where it grows */
    size_t first_capacity;
    size_t count;
    double mean, squares, min, max; /* of this reading, over the CPUs */
};

struct sched_debug {
    struct sched_field *fields;
    size_t count, capacity;
    size_t cursor;
};

static bool is_in(const char *const *list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(list[i], name))
            return true;
    return false;
}

/* "cfs_rq[3]:/": the section without the number, and the number; false for what is left out. */
static bool parse_heading(const char *line, size_t length, char section[static SECTION_MAX],
                          unsigned *ret_cpu)
{
    char text[64], rest[3] = "", kind[8];
    snprintf(text, sizeof(text), "%.*s", (int)(length < 63 ? length : 63), line);
    if (sscanf(text, "cpu#%u", ret_cpu) == 1) {
        snprintf(section, SECTION_MAX, "cpu");
        return true;
    }
    if (sscanf(text, "%7[a-z_][%u]:%2s", kind, ret_cpu, rest) < 2 || strlen(rest) > 1)
        return false;
    snprintf(section, SECTION_MAX, "%s:%s", kind, rest);
    return str_has_suffix(kind, "_rq");
}

static struct sched_field *find_field(struct sched_debug *d, const char *section, const char *name)
{
    char full[SECTION_MAX + FIELD_MAX];
    snprintf(full, sizeof(full), "%s.%s", section, name);
    for (size_t i = 0; i < d->count; i++) {
        struct sched_field *f = &d->fields[(d->cursor + i) % d->count];
        if (str_eq(f->name, full)) {
            d->cursor = (size_t)(f - d->fields) + 1;
            return f;
        }
    }
    struct sched_field *f = &ARRAY_PUSH(d->fields, d->count, d->capacity);
    *f = (struct sched_field){.grows = is_in(growing, ARRAY_COUNT(growing), name)};
    memcpy(f->name, full, sizeof(full));
    d->cursor = d->count;
    return f;
}

static void note(struct sched_field *f, unsigned cpu, double value)
{
    if (f->grows) {
        if (f->first_capacity <= cpu) {
            size_t before = f->first_capacity;
            f->first =
                memory_grow(f->first, &f->first_capacity, cpu + (size_t)1, sizeof(*f->first));
            for (size_t k = before; k < f->first_capacity; k++)
                f->first[k] = NAN;
        }
        if (isnan(f->first[cpu]))
            f->first[cpu] = value;
        value -= f->first[cpu];
    }
    double before = f->mean;
    f->count++;
    f->mean += (value - before) / (double)f->count;
    f->squares += (value - before) * (value - f->mean);
    f->min = f->count == 1 || value < f->min ? value : f->min;
    f->max = f->count == 1 || value > f->max ? value : f->max;
}

/* "  .nr_running                    : 2" */
static void parse_field(struct sched_debug *d, const char *line, const char *section, unsigned cpu)
{
    const char *word;
    size_t length;
    char name[FIELD_MAX];
    double value;
    if (!scan_word(&line, &word, &length) || length < 2 || word[0] != '.' || length > FIELD_MAX)
        return;
    snprintf(name, sizeof(name), "%.*s", (int)length - 1, word + 1);
    if (is_in(left_out, ARRAY_COUNT(left_out), name) || strstr(name, "se->"))
        return;
    if (scan_word(&line, &word, &length) && length == 1 && word[0] == ':' &&
        scan_number(&line, &value))
        note(find_field(d, section, name), cpu, value);
}

static void put_fields(struct sched_debug *d, struct monitor_sink *sink)
{
    for (size_t i = 0; i < d->count; i++) {
        const struct sched_field *f = &d->fields[i];
        if (!f->count)
            continue;
        const struct {
            const char *name;
            double value;
        } figures[] = {{"avg", f->mean},
                       {"max", f->max},
                       {"min", f->min},
                       {"stddev", sqrt(f->squares / (double)f->count)}};
        sink_prefix(sink, "sched_debug.", f->name);
        for (size_t k = 0; k < ARRAY_COUNT(figures); k++)
            sink_put_text(sink, figures[k].name, figures[k].value,
                          f->grows ? COLUMN_LAST : COLUMN_MEAN, "");
    }
}

static void parse(struct monitor_instance *i, const struct monitor_file *file,
                  struct monitor_sink *sink)
{
    (void)file;
    struct sched_debug *d = i->extra;
    if (!d)
        d = i->extra = memory_zalloc(1, sizeof(*d));
    for (size_t k = 0; k < d->count; k++) {
        struct sched_field *f = &d->fields[k];
        f->count = 0;
        f->mean = f->squares = 0;
        for (size_t c = 0; !i->has_previous && c < f->first_capacity; c++)
            f->first[c] = NAN;
    }
    struct scan s = {strbuf_text(&i->text)};
    const char *line;
    size_t length;
    char section[SECTION_MAX] = "";
    unsigned cpu = 0;
    while (scan_line(&s, &line, &length)) {
        if (length && !isspace((unsigned char)line[0])) {
            if (!parse_heading(line, length, section, &cpu) || cpu > 1u << 20)
                section[0] = '\0';
        } else if (length && section[0]) {
            parse_field(d, line, section, cpu);
        }
    }
    put_fields(d, sink);
}

static int open_debug(struct monitor_instance *i, struct error *err)
{
    int fd = debugfs_open("sched/debug", err);
    if (fd < 0)
        return fd;
    ARRAY_PUSH(i->files, i->file_count, i->file_capacity) = (struct monitor_file){.fd = fd};
    return 0;
}

static void done(struct monitor_instance *i)
{
    struct sched_debug *d = i->extra;
    for (size_t k = 0; d && k < d->count; k++)
        free(d->fields[k].first);
    if (d)
        free(d->fields);
    free(d);
    i->extra = NULL;
}

/* Where it is mounted, as in an emulated machine. */
static const char *const paths[] = {"/sys/kernel/debug/sched/debug", NULL};

/* The kernel walks all tasks and groups for it. */
const struct monitor monitor_sched_debug = {.name = "sched_debug",
                                            .what = "the scheduler's queues, from debugfs",
                                            .every = 10,
                                            .paths = paths,
                                            .open = open_debug,
                                            .parse = parse,
                                            .done = done};
