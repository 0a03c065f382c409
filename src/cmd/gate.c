/* SPDX-License-Identifier: MIT */
/*
 * `assay gate`: did this change make it slower?  For CI: the base commit, the base again as a
 * control, and the working tree run in the same rounds on the same machine.  When the control
 * differs from itself, the machine cannot judge anyone, and nobody fails.
 */
#include "report/text/gate.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/term.h"
#include "bisect/gate_trees.h"
#include "cmd/cmd.h"
#include "counters/simulated.h"
#include "run/output.h"
#include "session/git.h"
#include "session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

/* The exit code of a gate that cannot tell. */
enum { EXIT_INCONCLUSIVE = 3 };

#define BUDGET_NS (300ULL * 1000000000)
#define ROUNDS 10

struct gate_options {
    const char *base, *build, *max_regression, *db, *summary, *markdown, *junit, *cpus, *seed,
        *output;
    struct option_list events;
    bool json, quick, quiet;
    uint64_t rounds, budget_ns, timeout_ns;
};

#define O(field) offsetof(struct gate_options, field)

static const struct option options[] = {
    {0, "base", OPTION_STRING, O(base), "REF", "the commit to compare with (required)", NULL},
    {0, "max-regression", OPTION_STRING, O(max_regression), "PERCENT",
     "the largest regression allowed (2%)", NULL},
    {0, "build", OPTION_STRING, O(build), "COMMAND", "run this in both trees first", NULL},
    {'e', "event", OPTION_LIST, O(events), "LIST",
     "events to count; sim:instructions judges by exact instruction counts", "event"},
    {'r', "rounds", OPTION_U64, O(rounds), "N", "run exactly N rounds", NULL},
    {0, "budget", OPTION_SECONDS, O(budget_ns), "TIME",
     "measure until the result is clear, at most this long (5m)", NULL},
    {0, "timeout", OPTION_SECONDS, O(timeout_ns), "TIME", "treat a run that takes longer as failed",
     NULL},
    {0, "quick", OPTION_FLAG, O(quick), NULL, "use the spec's quick section", NULL},
    {0, "cpus", OPTION_STRING, O(cpus), "CPUS", "run on these CPUs, e.g. 0-3,7", NULL},
    {0, "output", OPTION_STRING, O(output), OUTPUT_VALUE, OUTPUT_HELP, OUTPUT_WORDS},
    {0, "seed", OPTION_STRING, O(seed), "N", "seed for the order of the runs", NULL},
    {0, "db", OPTION_STRING, O(db), "PATH",
     "keep the runs in this store (default: do not keep them)", "file"},
    {0, "summary", OPTION_STRING, O(summary), "FILE",
     "append the Markdown to this file ($GITHUB_STEP_SUMMARY)", "file"},
    {0, "markdown", OPTION_STRING, O(markdown), "FILE",
     "also write it to this file, marked as the comment to update", "file"},
    {0, "junit", OPTION_STRING, O(junit), "FILE", "write JUnit XML to this file", "file"},
    {'j', "json", OPTION_FLAG, O(json), NULL, "print JSON instead of Markdown", NULL},
    {'q', "quiet", OPTION_FLAG, O(quiet), NULL, "do not show progress", NULL},
    {0},
};

/* A spec for a bare command.  Exact instruction counts, where they are asked for, are what it is
 * judged by. */
static void write_spec(struct strbuf *out, const struct option_list *events, char **words,
                       size_t count)
{
    CLEANUP(strbuf_done) struct strbuf metrics = {0};
    strbuf_puts(out, "name: gate\ncommand: ");
    if (count > 1)
        strbuf_puts(out, "[");
    for (size_t i = 0; i < count; i++) {
        strbuf_puts(out, i ? ", " : "");
        strbuf_put_json(out, words[i], strlen(words[i]));
    }
    strbuf_printf(out, "%s\n", count > 1 ? "]" : "");
    for (size_t i = 0; i < events->count; i++) {
        CLEANUP(memory_freep) char *rest = NULL;
        strbuf_puts(out, i ? "" : "counters:\n");
        strbuf_puts(out, "  - ");
        strbuf_put_json(out, events->items[i], strlen(events->items[i]));
        strbuf_putc(out, '\n');
        if (simulated_take_event(events->items[i], &rest))
            strbuf_puts(&metrics, "metrics:\n  \"" SIMULATED_INSTRUCTIONS
                                  "\": {headline: true, better: lower}\n");
    }
    strbuf_puts(out, strbuf_text(&metrics));
}

static void show_progress(const struct session_progress *p, void *context)
{
    progress_show(context, "round %llu, run %zu of %zu: %s", (unsigned long long)p->round + 1,
                  p->runs_done + 1, p->runs_planned, p->current);
}

static int measure(const struct session_options *so, struct gate_result_set *set, struct error *err)
{
    struct session *s;
    struct dataset d;
    int r = session_open(&s, so, err);
    if (r == 0)
        r = session_run(s, err);
    struct session_facts facts = session_facts(s);
    if (r == 0 && facts.end == SESSION_STOPPED)
        r = error_set(err, -EINTR, "interrupted");
    if (r == 0)
        r = dataset_load(&d, facts.store, facts.experiment, err);
    if (r == 0) {
        r = gate_judge(set, &d, err);
        dataset_done(&d);
    }
    session_close(s);
    return r;
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
    if (o->json)
        gate_write_json(&text, set);
    else
        strbuf_puts(&text, strbuf_text(&summary));
    fputs(strbuf_text(&text), stdout);
    int r = write_files(o, set, &summary, err);
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
    return set->control_failed              ? EXIT_INCONCLUSIVE
           : set->result == GATE_PASS       ? EXIT_DONE
           : set->result == GATE_REGRESSION ? EXIT_TROUBLE
                                            : EXIT_INCONCLUSIVE;
}

