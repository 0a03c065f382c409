/* SPDX-License-Identifier: MIT */
/* `assay run SPEC.yaml`: an experiment, in rounds, into the store. */
#include "base/memory.h"
#include "base/process.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "cmd/run_elsewhere.h"
#include "monitors/monitors.h"
#include "report/text/experiment.h"
#include "run/output.h"
#include "session/experiments.h"
#include "session/session.h"
#include "spec/holes.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <unistd.h>

struct run_options {
    const char *db, *cells, *resume, *cpus, *commit, *precision, *nice;
    bool quick, fresh, dry_run, quiet, list;
    uint64_t rounds, budget_ns, timeout_ns;
    const char *output, *seed, *task, *hosts, *launcher;
    struct option_list monitors;
    struct elsewhere_options elsewhere;
};

#define O(field) offsetof(struct run_options, field)

static const struct option options[] = {
    {0, NULL, OPTION_HEADING, 0, NULL, "What to run from the spec", NULL},
    {0, "quick", OPTION_FLAG, O(quick), NULL, "use the spec's quick section", NULL},
    {0, "cells", OPTION_STRING, O(cells), "LIST", "only these cells: 1,4-6 or factor=value,…",
     "!assay completion --list cells"},
    {0, "list", OPTION_FLAG, O(list), NULL, "show the experiments that came with assay", NULL},
    {0, "dry-run", OPTION_FLAG, O(dry_run), NULL, "show the plan and run nothing", NULL},
    {0, NULL, OPTION_HEADING, 0, NULL, "Overriding the spec", NULL},
    {'r', "rounds", OPTION_U64, O(rounds), "N", "number of rounds", NULL},
    {0, "precision", OPTION_STRING, O(precision), "PERCENT",
     "add rounds until intervals are this narrow, e.g. 1%", NULL},
    {0, "budget", OPTION_SECONDS, O(budget_ns), "TIME", "stop after this long", NULL},
    {0, "timeout", OPTION_SECONDS, O(timeout_ns), "TIME", "treat a run that takes longer as failed",
     NULL},
    {0, "cpus", OPTION_STRING, O(cpus), "CPUS", "run on these CPUs, e.g. 0-3,7", NULL},
    {0, "output", OPTION_STRING, O(output), OUTPUT_VALUE, OUTPUT_HELP, OUTPUT_WORDS},
    {0, "nice", OPTION_STRING, O(nice), "N", "priority of the runs, -20 to 19", NULL},
    {0, "seed", OPTION_STRING, O(seed), "N", "seed for the order of the runs", NULL},
    {0, "monitor", OPTION_LIST, O(monitors), "NAME",
     "use another monitor besides the spec's; 'list' shows them",
     "!assay completion --list monitors"},
    {0, NULL, OPTION_HEADING, 0, NULL, "The store", NULL},
    {0, "db", OPTION_STRING, O(db), "PATH", CMD_DB_HELP, "file"},
    {0, "fresh", OPTION_FLAG, O(fresh), NULL, "start a new experiment even if one is unfinished",
     NULL},
    {0, "resume", OPTION_STRING, O(resume), "ID", "resume this experiment",
     "!assay completion --list experiments"},
    {0, "commit", OPTION_STRING, O(commit), "NAME", "the commit to record, instead of asking git",
     NULL},
    {'q', "quiet", OPTION_FLAG, O(quiet), NULL, "print only failures", NULL},
    {0, NULL, OPTION_HEADING, 0, NULL, "On other machines (docs/LAB.md)", NULL},
    {0, "on", OPTION_STRING, O(elsewhere.on), "WHERE", "submit the rounds to a cluster: slurm",
     "slurm"},
    {0, "partition", OPTION_STRING, O(elsewhere.partition), "NAME", "partition of the cluster",
     NULL},
    {0, "constraint", OPTION_STRING, O(elsewhere.constraint), "FEATURES",
     "features that nodes must have", NULL},
    {0, "exclusive", OPTION_FLAG, O(elsewhere.exclusive), NULL, "reserve whole nodes", NULL},
    {0, "throttle", OPTION_U64, O(elsewhere.throttle), "N", "run at most N tasks at the same time",
     NULL},
    {0, "slurm-args", OPTION_STRING, O(elsewhere.slurm_args), "ARGS", "more options for sbatch",
     NULL},
    {0, "together", OPTION_STRING, O(elsewhere.together), "FACTORS",
     "factors whose values also stay on one node; or: all", NULL},
    {0, "tries", OPTION_U64, O(elsewhere.tries), "N",
     "attempts at a round, each on a different node (default 3)", NULL},
    {0, "spool", OPTION_STRING, O(elsewhere.spool), "DIR",
     "directory that all nodes share (default .assay/cluster beside the spec)", "folder"},
    {0, "hosts", OPTION_STRING, O(hosts), "LIST",
     "hosts for the spec's roles: m1,m2 or role=host[@address],… or @FILE", NULL},
    {0, "launcher", OPTION_STRING, O(launcher), "ARGS",
     "how to start a command on {host} (default: ssh)", NULL},
    {0, "task", OPTION_STRING, O(task), "PATH", "internal: what --on submits", "file"},
    {0},
};

