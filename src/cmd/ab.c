/* SPDX-License-Identifier: MIT */
/* `assay ab`: which of some commands is faster, by how much, and can that be told? */
#include "cmd/ab.h"
#include "analysis/hyperfine.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "cmd/cmd.h"
#include "counters/simulated.h"
#include "numbers/sort.h"
#include "report/text/ab.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <sys/random.h>

#define DEFAULT_ROUNDS_MIN 10
#define DEFAULT_TIME_NS (3 * NS_PER_S) /* for each command */
#define PRECISION_TIME_NS (600 * NS_PER_S)
#define SHELL_TRIALS 11

#define O(field) offsetof(struct ab_options, field)

static const struct option options[] = {
    {0, NULL, OPTION_HEADING, 0, NULL, "How often", NULL},
    {'r', "rounds", OPTION_U64, O(rounds), "N", "run exactly N rounds", NULL},
    {'t', "time", OPTION_SECONDS, O(time_ns), "TIME", "measure for this long, e.g. 30s or 2m",
     NULL},
    {0, "precision", OPTION_STRING, O(precision), "PERCENT",
     "stop when the 95 % interval is within ± this, e.g. 1% (at most --time, or 10m)", NULL},
    {'m', "min-rounds", OPTION_U64, O(min_rounds), "N", "run at least N rounds (10)", NULL},
    {'M', "max-rounds", OPTION_U64, O(max_rounds), "N", "run at most N rounds", NULL},
    {'w', "warmup", OPTION_U64, O(warmup), "N", "warm-up rounds, which are not counted (1)", NULL},
    {0, "seed", OPTION_U64, O(seed), "N", "repeat the order of the run that printed this seed",
     NULL},
    {0, "duet", OPTION_FLAG, O(duet), NULL,
     "run two commands at the same time on two CPUs, swapped after each round", NULL},
    {0, NULL, OPTION_HEADING, 0, NULL, "What to run", NULL},
    {'n', "name", OPTION_LIST, O(names), "NAME", "a name for a command; repeat for each, in order",
     NULL},
    {'L', "parameter-list", OPTION_LIST, O(lists), "VAR VALUES",
     "replace {VAR} in commands with each value, e.g. -L size 64,512", NULL},
    {'P', "parameter-scan", OPTION_LIST, O(scans), "VAR MIN MAX",
     "replace {VAR} with each number from MIN to MAX", NULL},
    {'D', "parameter-step-size", OPTION_STRING, O(step), "STEP", "step for -P (1)", NULL},
    {'s', "setup", OPTION_LIST, O(setups), "CMD",
     "run once before all rounds; may be repeated, one for each command", NULL},
    {'p', "prepare", OPTION_LIST, O(prepares), "CMD",
     "run before each run; may be repeated, one for each command", NULL},
    {'c', "cleanup", OPTION_LIST, O(cleanups), "CMD", "run once at the end, even after a failure",
     NULL},
    {'S', "shell", OPTION_STRING, O(shell), "SHELL",
     "auto (sh only when a command needs it), none, default (sh), or a shell", "auto none default"},
    {'N', NULL, OPTION_FLAG, O(no_shell), NULL, "use no shell; same as --shell none", NULL},
    {0, "input", OPTION_STRING, O(input), "FILE", "standard input (default /dev/null)", "file"},
    {0, "output", OPTION_STRING, O(output), OUTPUT_VALUE, OUTPUT_HELP, OUTPUT_WORDS},
    {0, "show-output", OPTION_FLAG, O(show_output), NULL, "show what the commands print", NULL},
    {0, "directory", OPTION_STRING, O(directory), "DIR", "run the commands in this directory",
     "file"},
    {0, "cpus", OPTION_STRING, O(cpus), "CPUS", "run on these CPUs, e.g. 0-3 or 2,3", NULL},
    {0, "timeout", OPTION_SECONDS, O(timeout_ns), "TIME", "treat a run that takes longer as failed",
     NULL},
    {'i', "ignore-failure", OPTION_OPTIONAL, O(ignore_failure), "CODES",
     "count failed runs like any other: all, or those with these exit codes", NULL},
    {0, "no-padding", OPTION_FLAG, O(no_padding), NULL,
     "keep the size of the environment the same in every round", NULL},
    {0, NULL, OPTION_HEADING, 0, NULL, "What to measure", NULL},
    {'e', "event", OPTION_LIST, O(events), "LIST", "events to count, as in assay stat; or none",
     "event"},
    {0, "metric", OPTION_STRING, O(metric), "NAME",
     "the headline metric, which --precision applies to (wall)", NULL},
    {0, "metric-regex", OPTION_LIST, O(metric_regexes), "NAME=REGEX",
     "take a figure from the commands' output: the number in the parentheses", NULL},
    {0, "sim", OPTION_FLAG, O(sim), NULL,
     "compare exact instruction counts, too: some more runs under Valgrind, 7 times slower", NULL},
    {0, "reference", OPTION_STRING, O(reference), "NAME",
     "the command to compare the others with: its name or number (1)", NULL},
    {0, NULL, OPTION_HEADING, 0, NULL, "Output", NULL},
    {'a', "all", OPTION_FLAG, O(all), NULL, "show a table for every metric", NULL},
    {'j', "json", OPTION_OPTIONAL, O(json), "FILE", "JSON with every value of every run", NULL},
    {0, "csv", OPTION_OPTIONAL, O(csv), "FILE", "CSV, a line for each value", NULL},
    {0, "markdown", OPTION_OPTIONAL, O(markdown), "FILE", "a Markdown table", NULL},
    {0, "html", OPTION_STRING, O(html), "FILE", "a report as one HTML file", "file"},
    {0, "export-hyperfine", OPTION_STRING, O(export_hyperfine), "FILE",
     "write JSON in the format of hyperfine --export-json", "file"},
    {0, "export-google-benchmark", OPTION_STRING, O(export_google), "FILE",
     "write JSON in the format of google-benchmark's --benchmark_out", "file"},
    {0, "import-hyperfine", OPTION_LIST, O(imports), "FILE",
     "compare results in hyperfine's JSON files instead of running anything", "file"},
    {0},
};

