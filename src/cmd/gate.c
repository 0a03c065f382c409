/* SPDX-License-Identifier: MIT */
/*
 * `assay gate`: did this change make it slower?  For CI: the base commit, the base again as a
 * control, and the working tree run in the same rounds on the same machine.  When the control
 * differs from itself, the machine cannot judge anyone, and nobody fails.  With --baseline only the
 * working tree runs, and a stored result is what it is compared with.
 */
#include "report/text/gate.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/term.h"
#include "bisect/gate_trees.h"
#include "cmd/bench_command.h"
#include "cmd/cmd.h"
#include "cmd/gate_baseline.h"
#include "counters/event.h"
#include "counters/simulated.h"
#include "exact/run.h"
#include "run/command.h"
#include "run/output.h"
#include "session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

enum { EXIT_INCONCLUSIVE = 3 }; /* of a gate that cannot tell */

#define BUDGET_NS (300ULL * 1000000000)
#define ROUNDS 10
#define EXACT_ROUNDS 3

struct gate_options {
    const char *base, *baseline, *build, *max_regression, *db, *summary, *markdown, *junit, *cpus;
    const char *seed, *output, *judge, *metric, *better, *bench, *exact, *time;
    struct option_list events;
    bool quick, quiet;
    const char *json;
    uint64_t rounds, budget_ns, timeout_ns;
};

#define O(field) offsetof(struct gate_options, field)

static const struct option options[] = {
    {0, NULL, OPTION_HEADING, 0, NULL, "What to compare with", NULL},
    {0, "base", OPTION_STRING, O(base), "REF",
     "the commit to compare with, in the same rounds (this or --baseline is required)", NULL},
    {0, "baseline", OPTION_STRING, O(baseline), "RESULT",
     "a stored result instead: an HTML report, JSON of ab or gate, or an experiment of the store",
     "file"},
    {0, "build", OPTION_STRING, O(build), "COMMAND", "run this in both trees first", NULL},
    {0, NULL, OPTION_HEADING, 0, NULL, "What to judge", NULL},
    {0, "max-regression", OPTION_STRING, O(max_regression), "PERCENT",
     "the largest regression allowed (2%)", NULL},
    {'e', "event", OPTION_LIST, O(events), "LIST",
     "events to count; sim:instructions judges by exact instruction counts", "event"},
    {0, "exact", OPTION_OPTIONAL, O(exact), "user|arm64|model",
     "judge by exact instruction counts: runs in an emulator (QEMU), no noise", "user arm64 model"},
    {0, "time", OPTION_OPTIONAL, O(time), "PERCENT",
     "with --exact: also judge the time, which may get at most this much worse (5%)", NULL},
    {0, "judge", OPTION_STRING, O(judge), "WHAT",
     "median, mean or p95 (default: the median and the mean)", "median mean p95"},
    {0, "bench", OPTION_STRING, O(bench), "NAME",
     "judge this benchmark of a program with assay.h, which takes the place of the command", NULL},
    {0, "metric", OPTION_STRING, O(metric), "NAME",
     "the metric to judge by (default: the spec's; wall, or cpu where wall cannot tell)",
     "!assay completion --list metrics"},
    {0, "better", OPTION_STRING, O(better), "WAY",
     "which direction is better: lower or higher (default: the metric's own)", "lower higher"},
    {0, NULL, OPTION_HEADING, 0, NULL, "How to run", NULL},
    {'r', "rounds", OPTION_U64, O(rounds), "N", "run exactly N rounds", NULL},
    {0, "budget", OPTION_SECONDS, O(budget_ns), "TIME",
     "measure until the result is clear, at most this long (5m)", NULL},
    {0, "timeout", OPTION_SECONDS, O(timeout_ns), "TIME", "treat a run that takes longer as failed",
     NULL},
    {0, "quick", OPTION_FLAG, O(quick), NULL, "use the spec's quick section", NULL},
    {0, "cpus", OPTION_STRING, O(cpus), "CPUS", "run on these CPUs, e.g. 0-3,7", NULL},
    {0, "output", OPTION_STRING, O(output), OUTPUT_VALUE, OUTPUT_HELP, OUTPUT_WORDS},
    {0, "seed", OPTION_STRING, O(seed), "N", "seed for the order of the runs", NULL},
    {0, NULL, OPTION_HEADING, 0, NULL, "Output", NULL},
    {0, "db", OPTION_STRING, O(db), "PATH",
     "keep the runs in this store, and find --baseline there (default: do not keep them)", "file"},
    {0, "summary", OPTION_STRING, O(summary), "FILE",
     "append the Markdown to this file ($GITHUB_STEP_SUMMARY)", "file"},
    {0, "markdown", OPTION_STRING, O(markdown), "FILE",
     "also write it to this file, marked as the comment to update", "file"},
    {0, "junit", OPTION_STRING, O(junit), "FILE", "write JUnit XML to this file", "file"},
    {'j', "json", OPTION_OPTIONAL, O(json), "FILE",
     "print JSON instead of Markdown, or write it to this file", "file"},
    {'q', "quiet", OPTION_FLAG, O(quiet), NULL, "do not show progress", NULL},
    {0},
};

