/* SPDX-License-Identifier: MIT */
/* `assay stat`: counts events for a command, a process, CPUs or a cgroup, as perf stat does. */
#include "report/text/stat.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "cmd/stat.h"
#include "counters/doubts.h"
#include "counters/filter.h"
#include "counters/metrics.h"
#include "counters/online.h"
#include "counters/simulated.h"
#include "counters/startup.h"
#include "exact/tool.h"

#include <errno.h>
#include <stddef.h>
#include <sys/stat.h>

/* Runs with more CPU time than this are not asked how much of it their start took. */
#define STARTUP_MATTERS_NS (50 * 1000 * 1000)

#define NOT_GIVEN UINT64_MAX /* of durations where 0 is an error */

#define O(field) offsetof(struct stat_options, field)

static const struct option options[] = {
    {0, NULL, OPTION_HEADING, 0, NULL, "What to count", NULL},
    {'e', "event", OPTION_LIST, O(events), "LIST",
     "events: names, rNNN, pmu/…/, sys:tracepoint, mem:, uprobe:, {groups}, :u :k", "event"},
    {0, "filter", OPTION_LIST, O(filters), "EXPR",
     "count only tracepoints whose fields meet this, e.g. 'prev_pid == 7'", NULL},
    {'d', "detailed", OPTION_COUNT, O(detail), NULL, "more default events; also -dd and -ddd",
     NULL},
    {'M', "metrics", OPTION_STRING, O(metrics), "NAME,…",
     "the events of these metrics, e.g. ipc,branch-misses,stalls", NULL},
    {0, "topdown", OPTION_FLAG, O(topdown), NULL,
     "the events of the top-down method, where the PMU has them", NULL},
    {0, "sim", OPTION_OPTIONAL, O(sim), "full",
     "simulate with cachegrind: exact counts without a PMU, 7 (full: 20) times slower", NULL},
    {0, "exact", OPTION_OPTIONAL, O(exact), "user|arm64|model",
     "count instructions exactly, by function, and system calls, in an emulated machine (QEMU)",
     "user arm64 model"},
    {0, NULL, OPTION_HEADING, 0, NULL, "What to watch", NULL},
    {'p', "pid", OPTION_LIST, O(pids), "PIDS", "count for these running processes", NULL},
    {'a', "all-cpus", OPTION_FLAG, O(all_cpus), NULL, "count everything on all CPUs", NULL},
    {'C', "cpu", OPTION_STRING, O(cpus), "CPUS", "count everything on these CPUs, e.g. 0-3,7",
     NULL},
    {'G', "cgroup", OPTION_STRING, O(cgroup), "NAME", "count the tasks of a cgroup", NULL},
    {'A', "no-aggr", OPTION_FLAG, O(per_cpu), NULL, "with -a, -C or -G: a table for each CPU",
     NULL},
    {0, "per-core", OPTION_FLAG, O(per_core), NULL, "with -a, -C or -G: a table for each core",
     NULL},
    {0, "per-thread", OPTION_FLAG, O(per_thread), NULL, "print a table for each thread", NULL},
    {0, NULL, OPTION_HEADING, 0, NULL, "How long and how often", NULL},
    {'r', "repeat", OPTION_U64, O(repeat_count), "N", "run the command N times", NULL},
    {'I', "interval-print", OPTION_MS, O(interval_ns), "MS", "print counts every MS milliseconds",
     NULL},
    {'D', "delay", OPTION_MS, O(delay_ns), "MS", "start counting after MS milliseconds", NULL},
    {0, "timeout", OPTION_MS, O(timeout_ns), "MS",
     "stop the measurement (and the command) after this time", NULL},
    {0, NULL, OPTION_HEADING, 0, NULL, "Output", NULL},
    {'j', "json", OPTION_OPTIONAL, O(json), "FILE",
     "JSON with every run's values, to this file or to standard output", "file"},
    {0, "csv", OPTION_OPTIONAL, O(csv), "FILE",
     "CSV with every run's values, to this file or to standard output", "file"},
    {'x', "field-separator", OPTION_STRING, O(separator), "SEP",
     "lines of fields in perf stat's order, with this between them", NULL},
    {'o', "output", OPTION_STRING, O(output), "FILE",
     "write to this file instead of standard error (- for standard output)", "file"},
    {0},
};

