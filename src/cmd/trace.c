/* SPDX-License-Identifier: MIT */
/* `assay trace`: the system calls and tracepoints of a command or a process, as they happen. */
#include "base/memory.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "cmd/live_options.h"
#include "live/tracing.h"

#include <errno.h>
#include <stddef.h>

struct arguments {
    struct live_cli live;
    struct option_list events, calls;
    const char *filter, *output, *json;
    bool with_calls, faults, waits, wakes, summary, times;
};

#define O(field) offsetof(struct arguments, field)

static const struct option options[] = {
    {0, NULL, OPTION_HEADING, 0, NULL, "What to show (default: all system calls)", NULL},
    {'c', "call", OPTION_LIST, O(calls), "NAME,…", "only these system calls", NULL},
    {'e', "event", OPTION_LIST, O(events), "SYS:NAME,…",
     "these tracepoints with their fields, instead of system calls", "event"},
    {0, "filter", OPTION_STRING, O(filter), "EXPR",
     "only events of -e whose fields meet this, e.g. 'prev_pid == 7'", NULL},
    {0, "calls", OPTION_FLAG, O(with_calls), NULL, "system calls as well as the events of -e",
     NULL},
    {0, "faults", OPTION_FLAG, O(faults), NULL, "also page faults", NULL},
    {0, "waits", OPTION_FLAG, O(waits), NULL, "also each time off the CPU, and how long", NULL},
    {0, "wakeups", OPTION_FLAG, O(wakes), NULL, "the same, and which thread ended it", NULL},
    LIVE_CLI_OPTIONS(struct arguments, live),
    {0, NULL, OPTION_HEADING, 0, NULL, "Output", NULL},
    {'s', "summary", OPTION_FLAG, O(summary), NULL,
     "a table of the calls: count, errors, total, p50, p99, max", NULL},
    {'t', "times", OPTION_FLAG, O(times), NULL, "begin lines with the seconds since the start",
     NULL},
    {'j', "json", OPTION_OPTIONAL, O(json), "FILE",
     "a JSON object on each line, to this file or to standard output", "file"},
    {'o', "output", OPTION_STRING, O(output), "FILE",
     "write to this file (default: standard error for a command, else standard output)", "file"},
    {0},
};

static char *join(const struct option_list *list)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    for (size_t i = 0; i < list->count; i++)
        strbuf_printf(&text, "%s%s", i ? "," : "", list->items[i]);
    return list->count ? memory_strdup(strbuf_text(&text)) : NULL;
}

static int check(const struct arguments *a, struct error *err)
{
    if (a->filter && !a->events.count)
        return error_set(err, -EINVAL, "--filter needs tracepoints to filter: give them with -e");
    if (a->summary && (a->events.count || a->faults || a->waits || a->wakes))
        return error_set(err, -EINVAL, "-s sums up system calls only");
    return 0;
}

/* NULL for a stream that is open already. */
static const char *output_path(const struct arguments *a)
{
    const char *path = a->json && *a->json ? a->json : a->output;
    return path && str_eq(path, "-") ? NULL : path;
}

static int open_output(struct tracing *t, const struct arguments *a, bool has_command,
                       struct error *err)
{
    const char *path = output_path(a);
    t->out = has_command && !a->json ? stderr : stdout;
    if (!path)
        return 0;
    t->out = fopen(path, "we");
    return t->out ? 0 : error_errno(err, -errno, "%s", path);
}

static int follow(struct arguments *a, struct live_plan *plan, struct error *err)
{
    CLEANUP(memory_freep) char *events = join(&a->events), *calls = join(&a->calls);
    struct tracing_options wanted = {.calls = !events || calls || a->with_calls,
                                     .only = calls,
                                     .events = events,
                                     .filter = a->filter,
                                     .faults = a->faults,
                                     .waits = a->waits,
                                     .wakes = a->wakes,
                                     .summary = a->summary,
                                     .json = a->json,
                                     .times = a->times};
    struct tracing t;
    struct follow f = {0};
    int r = tracing_plan(&t, &wanted, &plan->spec.trace, err);
    plan->spec.pause = tracing_pause;
    if (r == 0)
        r = open_output(&t, a, plan->spec.command, err);
    if (r == 0) {
        r = follow_start(&f, &plan->spec, err);
        if (r == 0)
            r = tracing_prepare(&t, &f, err);
        if (t.note.length)
            fprintf(stderr, "assay trace: %s\n", strbuf_text(&t.note));
        if (r == 0)
            r = follow_run(&f, tracing_take, &t, err);
        if (r == 0)
            tracing_finish(&t, &f);
        live_say_losses("trace", &f);
        plan->exec_failed = f.exec_failed;
        plan->exit_code = follow_exit_code(&f);
        follow_done(&f);
    }
    if (output_path(a) && t.out && fclose(t.out) != 0 && r == 0)
        r = error_errno(err, -errno, "%s", output_path(a));
    tracing_done(&t);
    return r;
}

static int run(int argc, char **argv)
{
    struct error err;
    struct arguments a = {0};
    CLEANUP(live_plan_done) struct live_plan plan = {0};
    int first = options_parse(options, &a, argc, argv, &err);
    int code;
    if (first == OPTIONS_HELP) {
        code = cmd_help(&verb_trace);
    } else if (first < 0 || check(&a, &err) < 0 ||
               live_plan_make(&plan, &a.live, argc - first, argv + first, &err) < 0) {
        code = cmd_usage(&verb_trace, &err);
    } else {
        int r = follow(&a, &plan, &err);
        code = r == 0 ? plan.exit_code : live_plan_fail(&plan, &verb_trace, r, &err);
    }
    free(a.events.items);
    free(a.calls.items);
    return code;
}

const struct verb verb_trace = {
    .name = "trace",
    .summary = "show a program's system calls and tracepoints as they happen",
    .synopsis = "[options] [--] CMD…",
    .examples = "  assay trace ls                       system calls, results and durations\n"
                "  assay trace -s -- make               a table of the calls\n"
                "  assay trace -c openat,read -p 1234   two calls of a running process\n"
                "  assay trace -e 'sched:*' ls          other tracepoints with their fields\n"
                "  assay trace --wakeups ./server       also waits, and who ended them\n",
    .options = options,
    .run = run,
};
