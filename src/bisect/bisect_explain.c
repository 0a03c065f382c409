/* SPDX-License-Identifier: MIT */
/*
 * Why a commit that was found is slower or faster: it and the one before it run some more times,
 * under the sampler (see explain.h).  What the confirmation measured is what is taken apart; but of
 * a benchmark, whose runs last equally long however fast it is, runs of as many iterations.
 */
#include "base/memory.h"
#include "bisect/bisect_internal.h"
#include "why/explain.h"

#include <errno.h>
#include <sys/stat.h>

/* Both sides as explain wants them. */
struct two_trees {
    struct bisect *b;
    struct command commands[SIDE_COUNT];
    char *folders[SIDE_COUNT];
};

static int run_side(void *context, unsigned side, struct runner *runner, char *const *before,
                    struct run_result *result, struct error *err)
{
    struct two_trees *t = context;
    const struct command *command = &t->commands[side];
    char **words = command_join_words(before, command->argv);
    struct run_spec spec = {.argv = words,
                            .program = before ? "/proc/self/exe" : command->program,
                            .working_dir = t->folders[side],
                            .stdout_to = output_parse(t->b->settings.output),
                            .output_path = t->b->settings.output,
                            .stderr_to = RUN_KEEP,
                            .cpus = t->b->cpu_list,
                            .cpu_count = t->b->cpu_count,
                            .timeout_ns = t->b->settings.timeout_ns};
    int r = runner_run(runner, &spec, result, err);
    free(words);
    return r < 0 ? r : run_check(result, command->text, err);
}

static char *const *no_argv(void *context, unsigned side)
{
    (void)context;
    (void)side;
    return NULL; /* nothing is simulated */
}

static void show_phase(void *context, enum explain_phase phase, uint64_t round, uint64_t count)
{
    const struct two_trees *t = context;
    static const char *const phases[] = {"measuring", "profiling", "counting", "simulating"};
    if (!t->b->on_progress)
        return;
    CLEANUP(memory_freep)
    char *what = memory_printf("why? %s, round %llu of %llu", phases[phase],
                               (unsigned long long)round + 1, (unsigned long long)count);
    t->b->on_progress(t->b, what, t->b->context);
}

/* Wall and CPU time of the confirmation's rounds. */
static bool take_measured(struct explain_measured *m, const struct bisect_table *table)
{
    if (!table)
        return false;
    struct dataset *d = (struct dataset *)&table->data;
    dataset_settle(d);
    size_t wall = dataset_metric(d, "wall"), cpu = dataset_metric(d, "cpu");
    if (wall == DATASET_NONE || cpu == DATASET_NONE)
        return false;
    struct dataset_column walls[] = {dataset_column(d, wall, 0), dataset_column(d, wall, 1)};
    struct dataset_column cpus[] = {dataset_column(d, cpu, 0), dataset_column(d, cpu, 1)};
    size_t count = walls[0].count;
    if (!count || walls[1].count != count || cpus[0].count != count || cpus[1].count != count)
        return false;
    for (unsigned side = 0; side < SIDE_COUNT; side++) {
        m->wall[side] = memory_zalloc(count, sizeof(double));
        m->cpu[side] = memory_zalloc(count, sizeof(double));
        memcpy(m->wall[side], walls[side].values, count * sizeof(double));
        memcpy(m->cpu[side], cpus[side].values, count * sizeof(double));
        m->counts[side] = count;
    }
    m->paired = true;
    return true;
}

/* The commands of both sides; their trees are built. */
static int make_commands(struct two_trees *t, bisect_bench_texts *bench_texts, struct error *err)
{
    const struct bisect_settings *s = &t->b->settings;
    char *programs[SIDE_COUNT], *texts[SIDE_COUNT] = {0};
    bool of_bench = *s->bench;
    int r = 0;
    for (unsigned side = 0; side < SIDE_COUNT; side++) {
        programs[side] = *s->program == '/' ? memory_strdup(s->program)
                                            : memory_printf("%s/%s", t->folders[side], s->program);
        texts[side] = of_bench ? NULL : memory_strdup(s->run);
    }
    if (of_bench)
        r = bench_texts(s->bench, programs, t->folders, texts, err);
    for (unsigned side = 0; side < SIDE_COUNT && r == 0; side++) {
        bool shell = false;
        r = command_needs_shell(texts[side], &shell, err);
        if (r == 0)
            r = command_init(&t->commands[side], texts[side], shell ? "/bin/sh" : NULL, err);
    }
    for (unsigned side = 0; side < SIDE_COUNT; side++) {
        free(programs[side]);
        free(texts[side]);
    }
    return r;
}

int bisect_explain(struct bisect *b, const struct bisection_change *change,
                   bisect_bench_texts *bench_texts, struct explain *e, struct error *err)
{
    const size_t commits[SIDE_COUNT] = {change->lo, change->hi};
    struct two_trees t = {.b = b};
    bool ok = true;
    CLEANUP(memory_freep) char *recordings = memory_printf("%s/recordings", b->folder);
    *e = (struct explain){.label = memory_strdup("")};
    int r = mkdir(recordings, 0777) < 0 && errno != EEXIST
                ? error_errno(err, -errno, "%s", recordings)
                : 0;
    for (unsigned side = 0; side < SIDE_COUNT && r == 0; side++) {
        e->names[side] = memory_printf("%.12s", b->commits[commits[side]].hash);
        t.folders[side] = bisect_tree_folder(b, commits[side]);
        r = bisect_tree_make(b, commits[side], &ok, err);
        if (r == 0 && !ok)
            r = error_set(err, -ECANCELED, "%s cannot be built again", e->names[side]);
    }
    if (r == 0)
        r = make_commands(&t, bench_texts, err);
    if (r == 0 && !*b->settings.bench &&
        !take_measured(&e->measured, bisect_table(b, change->step)))
        r = error_set(err, -ENODATA, "the journal has no times for the confirmation");
    struct explain_runs runs = {
        .run = run_side, .argv = no_argv, .progress = show_phase, .context = &t};
    struct explain_settings settings = {
        .seed = b->settings.seed, .simulate = EXPLAIN_SIM_NEVER, .folder = recordings};
    if (r == 0)
        r = explain_run(e, &settings, &runs, err);
    for (unsigned side = 0; side < SIDE_COUNT; side++) {
        command_done(&t.commands[side]);
        free(t.folders[side]);
    }
    return r;
}

int bisect_set_reasons(struct bisect *b, size_t commit, const char *text, struct error *err)
{
    free(b->commits[commit].reasons);
    b->commits[commit].reasons = memory_strdup(text);
    return bisect_journal_reasons(b, commit, err);
}