static int gate_in_trees(const struct gate_options *o, struct gate_trees *t, double max_regression,
                         char **words, size_t count, struct error *err)
{
    int r = o->build ? gate_trees_build(t, o->build, err) : 0;
    if (r < 0)
        return r;
    CLEANUP(strbuf_done) struct strbuf spec = {0};
    bool has_spec =
        count == 1 && (str_has_suffix(words[0], ".yaml") || str_has_suffix(words[0], ".yml"));
    if (!has_spec)
        write_spec(&spec, &o->events, words, count);
    else if (o->events.count)
        return error_set(err, -EINVAL,
                         "--event is for a plain command; a spec names its events itself: "
                         "counters: [%s]",
                         o->events.items[0]);
    const char *slash = has_spec ? strrchr(words[0], '/') : NULL;
    CLEANUP(memory_freep)
    char *inside =
        slash ? memory_strndup(words[0], (size_t)(slash - words[0])) : memory_strdup(".");
    CLEANUP(memory_freep) char *base = memory_printf("%s/%s", t->base, inside);
    CLEANUP(memory_freep) char *new = memory_printf("%s/%s", t->new, inside);
    struct text_pair names[] = {{.name = "ASSAY_SIDE", .value = "base"},
                                {.name = "ASSAY_SIDE", .value = "control"},
                                {.name = "ASSAY_SIDE", .value = "new"}};
    struct spec_level sides[] = {{.name = "base", .folder = base},
                                 {.name = "control", .folder = base},
                                 {.name = "new", .folder = new}};
    CLEANUP(memory_freep)
    char *db = o->db ? memory_strdup(o->db) : memory_printf("%s.db", t->base_top);
    for (size_t i = 0; i < ARRAY_COUNT(sides); i++)
        sides[i].environment = (struct text_pairs){.items = &names[i], .count = 1};
    struct progress progress;
    progress_start(&progress);
    struct session_options so = {.spec_path = has_spec ? words[0] : "gate.yaml",
                                 .spec_text = has_spec ? NULL : strbuf_text(&spec),
                                 .stop_at_failure = true,
                                 .sides = sides,
                                 .side_count = ARRAY_COUNT(sides),
                                 .db = db,
                                 .quick = o->quick,
                                 .fresh = true,
                                 .rounds = o->rounds ? o->rounds : ROUNDS,
                                 .no_precision = o->rounds > 0,
                                 .precision = max_regression / 3,
                                 .budget_ns = o->budget_ns ? o->budget_ns : BUDGET_NS,
                                 .timeout_ns = o->timeout_ns,
                                 .cpus = o->cpus,
                                 .output = o->output,
                                 .on_progress = o->quiet ? NULL : show_progress,
                                 .context = &progress};
    if (o->seed) {
        so.has_seed = true;
        r = parse_u64(o->seed, &so.seed, err);
    }
    struct gate_result_set set = {.max_regression = max_regression, .base_commit = t->commit};
    if (r == 0)
        r = measure(&so, &set, err);
    progress_end(&progress);
    if (r == 0)
        r = print_result(o, &set, err);
    int code = exit_code(&set);
    gate_result_set_done(&set);
    if (!o->db)
        remove_store(db);
    return r < 0 ? r : code;
}

static int run(int argc, char **argv)
{
    struct error err = {0};
    struct gate_options o = {.max_regression = "2%"};
    double max_regression = 0.02;
    int first = options_parse(options, &o, argc, argv, &err);
    if (first == OPTIONS_HELP)
        return cmd_help(&verb_gate);
    if (first > 0 && first >= argc)
        first = error_set(&err, -EINVAL, "expected a spec or a command");
    if (first > 0 && !o.base)
        first = error_set(&err, -EINVAL, "give the commit to compare with: --base REF");
    if (first > 0 && option_share("max-regression", o.max_regression, 1, &max_regression, &err) < 0)
        first = -EINVAL;
    if (first < 0)
        return cmd_usage(&verb_gate, &err);
    process_signals_catch();
    struct gate_trees trees = {0};
    int r = gate_trees_open(&trees, o.base, &err);
    if (r == 0)
        r = gate_in_trees(&o, &trees, max_regression, argv + first, (size_t)(argc - first), &err);
    gate_trees_close(&trees);
    free(o.events.items);
    int signal = process_signals_caught();
    process_signals_restore();
    if (signal)
        return 128 + signal;
    return r < 0 ? cmd_fail(&verb_gate, &err, EXIT_MEASURE_FAILED) : r;
}

const struct verb verb_gate = {
    .name = "gate",
    .summary = "fail (for CI) if a change made the program slower than its base",
    .synopsis = "--base REF [options] SPEC.yaml | --base REF [options] [--] COMMAND…",
    .examples = "  assay gate --base origin/main --build 'make -s' -- ./bench\n"
                "  assay gate --base HEAD~1 --max-regression 5% bench.yaml\n",
    .options = options,
    .run = run,
};