/* What a gate works with. */
struct gate {
    const struct gate_options *o;
    const char *exact, *metric; /* what is measured now: --time measures twice */
    char **words;
    size_t word_count;
    bool has_spec;
    struct gate_trees trees;
    struct gate_result_set set;
    struct gate_baseline baseline; /* empty without --baseline */
    struct strbuf notes;           /* how runs failed */
};

/* An event that is counted, and no figure that every run has or a program prints. */
static bool is_event(const char *metric)
{
    static const char *const always[] = {"wall", "cpu", "user", "sys", "peak-rss"};
    for (size_t i = 0; i < ARRAY_COUNT(always); i++)
        if (str_eq(metric, always[i]))
            return false;
    CLEANUP(event_list_done) struct event_list list = {0};
    return event_list_parse(&list, metric, NULL) == 0;
}

/* Names an event among those to be counted.  Exact instruction counts, where they are asked for,
 * are what it is judged by. */
static void write_event(struct strbuf *out, struct strbuf *metrics, const char *event)
{
    CLEANUP(memory_freep) char *rest = NULL;
    strbuf_puts(out, "  - ");
    strbuf_put_json(out, event, strlen(event));
    strbuf_putc(out, '\n');
    if (simulated_take_event(event, &rest))
        strbuf_puts(metrics, "metrics:\n  \"" SIMULATED_INSTRUCTIONS
                             "\": {headline: true, better: lower}\n");
}

/* A spec for a bare command. */
static void write_spec(struct strbuf *out, const struct gate *g)
{
    const struct option_list *events = &g->o->events;
    bool metric_counts = g->metric && is_event(g->metric);
    CLEANUP(strbuf_done) struct strbuf metrics = {0};
    strbuf_puts(out, "name: gate\ncommand: ");
    if (g->word_count > 1)
        strbuf_puts(out, "[");
    for (size_t i = 0; i < g->word_count; i++) {
        strbuf_puts(out, i ? ", " : "");
        strbuf_put_json(out, g->words[i], strlen(g->words[i]));
    }
    strbuf_printf(out, "%s\n", g->word_count > 1 ? "]" : "");
    if (events->count || metric_counts)
        strbuf_puts(out, "counters:\n");
    for (size_t i = 0; i < events->count; i++)
        write_event(out, &metrics, events->items[i]);
    if (metric_counts)
        write_event(out, &metrics, g->metric);
    strbuf_puts(out, strbuf_text(&metrics));
}

/* What the session's callbacks know. */
struct watch {
    struct progress progress;
    const struct gate *gate;
};

static void show_progress(const struct session_progress *p, void *context)
{
    struct watch *watch = context;
    progress_show(&watch->progress, "round %llu, run %zu of %zu: %s",
                  (unsigned long long)p->round + 1, p->runs_done + 1, p->runs_planned, p->current);
}

static int judge(struct gate *g, const struct dataset *d, struct error *err)
{
    return g->baseline.set ? gate_judge_stored(&g->set, g->baseline.set, d, err)
                           : gate_judge(&g->set, d, err);
}