/* A result in one format, for standard output or a file. */
struct product {
    const char *path; /* NULL: not wanted, "" or "-": standard output */
    const char *name;
    void (*report)(struct strbuf *out, const struct ab_view *v);
    struct outfile file;
};

enum { PRODUCT_COUNT = 6 };

struct products {
    struct product items[PRODUCT_COUNT];
    bool to_stdout; /* one of them takes the place of the text */
};

static bool is_stdout(const struct product *p)
{
    return p->path && (!*p->path || str_eq(p->path, "-"));
}

/* Opens what will be written, before hours of measuring. */
static int products_open(struct products *all, const struct ab_options *o, struct error *err)
{
    *all = (struct products){
        .items = {{o->json, "--json", report_ab_json, {.fd = -1}},
                  {o->csv, "--csv", report_ab_csv, {.fd = -1}},
                  {o->markdown, "--markdown", report_ab_markdown, {.fd = -1}},
                  {o->html, "--html", ab_put_html, {.fd = -1}},
                  {o->export_hyperfine, "--export-hyperfine", report_ab_hyperfine, {.fd = -1}},
                  {o->export_google, "--export-google-benchmark", report_ab_google, {.fd = -1}}}};
    const char *first = NULL;
    for (size_t i = 0; i < PRODUCT_COUNT; i++) {
        struct product *p = &all->items[i];
        if (is_stdout(p) && first)
            return error_set(err, -EINVAL,
                             "%s and %s both go to standard output; give one a file: %s=FILE",
                             first, p->name, p->name);
        if (is_stdout(p))
            first = p->name;
        int r = p->path && !is_stdout(p) ? outfile_open(&p->file, p->path, err) : 0;
        if (r < 0)
            return r;
    }
    all->to_stdout = first != NULL;
    return 0;
}