struct watcher {
    struct progress progress;
    bool quiet;
};

static void show_progress(const struct session_progress *p, void *context)
{
    struct watcher *w = context;
    char eta[32], left[48] = "", widest[48] = "";
    if (p->phase == SESSION_BUILD) {
        progress_show(&w->progress, "building: %s", p->current);
        return;
    }
    if (p->phase == SESSION_WARMUP) {
        progress_show(&w->progress, "warming up: %s", p->current);
        return;
    }
    if (p->phase == SESSION_EXTRA && isfinite(p->widest))
        snprintf(widest, sizeof(widest), ", widest interval ±%.2g %%", 100 * p->widest);
    if (p->eta_ns)
        snprintf(left, sizeof(left), ", about %s left",
                 format_duration((double)p->eta_ns, eta, sizeof(eta)));
    progress_show(&w->progress, "%sround %llu, run %zu of %zu%s%s: %s",
                  p->phase == SESSION_EXTRA ? "extra " : "", (unsigned long long)p->round + 1,
                  p->runs_done + 1, p->runs_planned, widest, left, p->current);
}

static int parse_nice(const char *text, int *ret_nice, struct error *err)
{
    double value;
    int r = parse_double(text, &value, err);
    if (r == 0 && (value < -20 || value > 19 || value != rint(value)))
        r = error_set(err, -EINVAL, "'%s' is not between -20 and 19", text);
    if (r == 0)
        *ret_nice = (int)value;
    return r;
}

static int session_options_from(const struct run_options *o, const char *spec,
                                struct session_options *so, struct error *err)
{
    *so = (struct session_options){.spec_path = spec,
                                   .db = o->db,
                                   .cells = o->cells,
                                   .quick = o->quick,
                                   .fresh = o->fresh,
                                   .dry_run = o->dry_run,
                                   .resume = o->resume,
                                   .rounds = o->rounds,
                                   .budget_ns = o->budget_ns,
                                   .timeout_ns = o->timeout_ns,
                                   .cpus = o->cpus,
                                   .output = o->output,
                                   .commit = o->commit,
                                   .hosts = o->hosts,
                                   .launcher = o->launcher,
                                   .monitors = o->monitors.items,
                                   .monitor_count = o->monitors.count,
                                   .has_nice = o->nice != NULL,
                                   .has_seed = o->seed != NULL,
                                   .on_progress = show_progress};
    int r = 0;
    if (o->elsewhere.on && !str_eq(o->elsewhere.on, "slurm"))
        r = error_set(err, -EINVAL, "--on: assay knows 'slurm', not '%s'", o->elsewhere.on);
    if (r == 0 && o->fresh && o->resume)
        r = error_set(err, -EINVAL, "--fresh and --resume cannot be used together");
    if (r == 0 && o->precision)
        r = option_share("precision", o->precision, 1, &so->precision, err);
    if (r == 0 && o->nice && (r = parse_nice(o->nice, &so->nice, err)) < 0)
        error_wrap(err, r, "option --nice");
    if (r == 0 && o->seed && (r = parse_u64(o->seed, &so->seed, err)) < 0)
        error_wrap(err, r, "option --seed");
    return r;
}