/* Which functions account for a change, where they are counted; else nothing is said of them. */
static void find_functions(struct gate *g, struct session *s, const struct dataset *d)
{
    size_t side = dataset_factor(d, "side");
    for (size_t i = 0; i < g->set.count; i++) {
        struct gate_row *row = &g->set.rows[i];
        struct error ignored;
        if (!str_has_prefix(row->metric, "exact:") || row->result == GATE_PASS)
            continue;
        const char *const sides[] = {"base", "new"};
        for (size_t k = 0; k < 2; k++) {
            size_t cell = dataset_cell_with(d, row->change.sides.new_cell, side, sides[k]);
            if (cell != DATASET_NONE)
                session_exact_functions(s, d->cells[cell].label, &row->functions[k], &ignored);
        }
    }
}

/* A cell whose runs fail does not keep the others from being judged. */
static int measure(struct gate *g, const struct session_options *so, struct error *err)
{
    struct session *s;
    struct dataset d;
    CLEANUP(strbuf_done) struct strbuf early = {0};
    int r = session_open(&s, so, err);
    if (r == 0) {
        session_take_notes(s, &early); /* of the machine: not for a gate */
        r = session_run(s, err);
    }
    struct session_facts facts = session_facts(s);
    bool failed = r == -ECANCELED && facts.failed_cells;
    if (r == 0 && facts.end == SESSION_STOPPED)
        r = error_set(err, -EINTR, "interrupted");
    g->set.has_failed = failed;
    if (failed)
        session_take_notes(s, &g->notes);
    struct error why;
    int judged = r == 0 || failed ? dataset_load(&d, facts.store, facts.experiment, &why) : r;
    if (judged == 0) {
        gate_note_failures(&g->set, &d, g->exact ? exact_machine_failed : NULL);
        judged = judge(g, &d, &why);
        if (judged == 0 && !g->baseline.set && g->set.result != GATE_PASS)
            find_functions(g, s, &d);
        dataset_done(&d);
    }
    if (r == 0 && judged < 0)
        *err = why;
    session_close(s);
    int code = g->set.failed_code ?: err->exit_code;
    return r < 0 && (!failed || judged < 0) ? error_end_with(err, code, r) : judged;
}

/* A file that a CI system reads: whole or not there. */
static int write_file(const char *path, const struct strbuf *text, struct error *err)
{
    CLEANUP(outfile_done) struct outfile file = {0};
    int r = outfile_open(&file, path, err);
    if (r == 0)
        r = outfile_write(&file, text->data, text->length, err);
    return r == 0 ? outfile_commit(&file, err) : r;
}

/* The comment that ci/ finds its own comment by, to update it instead of adding another. */
#define COMMENT_MARK "<!-- assay gate -->\n"

static int write_files(const struct gate_options *o, const struct gate_result_set *set,
                       const struct strbuf *summary, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf marked = {0}, junit = {0};
    strbuf_printf(&marked, COMMENT_MARK "%s", strbuf_text(summary));
    gate_write_junit(&junit, set);
    int r = o->markdown ? write_file(o->markdown, &marked, err) : 0;
    return r == 0 && o->junit ? write_file(o->junit, &junit, err) : r;
}

static int print_result(const struct gate_options *o, const struct gate_result_set *set,
                        struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf text = {0}, summary = {0};
    gate_write_markdown(&summary, set);
    bool json_printed = o->json && (!*o->json || str_eq(o->json, "-"));
    if (o->json)
        gate_write_json(&text, set);
    int r = o->json ? cmd_write(o->json, &text, err) : 0;
    if (r == 0 && !json_printed)
        r = cmd_write(NULL, &summary, err);
    if (r == 0)
        r = write_files(o, set, &summary, err);
    if (r < 0 || !o->summary)
        return r;
    CLEANUP(fd_closep) int fd = open(o->summary, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0 || fd_write_all(fd, summary.data, summary.length) < 0)
        return error_errno(err, -errno, "%s", o->summary);
    return 0;
}

/* The store of this gate alone. */
static void remove_store(const char *db)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < ARRAY_COUNT(ends); i++) {
        CLEANUP(memory_freep) char *path = memory_printf("%s%s", db, ends[i]);
        unlink(path);
    }
}

static int exit_code(const struct gate_result_set *set)
{
    return set->result == GATE_REGRESSION && !set->control_failed ? EXIT_TROUBLE
           : set->has_failed ? set->failed_code ?: EXIT_MEASURE_FAILED
           : set->control_failed || set->result != GATE_PASS ? EXIT_INCONCLUSIVE
                                                             : EXIT_DONE;
}

/* ---- a stored result ---- */

