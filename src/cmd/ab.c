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

/* Judges and writes; returns 0 or a negative errno.  `all` has the values of all rounds where d has
 * one for each layout. */
static int report(const struct ab_options *o, struct ab_view *view, struct dataset *d,
                  const struct dataset *all, const struct participant *participants,
                  const struct ab_metrics *metrics, struct ab_products *products, struct error *err)
{
    CLEANUP(outcome_done) struct outcome outcome = {0};
    CLEANUP(doubt_list_done) struct doubt_list notes = {0};
    outcome_set_headline(d, o->metric);
    outcome_judge(&outcome, d, participants, o->metric);
    CLEANUP(memory_freep)
    struct layout_spread *layouts =
        all ? ab_layouts_spread(all, &outcome, view->rounds, view->spec) : NULL;
    view->layouts = layouts;
    CLEANUP(memory_freep) size_t *order = ab_row_order(o, &outcome);
    struct machine machine;
    view->outcome = &outcome;
    view->order = order;
    view->notes = &notes;
    view->all = o->all;
    view->colour = ab_has_colour(o);
    view->verbose = o->verbose || o->all;
    view->events_given = o->events.count > 0;
    measured_use_time_unit(o->time_unit);
    view->sketches = term_has_utf8(STDOUT_FILENO);
    view->columns = isatty(STDOUT_FILENO) ? term_columns(STDOUT_FILENO) : 120;
    bool wants_machine = false;
    for (size_t i = 0; i < AB_PRODUCT_COUNT; i++)
        wants_machine |= products->items[i].path != NULL;
    if (wants_machine && view->rounds) {
        machine_probe(&machine, MACHINE_QUICK);
        view->machine = &machine;
    }
    if (metrics)
        ab_metrics_notes(metrics, &notes);
    report_ab_notes(&notes, view);
    int r = ab_products_write(products, view, err);
    if (view->machine)
        machine_done(&machine);
    return r;
}

/* What was measured, as a table of values. */
static void fill(struct dataset *d, const struct ab_options *o, const struct ab_plan *plan,
                 const struct rounds_spec *spec, const struct rounds *rounds,
                 const struct rounds *simulated, const struct ab_metrics *metrics, time_t started)
{
    outcome_start(d, plan->participants, plan->count);
    d->round_seconds = rounds->count ? (double)rounds->elapsed_ns / 1e9 / (double)rounds->count : 0;
    outcome_add_rounds(d, rounds, spec->events, metrics->only);
    d->experiment.adaptive = spec->is_precise || rounds->end == ROUNDS_SIGNAL;
    if (simulated->count)
        ab_add_simulated(d, simulated);
    outcome_describe(d, "assay ab", o->metric, spec->seed, (uint64_t)started * NS_PER_S);
    outcome_add_runs(d, rounds);
    dataset_index(d);
}

static int finish(const struct ab_options *o, const struct ab_plan *plan,
                  const struct rounds_spec *spec, const struct rounds *rounds,
                  const struct rounds *simulated, const struct ab_metrics *metrics, time_t started,
                  struct ab_products *products, struct error *err)
{
    CLEANUP(dataset_done) struct dataset d = {0}, folded = {0};
    fill(&d, o, plan, spec, rounds, simulated, metrics, started);
    if (spec->layout_count) {
        fill(&folded, o, plan, spec, rounds, simulated, metrics, started);
        ab_layouts_fold(&folded, rounds, spec);
    }
    struct ab_view view = {
        .rounds = rounds, .spec = spec, .started = started, .shell = plan->shell};
    if (plan->shell && !metrics->only && rounds->end != ROUNDS_SIGNAL)
        view.shell_startup_ns = measure_shell(plan->shell);
    int r = report(o, &view, spec->layout_count ? &folded : &d, spec->layout_count ? &d : NULL,
                   plan->participants, metrics, products, err);
    if (r == 0 && o->before && !products->to_stdout && !products->silent)
        r = ab_against_print(o, o->before, &d, err);
    return r == 0 && ab_saves(o) && rounds->count ? ab_save(o, &d, err) : r;
}

