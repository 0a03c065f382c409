/* SPDX-License-Identifier: MIT */
/* What a person must know before believing a measurement: see doubts.h. */
#include "counters/doubts.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/strings.h"
#include "counters/accounting.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>

/* Shorter than this, starting a process and reading the clock are most of what elapsed. */
#define SHORT_RUN_NS (2 * NS_PER_MS)
/* From this share on, a run is called one of its loader. */
#define STARTUP_SHARE 0.3
/* Taken by the host of all CPUs' time: from here on it disturbs. */
#define STEAL_SHARE 0.01

__attribute__((format(printf, 3, 4))) static void add(struct doubt_list *list, const char *id,
                                                      const char *format, ...)
{
    va_list args;
    char *text = NULL;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        text = memory_strdup("");
    va_end(args);
    ARRAY_PUSH(list->items, list->count, list->capacity) = (struct doubt){.id = id, .text = text};
}

static bool needs_pmu(const struct event *e)
{
    return e->attr.type == PERF_TYPE_HARDWARE || e->attr.type == PERF_TYPE_HW_CACHE ||
           e->attr.type == PERF_TYPE_RAW;
}

/* One sentence for all events that are missing for the same reason. */
static void missing_events(struct doubt_list *list, const struct doubt_context *c)
{
    const struct measurement *m = c->m;
    bool hardware = false;
    for (size_t i = 0; i < m->event_count; i++) {
        bool seen = !m->why[i];
        for (size_t j = 0; j < i && !seen; j++)
            seen = m->why[j] && str_eq(m->why[i], m->why[j]);
        if (m->why[i])
            hardware |= needs_pmu(&c->events->items[i]);
        if (seen)
            continue;
        CLEANUP(strbuf_done) struct strbuf names = {0};
        for (size_t j = i; j < m->event_count; j++)
            if (m->why[j] && str_eq(m->why[i], m->why[j]))
                strbuf_printf(&names, "%s%s", names.length ? ", " : "", c->events->items[j].name);
        add(list, "not-supported", "<not supported> %s: %s.", strbuf_text(&names), m->why[i]);
    }
    if (hardware && c->can_simulate)
        add(list, "simulate",
            "'assay stat --sim' counts instructions exactly without a PMU (about 7 times slower), "
            "--sim=full also branches and cache misses (about 20 times); 'assay doctor' shows what "
            "this machine can measure.");
}

static void partial_events(struct doubt_list *list, const struct doubt_context *c)
{
    CLEANUP(strbuf_done) struct strbuf names = {0};
    for (size_t i = 0; i < c->m->event_count; i++)
        if (c->m->user_only[i])
            strbuf_printf(&names, "%s%s", names.length ? ", " : "", c->events->items[i].name);
    if (names.length)
        add(list, "user-only",
            "%s: counted in user mode only; to count the kernel, too, run as root or set "
            "kernel.perf_event_paranoid=1.",
            strbuf_text(&names));
}

static void accounted_events(struct doubt_list *list, const struct doubt_context *c)
{
    CLEANUP(strbuf_done) struct strbuf names = {0}, text = {0};
    for (size_t i = 0; i < c->m->event_count; i++)
        if (c->m->accounted[i])
            strbuf_printf(&names, "%s%s", names.length ? ", " : "", c->events->items[i].name);
    if (!names.length)
        return;
    accounting_explain(&text, strbuf_text(&names));
    add(list, "accounted", "%s.", strbuf_text(&text));
}

/* Opening an event is no proof that it counts: virtual machines offer counters that stand still. */
static void standing_counters(struct doubt_list *list, const struct doubt_context *c)
{
    for (size_t i = 0; i < c->m->event_count; i++) {
        const struct event *e = &c->events->items[i];
        if (c->m->why[i] || e->attr.type != PERF_TYPE_HARDWARE ||
            e->attr.config > PERF_COUNT_HW_INSTRUCTIONS)
            continue;
        struct counter_value sum = {0};
        for (size_t run = 0; run < c->m->run_count; run++) {
            sum.raw += c->m->runs[run].values[i].raw;
            sum.running_ns += c->m->runs[run].values[i].running_ns;
        }
        if (sum.raw == 0 && sum.running_ns > NS_PER_MS)
            add(list, "standing-counter",
                "%s: the counter ran but stayed at 0: this machine's PMU does not count it.",
                e->name);
    }
}

/* The mean CPU time of a run, by task-clock; negative when it was not counted. */
static double mean_cpu_ns(const struct doubt_context *c)
{
    double sum_ns = 0;
    for (size_t i = 0; i < c->m->event_count; i++) {
        const struct event *e = &c->events->items[i];
        if (e->attr.type != PERF_TYPE_SOFTWARE || e->attr.config != PERF_COUNT_SW_TASK_CLOCK ||
            c->m->why[i])
            continue;
        for (size_t run = 0; run < c->m->run_count; run++)
            sum_ns += counter_scaled(&c->m->runs[run].values[i]);
        return sum_ns / (double)c->m->run_count;
    }
    return -1;
}

static double mean_wall_ns(const struct measurement *m)
{
    double sum_ns = 0;
    for (size_t run = 0; run < m->run_count; run++)
        sum_ns += (double)m->runs[run].wall_ns;
    return sum_ns / (double)m->run_count;
}