static int show_plan(struct session *s)
{
    const struct spec *spec = session_spec(s);
    const struct matrix *matrix = session_matrix(s);
    size_t cell_count = session_facts(s).cell_count;
    CLEANUP(strbuf_done) struct strbuf out = {0};
    strbuf_printf(&out, "%s: %zu %s, %llu %s", spec->name, cell_count,
                  plural(cell_count, "cell", "cells"), (unsigned long long)spec->rounds,
                  plural(spec->rounds, "round", "rounds"));
    char text[32];
    if (spec->precision > 0)
        strbuf_printf(&out, ", then more until every interval is ±%.3g %%", 100 * spec->precision);
    if (spec->budget_ns)
        strbuf_printf(&out, ", at most %s",
                      format_duration((double)spec->budget_ns, text, sizeof(text)));
    uint64_t guess_ns = session_guess_run_ns(s);
    double runs = (double)cell_count * (double)(spec->rounds + spec->warmup);
    if (guess_ns)
        strbuf_printf(&out, ": about %s, judging by the last time",
                      format_duration((double)guess_ns * runs, text, sizeof(text)));
    strbuf_puts(&out, "\n");
    CLEANUP(memory_freep)
    const char **builds = memory_zalloc(spec->build_count + 1, sizeof(*builds));
    for (size_t b = 0; b < spec->build_count; b++)
        builds[b] = "{build}";
    for (size_t c = 0; c < matrix->count; c++) {
        if (!session_keeps(s, c))
            continue;
        struct hole_values values = {
            .spec = spec, .levels = matrix->cells[c].levels, .builds = builds, .cell = c + 1};
        strbuf_printf(&out, "%5zu  %s", c + 1, matrix->cells[c].label);
        if (matrix->cells[c].baseline == c && spec->baseline.count)
            strbuf_puts(&out, "  (baseline)");
        strbuf_puts(&out, "\n         ");
        if (spec->command.text)
            holes_fill(&out, spec->command.text, &values);
        for (size_t i = 0; spec->command.words && spec->command.words[i]; i++) {
            holes_fill(&out, spec->command.words[i], &values);
            strbuf_putc(&out, ' ');
        }
        strbuf_putc(&out, '\n');
    }
    fputs(strbuf_text(&out), stdout);
    return EXIT_DONE;
}

void run_show_start(struct session *s)
{
    struct session_facts facts = session_facts(s);
    if (facts.resume_note)
        fprintf(stderr, "assay run: %s\n", facts.resume_note);
    if (facts.resumed)
        fprintf(stderr, "assay run: resuming experiment %lld, which has %zu %s\n",
                (long long)facts.experiment, facts.run_count_before,
                plural(facts.run_count_before, "run", "runs"));
    else
        fprintf(stderr, "assay run: experiment %lld: %zu %s, seed %llu\n",
                (long long)facts.experiment, facts.cell_count,
                plural(facts.cell_count, "cell", "cells"), (unsigned long long)facts.seed);
    run_show_notes(s, stderr);
}

void run_show_notes(struct session *s, FILE *to)
{
    CLEANUP(strbuf_done) struct strbuf notes = {0};
    session_take_notes(s, &notes);
    if (to)
        fputs(strbuf_text(&notes), to);
}

int run_show_result(struct session *s, struct error *err)
{
    struct session_facts facts = session_facts(s);
    struct dataset d;
    int r = dataset_load(&d, facts.store, facts.experiment, err);
    if (r < 0)
        return r;
    CLEANUP(strbuf_done) struct strbuf out = {0};
    bool colour = term_has_colour(STDOUT_FILENO);
    report_head_text(&out, &d, colour);
    report_cells_text(
        &out, &d,
        &(struct cells_view){.colour = colour,
                             .bars = term_has_utf8(STDOUT_FILENO),
                             .columns = isatty(STDOUT_FILENO) ? term_columns(STDOUT_FILENO) : 0});
    fputs(strbuf_text(&out), stdout);
    dataset_done(&d);
    return 0;
}

/* Where the runs are when the store was out of reach; true when they still are there. */
bool run_tell_of_spool(const struct session *s)
{
    const char *path = NULL, *why;
    struct store *store = session_facts(s).store;
    size_t waiting = store_waiting(store, &path), count = store_spooled(store, &why);
    if (count)
        fprintf(stderr, "assay run: the connection to the store was lost: %s\n", why);
    if (waiting)
        fprintf(
            stderr,
            "assay run: the store cannot be reached; nothing is lost: what it is missing is in %s\n"
            "and will be delivered by the next 'assay run' with this store, or by 'assay db "
            "deliver'\n",
            path);
    else if (count)
        fprintf(stderr, "assay run: %zu %s waited in a file and %s been delivered\n", count,
                plural(count, "run", "runs"), plural(count, "has", "have"));
    return waiting > 0;
}

static int run_session(struct session *s, const struct run_options *o, struct watcher *w,
                       struct error *err)
{
    if (!o->quiet)
        run_show_start(s);
    run_show_notes(s, NULL);
    int r = session_run(s, err);
    progress_end(&w->progress);
    run_show_notes(s, stderr);
    struct session_facts facts = session_facts(s);
    bool out_of_reach = run_tell_of_spool(s);
    if (r < 0) {
        struct error ignored;
        if (facts.failed_cells && !o->quiet && !out_of_reach)
            run_show_result(s, &ignored);
        cmd_fail(&verb_run, err, 0);
        fprintf(
            stderr,
            "The earlier runs are kept in experiment %lld; run the same command again to resume.\n",
            (long long)facts.experiment);
        return EXIT_TROUBLE;
    }
    if (facts.end == SESSION_STOPPED) {
        fprintf(
            stderr, "assay run: stopped; %zu %s kept; run the same command again to resume\n",
            facts.run_count_before + session_progress(s).runs_done,
            plural(facts.run_count_before + session_progress(s).runs_done, "run is", "runs are"));
        return 128 + process_signals_caught();
    }
    if (!o->quiet && !out_of_reach && (r = run_show_result(s, err)) < 0)
        return cmd_fail(&verb_run, err, EXIT_TROUBLE);
    return EXIT_DONE;
}