/* What the callbacks of a running measurement need. */
struct watcher {
    struct stat_view view;
    struct progress progress;
    bool print_intervals;
    const char *separator;    /* of -x, or NULL */
    struct strbuf *intervals; /* collects them for a file; NULL to print them at once */
};

static void show_interval(const struct measurement *m, void *context)
{
    struct watcher *w = context;
    if (!w->print_intervals)
        return;
    w->view.m = m;
    CLEANUP(strbuf_done) struct strbuf text = {0};
    struct strbuf *out = w->intervals ? w->intervals : &text;
    if (w->separator)
        report_stat_fields_interval(out, &w->view, w->separator);
    else
        report_stat_interval(out, &w->view);
    fd_write_all(STDERR_FILENO, text.data, text.length);
}

static void show_run(const struct measurement *m, void *context)
{
    struct watcher *w = context;
    progress_show(&w->progress, "run %zu of %llu", m->run_count,
                  (unsigned long long)w->view.requested_runs);
}

static void show_simulated_run(const struct simulation *s, void *context)
{
    struct watcher *w = context;
    progress_show(&w->progress, "simulated run %zu of %llu", s->run_count,
                  (unsigned long long)w->view.requested_runs);
}

/* Checks what only the combination of options can tell. */
static int check_options(const struct stat_options *o, bool has_command, struct error *err)
{
    bool attached = o->pids.count || o->all_cpus || o->cpus || o->cgroup;
    if (o->repeat_count == 0)
        return error_set(err, -EINVAL, "-r 0: the number of runs must be at least 1");
    if (o->json && o->csv)
        return error_set(err, -EINVAL, "--json and --csv cannot be used together");
    if (!has_command && !attached)
        return error_set(err, -EINVAL, "nothing to count: give a command, or -p, -a, -C or -G");
    if (o->pids.count && (o->all_cpus || o->cpus || o->cgroup))
        return error_set(err, -EINVAL, "-p cannot be used with -a, -C or -G");
    if (!has_command && o->repeat_count > 1)
        return error_set(err, -EINVAL, "-r repeats a command, but none is given");
    if (o->per_thread && (o->all_cpus || o->cpus || o->cgroup))
        return error_set(err, -EINVAL, "--per-thread needs a command or -p");
    if ((o->per_cpu || o->per_core) && !(o->all_cpus || o->cpus || o->cgroup))
        return error_set(err, -EINVAL, "-A and --per-core need -a, -C or -G");
    if (o->per_cpu && o->per_core)
        return error_set(err, -EINVAL, "-A and --per-core cannot be used together");
    if (o->separator && (o->json || o->csv))
        return error_set(err, -EINVAL, "-x cannot be used with --json or --csv");
    if (o->per_thread && o->delay_ns && !o->pids.count)
        return error_set(err, -EINVAL, "--per-thread and -D cannot be used together for a command");
    if (o->interval_ns < 1000000)
        return error_set(err, -EINVAL, "-I: the interval must be at least 1 ms");
    if (o->timeout_ns == 0)
        return error_set(err, -EINVAL, "--timeout 0: leaves no time to measure");
    bool plain = !attached && !o->metrics && !o->topdown && !o->separator && !o->events.count &&
                 !o->filters.count && !o->detail && o->interval_ns == NOT_GIVEN && !o->delay_ns &&
                 o->timeout_ns == NOT_GIVEN && !o->per_thread;
    if (o->exact)
        return o->sim   ? error_set(err, -EINVAL, "--sim and --exact cannot be used together")
               : !plain ? error_set(err, -EINVAL,
                                    "--exact can be combined only with -r, -o, --json and --csv")
                        : exact_check_word(o->exact, err);
    if (!o->sim)
        return 0;
    if (*o->sim && !str_eq(o->sim, "full"))
        return error_set(err, -EINVAL, "--sim=%s: use --sim or --sim=full", o->sim);
    if (!plain)
        return error_set(err, -EINVAL, "--sim can be combined only with -r, -o, --json and --csv");
    return 0;
}