static void products_done(struct products *all)
{
    for (size_t i = 0; i < PRODUCT_COUNT; i++)
        outfile_done(&all->items[i].file);
}

static int products_write(struct products *all, const struct ab_view *v, struct error *err)
{
    int first = 0;
    CLEANUP(strbuf_done) struct strbuf text = {0};
    if (!all->to_stdout) {
        report_ab_text(&text, v);
        fputs(strbuf_text(&text), stdout);
    }
    for (size_t i = 0; i < PRODUCT_COUNT; i++) {
        struct product *p = &all->items[i];
        if (!p->path)
            continue;
        strbuf_clear(&text);
        p->report(&text, v);
        if (is_stdout(p)) {
            fwrite(strbuf_text(&text), 1, text.length, stdout);
            continue;
        }
        int r = outfile_write(&p->file, text.data, text.length, first ? NULL : err);
        if (r == 0)
            r = outfile_commit(&p->file, first ? NULL : err);
        first = first ? first : r;
    }
    return first;
}

static int parse_percent(const char *text, double *ret_share, struct error *err)
{
    size_t length = strlen(text);
    bool percent = length && text[length - 1] == '%';
    CLEANUP(memory_freep) char *number = memory_strndup(text, length - percent);
    double value;
    int r = parse_double(number, &value, err);
    if (r == 0)
        value = percent ? value / 100 : value;
    if (r < 0 || !(value > 0 && value < 1))
        return error_set(err, -EINVAL, "--precision %s: write a percentage, for example 1%%", text);
    *ret_share = value;
    return 0;
}

static int check_options(const struct ab_options *o, size_t command_count, struct error *err)
{
    if (!command_count && !o->imports.count)
        return error_set(
            err, -EINVAL,
            "no commands to run; give each as one quoted argument, e.g. 'ls -l' 'ls -lR'");
    if (o->rounds && (o->min_rounds || o->max_rounds))
        return error_set(err, -EINVAL, "--rounds cannot be used with --min-rounds or --max-rounds");
    if (o->max_rounds && o->min_rounds > o->max_rounds)
        return error_set(err, -EINVAL, "--min-rounds is greater than --max-rounds");
    if (o->rounds && o->precision)
        return error_set(err, -EINVAL, "--rounds and --precision cannot be used together");
    bool shown = o->show_output || (o->output && str_eq(o->output, "inherit"));
    if (shown && ((o->json && !*o->json) || (o->csv && !*o->csv) || (o->markdown && !*o->markdown)))
        return error_set(err, -EINVAL,
                         "the commands' output and the results would be mixed on standard output; "
                         "write the results to a file, e.g. --json=FILE");
    if (o->show_output && o->output)
        return error_set(err, -EINVAL,
                         "--show-output means --output inherit; use only one of them");
    if (o->directory && access(o->directory, X_OK) < 0)
        return error_errno(err, -errno, "--directory %s", o->directory);
    if (o->input && access(o->input, R_OK) < 0)
        return error_errno(err, -errno, "--input %s", o->input);
    return 0;
}

/* When to stop: what was asked for, or ten rounds and three seconds for each command. */
static int set_limits(struct rounds_spec *spec, struct ab_watch *watch, const struct ab_options *o,
                      struct error *err)
{
    spec->rounds_min = o->rounds ? o->rounds : o->min_rounds ? o->min_rounds : DEFAULT_ROUNDS_MIN;
    spec->rounds_max = o->rounds ? o->rounds : o->max_rounds;
    spec->time_min_ns = o->time_ns;
    spec->time_max_ns = o->time_ns;
    if (spec->rounds_max && spec->rounds_min > spec->rounds_max)
        spec->rounds_min = spec->rounds_max;
    if (o->precision) {
        int r = parse_percent(o->precision, &watch->precision, err);
        if (r < 0)
            return r;
        spec->time_max_ns = o->time_ns ? o->time_ns : PRECISION_TIME_NS;
        spec->is_precise = ab_watch_is_precise;
    } else if (!o->rounds && !o->time_ns) {
        spec->time_min_ns = DEFAULT_TIME_NS * spec->contestant_count;
    }
    return 0;
}

