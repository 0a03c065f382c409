/* SPDX-License-Identifier: MIT */
/*
 * `assay bisect`: which commit made it slower (or faster)?  Builds and measures until it is sure,
 * and writes the mail.
 */
#include "report/text/bisect.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/term.h"
#include "cmd/bench_command.h"
#include "cmd/bisect_search.h"
#include "cmd/cmd.h"
#include "exact/tool.h"
#include "run/metrics.h"

#include <errno.h>
#include <stddef.h>
#include <sys/random.h>
#include <unistd.h>

/* The exit code when it cannot tell which commit it is. */
enum { EXIT_INCONCLUSIVE = 3 };

struct bisect_options {
    const char *good, *bad, *build, *run, *metric, *better, *dir, *cpus, *seed, *output, *bench,
        *program;
    const char *error, *min_change, *json, *markdown, *exact;
    struct option_list events;
    bool go_on, abort, all, keep, quiet, no_explain;
    uint64_t timeout_ns, warmup, min_rounds, max_rounds, stride;
};

#define O(field) offsetof(struct bisect_options, field)

static const struct option options[] = {
    {0, NULL, OPTION_HEADING, 0, NULL, "What to search", NULL},
    {0, "good", OPTION_STRING, O(good), "REF", "the older commit (required)", NULL},
    {0, "bad", OPTION_STRING, O(bad), "REF", "the newer commit (HEAD)", NULL},
    {0, "build", OPTION_STRING, O(build), "COMMAND",
     "the command that builds a commit, in a worktree of it", NULL},
    {0, "run", OPTION_STRING, O(run), "COMMAND",
     "the command to measure, in the same directory (required)", NULL},
    {0, "bench", OPTION_STRING, O(bench), "NAME",
     "search by this benchmark of the program with assay.h that --run names", NULL},
    {0, "metric", OPTION_STRING, O(metric), "NAME",
     "the metric to judge by (wall, or cpu if the command never waits)", NULL},
    {0, "exact", OPTION_OPTIONAL, O(exact), "user|arm64|model",
     "search by exact instruction counts: runs in an emulator (QEMU), no noise",
     "user arm64 model"},
    {0, "better", OPTION_STRING, O(better), "WAY",
     "lower or higher (default: guessed from its name and unit)", "lower higher"},
    {0, "all", OPTION_FLAG, O(all), NULL, "find every change in the range, not only one", NULL},
    {0, "stride", OPTION_U64, O(stride), "N",
     "with --all: look into every stretch of more than N commits (default: a quarter)", NULL},
    {0, NULL, OPTION_HEADING, 0, NULL, "How certain to be", NULL},
    {0, "error", OPTION_STRING, O(error), "PERCENT",
     "the probability of naming a wrong commit (5%)", NULL},
    {0, "min-change", OPTION_STRING, O(min_change), "PERCENT",
     "ignore changes smaller than this (1%)", NULL},
    {0, "min-rounds", OPTION_U64, O(min_rounds), "N", "rounds before the first decision (10)",
     NULL},
    {0, "max-rounds", OPTION_U64, O(max_rounds), "N", "rounds of one decision at most (1000)",
     NULL},
    {0, NULL, OPTION_HEADING, 0, NULL, "How to run", NULL},
    {'w', "warmup", OPTION_U64, O(warmup), "N", "warm-up rounds before each decision (1)", NULL},
    {0, "timeout", OPTION_SECONDS, O(timeout_ns), "TIME", "treat a run that takes longer as failed",
     NULL},
    {'e', "event", OPTION_LIST, O(events), "LIST", "other events to count", "event"},
    {0, "cpus", OPTION_STRING, O(cpus), "CPUS", "run on these CPUs, e.g. 0-3,7", NULL},
    {0, "seed", OPTION_STRING, O(seed), "N", "seed for the order of the runs", NULL},
    {0, "output", OPTION_STRING, O(output), OUTPUT_VALUE, OUTPUT_HELP, OUTPUT_WORDS},
    {0, "no-explain", OPTION_FLAG, O(no_explain), NULL,
     "do not profile the commit found to see which functions account for it", NULL},
    {0, NULL, OPTION_HEADING, 0, NULL, "Resuming", NULL},
    {0, "continue", OPTION_FLAG, O(go_on), NULL,
     "resume the interrupted search, or print its result again if it is complete", NULL},
    {0, "abort", OPTION_FLAG, O(abort), NULL,
     "abandon the search: remove its worktrees and its journal", NULL},
    {0, "dir", OPTION_STRING, O(dir), "DIR",
     "where worktrees and journal go (assay-bisect in the git directory)", "file"},
    {0, "keep", OPTION_FLAG, O(keep), NULL, "keep the worktrees for the next search", NULL},
    {0, NULL, OPTION_HEADING, 0, NULL, "Output", NULL},
    {'j', "json", OPTION_OPTIONAL, O(json), "FILE",
     "print JSON instead of the text, or write it to a file", NULL},
    {0, "markdown", OPTION_OPTIONAL, O(markdown), "FILE",
     "print Markdown instead of the text, or write it to a file", NULL},
    {'q', "quiet", OPTION_FLAG, O(quiet), NULL, "do not show progress", NULL},
    {0},
};