static int parse_pids(const struct option_list *texts, pid_t **ret_pids, size_t *ret_count,
                      struct error *err)
{
    pid_t *pids = NULL;
    size_t count = 0, capacity = 0;
    for (size_t i = 0; i < texts->count; i++) {
        CLEANUP(memory_freep) char *copy = memory_strdup(texts->items[i]);
        char *save = NULL;
        for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
            uint64_t pid;
            int r = parse_u64(word, &pid, err);
            if (r == 0 && (pid == 0 || pid > INT32_MAX))
                r = error_set(err, -EINVAL, "'%s' is not a process ID", word);
            if (r < 0) {
                free(pids);
                return error_wrap(err, r, "option --pid");
            }
            ARRAY_PUSH(pids, count, capacity) = (pid_t)pid;
        }
    }
    if (!count)
        return error_set(err, -EINVAL, "option --pid: no process ID is given");
    *ret_pids = pids;
    *ret_count = count;
    return 0;
}

/* "for what" in words. */
static void describe_target(struct strbuf *out, const struct stat_options *o, char *const *argv)
{
    if (o->pids.count) {
        strbuf_puts(out, o->pids.count > 1 || strchr(o->pids.items[0], ',') ? "process ids "
                                                                            : "process id ");
        for (size_t i = 0; i < o->pids.count; i++)
            strbuf_printf(out, "%s%.200s", i ? "," : "", o->pids.items[i]);
    } else if (o->cgroup) {
        strbuf_puts(out, "cgroup ");
        strbuf_put_safe(out, o->cgroup, strlen(o->cgroup), 200);
    } else if (o->cpus) {
        strbuf_puts(out, "CPU(s) ");
        strbuf_put_safe(out, o->cpus, strlen(o->cpus), 200);
    } else if (o->all_cpus) {
        strbuf_puts(out, "system wide");
    }
    if (!argv)
        return;
    CLEANUP(strbuf_done) struct strbuf command = {0};
    strbuf_put_command(&command, argv);
    strbuf_puts(out, out->length ? " during '" : "'");
    strbuf_put_safe(out, strbuf_text(&command), command.length, 300);
    strbuf_puts(out, "'");
}

/* Nothing is lost: what a full disk refuses goes to standard error.  Signals wait for a file; one
 * may end the writing to a pipe or terminal. */
static int write_out(struct outfile *file, const struct strbuf *text, struct error *err)
{
    if (!file->temporary_path)
        process_signals_restore();
    int r = outfile_write(file, text->data, text->length, err);
    if (r == 0)
        r = outfile_commit(file, err);
    if (r < 0)
        fd_write_all(STDERR_FILENO, text->data, text->length);
    return r;
}

int stat_deliver(struct stat_reports *reports, struct error *err)
{
    int r = reports->wants_data ? write_out(&reports->data_file, &reports->data, err) : 0;
    if (!reports->wants_text)
        return r;
    if (reports->text_path) {
        int second = write_out(&reports->file, &reports->text, r < 0 ? NULL : err);
        return r < 0 ? r : second;
    }
    process_signals_restore();
    fd_write_all(STDERR_FILENO, reports->text.data, reports->text.length);
    return r;
}

static void reports_done(struct stat_reports *reports)
{
    strbuf_done(&reports->text);
    strbuf_done(&reports->data);
    outfile_done(&reports->file);
    outfile_done(&reports->data_file);
}

/* JSON and CSV go to their own file, else where -o says, else to standard output.  The text for
 * people comes along unless they take its place.  A file that cannot be written is said before
 * hours of measuring. */
