/* SPDX-License-Identifier: MIT */
/* `assay bench`: functions, measured one by one, of one version or of two side by side. */
#include "cmd/bench.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/term.h"
#include "bench/layouts.h"
#include "bench/passes.h"
#include "bisect/gate_trees.h"
#include "cmd/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stddef.h>
#include <sys/random.h>

#define TIME_NS (900 * NS_PER_MS) /* with starting and listing, a second */
#define TIMEOUT_NS (20 * NS_PER_S)

#define O(field) offsetof(struct bench_options, field)

const struct option bench_option_table[] = {
    {0, NULL, OPTION_HEADING, 0, NULL, "What to measure", NULL},
    {'b', "bench", OPTION_LIST, O(filters), "PATTERN",
     "only these: a name ('sort_*'), a name with values ('sort n=64') or a parameter (n=64)", NULL},
    {'l', "list", OPTION_FLAG, O(list), NULL, "list the benchmarks and measure nothing", NULL},
    {0, "base", OPTION_STRING, O(base), "REF",
     "compare with this commit: PROGRAM is built there, too", NULL},
    {0, "build", OPTION_STRING, O(build), "COMMAND", "what builds PROGRAM, for --base", NULL},
    {0, "harness", OPTION_STRING, O(harness), "NAME",
     "what the programs were built with (default: auto)",
     "auto assay google-benchmark catch2 nanobench go criterion divan pytest-benchmark"},
    {'n', "name", OPTION_LIST, O(names), "NAME", "a name for a version; repeat for both, in order",
     NULL},
    {0, NULL, OPTION_HEADING, 0, NULL, "How to measure", NULL},
    {'t', "time", OPTION_SECONDS, O(time_ns), "TIME",
     "time for each benchmark, both versions (0.9s)", NULL},
    {'r', "rounds", OPTION_U64, O(rounds), "N", "run exactly N rounds", NULL},
    {0, "layouts", OPTION_U64, O(layouts), "N",
     "measure N memory layouts and tell how much of a difference they make (10 or more)", NULL},
    {0, "link", OPTION_LIST, O(links), "COMMAND",
     "with --layouts: links a program anew as $ASSAY_OUT; repeat for both, in order", NULL},
    {0, "one-process", OPTION_FLAG, O(one_process), NULL,
     "load both versions, shared objects, into one process (default: one for each)", NULL},
    {0, "cpu", OPTION_STRING, O(cpu), "N",
     "the CPU to measure on, or 'any' (default: the one that is most idle)", NULL},
    {0, "sim", OPTION_FLAG, O(sim), NULL,
     "also count the instructions of one iteration exactly, with Valgrind", NULL},
    {0, "allocations", OPTION_FLAG, O(allocations), NULL,
     "also count the allocations of one iteration, and their bytes", NULL},
    {0, "timeout", OPTION_SECONDS, O(timeout_ns), "TIME",
     "how long one call may take before it has failed (20s)", NULL},
    {0, "seed", OPTION_U64, O(seed), "N", "repeat the order of the run that printed this seed",
     NULL},
    {0, "iterations", OPTION_U64, O(iterations), "N",
     "run one benchmark for N iterations, without measuring: for profilers", NULL},
    {0, NULL, OPTION_HEADING, 0, NULL, "Output", NULL},
    {'j', "json", OPTION_OPTIONAL, O(json), "FILE", "write JSON, with every sample", "file"},
    {0, "html", OPTION_STRING, O(html), "FILE", "write an HTML report", "file"},
    {0, "db", OPTION_STRING, O(db), "PATH", CMD_DB_HELP, "file"},
    {0, "save", OPTION_STRING, O(save), "NAME", "keep the result in the store under this name",
     NULL},
    {'a', "all", OPTION_FLAG, O(all), NULL, "show every metric", NULL},
    {0, "show-output", OPTION_FLAG, O(show_output), NULL, "show what the programs print", NULL},
    {'q', "quiet", OPTION_FLAG, O(quiet), NULL, "do not show progress", NULL},
    {0},
};

/* ---- versions ---- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* "old" of ./old.so, where that tells the versions apart; else the path. */
static void name_versions(struct bench_versions *v, const struct bench_options *o,
                          char *const *paths)
{
    bool alike = v->count > 1 && str_eq(base_name(paths[0]), base_name(paths[1]));
    for (size_t i = 0; i < v->count; i++) {
        const char *name = alike ? paths[i] : base_name(paths[i]);
        size_t length = strlen(name);
        if (length > 3 && str_has_suffix(name, ".so"))
            length -= 3;
        v->names[i] =
            i < o->names.count ? memory_strdup(o->names.items[i]) : memory_strndup(name, length);
    }
    if (v->count > 1 && str_eq(v->names[0], v->names[1])) {
        free(v->names[1]);
        v->names[1] = memory_printf("%s (2)", v->names[0]);
    }
}