static void impossible_times(struct doubt_list *list, const struct doubt_context *c)
{
    double cpu_ns = mean_cpu_ns(c), wall_ns = mean_wall_ns(c->m);
    /* Clocks of CPU and wall are read a little apart: 50 µs and 2 % are allowed. */
    if (wall_ns > 0 && cpu_ns > ((double)c->cpu_count * wall_ns) * 1.02 + 50e3)
        add(list, "impossible-utilisation",
            "%.1f CPUs utilized is impossible on %zu: the elapsed time does not cover what was "
            "counted (the clock was changed, or processes kept running after the command).",
            cpu_ns / wall_ns, c->cpu_count);
    if (!c->m->runs[0].has_command || c->systemwide || c->drops_counters)
        return;
    double startup_ns = (double)c->startup_cpu_ns;
    char spent[32], startup[32], wall[32];
    format_duration(cpu_ns, spent, sizeof(spent));
    format_duration(startup_ns, startup, sizeof(startup));
    format_duration(wall_ns, wall, sizeof(wall));
    if (cpu_ns >= 0 && startup_ns > STARTUP_SHARE * cpu_ns)
        add(list, "mostly-startup",
            "Of %s CPU time, about %s (%.0f %%) goes into starting the program (exec and the "
            "dynamic loader; measured by loading it without running it): this measures %s. Give it "
            "more work.",
            spent, startup, 100 * (startup_ns < cpu_ns ? startup_ns / cpu_ns : 1.0),
            startup_ns > cpu_ns / 2 ? "startup more than the program"
                                    : "startup nearly as much as the program");
    else if (wall_ns < SHORT_RUN_NS)
        add(list, "too-short",
            "A run of %s is barely longer than starting a process takes: give it more work, or "
            "look at counts instead of times.",
            wall);
}

/* How the commands ended, each way counted by itself. */
struct ends {
    size_t timed_out, left, killed, failed;
    int signal_number, code;
    bool codes_differ;
};

static struct ends count_ends(const struct measurement *m)
{
    struct ends e = {0};
    for (size_t i = 0; i < m->run_count; i++) {
        const struct measured_run *run = &m->runs[i];
        e.timed_out += run->timed_out;
        e.left += run->left_behind;
        if (!run->has_command || run->timed_out || !run->status)
            continue;
        if (WIFSIGNALED(run->status)) {
            e.killed++;
            e.signal_number = WTERMSIG(run->status);
            continue;
        }
        e.codes_differ |= e.failed && e.code != WEXITSTATUS(run->status);
        e.failed++;
        e.code = WEXITSTATUS(run->status);
    }
    return e;
}

static void endings(struct doubt_list *list, const struct doubt_context *c)
{
    const struct measurement *m = c->m;
    const struct ends e = count_ends(m);
    if (e.timed_out && m->runs[0].has_command)
        add(list, "timed-out", "%zu of %zu runs reached the time limit and were stopped.",
            e.timed_out, m->run_count);
    if (e.killed)
        add(list, "killed", "%zu of %zu runs ended by signal %d (%s).", e.killed, m->run_count,
            e.signal_number, strsignal(e.signal_number));
    if (e.codes_differ)
        add(list, "failed", "%zu of %zu runs ended with exit codes other than 0, the last with %d.",
            e.failed, m->run_count, e.code);
    else if (e.failed)
        add(list, "failed", "%zu of %zu runs ended with exit code %d.", e.failed, m->run_count,
            e.code);
    if (e.left)
        add(list, "left-behind",
            "After %zu of %zu runs, processes that the command had started were still running; "
            "what they do after its end is not counted.",
            e.left, m->run_count);
    if (m->left_out_last)
        add(list, "interrupted",
            "Interrupted by signal %d (%s); the run that it cut short is not counted.", m->signal,
            strsignal(m->signal));
    else if (m->signal && !e.failed && !e.killed)
        add(list, "interrupted", "Interrupted by signal %d (%s): these are the counts up to then.",
            m->signal, strsignal(m->signal));
}

/* -D longer than the command, for example. */
static void nothing_counted(struct doubt_list *list, const struct doubt_context *c)
{
    for (size_t run = 0; run < c->m->run_count; run++)
        for (size_t i = 0; i < c->m->event_count; i++)
            if (c->m->runs[run].values[i].enabled_ns)
                return;
    for (size_t i = 0; i < c->m->event_count; i++)
        if (!c->m->why[i]) {
            add(list, "never-enabled",
                "Nothing ran while the counters were on, so all counts are 0 (is the delay longer "
                "than the command?).");
            return;
        }
}

static void losses(struct doubt_list *list, const struct doubt_context *c)
{
    const struct measurement *m = c->m;
    if (m->lost_records)
        add(list, "lost-records",
            "%llu %s lost (the ring was full): the table of threads is incomplete.",
            (unsigned long long)m->lost_records,
            plural(m->lost_records, "record of an ended thread was",
                   "records of ended threads were"));
    double spent_ns = mean_wall_ns(m) * (double)m->run_count * (double)c->cpu_count;
    if ((double)m->steal_ns > STEAL_SHARE * spent_ns && m->steal_ns > 20 * NS_PER_MS)
        add(list, "steal",
            "The host took %.1f %% of this virtual machine's CPU time during the measurement "
            "(steal): times are longer than the work.",
            100 * (double)m->steal_ns / spent_ns);
}

void doubts_find(struct doubt_list *list, const struct doubt_context *context)
{
    missing_events(list, context);
    partial_events(list, context);
    accounted_events(list, context);
    if (!context->m->run_count)
        return;
    nothing_counted(list, context);
    if (context->drops_counters)
        add(list, "set-uid",
            "The program is set-uid or set-gid: the kernel removes an ordinary user's counters "
            "when it starts, so these counts are not the program's. Run assay as root.");
    standing_counters(list, context);
    impossible_times(list, context);
    endings(list, context);
    losses(list, context);
}

void doubt_list_done(struct doubt_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i].text);
    free(list->items);
    *list = (struct doubt_list){0};
}