static int reports_open(struct stat_reports *reports, const struct stat_options *o,
                        struct error *err)
{
    const char *data = o->json ? o->json : o->csv;
    bool has_file = data && *data && !str_eq(data, "-");
    reports->wants_data = data != NULL;
    reports->wants_text = !data || has_file;
    reports->text_path = o->output;
    if (data && !*data)
        data = o->output ? o->output : "-";
    int r = data ? outfile_open(&reports->data_file, data, err) : 0;
    if (r == 0 && reports->wants_text && o->output)
        r = outfile_open(&reports->file, o->output, err);
    return r;
}

/* The exit code of the command's first run that did not succeed; that of the signal which kept
 * runs from being made. */
static int command_exit_code(const struct measurement *m, const struct measure_spec *spec)
{
    for (size_t i = 0; i < m->run_count; i++)
        if (m->runs[i].has_command && !m->runs[i].timed_out && m->runs[i].status)
            return process_exit_code(m->runs[i].status);
    for (size_t i = 0; i < m->run_count; i++)
        if (m->runs[i].has_command && m->runs[i].timed_out)
            return 124; /* as timeout(1) */
    return spec->argv && m->signal && m->run_count < spec->repeat_count ? 128 + m->signal : 0;
}

static uint64_t startup_share_of(const struct measurement *m, const struct event_list *events,
                                 const char *program)
{
    for (size_t i = 0; i < events->count; i++) {
        const struct perf_event_attr *attr = &events->items[i].attr;
        if (attr->type == PERF_TYPE_SOFTWARE && attr->config == PERF_COUNT_SW_TASK_CLOCK &&
            m->run_count && !m->why[i] && m->runs[0].values[i].raw < STARTUP_MATTERS_NS)
            return startup_cpu_ns(program);
    }
    return 0;
}

/* Whether the program runs with other rights than ours, which ends our counting of it. */
static bool is_set_id(const char *program)
{
    struct stat st;
    CLEANUP(memory_freep) char *path = NULL;
    if (geteuid() == 0 || process_find(program, &path, NULL) < 0 || stat(path, &st) < 0)
        return false;
    return ((st.st_mode & S_ISUID) && st.st_uid != geteuid()) ||
           ((st.st_mode & S_ISGID) && st.st_gid != getegid());
}

static size_t online_cpu_count(void)
{
    CLEANUP(memory_freep) int *cpus = NULL;
    size_t count;
    return online_cpus(&cpus, &count, NULL) < 0 ? 1 : count;
}

static void write_report(struct stat_reports *reports, const struct stat_options *o,
                         struct stat_view *view)
{
    if (reports->wants_text && o->separator)
        report_stat_fields(&reports->text, view, o->separator);
    else if (reports->wants_text)
        report_stat_text(&reports->text, view);
    if (o->csv)
        report_stat_csv(&reports->data, view);
    if (!o->json)
        return;
    struct machine machine;
    machine_probe(&machine, MACHINE_QUICK);
    view->machine = &machine;
    report_stat_json(&reports->data, view);
    machine_done(&machine);
}

int stat_fail(const struct error *err, int start_code)
{
    return cmd_fail(&verb_stat, err,
                    start_code < 0 ? process_exit_code_for(start_code) : EXIT_MEASURE_FAILED);
}