static int load_baseline(struct gate *g, struct error *err)
{
    const char *name = g->o->baseline;
    int r = gate_baseline_load(&g->baseline, name, g->o->db, err);
    if (r < 0)
        return r;
    struct dataset *stored = g->baseline.set;
    if (g->o->metric && str_eq(g->o->metric, "cpu"))
        gate_add_cpu(stored);
    struct error ignored; /* outside of a repository there is no commit to name */
    if (gate_trees_look(&g->trees, &ignored) < 0)
        g->trees.is_dirty = false;
    g->set.stored = name;
    g->set.stored_commit = stored->experiment.git_commit;
    g->set.stored_at_ns = stored->experiment.started_at_ns;
    return 0;
}

/* ---- the two trees ---- */

/* A bare command's program is in both trees; what only a shell understands is not looked at. */
static int check_program(const struct gate *g, struct error *err)
{
    char **words = NULL;
    bool needs_shell = false;
    if (g->has_spec || g->baseline.set)
        return 0;
    if (g->word_count > 1)
        return gate_trees_check(&g->trees, ".", g->words[0], g->o->build, err);
    if (command_split(g->words[0], &words, &needs_shell, NULL) < 0)
        return 0;
    int r = needs_shell ? 0 : gate_trees_check(&g->trees, ".", words[0], g->o->build, err);
    command_free_words(words);
    return r;
}

static int prepare(struct gate *g, struct error *err)
{
    const struct gate_options *o = g->o;
    if (g->has_spec && o->events.count)
        return error_set(err, -EINVAL,
                         "--event is for a plain command; a spec names its events itself: "
                         "counters: [%s]",
                         o->events.items[0]);
    int r = o->baseline ? load_baseline(g, err) : gate_trees_open(&g->trees, o->base, err);
    if (r == 0 && o->build)
        r = gate_trees_build(&g->trees, o->build, err);
    if (r == 0)
        r = check_program(g, err);
    g->set.base_ref = o->base;
    g->set.base_commit = g->trees.commit;
    g->set.new_commit = g->trees.new_commit;
    g->set.is_dirty = g->trees.is_dirty;
    return r;
}

/* The store that the runs go to; the caller frees the name. */
static char *choose_store(const struct gate_options *o, struct error *err)
{
    if (o->db)
        return memory_strdup(o->db);
    char *db = memory_printf("%s/assay-gate-XXXXXX.db", temporary_folder());
    CLEANUP(fd_closep) int fd = mkostemps(db, 3, O_CLOEXEC);
    if (fd >= 0)
        return db;
    error_errno(err, -errno, "%s", db);
    free(db);
    return NULL;
}

static bool may_stop(const struct judge_sides *sides, const struct comparison *c, void *context)
{
    const struct gate *g = ((const struct watch *)context)->gate;
    bool is_time = !g->has_spec && !g->metric; /* less is better */
    enum metric_better better = g->set.has_better ? g->set.better
                                : is_time         ? METRIC_LOWER
                                                  : METRIC_NEITHER;
    return gate_may_stop(&g->set, sides, c, better);
}

static struct session_options plan(const struct gate *g)
{
    const struct gate_options *o = g->o;
    const struct gate_result_set *set = &g->set;
    return (struct session_options){.spec_path = g->has_spec ? g->words[0] : "gate.yaml",
                                    .quick = o->quick,
                                    .fresh = true,
                                    .rounds = o->rounds  ? o->rounds
                                              : g->exact ? EXACT_ROUNDS
                                                         : ROUNDS,
                                    .exact = g->exact,
                                    .no_precision = o->rounds > 0 || g->exact,
                                    .precision = set->max_regression / 3,
                                    .budget_ns = o->budget_ns ? o->budget_ns : BUDGET_NS,
                                    .timeout_ns = o->timeout_ns,
                                    .headline = g->metric,
                                    .judge_by = gate_judge_by(set->by),
                                    .may_stop = may_stop,
                                    .cpu_stands_in = set->cpu_stands_in,
                                    .cpus = o->cpus,
                                    .output = o->output};
}