static int open_versions(struct bench_versions *v, const struct bench_options *o,
                         char *const *paths, size_t count, struct error *err)
{
    int first = 0;
    v->count = count;
    for (size_t i = 0; i < count; i++) {
        int r = bench_target_open(&v->targets[i], paths[i], first ? NULL : err);
        first = first ? first : r;
    }
    name_versions(v, o, paths);
    return first;
}

static void bench_versions_done(struct bench_versions *v)
{
    for (size_t i = 0; i < BENCH_SIDES_MAX; i++) {
        bench_target_done(&v->targets[i]);
        free(v->names[i]);
    }
}

/* ---- cases ---- */

static int list_of(const struct bench_target *t, const struct bench_start *how,
                   struct bench_entries *entries, struct error *err)
{
    struct bench_worker w;
    int r = bench_worker_start(&w, t, how, err);
    if (r == 0)
        r = bench_worker_list(&w, entries, err);
    bench_worker_stop(&w);
    if (r == 0 && !entries->count)
        r = error_set(err, -ENOENT,
                      "%s has no benchmarks: ASSAY_BENCH(name) { … ASSAY_LOOP { … } } defines one",
                      t->path);
    return r;
}

int bench_none_fits(const struct bench_cases *c, const struct bench_options *o, size_t versions,
                    struct error *err)
{
    if (o->filters.count && !c->only_count[0] && !c->only_count[1])
        return error_set(err, -ENOENT,
                         "no benchmark fits '%s'%s; --list shows the %zu that there %s",
                         o->filters.items[0], o->filters.count > 1 ? " and the other patterns" : "",
                         c->all_count, plural(c->all_count, "is", "are"));
    return error_set(err, -ENOENT,
                     "the %zu versions have no benchmark in common; --list shows "
                     "those of each",
                     versions);
}

static int find_cases(const struct bench_options *o, const struct bench_versions *v,
                      const struct bench_start *how, struct bench_cases *cases, struct error *err)
{
    struct bench_entries entries[BENCH_SIDES_MAX] = {0};
    int r = 0;
    process_signals_catch();
    for (size_t i = 0; r == 0 && i < v->count; i++)
        r = list_of(&v->targets[i], how, &entries[i], err);
    process_signals_restore();
    if (r == 0)
        r = bench_cases_make(cases, &entries[0], v->count > 1 ? &entries[1] : NULL,
                             o->filters.items, o->filters.count, err);
    if (r == 0 && !cases->count)
        r = bench_none_fits(cases, o, v->count, err);
    for (size_t i = 0; i < BENCH_SIDES_MAX; i++)
        bench_entries_done(&entries[i]);
    return r;
}

/* ---- measuring ---- */

static void show_progress(size_t done, double share, const char *label, void *context)
{
    if (share > 0)
        progress_show(context, "round %zu, %.0f %%: %s", done + 1, fmin(100 * share, 100), label);
    else
        progress_show(context, "calibrating: %s", label);
}

static uint64_t random_seed(void)
{
    uint32_t seed;
    if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
        seed = (uint32_t)clock_now_ns();
    return seed ? seed : 1;
}

static int link_layouts(const struct bench_options *o, struct bench_plan *plan,
                        struct bench_layouts *layouts, struct error *err)
{
    process_signals_catch();
    int r = bench_layouts_link(layouts, plan, o->links.items, o->layouts, err);
    process_signals_restore();
    plan->layouts = layouts->targets;
    return r;
}

static int measure_cases(const struct bench_options *o, const struct bench_versions *v,
                         struct bench_plan *plan, struct error *err)
{
    CLEANUP(bench_files_done) struct bench_files files = {{.fd = -1}, {.fd = -1}};
    CLEANUP(bench_results_done) struct bench_results results = {0};
    CLEANUP(bench_layouts_done) struct bench_layouts layouts = {0};
    struct progress *progress = plan->context;
    time_t started = time(NULL);
    int r = bench_files_open(&files, o, err);
    if (r < 0)
        return bench_fail(err, EXIT_TROUBLE);
    progress_start(progress);
    progress->enabled = progress->enabled && !o->quiet;
    if (o->links.count)
        r = link_layouts(o, plan, &layouts, err);
    if (r == 0)
        r = bench_measure(plan, &results, err);
    if (r == 0 && o->sim && !results.signal)
        r = bench_count_instructions(plan, &results, err);
    if (r == 0 && o->allocations && !results.signal)
        r = bench_count_allocations(plan, &results, err);
    progress_end(progress);
    if (r < 0)
        return bench_fail(err, EXIT_MEASURE_FAILED);
    return bench_conclude(o, v, plan, &results, started, &files, err);
}

