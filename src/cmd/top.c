/* SPDX-License-Identifier: MIT */
/* `assay top`: what runs now, and what it waits for. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "cmd/live_options.h"
#include "report/live/top_screen.h"
#include "report/live/top_text.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <unistd.h>

struct arguments {
    const char *pids, *cgroup;
    const char *view, *sort, *filter;
    const char *json, *output;
    uint64_t frequency_hz, interval_ns, window_ns;
    uint64_t frames, rows;
    bool once, plain, idle;
};

#define O(field) offsetof(struct arguments, field)

static const struct option options[] = {
    {0, NULL, OPTION_HEADING, 0, NULL, "Whom (default: the whole machine)", NULL},
    {'p', "pid", OPTION_STRING, O(pids), "PID,…", "these processes and what they start", NULL},
    {0, "cgroup", OPTION_STRING, O(cgroup), "NAME", "what runs in this cgroup: a container, a unit",
     NULL},
    {0, NULL, OPTION_HEADING, 0, NULL, "What to show", NULL},
    {'v', "view", OPTION_STRING, O(view), "VIEW", "functions, threads, calls or waits (functions)",
     "functions threads calls waits"},
    {'s', "sort", OPTION_STRING, O(sort), "COLUMN",
     "cpu, ready, waiting or name (what the view spends)", "cpu ready waiting name"},
    {0, "filter", OPTION_STRING, O(filter), "TEXT", "only rows that have this text", NULL},
    {0, "idle", OPTION_FLAG, O(idle), NULL, "also waits of threads that slept all the time", NULL},
    {'F', "freq", OPTION_U64, O(frequency_hz), "HZ", "samples per second on each CPU (99)", NULL},
    {'d', "delay", OPTION_SECONDS, O(interval_ns), "SECONDS", "time between frames (1)", NULL},
    {'w', "window", OPTION_SECONDS, O(window_ns), "SECONDS", "time that a frame adds up (5)", NULL},
    {0, NULL, OPTION_HEADING, 0, NULL, "Output", NULL},
    {'n', "frames", OPTION_U64, O(frames), "N", "print N frames as plain text and end", NULL},
    {0, "once", OPTION_FLAG, O(once), NULL, "the same as -n 1", NULL},
    {0, "plain", OPTION_FLAG, O(plain), NULL, "plain text on a terminal as well", NULL},
    {'r', "rows", OPTION_U64, O(rows), "N", "rows of a frame of plain text or JSON (20)", NULL},
    {'j', "json", OPTION_OPTIONAL, O(json), "FILE",
     "a JSON object with all views for each frame, to this file or to standard output", "file"},
    {'o', "output", OPTION_STRING, O(output), "FILE", "save all samples as a recording at the end",
     "file"},
    {0},
};

/* What the arguments come to. */
struct plan {
    struct top_spec spec;
    struct view_options view;
    pid_t *pids;
    size_t row_limit;
    uint64_t frame_limit; /* 0 for none */
    char **command_line;
};

static void plan_done(struct plan *p)
{
    free(p->pids);
    free(p->command_line);
}

static int find_word(const char *what, const char *word, const char *const *words, size_t count,
                     struct error *err)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(word, words[i]))
            return (int)i;
    CLEANUP(strbuf_done) struct strbuf known = {0};
    for (size_t i = 0; i < count; i++)
        strbuf_printf(&known, "%s%s", i ? ", " : "", words[i]);
    return error_set(err, -EINVAL, "%s: unknown word '%s'; use one of %s", what, word,
                     strbuf_text(&known));
}