static int run_sides(struct gate *g, struct session_options *so, struct error *err)
{
    const char *slash = g->has_spec ? strrchr(g->words[0], '/') : NULL;
    CLEANUP(memory_freep)
    char *inside =
        slash ? memory_strndup(g->words[0], (size_t)(slash - g->words[0])) : memory_strdup(".");
    CLEANUP(memory_freep) char *base = memory_printf("%s/%s", g->trees.base, inside);
    CLEANUP(memory_freep)
    char *new =
        g->baseline.set ? memory_strdup(inside) : memory_printf("%s/%s", g->trees.new, inside);
    struct text_pair names[] = {{.name = "ASSAY_SIDE", .value = "base"},
                                {.name = "ASSAY_SIDE", .value = "control"},
                                {.name = "ASSAY_SIDE", .value = "new"}};
    struct spec_level sides[] = {{.name = "base", .folder = base},
                                 {.name = "control", .folder = base},
                                 {.name = "new", .folder = new}};
    for (size_t i = 0; i < ARRAY_COUNT(sides); i++)
        sides[i].environment = (struct text_pairs){.items = &names[i], .count = 1};
    if (g->exact && !g->baseline.set)
        exact_see_as(g->trees.base, g->trees.new);
    so->sides = g->baseline.set ? &sides[2] : sides;
    so->side_count = g->baseline.set ? 1 : ARRAY_COUNT(sides);
    int r = measure(g, so, err);
    if (r < 0 && r != -EINTR && !g->baseline.set && !g->o->build && g->has_spec)
        error_wrap(err, r,
                   "if the program has to be built first, --build COMMAND does so in both trees");
    return r;
}

/* One measurement, of what g->exact and g->metric say; its results are added to g->set. */
static int run_once(struct gate *g, const char *db, struct error *err)
{
    const struct gate_options *o = g->o;
    CLEANUP(strbuf_done) struct strbuf spec = {0};
    struct watch watch = {.gate = g};
    struct session_options so = plan(g);
    int r = 0;
    so.db = db;
    if (!g->has_spec) {
        write_spec(&spec, g);
        so.spec_text = strbuf_text(&spec);
    }
    progress_start(&watch.progress);
    watch.progress.log_as = "assay gate";
    so.on_progress = o->quiet ? NULL : show_progress;
    so.context = &watch;
    if (o->seed) {
        so.has_seed = true;
        r = parse_u64(o->seed, &so.seed, err);
    }
    if (r == 0)
        r = run_sides(g, &so, err);
    progress_end(&watch.progress);
    return r;
}

/* The same trees once more, by the clock: counts do not see waiting and cache misses. */
static int run_timed(struct gate *g, const char *db, struct error *err)
{
    struct gate_result_set exact = g->set, timed = g->set;
    timed.rows = NULL;
    timed.failures = NULL;
    timed.count = timed.capacity = timed.failure_count = timed.failure_capacity = 0;
    timed.has_failed = timed.control_failed = timed.by_cpu = timed.has_better = false;
    timed.max_regression = g->set.max_time_regression;
    timed.cpu_stands_in = true;
    g->set = timed;
    g->exact = g->metric = NULL;
    int r = run_once(g, db, err);
    timed = g->set;
    g->set = exact;
    gate_require_too(&g->set, &timed);
    return r;
}

static int run_gate(struct gate *g, struct error *err)
{
    const struct gate_options *o = g->o;
    CLEANUP(memory_freep) char *db = choose_store(o, err);
    if (!db)
        return -EIO;
    g->exact = o->exact;
    g->metric = o->metric;
    int r = run_once(g, db, err);
    if (r == 0 && o->time)
        r = run_timed(g, db, err);
    fputs(strbuf_text(&g->notes), stderr);
    if (r == 0)
        r = print_result(o, &g->set, err);
    if (!o->db)
        remove_store(db);
    return r < 0 ? r : exit_code(&g->set);
}

/* ---- the command line ---- */

static int read_judge(const char *word, enum gate_by *ret_by, struct error *err)
{
    static const char *const names[] = {
        [GATE_BY_MEDIAN] = "median", [GATE_BY_MEAN] = "mean", [GATE_BY_P95] = "p95"};
    for (size_t i = GATE_BY_MEDIAN; i < ARRAY_COUNT(names); i++)
        if (str_eq(word, names[i])) {
            *ret_by = (enum gate_by)i;
            return 0;
        }
    return error_set(err, -EINVAL, "--judge %s: must be median, mean or p95", word);
}