static int parse_cpu(const char *text, int *ret_cpu, struct error *err)
{
    CLEANUP(memory_freep) int *cpus = NULL;
    size_t count;
    if (text && str_eq(text, "any")) {
        *ret_cpu = -1;
        return 0;
    }
    if (!text) {
        *ret_cpu = bench_idle_cpu();
        return 0;
    }
    int r = parse_cpu_list(text, &cpus, &count, err);
    if (r < 0)
        return error_wrap(err, r, "--cpu");
    if (count != 1)
        return error_set(err, -EINVAL, "--cpu %s: name one CPU", text);
    if (!bench_can_use_cpu(cpus[0]))
        return error_set(err, -EINVAL,
                         "--cpu %s: no such CPU, or not one that this process may use", text);
    *ret_cpu = cpus[0];
    return 0;
}

static int run_assay(const struct bench_options *o, const struct bench_versions *v,
                     struct bench_plan *plan, struct error *err)
{
    CLEANUP(bench_cases_done) struct bench_cases cases = {0};
    int r = find_cases(o, v, &plan->start, &cases, err);
    if (r < 0)
        return bench_fail(err, EXIT_TROUBLE);
    if (o->list)
        return bench_print_list(o, &cases);
    plan->cases = &cases;
    for (size_t i = 0; o->one_process && i < cases.count; i++)
        if (cases.items[i].calls[0].threads > 1) {
            error_set(err, -EINVAL,
                      "%s runs in several threads, which --one-process cannot measure; choose "
                      "others with --bench",
                      cases.items[i].label);
            return cmd_usage(&verb_bench, err);
        }
    if (!o->iterations)
        return measure_cases(o, v, plan, err);
    if (cases.count != 1 || v->count != 1)
        r = error_set(err, -EINVAL,
                      "--iterations runs one benchmark of one program, but %zu %s; choose with "
                      "--bench",
                      cases.count, plural(cases.count, "fits", "fit"));
    else
        r = bench_run_once(o, &v->targets[0], &cases.items[0].calls[0], err);
    return bench_fail(err, r == -EINVAL ? EXIT_USAGE : EXIT_MEASURE_FAILED);
}

static int run_versions(const struct bench_options *o, char *const *paths, size_t count,
                        struct error *err)
{
    CLEANUP(bench_versions_done) struct bench_versions versions = {0};
    const struct program_harness *harness = NULL;
    struct progress progress;
    struct bench_plan plan = {.side_count = count,
                              .start = {.show_output = o->show_output, .timeout_ns = o->timeout_ns},
                              .time_ns = o->time_ns,
                              .rounds = o->layouts ? o->layouts : o->rounds,
                              .seed = o->seed ? o->seed : random_seed(),
                              .on_progress = show_progress,
                              .context = &progress};
    int r = parse_cpu(o->list ? "any" : o->cpu, &plan.start.cpu, err);
    if (r == 0)
        r = bench_find_harness(o, paths, count, &harness, err);
    if (r == -ENOENT || r == -EACCES)
        return bench_fail(err, process_exit_code_for(r));
    if (r < 0)
        return cmd_usage(&verb_bench, err);
    r = open_versions(&versions, o, paths, count, err);
    if (harness && r != -ENOENT && r != -EACCES)
        r = 0; /* its programs are as they are */
    if (r == -ENOENT || r == -EACCES)
        return bench_fail(err, process_exit_code_for(r));
    if (r < 0)
        return bench_fail(err, EXIT_TROUBLE);
    for (size_t i = 0; i < count; i++)
        plan.targets[i] = &versions.targets[i];
    plan.one_process = o->one_process;
    /* The counters are those of a process. */
    plan.start.counters = !harness && !o->one_process && bench_counters()[0];
    if (o->one_process && (harness || versions.targets[0].kind != BENCH_SHARED ||
                           versions.targets[1].kind != BENCH_SHARED)) {
        error_set(err, -EINVAL,
                  "--one-process needs shared objects with assay.h: build them with -shared -fPIC");
        return cmd_usage(&verb_bench, err);
    }
    return harness ? bench_run_foreign(o, &versions, harness, &plan, err)
                   : run_assay(o, &versions, &plan, err);
}