static int check_options(const struct bisect_options *o, struct error *err)
{
    if (o->go_on && o->abort)
        return error_set(err, -EINVAL, "--continue and --abort cannot be used together");
    if (o->go_on || o->abort) {
        if (o->good || o->bad || o->run || o->build)
            return error_set(err, -EINVAL,
                             "--continue and --abort use the commits and commands of the "
                             "interrupted search; give none");
        return 0;
    }
    if (!o->good)
        return error_set(err, -EINVAL, "give the older commit: --good REF");
    if (!o->run || !*o->run)
        return error_set(err, -EINVAL, "give the command to measure: --run COMMAND");
    if (o->bench && (o->metric || o->better))
        return error_set(err, -EINVAL,
                         "--bench has a metric of its own; give no --metric and "
                         "--better");
    if (o->better && !str_eq(o->better, "lower") && !str_eq(o->better, "higher"))
        return error_set(err, -EINVAL, "--better %s: must be lower or higher", o->better);
    if (o->min_rounds && o->min_rounds < COMPARISON_ROUNDS_MIN)
        return error_set(err, -EINVAL, "--min-rounds: at least %d are needed to decide anything",
                         COMPARISON_ROUNDS_MIN);
    if (o->json && o->markdown && !*o->json && !*o->markdown)
        return error_set(err, -EINVAL,
                         "--json and --markdown both go to standard output; give one a file");
    return 0;
}

/* What counts exactly here names the metric. */
static int choose_exact(struct bisect_settings *s, struct error *err)
{
    CLEANUP(exact_tool_done) struct exact_tool tool = {0};
    int r = exact_check_word(s->exact, err);
    if (r == 0)
        r = cmd_find_exact(&tool, s->exact, err);
    if (r < 0)
        return r;
    if (exact_tool_note(&tool))
        fprintf(stderr, "assay bisect: %s\n", exact_tool_note(&tool));
    s->exact = (char *)(uintptr_t)exact_word(s->exact);
    if (!s->metric)
        s->metric = (char *)tool.metric;
    if (!s->rounds_first)
        s->rounds_first = COMPARISON_ROUNDS_MIN;
    s->warmup = 0;
    return 0;
}

/* What is counted in an emulated machine needs few rounds, and the host's samples say nothing. */
static void choose_machine(struct bisect_settings *s)
{
    if (!s->rounds_first)
        s->rounds_first = COMPARISON_ROUNDS_MIN;
    s->warmup = 0;
    s->explain = false;
}