/* Tells what was found and what failed. */
static int conclude(const struct ab_options *o, struct ab_plan *plan,
                    const struct rounds_spec *spec, const struct rounds *rounds,
                    const struct rounds *simulated, const struct ab_metrics *metrics,
                    time_t started, struct ab_products *products, struct error *err)
{
    bool unseen = metrics->headline_unseen && rounds->count && !rounds->signal;
    if (metrics->headline_missing || unseen) {
        tell_failures(rounds);
        ab_metrics_missing(metrics, rounds, spec->events, err);
        return cmd_usage(&verb_ab, err);
    }
    ab_plan_replace_references(plan, rounds);
    if (rounds->end != ROUNDS_FAILURE || rounds->count) {
        int r = finish(o, plan, spec, rounds, simulated, metrics, started, products, err);
        if (r < 0)
            return cmd_fail(&verb_ab, err, EXIT_MEASURE_FAILED);
    }
    int failed = tell_failures(rounds),
        signal = rounds->signal ? rounds->signal : simulated->signal;
    return signal ? 128 + signal : failed;
}

/* What cannot be told is a line, and no failure: the verdict stands. */
static void show_functions(const struct ab_exact *exact, const struct rounds_spec *spec,
                           const struct rounds *rounds)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    struct error err = {0};
    if (ab_exact_explain(exact, spec, rounds, &text, &err) < 0)
        fprintf(stderr, "assay ab: no instructions by function: %s\n", err.message);
    fputs(strbuf_text(&text), stdout);
}

static int read_cpus(const struct ab_options *o, int **ret_cpus, size_t *ret_count,
                     struct error *err)
{
    int r = parse_cpu_list(o->cpus, ret_cpus, ret_count, err);
    if (r == 0 && o->duet && *ret_count != 2)
        r = error_set(err, -EINVAL, "--duet needs two CPUs, but --cpus names %zu", *ret_count);
    return r;
}

static void start_progress(struct ab_watch *watch, const struct ab_options *o)
{
    progress_start(&watch->progress);
    watch->progress.enabled = watch->progress.enabled && ab_has_progress(o);
    watch->run_ns = watch->progress.start_ns;
}

static int run_rounds(const struct ab_options *o, const struct rounds_spec *spec,
                      struct ab_watch *watch, struct rounds *rounds, struct rounds *simulated,
                      struct error *err)
{
    int r = rounds_run(spec, rounds, err);
    if (r == 0 && o->sim && rounds->count && !rounds->signal)
        r = ab_simulate(spec, simulated, &watch->progress, err);
    progress_end(&watch->progress);
    if (o->exact)
        ab_exact_settle(rounds);
    return r;
}

static int measure_with(struct ab_options *o, struct ab_plan *plan, const struct event_list *events,
                        struct ab_products *products, struct error *err)
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
                               .keep_going = true,
                               .no_padding = o->no_padding,
                               .layout_count = o->layouts,
                               .on_tick = ab_watch_tick,
                               .on_run = ab_watch_run,
                               .on_result = ab_metrics_take,
                               .context = &watch};
    int r = set_limits(&spec, &watch, o, err);
    if (r == 0 && o->cpus)
        r = read_cpus(o, &cpus, &cpu_count, err);
    CLEANUP(ab_exact_done) struct ab_exact exact = {0};
    if (r == 0 && o->exact && (r = ab_exact_open(&exact, o, &spec, err)) < 0)
        return cmd_fail(&verb_ab, err, EXIT_MEASURE_FAILED);
    watch.metric = o->metric;
    if (r == 0)
        r = ab_metrics_init(&metrics, o, err);
    metrics.only = !o->exact ? NULL : exact.tool.is_cachegrind ? "sim:" : "exact:";
    if (r == 0 && o->ignore_failure)
        r = failure_codes_parse(&spec.ignored_failures, o->ignore_failure, err);
    if (r < 0)
        return cmd_usage(&verb_ab, err);
    spec.cpus = cpus;
    spec.cpu_count = cpu_count;
    set_output(&spec, o);
    time_t started = time(NULL);
    start_progress(&watch, o);
    CLEANUP(relinked_done) struct relinked linked = {0};
    if (o->links.count && (r = ab_layouts_link(&linked, o, plan, &spec, err)) < 0)
        return cmd_fail(&verb_ab, err, EXIT_MEASURE_FAILED);
    CLEANUP(rounds_done) struct rounds rounds, simulated = {0};
    r = run_rounds(o, &spec, &watch, &rounds, &simulated, err);
    if (r < 0)
        return cmd_fail(&verb_ab, err,
                        rounds.start_code < 0 ? process_exit_code_for(rounds.start_code)
                                              : EXIT_MEASURE_FAILED);
    int code = conclude(o, plan, &spec, &rounds, &simulated, &metrics, started, products, err);
    if (o->exact && code == EXIT_DONE && !products->to_stdout && !products->silent)
        show_functions(&exact, &spec, &rounds);
    return code;
}