/* --base: the program of the working tree, and the one that is built in the base's. */
static int run_trees(struct bench_options *o, const char *program, struct error *err)
{
    struct gate_trees trees = {0};
    static const char *names[2];
    char short_name[64];
    int code;
    int r = gate_trees_open(&trees, o->base, err);
    if (r == 0 && o->build)
        r = gate_trees_build(&trees, o->build, err);
    CLEANUP(memory_freep)
    char *path = memory_printf("%s%s", strchr(program, '/') ? "" : "./", program);
    if (r == 0)
        r = gate_trees_check(&trees, "", path, o->build, err);
    if (r == 0 && *program == '/')
        r = error_set(err, -EINVAL, "--base needs the path of PROGRAM within the tree, not %s",
                      program);
    if (r < 0) {
        code = bench_fail(err, EXIT_TROUBLE);
    } else {
        CLEANUP(memory_freep) char *base = memory_printf("%s/%s", trees.base, program);
        CLEANUP(memory_freep) char *new = memory_printf("%s/%s", trees.new, program);
        snprintf(short_name, sizeof(short_name), "%.50s", o->base);
        names[0] = short_name;
        names[1] = "working tree";
        if (!o->names.count)
            o->names = (struct option_list){.items = names, .count = 2};
        char *const paths[] = {base, new};
        code = run_versions(o, paths, 2, err);
        if (o->names.items == names)
            o->names = (struct option_list){0};
    }
    gate_trees_close(&trees);
    return code;
}

static int check(const struct bench_options *o, size_t count, struct error *err)
{
    if (!count)
        return error_set(err, -EINVAL, "name a program with benchmarks, or two to compare them");
    if (count > BENCH_SIDES_MAX)
        return error_set(err, -EINVAL, "two programs at most can be compared, but %zu are named",
                         count);
    if (o->base && count != 1)
        return error_set(err, -EINVAL,
                         "with --base, name one program: it is looked for in both "
                         "trees");
    if (o->build && !o->base)
        return error_set(err, -EINVAL, "--build goes with --base");
    if (o->layouts && (o->layouts < LAYOUTS_MIN || o->layouts > LAYOUTS_MAX))
        return error_set(err, -EINVAL, "--layouts %llu: must be between %d and %d",
                         (unsigned long long)o->layouts, LAYOUTS_MIN, LAYOUTS_MAX);
    if (o->layouts && o->rounds)
        return error_set(err, -EINVAL,
                         "--layouts and --rounds cannot be used together: each layout is a round");
    if (o->links.count && !o->layouts)
        return error_set(err, -EINVAL, "--link goes with --layouts");
    if (o->links.count && o->links.count != (o->base ? 2 : count))
        return error_set(err, -EINVAL, "give --link for each version: %zu %s, but %zu %s",
                         o->base ? 2 : count, plural(o->base ? 2 : count, "version", "versions"),
                         o->links.count, plural(o->links.count, "command", "commands"));
    if (o->one_process && (o->base ? 2 : count) != 2)
        return error_set(err, -EINVAL, "--one-process goes with two versions");
    if (o->rounds && o->rounds > 100000)
        return error_set(err, -EINVAL, "--rounds %llu: at most 100,000",
                         (unsigned long long)o->rounds);
    return 0;
}

static int run(int argc, char **argv)
{
    struct error err = {0};
    struct bench_options o = {.time_ns = TIME_NS, .timeout_ns = TIMEOUT_NS};
    int first = options_parse_mixed(bench_option_table, &o, argc, argv, &err), code;
    /* All the time: builds, links and measures are ended, and nothing is left behind. */
    process_signals_catch();
    size_t count = first > 0 ? (size_t)(argc - first) : 0;
    if (first < 0)
        code = cmd_usage(&verb_bench, &err);
    else if (first == OPTIONS_HELP)
        code = cmd_help(&verb_bench);
    else if (check(&o, count, &err) < 0)
        code = cmd_usage(&verb_bench, &err);
    else if (o.base)
        code = run_trees(&o, argv[first], &err);
    else
        code = run_versions(&o, argv + first, count, &err);
    free(o.filters.items);
    free(o.names.items);
    free(o.links.items);
    process_signals_restore();
    return code;
}

const struct verb verb_bench = {
    .name = "bench",
    .summary = "measure functions: benchmarks written with assay.h, alone or two versions paired",
    .synopsis = "[options] PROGRAM [NEW-PROGRAM]",
    .examples = "  assay bench ./benchmarks\n"
                "  assay bench -b 'sort_*' -b n=64 ./benchmarks.so\n"
                "  assay bench old.so new.so                     which version is faster?\n"
                "  assay bench --base origin/main --build make ./benchmarks\n"
                "  perf record assay bench -b parse --iterations 1000000 ./benchmarks\n",
    .options = bench_option_table,
    .run = run,
};