static int run_with(const struct run_options *o, const char *spec, struct error *err)
{
    struct session_options so;
    struct watcher w = {.quiet = o->quiet};
    if (session_options_from(o, spec, &so, err) < 0)
        return cmd_usage(&verb_run, err);
    if (o->task)
        return run_task(&so, o->task);
    if (o->elsewhere.on && !o->dry_run)
        return run_elsewhere(&so, &o->elsewhere, o->quiet);
    so.context = &w;
    progress_start(&w.progress);
    w.progress.log_as = "assay run";
    process_signals_catch();
    struct session *s;
    int code, r = session_open(&s, &so, err);
    if (r == -EINTR) {
        progress_end(&w.progress);
        code = 128 + process_signals_caught();
    } else if (r < 0) {
        progress_end(&w.progress);
        code = cmd_fail(&verb_run, err, EXIT_TROUBLE);
    } else if (o->dry_run) {
        code = show_plan(s);
    } else {
        code = run_session(s, o, &w, err);
    }
    session_close(s);
    process_signals_restore();
    return code;
}

/* "--monitor list". */
static bool wants_monitors(const struct run_options *o)
{
    for (size_t i = 0; i < o->monitors.count; i++)
        if (str_eq(o->monitors.items[i], "list"))
            return true;
    return false;
}

static int show_monitors(void)
{
    static const char *const when[] = {[MONITOR_READS] = "",
                                       [MONITOR_TRACES] = " (traced, in a separate run)",
                                       [MONITOR_PROFILES] = " (sampled, in a separate run)"};
    const char *names[MONITORS_MAX];
    size_t count = monitor_names(names);
    for (size_t i = 0; i < count; i++) {
        const struct monitor *m = monitor_find(names[i]);
        printf("%-16s %s%s\n", names[i], monitor_what(m), when[monitor_class(m)]);
    }
    return EXIT_DONE;
}

/* "--list": one line for each experiment that came with assay. */
static int show_experiments(struct error *err)
{
    char **names = NULL;
    size_t count = 0;
    if (experiments_names(&names, &count, err) < 0)
        return cmd_fail(&verb_run, err, EXIT_TROUBLE);
    CLEANUP(memory_freep) char *folder = experiments_folder();
    for (size_t i = 0; i < count; i++) {
        CLEANUP(memory_freep) char *path = memory_printf("%s/%s.yaml", folder, names[i]);
        struct spec spec;
        int r = spec_load(&spec, path, false, err);
        printf("%-20s %s\n", names[i], r < 0 ? err->message : spec.question ? spec.question : "");
        if (r == 0)
            spec_done(&spec);
        free(names[i]);
    }
    free(names);
    return EXIT_DONE;
}

static int run_words(int argc, char **argv, struct run_options *o, struct error *err)
{
    int first = options_parse_mixed(options, o, argc, argv, err);
    if (first == OPTIONS_HELP)
        return cmd_help(&verb_run);
    if (first > 0 && wants_monitors(o))
        return show_monitors();
    if (first > 0 && o->list && first == argc)
        return show_experiments(err);
    if (first > 0 && argc - first != 1)
        first = error_set(err, -EINVAL, "give one spec, e.g. assay run experiment.yaml");
    if (first < 0)
        return cmd_usage(&verb_run, err);
    CLEANUP(memory_freep) char *spec = NULL;
    if (experiments_find(argv[first], &spec, err) < 0)
        return cmd_fail(&verb_run, err, EXIT_TROUBLE);
    return run_with(o, spec, err);
}

static int run(int argc, char **argv)
{
    struct error err = {0};
    struct run_options o = {0};
    int code = run_words(argc, argv, &o, &err);
    free(o.monitors.items);
    return code;
}

const struct verb verb_run = {
    .name = "run",
    .summary = "run the experiment that a spec describes and store it",
    .synopsis = "[options] SPEC.yaml|NAME",
    .examples = "  assay run sort.yaml --dry-run\n"
                "  assay run sort.yaml --quick\n"
                "  assay run --list\n"
                "  assay run --quick data-movement\n"
                "  assay run sort.yaml --cells variant=heap,size=1000\n"
                "  assay run sort.yaml              resumes if it was interrupted\n"
                "  assay run sort.yaml --on slurm --partition lab --exclusive\n",
    .options = options,
    .run = run,
    .words = "!assay completion --list specs",
};