static int run_simulation(const struct stat_options *o, char *const *argv,
                          struct stat_reports *reports, struct error *err)
{
    struct watcher w = {.view = {.requested_runs = o->repeat_count}};
    progress_start(&w.progress);
    struct simulate_spec spec = {.argv = argv,
                                 .full = *o->sim,
                                 .repeat_count = o->repeat_count,
                                 .on_run = show_simulated_run,
                                 .context = &w};
    CLEANUP(simulation_done) struct simulation s;
    int start_code = 0;
    int r = simulate(&spec, &s, &start_code, err);
    process_signals_clear();
    progress_end(&w.progress);
    if (r < 0)
        return stat_fail(err, start_code);
    struct simulation_view view = {.s = &s,
                                   .argv = argv,
                                   .requested_runs = o->repeat_count,
                                   .colour = !o->output && term_has_colour(STDERR_FILENO)};
    struct machine machine = {0};
    if (o->json)
        machine_probe(&machine, MACHINE_QUICK);
    view.machine = &machine;
    if (o->json)
        report_simulation_json(&reports->data, &view);
    else if (o->csv)
        report_simulation_csv(&reports->data, &view);
    if (reports->wants_text)
        report_simulation_text(&reports->text, &view);
    if (o->json)
        machine_done(&machine);
    r = stat_deliver(reports, err);
    if (r < 0)
        return stat_fail(err, 0);
    for (size_t i = 0; i < s.run_count; i++)
        if (s.runs[i].status)
            return process_exit_code(s.runs[i].status);
    return s.run_count < o->repeat_count ? 128 + s.signal : 0;
}

static int run_measurement(const struct stat_options *o, const struct measure_spec *base,
                           struct stat_reports *reports, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf target = {0};
    describe_target(&target, o, base->argv);
    struct watcher w = {.view = {.events = base->events,
                                 .argv = base->argv,
                                 .target = strbuf_text(&target),
                                 .kind = base->kind == TARGET_CHILDREN ? "command"
                                         : base->kind == TARGET_TASKS  ? "pid"
                                         : base->kind == TARGET_CPUS   ? "cpus"
                                                                       : "cgroup",
                                 .has_usage = base->kind == TARGET_CHILDREN,
                                 .requested_runs = o->repeat_count,
                                 .colour = !o->output && term_has_colour(STDERR_FILENO)},
                        .print_intervals = reports->wants_text,
                        .separator = o->separator,
                        .intervals = o->output ? &reports->text : NULL};
    struct measure_spec spec = *base;
    spec.on_interval = show_interval;
    spec.on_run = show_run;
    spec.context = &w;
    progress_start(&w.progress);
    CLEANUP(measurement_done) struct measurement m;
    int start_code = 0;
    int r = measure(&spec, &m, &start_code, err);
    process_signals_clear(); /* the probes that follow are not to be cut short by it */
    progress_end(&w.progress);
    if (r < 0)
        return stat_fail(err, start_code);
    CLEANUP(doubt_list_done) struct doubt_list doubts = {0};
    struct doubt_context context = {
        .events = base->events,
        .m = &m,
        .cpu_count = online_cpu_count(),
        .systemwide = base->kind == TARGET_CPUS || base->kind == TARGET_CGROUP,
        .can_simulate = base->kind == TARGET_CHILDREN,
        .drops_counters = base->kind == TARGET_CHILDREN && is_set_id(base->argv[0])};
    if (base->kind == TARGET_CHILDREN && !base->delay_ns && !m.signal)
        context.startup_cpu_ns = startup_share_of(&m, base->events, base->argv[0]);
    doubts_find(&doubts, &context);
    w.view.m = &m;
    w.view.doubts = &doubts;
    write_report(reports, o, &w.view);
    r = stat_deliver(reports, err);
    if (r < 0)
        return stat_fail(err, 0);
    return command_exit_code(&m, base);
}

static int parse_events(const struct stat_options *o, struct event_list *list, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf more = {0};
    CLEANUP(memory_freep)
    const char **texts = memory_zalloc(o->events.count + 1, sizeof(*texts));
    size_t count = o->events.count;
    for (size_t i = 0; i < count; i++)
        texts[i] = o->events.items[i];
    int r = o->metrics ? metrics_events(o->metrics, &more, err) : 0;
    if (r == 0 && o->topdown) {
        CLEANUP(strbuf_done) struct strbuf group = {0};
        r = metrics_topdown(&group, err);
        strbuf_printf(&more, "%s%s", more.length ? "," : "", strbuf_text(&group));
    }
    if (r == 0 && more.length)
        texts[count++] = strbuf_text(&more);
    if (r == 0)
        r = filter_parse_events(list, texts, count, o->filters.items, o->filters.count, err);
    if (r < 0)
        return r;
    if (!list->count)
        event_list_default(list, o->all_cpus || o->cpus || o->cgroup, o->detail);
    return 0;
}