static void set_output(struct rounds_spec *spec, const struct ab_options *o)
{
    spec->output_path = o->output;
    spec->stdout_to = o->show_output ? RUN_SHOW : output_parse(o->output);
}

static int parse_events(struct ab_options *o, struct event_list *list, struct error *err)
{
    if (!o->events.count)
        event_list_default(list, false, 0);
    for (size_t i = 0; i < o->events.count; i++) {
        CLEANUP(memory_freep) char *rest = NULL;
        o->sim |= simulated_take_event(o->events.items[i], &rest);
        int r = !*rest || str_eq(rest, "none") ? 0 : event_list_parse(list, rest, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static uint64_t random_seed(void)
{
    uint32_t seed;
    if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
        seed = (uint32_t)clock_now_ns();
    return seed ? seed : 1;
}

/* What starting the shell costs each run: the median of a few that do nothing. */
static uint64_t measure_shell(const char *shell)
{
    const struct event_list none = {0};
    struct runner runner;
    struct run_result result = {0};
    double walls[SHELL_TRIALS];
    size_t count = 0;
    CLEANUP(command_done) struct command command = {0};
    if (command_init(&command, ":", shell, NULL) < 0 || runner_open(&runner, &none, NULL) < 0)
        return 0;
    struct run_spec spec = {.argv = command.argv, .program = command.program};
    for (size_t i = 0; i < SHELL_TRIALS; i++)
        if (runner_run(&runner, &spec, &result, NULL) == 0 && !run_failed(&result))
            walls[count++] = (double)result.wall_ns;
    runner_done(&runner);
    run_result_done(&result);
    return count ? (uint64_t)select_double(walls, count, count / 2) : 0;
}

/* The last lines of what a command printed, safe for a terminal. */
static void show_tail(const struct strbuf *text, const char *which)
{
    const char *at = strbuf_text(text), *end = at + text->length, *start = end;
    for (int lines = 0; start > at && lines < 20; start--)
        lines += start[-1] == '\n' && start != end;
    if (start > at)
        start += start[0] == '\n';
    if (end == at)
        return;
    fprintf(stderr, "--- %s%s:\n", start > at ? "the end of its " : "its ", which);
    while (start < end) {
        size_t length = strcspn(start, "\n");
        if (start + length > end)
            length = (size_t)(end - start);
        CLEANUP(strbuf_done) struct strbuf line = {0};
        strbuf_put_safe(&line, start, length, 500);
        fprintf(stderr, "%s\n", strbuf_text(&line));
        start += length + (start + length < end);
        if (!length && start < end && *start == '\0')
            start++;
    }
}

/* The command of a contestant, a hook or a duet failed. */
static void tell_failure(const struct rounds_failure *f, const struct contestant_state *state)
{
    CLEANUP(strbuf_done) struct strbuf safe = {0}, share = {0};
    strbuf_put_safe(&safe, f->text, strlen(f->text), 300);
    if (state && state->failed_count < state->run_count)
        strbuf_printf(&share, " in %zu of %zu runs", state->failed_count, state->run_count);
    fprintf(stderr, "assay ab: %s failed%s (%s): %s\n", f->what, strbuf_text(&share),
            strbuf_text(&f->end), strbuf_text(&safe));
    show_tail(&f->output_stdout, "standard output");
    show_tail(&f->output_stderr, "standard error");
    if (f->stdout_was_discarded && !f->output_stderr.length)
        fputs("It printed nothing on standard error; --show-output shows everything it prints.\n",
              stderr);
}

/* Tells all failures; the exit code is that of the first, 0 for none. */
static int tell_failures(const struct rounds *r)
{
    int code = 0;
    bool any = false;
    fflush(stdout);
    for (size_t i = 0; i < r->contestant_count; i++) {
        const struct rounds_failure *f = &r->states[i].failure;
        if (!f->what)
            continue;
        tell_failure(f, &r->states[i]);
        code = code ? code : f->exit_code ? f->exit_code : EXIT_TROUBLE;
        any = true;
    }
    if (r->failure.what) {
        tell_failure(&r->failure, NULL);
        code = code ? code : r->failure.exit_code ? r->failure.exit_code : EXIT_TROUBLE;
        any |= str_eq(r->failure.what, "the command");
    }
    if (any)
        fputs("--ignore-failure counts failed runs like any other.\n", stderr);
    return code;
}

/* Judges and writes; returns 0 or a negative errno. */
static int report(const struct ab_options *o, struct ab_view *view, struct dataset *d,
                  const struct participant *participants, const struct ab_metrics *metrics,
                  struct products *products, struct error *err)
{
    CLEANUP(outcome_done) struct outcome outcome = {0};
    CLEANUP(doubt_list_done) struct doubt_list notes = {0};
    outcome_set_headline(d, o->metric);
    outcome_judge(&outcome, d, participants, o->metric);
    struct machine machine;
    view->outcome = &outcome;
    view->notes = &notes;
    view->all = o->all;
    view->colour = term_has_colour(STDOUT_FILENO);
    view->sketches = term_has_utf8(STDOUT_FILENO);
    view->columns = isatty(STDOUT_FILENO) ? term_columns(STDOUT_FILENO) : 120;
    bool wants_machine = false;
    for (size_t i = 0; i < PRODUCT_COUNT; i++)
        wants_machine |= products->items[i].path != NULL;
    if (wants_machine && view->rounds) {
        machine_probe(&machine, MACHINE_QUICK);
        view->machine = &machine;
    }
    if (metrics)
        ab_metrics_notes(metrics, &notes);
    report_ab_notes(&notes, view);
    int r = products_write(products, view, err);
    if (view->machine)
        machine_done(&machine);
    return r;
}

static int finish(const struct ab_options *o, const struct ab_plan *plan,
                  const struct rounds_spec *spec, const struct rounds *rounds,
                  const struct rounds *simulated, const struct ab_metrics *metrics, time_t started,
                  struct products *products, struct error *err)
{
    CLEANUP(dataset_done) struct dataset d;
    outcome_start(&d, plan->participants, plan->count);
    d.round_seconds = rounds->count ? (double)rounds->elapsed_ns / 1e9 / (double)rounds->count : 0;
    outcome_add_rounds(&d, rounds, spec->events, NULL);
    d.experiment.adaptive = spec->is_precise || rounds->end == ROUNDS_SIGNAL;
    if (simulated->count)
        ab_add_simulated(&d, simulated);
    outcome_describe(&d, "assay ab", o->metric, spec->seed, (uint64_t)started * NS_PER_S);
    outcome_add_runs(&d, rounds);
    dataset_index(&d);
    struct ab_view view = {
        .rounds = rounds, .spec = spec, .started = started, .shell = plan->shell};
    if (plan->shell && rounds->end != ROUNDS_SIGNAL)
        view.shell_startup_ns = measure_shell(plan->shell);
    return report(o, &view, &d, plan->participants, metrics, products, err);
}

static int measure_with(const struct ab_options *o, struct ab_plan *plan,
                        const struct event_list *events, struct products *products,
                        struct error *err)
{
    CLEANUP(memory_freep) int *cpus = NULL;
    size_t cpu_count = 0;
    CLEANUP(ab_metrics_done) struct ab_metrics metrics = {0};
    struct ab_watch watch = {
        .participants = plan->participants, .metrics = &metrics, .metric = o->metric};
    struct rounds_spec spec = {.contestants = plan->contestants,
                               .contestant_count = plan->count,
                               .events = events,
                               .warmup_count = o->warmup,
                               .seed = o->seed ? o->seed : random_seed(),
                               .timeout_ns = o->timeout_ns,
                               .input_path = o->input,
                               .working_dir = o->directory,
                               .hook_shell = plan->shell ? plan->shell : "sh",
                               .duet = o->duet,
                               .keep_going = !o->duet,
                               .no_padding = o->no_padding,
                               .on_tick = ab_watch_tick,
                               .on_run = ab_watch_run,
                               .on_result = ab_metrics_take,
                               .context = &watch};
    int r = set_limits(&spec, &watch, o, err);
    if (r == 0 && o->cpus)
        r = parse_cpu_list(o->cpus, &cpus, &cpu_count, err);
    if (r == 0 && o->duet && o->cpus && cpu_count != 2)
        r = error_set(err, -EINVAL, "--duet needs two CPUs, but --cpus names %zu", cpu_count);
    if (r == 0)
        r = ab_metrics_init(&metrics, o, err);
    if (r == 0 && o->ignore_failure)
        r = failure_codes_parse(&spec.ignored_failures, o->ignore_failure, err);
    if (r < 0)
        return cmd_usage(&verb_ab, err);
    spec.cpus = cpus;
    spec.cpu_count = cpu_count;
    set_output(&spec, o);
    time_t started = time(NULL);
    progress_start(&watch.progress);
    watch.run_ns = watch.progress.start_ns;
    CLEANUP(rounds_done) struct rounds rounds, simulated = {0};
    r = rounds_run(&spec, &rounds, err);
    if (r == 0 && o->sim && rounds.count && !rounds.signal)
        r = ab_simulate(&spec, &simulated, &watch.progress, err);
    progress_end(&watch.progress);
    if (r < 0)
        return cmd_fail(&verb_ab, err,
                        rounds.start_code < 0 ? process_exit_code_for(rounds.start_code)
                                              : EXIT_MEASURE_FAILED);
    if (metrics.headline_missing) {
        ab_metrics_missing(&metrics, &rounds, events, err);
        return cmd_usage(&verb_ab, err);
    }
    ab_plan_replace_references(plan, &rounds);
    if (rounds.end != ROUNDS_FAILURE || rounds.count) {
        r = finish(o, plan, &spec, &rounds, &simulated, &metrics, started, products, err);
        if (r < 0)
            return cmd_fail(&verb_ab, err, EXIT_MEASURE_FAILED);
    }
    int failed = tell_failures(&rounds), signal = rounds.signal ? rounds.signal : simulated.signal;
    return signal ? 128 + signal : failed;
}

static int run_commands(struct ab_options *o, char *const *commands, size_t command_count,
                        struct error *err)
{
    CLEANUP(ab_plan_done) struct ab_plan plan = {0};
    CLEANUP(event_list_done) struct event_list events = {0};
    CLEANUP(products_done) struct products products = {0};
    int r = ab_plan_make(&plan, o, commands, command_count, err);
    bool bare = (o->json && !*o->json) || (o->csv && !*o->csv) || (o->markdown && !*o->markdown);
    if (r == -ENOENT && bare)
        fputs("assay ab: to write the results to a file, use --json=FILE\n", stderr);
    if (r == -ENOENT || r == -EACCES)
        return cmd_fail(&verb_ab, err, process_exit_code_for(r));
    if (r < 0)
        return cmd_usage(&verb_ab, err);
    r = products_open(&products, o, err);
    if (r == 0)
        r = parse_events(o, &events, err);
    if (r < 0)
        return cmd_fail(&verb_ab, err, r == -EINVAL ? EXIT_USAGE : EXIT_MEASURE_FAILED);
    return measure_with(o, &plan, &events, &products, err);
}

static int report_imported(const struct ab_options *o, const struct imported *imported,
                           struct products *products, struct error *err)
{
    size_t count = imported->count;
    CLEANUP(memory_freep) const char **names = memory_zalloc(count + 1, sizeof(*names));
    CLEANUP(memory_freep) const char **commands = memory_zalloc(count + 1, sizeof(*commands));
    CLEANUP(memory_freep) const char **parameters = memory_zalloc(count + 1, sizeof(*parameters));
    for (size_t i = 0; i < count; i++) {
        names[i] = imported->results[i].name;
        commands[i] = imported->results[i].command;
        parameters[i] = imported->results[i].parameters;
    }
    CLEANUP(ab_plan_done) struct ab_plan plan = {0};
    int r = ab_plan_import(&plan, o, names, commands, parameters, count, err);
    if (r < 0)
        return cmd_usage(&verb_ab, err);
    struct ab_view view = {.started = time(NULL)};
    CLEANUP(dataset_done) struct dataset d;
    outcome_start(&d, plan.participants, plan.count);
    imported_fill(imported, &d);
    r = report(o, &view, &d, plan.participants, NULL, products, err);
    return r < 0 ? cmd_fail(&verb_ab, err, EXIT_TROUBLE) : EXIT_DONE;
}

static int run_import(const struct ab_options *o, char *const *words, size_t word_count,
                      struct error *err)
{
    CLEANUP(imported_done) struct imported imported = {0};
    CLEANUP(products_done) struct products products = {0};
    size_t count = o->imports.count + word_count;
    CLEANUP(memory_freep) const char **paths = memory_zalloc(count, sizeof(*paths));
    for (size_t i = 0; i < count; i++)
        paths[i] = i < o->imports.count ? o->imports.items[i] : words[i - o->imports.count];
    int r = products_open(&products, o, err);
    if (r == 0)
        r = hyperfine_import(paths, count, &imported, err);
    if (r < 0)
        return cmd_fail(&verb_ab, err, EXIT_TROUBLE);
    return report_imported(o, &imported, &products, err);
}

static int run(int argc, char **argv)
{
    struct error err = {0};
    struct ab_options o = {.warmup = 1, .metric = "wall"};
    int first = options_parse_mixed(options, &o, argc, argv, &err), code;
    size_t word_count = first > 0 ? (size_t)(argc - first) : 0;
    if (first < 0)
        code = cmd_usage(&verb_ab, &err);
    else if (first == OPTIONS_HELP)
        code = cmd_help(&verb_ab);
    else if (check_options(&o, word_count, &err) < 0)
        code = cmd_usage(&verb_ab, &err);
    else if (o.imports.count)
        code = run_import(&o, argv + first, word_count, &err);
    else
        code = run_commands(&o, argv + first, word_count, &err);
    struct option_list *const lists[] = {&o.names,  &o.lists,    &o.scans,
                                         &o.setups, &o.prepares, &o.cleanups,
                                         &o.events, &o.imports,  &o.metric_regexes};
    for (size_t i = 0; i < ARRAY_COUNT(lists); i++)
        free(lists[i]->items);
    return code;
}

const struct verb verb_ab = {
    .name = "ab",
    .summary = "compare commands: which is faster, by how much, and how certain that is",
    .synopsis = "[options] 'CMD A' ['CMD B'…]",
    .examples =
        "  assay ab './old --fast' './new --fast'\n"
        "  assay ab --precision 1% -n old -n new './old x' './new x'\n"
        "  assay ab -L size 64,4096 './send {size}' './sendmsg {size}'\n"
        "  assay ab --prepare 'sync; echo 3 >/proc/sys/vm/drop_caches' 'grep -r x /usr/include'\n"
        "  assay ab --duet './old' './new'                on a noisy virtual machine\n"
        "  assay ab -e cycles,instructions --json=ab.json './old' './new'\n"
        "  assay ab --import-hyperfine before.json after.json\n",
    .options = options,
    .run = run,
};