static int make_settings(const struct bisect_options *o, struct bisect_settings *s,
                         struct strbuf *events, struct error *err)
{
    for (size_t i = 0; i < o->events.count; i++)
        strbuf_printf(events, "%s%s", i ? "," : "", o->events.items[i]);
    uint32_t chance;
    if (getrandom(&chance, sizeof(chance), 0) != sizeof(chance))
        chance = (uint32_t)clock_now_ns();
    *s = (struct bisect_settings){.good = (char *)o->good,
                                  .bad = (char *)(o->bad ? o->bad : "HEAD"),
                                  .build = (char *)o->build,
                                  .run = (char *)o->run,
                                  .bench = (char *)o->bench,
                                  .program = (char *)o->program,
                                  .metric = (char *)o->metric,
                                  .events = (char *)strbuf_text(events),
                                  .cpus = (char *)o->cpus,
                                  .better = (char *)o->better,
                                  .output = (char *)o->output,
                                  .exact = (char *)(o->exact ? o->exact : ""),
                                  .seed = chance,
                                  .timeout_ns = o->timeout_ns,
                                  .warmup = o->warmup,
                                  .rounds_first = o->min_rounds,
                                  .rounds_max = o->max_rounds,
                                  .stride = o->stride,
                                  .all = o->all,
                                  .keep = o->keep,
                                  .explain = !o->no_explain && !o->exact};
    int r = o->exact ? choose_exact(s, err) : 0;
    if (o->metric && str_has_prefix(o->metric, METRICS_OF_MACHINE))
        choose_machine(s);
    if (r == 0 && o->error)
        r = option_share("error", o->error, 0.5, &s->error, err);
    if (r == 0 && o->min_change)
        r = option_share("min-change", o->min_change, 0.5, &s->min_change, err);
    if (r == 0 && o->seed && (r = parse_u64(o->seed, &s->seed, err)) < 0)
        error_wrap(err, r, "option --seed");
    return r;
}

static void show_progress(const struct bisect *b, const char *what, void *context)
{
    progress_show(context, "%zu built, %llu %s: %s", bisection_build_count(&b->search),
                  (unsigned long long)b->run_count, plural(b->run_count, "run", "runs"), what);
}

/* Writes one format where it was asked for; the text stands for what does not go to a file. */
static int write_result(const char *path,
                        void (*report)(struct strbuf *, const struct bisect_view *),
                        const struct bisect_view *v, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    report(&text, v);
    if (path && *path && !str_eq(path, "-"))
        return file_write(path, text.data, text.length, err);
    fwrite(strbuf_text(&text), 1, text.length, stdout);
    return 0;
}

static bool to_stdout(const char *path)
{
    return path && (!*path || str_eq(path, "-"));
}

static int print_result(const struct bisect_options *o, const struct bisect *b, struct error *err)
{
    struct machine machine;
    machine_probe(&machine, MACHINE_QUICK);
    struct bisect_view view = {.b = b, .machine = &machine};
    int r = 0;
    if (!to_stdout(o->json) && !to_stdout(o->markdown))
        r = write_result(NULL, report_bisect_text, &view, err);
    if (r == 0 && o->json)
        r = write_result(o->json, report_bisect_json, &view, err);
    if (r == 0 && o->markdown)
        r = write_result(o->markdown, report_bisect_markdown, &view, err);
    machine_done(&machine);
    return r;
}

static int exit_code(const struct bisect *b)
{
    switch (b->search.verdict) {
    case BISECTION_FOUND:
        return EXIT_DONE;
    case BISECTION_NO_CHANGE:
        return EXIT_TROUBLE;
    case BISECTION_BAD_END:
        return EXIT_MEASURE_FAILED;
    case BISECTION_CANNOT_TELL:
    case BISECTION_SEARCHING:
        break;
    }
    return EXIT_INCONCLUSIVE;
}