static int prepare(const struct stat_options *o, struct measure_spec *spec,
                   struct event_list *events, struct error *err)
{
    int r = parse_events(o, events, err);
    if (r < 0)
        return r;
    if (o->pids.count) {
        spec->kind = TARGET_TASKS;
        r = parse_pids(&o->pids, (pid_t **)&spec->pids, &spec->pid_count, err);
    } else if (o->cgroup) {
        spec->kind = TARGET_CGROUP;
    } else if (o->all_cpus || o->cpus) {
        spec->kind = TARGET_CPUS;
    }
    if (r == 0 && o->cpus)
        r = parse_cpu_list(o->cpus, (int **)&spec->cpus, &spec->cpu_count, err);
    return r;
}

static int stat_with(const struct stat_options *o, char *const *argv, struct error *err)
{
    int r = check_options(o, argv != NULL, err);
    if (r < 0)
        return cmd_usage(&verb_stat, err);
    CLEANUP(event_list_done) struct event_list events = {0};
    struct measure_spec spec = {.events = &events,
                                .argv = argv,
                                .kind = TARGET_CHILDREN,
                                .cgroup = o->cgroup,
                                .repeat_count = o->repeat_count,
                                .interval_ns = o->interval_ns == NOT_GIVEN ? 0 : o->interval_ns,
                                .delay_ns = o->delay_ns,
                                .timeout_ns = o->timeout_ns == NOT_GIVEN ? 0 : o->timeout_ns,
                                .per_thread = o->per_thread,
                                .per_cpu = o->per_cpu,
                                .per_core = o->per_core};
    CLEANUP(reports_done)
    struct stat_reports reports = {.file = {.fd = -1}, .data_file = {.fd = -1}};
    int code;
    r = prepare(o, &spec, &events, err);
    if (r == 0)
        r = reports_open(&reports, o, err);
    /* From here on a signal ends the measurement, not assay: what was counted is written. */
    process_signals_catch();
    if (r < 0)
        code = stat_fail(err, 0);
    else if (o->exact)
        code = stat_exact(o, argv, &reports, err);
    else if (o->sim)
        code = run_simulation(o, argv, &reports, err);
    else
        code = run_measurement(o, &spec, &reports, err);
    process_signals_restore();
    free((void *)spec.pids);
    free((void *)spec.cpus);
    return code;
}

static int run(int argc, char **argv)
{
    struct error err = {0};
    struct stat_options o = {.repeat_count = 1, .interval_ns = NOT_GIVEN, .timeout_ns = NOT_GIVEN};
    int first = options_parse(options, &o, argc, argv, &err);
    int code;
    if (first < 0)
        code = cmd_usage(&verb_stat, &err);
    else if (first == OPTIONS_HELP)
        code = cmd_help(&verb_stat);
    else
        code = stat_with(&o, first < argc ? argv + first : NULL, &err);
    free(o.events.items);
    free(o.filters.items);
    free(o.pids.items);
    return code;
}

const struct verb verb_stat = {
    .name = "stat",
    .summary = "count events for a command, as perf stat does",
    .synopsis = "[options] [--] COMMAND…",
    .examples = "  assay stat -- ls -lR /usr\n"
                "  assay stat -r 20 -- sort numbers.txt\n"
                "  assay stat -e '{cycles,instructions}:u,page-faults' -- ./program\n"
                "  assay stat -e uprobe:./program:main,sched:sched_switch -- ./program\n"
                "  assay stat --sim -- ./program          exact instruction counts without a PMU\n"
                "  assay stat -a -I 1000 --timeout 10s    the whole machine, every second\n"
                "  assay stat -p 1234 --per-thread -- sleep 5\n",
    .options = options,
    .run = run,
};