static int plan_view(struct plan *p, const struct arguments *a, struct error *err)
{
    static const char *const views[] = {"functions", "threads", "calls", "waits"};
    static const char *const sorts[] = {"cpu", "ready", "waiting", "name"};
    int view = a->view ? find_word("--view", a->view, views, ARRAY_COUNT(views), err) : 0;
    if (view < 0)
        return view;
    p->view = (struct view_options){.view = (enum view)view,
                                    .sort = view_default_sort((enum view)view),
                                    .with_sleepers = a->idle,
                                    .filter = a->filter};
    int sort = a->sort ? find_word("--sort", a->sort, sorts, ARRAY_COUNT(sorts), err) : 0;
    if (a->sort && sort >= 0)
        p->view.sort = (enum view_sort)sort;
    return sort < 0 ? sort : 0;
}

static int plan_times(struct plan *p, const struct arguments *a, struct error *err)
{
    if (!a->frequency_hz)
        return error_set(err, -EINVAL, "option -F: must be at least one sample per second");
    p->spec.frequency_hz = a->frequency_hz;
    p->spec.interval_ns = a->interval_ns ? a->interval_ns : NS_PER_S;
    if (p->spec.interval_ns < 100 * NS_PER_MS)
        return error_set(err, -EINVAL,
                         "option -d: at least 0.1 seconds, or the screen would be "
                         "all that there is to see");
    uint64_t window_ns = a->window_ns ? a->window_ns : 5 * NS_PER_S;
    uint64_t count = (window_ns + p->spec.interval_ns / 2) / p->spec.interval_ns;
    if (count > WINDOW_INTERVALS_MAX)
        return error_set(err, -EINVAL, "option -w: at most %d times the time between frames (-d)",
                         WINDOW_INTERVALS_MAX);
    p->spec.interval_count = count ? (size_t)count : 1;
    p->frame_limit = a->once ? 1 : a->frames;
    p->row_limit = a->rows ? (size_t)a->rows : 20;
    return 0;
}

static int make_plan(struct plan *p, const struct arguments *a, int argc, char **argv,
                     struct error *err)
{
    if (argc > 0)
        return error_set(err, -EINVAL,
                         "top takes no arguments: '%s'; to profile a command: assay record %s",
                         argv[0], argv[0]);
    if (a->pids && a->cgroup)
        return error_set(err, -EINVAL, "-p and --cgroup cannot be used together");
    if (a->once && a->frames > 1)
        return error_set(err, -EINVAL, "--once and -n cannot be used together");
    int r = live_parse_pids(a->pids, &p->pids, &p->spec.pid_count, err);
    p->spec.pids = p->pids;
    p->spec.cgroup = a->cgroup;
    if (r == 0)
        r = plan_view(p, a, err);
    if (r == 0)
        r = plan_times(p, a, err);
    return r;
}

static void say_notes(const struct top *t)
{
    for (const char *line = top_notes(t); *line;) {
        size_t length = strcspn(line, "\n");
        fprintf(stderr, "assay top: %.*s\n", (int)length, line);
        line += length + (line[length] == '\n');
    }
}

static int put_frame(struct top *t, const struct plan *p, const struct arguments *a, FILE *out)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    size_t columns = isatty(STDOUT_FILENO) ? term_columns(STDOUT_FILENO) : 160;
    if (a->json)
        top_put_json(t, &p->view, p->row_limit, &text);
    else
        top_put_frame(t, &p->view, columns, p->row_limit, &text);
    fwrite(strbuf_text(&text), 1, text.length, out);
    return fflush(out) == 0 ? 0 : -errno;
}

/* Frames as text until there were enough, a signal comes or all has ended. */
static int print_frames(struct top *t, const struct plan *p, const struct arguments *a, FILE *out,
                        int *ret_signal, bool *ret_ended, struct error *err)
{
    for (uint64_t i = 0; !p->frame_limit || i < p->frame_limit; i++) {
        enum top_event event = top_wait(t, -1);
        *ret_ended = event == TOP_ENDED;
        if (event == TOP_SIGNAL) {
            *ret_signal = process_signals_caught();
            return 0;
        }
        if (i && !a->json)
            fputc('\n', out);
        int r = put_frame(t, p, a, out);
        if (r < 0)
            return error_errno(err, r, "%s", a->json && *a->json ? a->json : "standard output");
        if (*ret_ended)
            return 0;
    }
    return 0;
}