static int run_commands(struct ab_options *o, char *const *given, size_t given_count,
                        struct error *err)
{
    size_t command_count = given_count;
    CLEANUP(memory_freep) char **commands = memory_zalloc(given_count + 1, sizeof(*commands));
    memcpy(commands, given, given_count * sizeof(*commands));
    if (ab_reference_is_command(o, given, given_count))
        commands[command_count++] = (char *)o->reference;
    CLEANUP(ab_plan_done) struct ab_plan plan = {0};
    CLEANUP(event_list_done) struct event_list events = {0};
    CLEANUP(ab_products_done) struct ab_products products = {0};
    int r = ab_plan_make(&plan, o, commands, command_count, err);
    bool bare = (o->json && !*o->json) || (o->csv && !*o->csv) || (o->markdown && !*o->markdown);
    if (r == -ENOENT && bare)
        fputs("assay ab: to write the results to a file, use --json=FILE\n", stderr);
    if (r == -ENOENT || r == -EACCES)
        return cmd_fail(&verb_ab, err, process_exit_code_for(r));
    if (r < 0)
        return cmd_usage(&verb_ab, err);
    struct dataset before;
    r = ab_products_open(&products, o, err);
    if (r == 0)
        r = parse_events(o, &events, err);
    if (r == 0)
        r = ab_save_check(o, err);
    if (r == 0 && o->against) {
        r = ab_against_load(o, &plan, &before, err);
        o->before = r == 0 ? &before : NULL;
    }
    if (r < 0)
        return cmd_fail(&verb_ab, err, r == -EINVAL ? EXIT_USAGE : EXIT_MEASURE_FAILED);
    int code = measure_with(o, &plan, &events, &products, err);
    if (o->before)
        dataset_done(o->before);
    return code;
}

static int report_imported(const struct ab_options *o, const struct imported *imported,
                           struct ab_products *products, struct error *err)
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
    r = report(o, &view, &d, NULL, plan.participants, NULL, products, err);
    return r < 0 ? cmd_fail(&verb_ab, err, EXIT_TROUBLE) : EXIT_DONE;
}

static int run_import(const struct ab_options *o, char *const *words, size_t word_count,
                      struct error *err)
{
    CLEANUP(imported_done) struct imported imported = {0};
    CLEANUP(ab_products_done) struct ab_products products = {0};
    size_t count = o->imports.count + word_count;
    CLEANUP(memory_freep) const char **paths = memory_zalloc(count, sizeof(*paths));
    for (size_t i = 0; i < count; i++)
        paths[i] = i < o->imports.count ? o->imports.items[i] : words[i - o->imports.count];
    int r = ab_products_open(&products, o, err);
    if (r == 0)
        r = hyperfine_import(paths, count, &imported, err);
    if (r < 0)
        return cmd_fail(&verb_ab, err, EXIT_TROUBLE);
    return report_imported(o, &imported, &products, err);
}

static int run(int argc, char **argv)
{
    struct error err = {0};
    struct ab_options o = {.warmup = 1, .copies = 1, .metric = "wall"};
    int first = options_parse_mixed(ab_option_table, &o, argc, argv, &err), code;
    size_t word_count = first > 0 ? (size_t)(argc - first) : 0;
    if (first < 0)
        code = cmd_usage(&verb_ab, &err);
    else if (first == OPTIONS_HELP)
        code = cmd_help(&verb_ab);
    else if (ab_options_check(&o, word_count, &err) < 0)
        code = cmd_usage(&verb_ab, &err);
    else if (o.imports.count)
        code = run_import(&o, argv + first, word_count, &err);
    else
        code = run_commands(&o, argv + first, word_count, &err);
    struct option_list *const lists[] = {&o.names,          &o.lists,     &o.scans,  &o.setups,
                                         &o.prepares,       &o.cleanups,  &o.events, &o.imports,
                                         &o.metric_regexes, &o.concludes, &o.links};
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
    .options = ab_option_table,
    .run = run,
};