static int check_time(const struct gate_options *o, struct gate_result_set *set, struct error *err)
{
    if (!o->exact)
        return error_set(err, -EINVAL,
                         "--time goes with --exact; without it, time is what the gate judges");
    if (o->baseline || o->bench)
        return error_set(err, -EINVAL, "--time and --%s cannot be used together",
                         o->baseline ? "baseline" : "bench");
    return option_share("time", *o->time ? o->time : "5%", 1, &set->max_time_regression, err);
}

static int check_options(const struct gate_options *o, struct gate_result_set *set,
                         struct error *err)
{
    if (!o->base == !o->baseline)
        return error_set(err, -EINVAL,
                         o->base ? "--base and --baseline cannot be used together"
                                 : "give the commit to compare with: --base REF, or a stored "
                                   "result: --baseline RESULT");
    int r = option_share("max-regression", o->max_regression, 1, &set->max_regression, err);
    if (r == 0 && o->judge)
        r = read_judge(o->judge, &set->by, err);
    if (r == 0 && o->better && !str_eq(o->better, "lower") && !str_eq(o->better, "higher"))
        r = error_set(err, -EINVAL, "--better %s: must be lower or higher", o->better);
    if (r == 0 && o->exact)
        r = exact_check_word(o->exact, err);
    if (r == 0 && o->time)
        r = check_time(o, set, err);
    set->has_better = o->better;
    set->better = o->better && str_eq(o->better, "higher") ? METRIC_HIGHER : METRIC_LOWER;
    set->cpu_stands_in = !o->metric && !o->baseline && !o->exact;
    return r;
}

static void gate_done(struct gate *g)
{
    gate_result_set_done(&g->set);
    strbuf_done(&g->notes);
    gate_trees_close(&g->trees);
    gate_baseline_done(&g->baseline);
}

static int run(int argc, char **argv)
{
    struct error err = {0};
    struct gate_options o = {.max_regression = "2%"};
    struct gate g = {.o = &o};
    int first = options_parse(options, &o, argc, argv, &err);
    if (first == OPTIONS_HELP)
        return cmd_help(&verb_gate);
    if (first > 0 && first >= argc)
        first = error_set(&err, -EINVAL, "expected a spec or a command");
    if (first > 0 && o.bench && (argc - first != 1 || o.metric || o.better))
        first = error_set(&err, -EINVAL, "--bench takes one program, and no --metric and --better");
    if (first > 0 && check_options(&o, &g.set, &err) < 0)
        first = -EINVAL;
    if (first < 0)
        return cmd_usage(&verb_gate, &err);
    g.words = argv + first;
    g.word_count = (size_t)(argc - first);
    char *words[BENCH_COMMAND_WORDS];
    CLEANUP(memory_freep) char *metric = NULL;
    if (o.bench) {
        bench_command_words(words, o.bench, g.words[0]);
        o.metric = metric = bench_metric_name(o.bench);
        o.better = "lower";
        g.words = words;
        g.word_count = BENCH_COMMAND_WORDS;
        g.set.has_better = true;
        g.set.cpu_stands_in = false;
        g.set.better = METRIC_LOWER;
    }
    g.has_spec = g.word_count == 1 &&
                 (str_has_suffix(g.words[0], ".yaml") || str_has_suffix(g.words[0], ".yml"));
    process_signals_catch();
    int r = prepare(&g, &err);
    if (r == 0)
        r = run_gate(&g, &err);
    gate_done(&g);
    free(o.events.items);
    int signal = process_signals_caught();
    process_signals_restore();
    if (signal)
        return cmd_interrupted(&verb_gate, signal, "the gate has no result");
    return r < 0 ? cmd_fail(&verb_gate, &err, EXIT_MEASURE_FAILED) : r;
}

const struct verb verb_gate = {
    .name = "gate",
    .summary = "fail (for CI) if a change made the program slower than its base",
    .synopsis = "--base REF [options] SPEC.yaml | [--] COMMAND… | --baseline RESULT …",
    .examples = "  assay gate --base origin/main --build 'make -s' -- ./bench\n"
                "  assay gate --base HEAD~1 --max-regression 5% bench.yaml\n"
                "  assay gate --base HEAD~1 --judge p95 --metric latency -- ./bench\n"
                "  assay gate --baseline release.html -- ./bench   a result of another day\n",
    .options = options,
    .run = run,
};