static int show(struct top *t, const struct plan *p, const struct arguments *a, int *ret_signal,
                bool *ret_ended, struct error *err)
{
    bool on_screen = !a->plain && !a->json && !p->frame_limit && isatty(STDIN_FILENO) &&
                     isatty(STDOUT_FILENO) && !term_is_dumb();
    if (on_screen) {
        struct top_screen_spec spec = {.options = p->view,
                                       .colour = term_has_colour(STDOUT_FILENO),
                                       .utf8 = term_has_utf8(STDOUT_FILENO),
                                       .save_as = a->output ? a->output : "perf.data",
                                       .command_line = p->command_line};
        return top_screen_run(t, &spec, ret_signal, ret_ended, err);
    }
    const char *path = a->json && *a->json && !str_eq(a->json, "-") ? a->json : NULL;
    FILE *out = path ? fopen(path, "we") : stdout;
    if (!out)
        return error_errno(err, -errno, "%s", path);
    say_notes(t);
    int r = print_frames(t, p, a, out, ret_signal, ret_ended, err);
    if (path && fclose(out) != 0 && r == 0)
        r = error_errno(err, -errno, "%s", path);
    return r;
}

static int save(struct top *t, const struct plan *p, const char *path, struct error *err)
{
    uint64_t samples;
    bool is_cut;
    int r = path ? top_save(t, path, p->command_line, &samples, &is_cut, err) : 0;
    if (path && r == 0)
        fprintf(stderr, "assay top: %" PRIu64 " %s -> %s%s\n", samples,
                plural(samples, "sample", "samples"), path,
                is_cut ? "; the oldest were no longer there" : "");
    return r;
}

static int watch(const struct plan *p, const struct arguments *a)
{
    struct error err;
    struct top *t;
    int signal_number = 0;
    bool ended = false;
    process_signals_catch();
    int r = top_open(&t, &p->spec, &err);
    if (r == 0) {
        r = show(t, p, a, &signal_number, &ended, &err);
        if (r == 0)
            r = save(t, p, a->output, &err);
        top_free(t);
    }
    process_signals_restore();
    if (r < 0)
        return cmd_fail(&verb_top, &err, EXIT_TROUBLE);
    if (ended)
        fprintf(stderr, "assay top: %s\n",
                p->spec.pid_count > 1 ? "all these processes have ended" : "the process has ended");
    return signal_number && signal_number != SIGINT ? 128 + signal_number : EXIT_DONE;
}

static int run(int argc, char **argv)
{
    struct error err;
    struct arguments a = {.frequency_hz = 99};
    CLEANUP(plan_done) struct plan plan = {0};
    int first = options_parse(options, &a, argc, argv, &err);
    if (first == OPTIONS_HELP)
        return cmd_help(&verb_top);
    if (first < 0 || make_plan(&plan, &a, argc - first, argv + first, &err) < 0)
        return cmd_usage(&verb_top, &err);
    plan.command_line = memory_zalloc((size_t)argc + 2, sizeof(*plan.command_line));
    plan.command_line[0] = "assay";
    memcpy(plan.command_line + 1, argv, (size_t)argc * sizeof(*argv));
    return watch(&plan, &a);
}

const struct verb verb_top = {
    .name = "top",
    .summary = "show live what runs: functions, threads, system calls and waits",
    .synopsis = "[options]",
    .examples = "  assay top                            the whole machine\n"
                "  assay top -p 1234 -v waits           what a process waits for\n"
                "  assay top --cgroup system.slice      what runs there\n"
                "  assay top --once                     one frame as text\n"
                "  assay top --json -n 60 > minute.json an object a second\n",
    .options = options,
    .run = run,
};
