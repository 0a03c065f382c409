/* SPDX-License-Identifier: MIT */
/*
 * cpuidle: how often all CPUs together went into each idle state and how long they stayed:
 * cpuidle.C1.usage, cpuidle.C1.time (microseconds).  A file for each CPU, state and figure.
 */
#include "base/fd.h"
#include "base/memory.h"
#include "monitors/monitor.h"

#include <errno.h>
#include <stdio.h>

enum { STATES_MAX = 16 };

struct states {
    char names[STATES_MAX][24];
    double usage[STATES_MAX], time_us[STATES_MAX];
    size_t count;
};

static const char *const paths[] = {"/sys/devices/system/cpu/cpu*/cpuidle/state*/usage",
                                    "/sys/devices/system/cpu/cpu*/cpuidle/state*/time", NULL};

/* Label "cpu0.state1" of the first or second pattern. */
static void parse(struct monitor_instance *i, const struct monitor_file *file,
                  struct monitor_sink *sink)
{
    (void)sink;
    if (!i->extra)
        i->extra = memory_zalloc(1, sizeof(struct states));
    struct states *s = i->extra;
    unsigned cpu, state;
    const char *text = strbuf_text(&i->text);
    double value;
    if (sscanf(file->label, "cpu%u.state%u", &cpu, &state) != 2 || state >= STATES_MAX ||
        !scan_number(&text, &value))
        return;
    if (state >= s->count) {
        char path[80];
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/cpuidle/state%u/name", cpu,
                 state);
        if (!file_read_line(path, s->names[state], sizeof(s->names[state])))
            snprintf(s->names[state], sizeof(s->names[state]), "state%u", state);
        s->count = state + 1;
    }
    if ((size_t)(file - i->files) < i->file_count / 2)
        s->usage[state] += value;
    else
        s->time_us[state] += value;
}

static void finish(struct monitor_instance *i, struct monitor_sink *sink)
{
    struct states *s = i->extra;
    for (size_t k = 0; s && k < s->count; k++) {
        sink_prefix(sink, "cpuidle.", s->names[k]);
        sink_put_text(sink, "usage", s->usage[k], COLUMN_DELTA, "");
        sink_put_text(sink, "time", s->time_us[k], COLUMN_DELTA, "us");
        s->usage[k] = s->time_us[k] = 0;
    }
}

static void done(struct monitor_instance *i)
{
    free(i->extra);
}

const struct monitor monitor_cpuidle = {.name = "cpuidle",
                                        .what = "idle states: how often and how long",
                                        .paths = paths,
                                        .parse = parse,
                                        .finish = finish,
                                        .done = done};