static int search(const struct bisect_options *o, struct bisect *b, struct error *err)
{
    struct progress progress;
    progress_start(&progress);
    progress.log_as = "assay bisect";
    if (!o->quiet) {
        b->on_progress = show_progress;
        b->context = &progress;
    }
    int r = bisect_search(b, err);
    progress_end(&progress);
    if (b->notes.length && !o->quiet) {
        CLEANUP(strbuf_done) struct strbuf safe = {0};
        for (const char *at = strbuf_text(&b->notes); *at;) {
            size_t length = strcspn(at, "\n");
            strbuf_puts(&safe, "assay bisect: ");
            strbuf_put_safe(&safe, at, length, 500);
            strbuf_putc(&safe, '\n');
            at += length + (at[length] == '\n');
        }
        fputs(strbuf_text(&safe), stderr);
    }
    if (r == -EINTR) {
        fprintf(stderr,
                "assay bisect: stopped after %llu %s; resume with 'assay bisect --continue%s%s'; "
                "--abort removes its worktrees\n",
                (unsigned long long)b->run_count, plural(b->run_count, "run", "runs"),
                o->dir ? " --dir " : "", o->dir ? o->dir : "");
        return r;
    }
    if (r < 0) {
        struct error was = *err;
        error_set(err, r,
                  "%s; the measurements are kept: --continue resumes, --abort discards them",
                  was.message);
        return error_end_with(err, was.exit_code, r);
    }
    return print_result(o, b, err);
}

static int run_with(const struct bisect_options *o, struct error *err)
{
    CLEANUP(memory_freep) char *folder = NULL;
    CLEANUP(strbuf_done) struct strbuf events = {0};
    struct bisect_settings settings;
    struct bisect b;
    int r = o->go_on || o->abort ? 0 : make_settings(o, &settings, &events, err);
    if (r < 0)
        return err->exit_code ? cmd_fail(&verb_bisect, err, EXIT_MEASURE_FAILED)
                              : cmd_usage(&verb_bisect, err);
    if (o->dir)
        folder = memory_strdup(o->dir);
    else if ((r = bisect_default_folder(&folder, err)) < 0)
        return cmd_fail(&verb_bisect, err, EXIT_MEASURE_FAILED);
    if (o->abort) {
        r = bisect_abort(folder, err);
        return r < 0 ? cmd_fail(&verb_bisect, err, EXIT_MEASURE_FAILED) : EXIT_DONE;
    }
    process_signals_catch();
    r = o->go_on ? bisect_continue(&b, folder, err) : bisect_start(&b, &settings, folder, err);
    if (r == 0)
        r = search(o, &b, err);
    int code = r == 0 ? exit_code(&b) : EXIT_MEASURE_FAILED;
    int signal = process_signals_caught();
    bisect_close(&b);
    process_signals_restore();
    if (r == -EINTR)
        return 128 + (signal ? signal : 2);
    return r < 0 ? cmd_fail(&verb_bisect, err, code) : code;
}

static int run(int argc, char **argv)
{
    struct error err = {0};
    struct bisect_options o = {.warmup = 1};
    int first = options_parse_mixed(options, &o, argc, argv, &err);
    if (first == OPTIONS_HELP)
        return cmd_help(&verb_bisect);
    if (first > 0 && first < argc)
        first = error_set(
            &err, -EINVAL,
            "'%s': bisect takes no arguments; give commands to --run and --build, in quotes",
            argv[first]);
    if (first > 0 && check_options(&o, &err) < 0)
        first = -EINVAL;
    CLEANUP(memory_freep) char *command = NULL, *metric = NULL;
    if (first > 0 && o.bench) {
        char *words[BENCH_COMMAND_WORDS + 1] = {0};
        CLEANUP(strbuf_done) struct strbuf text = {0};
        bench_command_words(words, o.bench, o.run);
        strbuf_put_command(&text, words);
        o.program = o.run;
        o.run = command = memory_strdup(strbuf_text(&text));
        o.metric = metric = bench_metric_name(o.bench);
        o.better = "lower";
    }
    int code = first < 0 ? cmd_usage(&verb_bisect, &err) : run_with(&o, &err);
    free(o.events.items);
    return code;
}

const struct verb verb_bisect = {
    .name = "bisect",
    .summary = "find the commit that changed performance: builds, measures, says how certain",
    .synopsis = "--good REF [--bad REF] [--build COMMAND] --run COMMAND [options] | --continue",
    .examples = "  assay bisect --good v1.2 --build 'make -s' --run ./bench\n"
                "  assay bisect --good HEAD~64 --run ./bench --metric ops/s --all\n"
                "  assay bisect --good v1.2 --build make --bench parse --run ./benchmarks\n"
                "  assay bisect --continue               after Ctrl-C\n",
    .options = options,
    .run = run,
};
