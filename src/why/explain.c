/* SPDX-License-Identifier: MIT */
/* The runs behind an explanation: measured, profiled, counted, simulated.  See explain.h. */
#include "why/explain.h"
#include "analysis/cellpairs.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/process.h"
#include "numbers/order.h"
#include "sampler/sampling.h"
#include "stats/summary.h"
#include "why/explain_internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

enum {
    ROUNDS_DEFAULT = 10,
    PROFILES_DEFAULT = 6,
    COUNTS_DEFAULT = 3,
    SAMPLES_WANTED = 400, /* of one run, if the kernel can do it without much disturbance */
    FREQUENCY_MOST = 3999,
    SIMULATION_SLOWDOWN = 50,
    SIMULATION_SECONDS_MOST = 20, /* of one side */
    DWARF_SWITCHES_MOST = 5000,   /* of a run, beyond which copies of the stack are too many */
    STACK_BYTES_LEAST = 4096,     /* copied with each sample; more where that cuts call chains */
    STACK_BYTES_MOST = 32768,
};

#define CUT_SHARE_MOST 0.02

/* Both sides once in each round, in an order drawn anew. */
struct interleaving {
    uint64_t seed;
    const struct explain_runs *runs;
    struct runner runner;
    bool runner_open;
    struct run_result result;
};

static int interleaving_open(struct interleaving *i, const struct explain_runs *runs,
                             const struct event_list *events, uint64_t seed, struct error *err)
{
    *i = (struct interleaving){.runs = runs, .seed = seed};
    int r = runner_open(&i->runner, events, err);
    i->runner_open = r == 0;
    return r;
}

static void interleaving_done(struct interleaving *i)
{
    if (i->runner_open)
        runner_done(&i->runner);
    run_result_done(&i->result);
}

static int run_once(struct interleaving *i, unsigned side, char *const *before, struct error *err)
{
    int r = i->runs->run(i->runs->context, side, &i->runner, before, &i->result, err);
    if (r == 0 && (i->result.signal || process_signals_caught()))
        r = error_set(err, -EINTR, "interrupted");
    return r;
}

/* The metric that counts the work: what was asked for, or one whose name says so. */
static const char *find_work(const struct metric_list *metrics, const char *wanted)
{
    static const char *const usual[] = {"ops",   "operations", "work",      "messages", "requests",
                                        "items", "iterations", "transfers", "bytes"};
    if (wanted)
        return metrics_find(metrics, wanted) ? wanted : NULL;
    for (size_t i = 0; i < ARRAY_COUNT(usual); i++)
        if (metrics_find(metrics, usual[i]))
            return usual[i];
    return NULL;
}

static double work_done(const struct explain *e, const struct run_result *result)
{
    const struct metric *m = e->work ? metrics_find(&result->metrics, e->work) : NULL;
    return m && m->value > 0 ? m->value : 1;
}

static int choose_work(struct explain *e, const char *wanted, const struct run_result *result,
                       bool is_first, struct error *err)
{
    const char *name = find_work(&result->metrics, wanted);
    if (wanted && !name)
        return error_set(err, -ENOENT, "%s reports no metric '%s'", e->names[is_first ? 0 : 1],
                         wanted);
    if (is_first && name) {
        e->work = memory_strdup(name);
        e->unit = work_unit(name, metrics_find(&result->metrics, name)->unit);
    } else if (!is_first && e->work && !metrics_find(&result->metrics, e->work)) {
        free(e->work); /* the other side does not count it: by runs then */
        free(e->unit);
        e->work = e->unit = NULL;
    }
    return 0;
}

static double cpu_ns(const struct interleaving *i)
{
    const struct counter_value *clock = i->result.value_count ? &i->result.values[0] : NULL;
    const struct rusage *u = &i->result.usage;
    if (clock && !i->runner.counters.items[0].why && counter_was_counted(clock) && clock->raw)
        return (double)clock->raw;
    return (double)(timeval_ns(u->ru_utime) + timeval_ns(u->ru_stime));
}

static int measure_round(struct explain *e, struct interleaving *i, size_t round, struct error *err)
{
    size_t order[SIDE_COUNT] = {SIDE_A, SIDE_B};
    round_order(i->seed, round, order, SIDE_COUNT);
    for (size_t k = 0; k < SIDE_COUNT; k++) {
        unsigned side = (unsigned)order[k];
        int r = run_once(i, side, NULL, err);
        if (r < 0)
            return r;
        double work = work_done(e, &i->result);
        e->measured.wall[side][round] = (double)i->result.wall_ns / work;
        e->measured.cpu[side][round] = cpu_ns(i) / work;
    }
    return 0;
}

/* A warm-up of each, which also tells what counts the work, then the rounds. */
static int measure(struct explain *e, const struct explain_settings *s,
                   const struct explain_runs *runs, struct error *err)
{
    struct event_list events = {0};
    struct interleaving i = {0};
    size_t rounds = s->rounds ? s->rounds : ROUNDS_DEFAULT;
    int r = event_list_parse(&events, "task-clock", err);
    if (r == 0)
        r = interleaving_open(&i, runs, &events, s->seed, err);
    for (unsigned side = 0; side < SIDE_COUNT && r == 0; side++) {
        runs->progress(runs->context, EXPLAIN_MEASURE, 0, rounds);
        r = run_once(&i, side, NULL, err);
        if (r == 0)
            r = choose_work(e, s->work, &i.result, side == SIDE_A, err);
        e->measured.wall[side] = memory_zalloc(rounds, sizeof(double));
        e->measured.cpu[side] = memory_zalloc(rounds, sizeof(double));
    }
    for (size_t round = 0; round < rounds && r == 0; round++) {
        runs->progress(runs->context, EXPLAIN_MEASURE, round, rounds);
        r = measure_round(e, &i, round, err);
        if (r == 0)
            e->measured.counts[SIDE_A] = e->measured.counts[SIDE_B] = round + 1;
    }
    e->measured.paired = true;
    interleaving_done(&i);
    event_list_done(&events);
    return r;
}

static int compare(const struct explain_measured *m, double *const values[SIDE_COUNT],
                   struct comparison *comparison, struct verdict *verdict, struct error *err)
{
    static const struct metric_facts facts = {.better = METRIC_LOWER, .is_speed = true};
    struct judge_values both = {values[SIDE_A], values[SIDE_B], m->counts[SIDE_A],
                                m->counts[SIDE_B], .paired = m->paired};
    int r = judge_values(&both, JUDGE_LEVEL, comparison, err);
    if (r == 0)
        judge_words(comparison, facts, "ns", verdict);
    return r;
}

int explain_judge(struct explain_measured *m, struct error *err)
{
    int r = compare(m, m->cpu, &m->cpu_comparison, &m->cpu_verdict, err);
    if (r == 0 && m->wall[SIDE_A])
        r = compare(m, m->wall, &m->wall_comparison, &m->wall_verdict, err);
    m->moved = r == 0 && (verdict_is_difference(&m->cpu_verdict) ||
                          (m->wall[SIDE_A] && verdict_is_difference(&m->wall_verdict)));
    return r;
}

/* How a run is recorded. */
struct record_plan {
    uint64_t frequency_hz;
    bool off_cpu, dwarf;
    bool wakers;          /* and when each wait ended: then it was only ready */
    unsigned stack_bytes; /* copied with each sample, where dwarf is set */
};

static double typical(const double *values, size_t count)
{
    CLEANUP(memory_freep) double *scratch = memory_zalloc(count + 1, sizeof(*scratch));
    return count ? stats_median(values, count, scratch) : NAN;
}

static struct record_plan plan_recording(const struct explain *e, const struct explain_settings *s,
                                         double work, double switches)
{
    struct record_plan plan = {.frequency_hz = s->frequency_hz,
                               .off_cpu = true,
                               .wakers = true,
                               .dwarf = switches < DWARF_SWITCHES_MOST,
                               .stack_bytes = STACK_BYTES_LEAST};
    double cpu_a = typical(e->measured.cpu[SIDE_A], e->measured.counts[SIDE_A]);
    double cpu_b = typical(e->measured.cpu[SIDE_B], e->measured.counts[SIDE_B]);
    double seconds = fmin(cpu_a, cpu_b) * work / 1e9;
    if (!plan.frequency_hz) {
        double wanted = seconds > 0 ? SAMPLES_WANTED / seconds : FREQUENCY_MOST;
        plan.frequency_hz =
            (uint64_t)fmin(fmax(wanted, SAMPLING_FREQUENCY_DEFAULT), FREQUENCY_MOST);
    }
    uint64_t most = sampling_frequency_max();
    if (plan.frequency_hz > most)
        plan.frequency_hz = most;
    return plan;
}

static int record_run(struct interleaving *i, unsigned side, const struct record_plan *plan,
                      const char *path, struct error *err)
{
    char frequency[24], stacks[40];
    snprintf(stacks, sizeof(stacks), "--call-graph=dwarf,%u", plan->stack_bytes);
    snprintf(frequency, sizeof(frequency), "%llu", (unsigned long long)plan->frequency_hz);
    const char *before[12];
    size_t count = 0;
    before[count++] = "assay";
    before[count++] = "record";
    before[count++] = "-q";
    before[count++] = "-F";
    before[count++] = frequency;
    if (plan->off_cpu)
        before[count++] = plan->wakers ? "--wakers" : "--off-cpu";
    before[count++] = plan->dwarf ? stacks : "--call-graph=fp";
    before[count++] = "-o";
    before[count++] = path;
    before[count++] = "--";
    before[count] = NULL;
    return run_once(i, side, (char *const *)before, err);
}

/* Without the wake-ups of the machine where they are not allowed. */
static int record_or_less(struct interleaving *i, unsigned side, struct record_plan *plan,
                          const char *path, struct error *err)
{
    int r = record_run(i, side, plan, path, err);
    if (r == 0 || r == -EINTR || !plan->wakers)
        return r;
    plan->wakers = false;
    return record_run(i, side, plan, path, err);
}

/* One unprofiled run of each side that tells how often they switch and how much work they do. */
static int probe(struct explain *e, struct interleaving *i, const struct explain_settings *s,
                 struct record_plan *plan, struct error *err)
{
    double switches = 0, work = 1;
    for (unsigned side = 0; side < SIDE_COUNT; side++) {
        int r = run_once(i, side, NULL, err);
        if (r < 0)
            return r;
        const struct rusage *u = &i->result.usage;
        switches = fmax(switches, (double)(u->ru_nvcsw + u->ru_nivcsw));
        work = side ? fmin(work, work_done(e, &i->result)) : work_done(e, &i->result);
    }
    *plan = plan_recording(e, s, work, switches);
    return 0;
}

static int profile_round(struct explain *e, struct interleaving *i, struct record_plan *plan,
                         const char *folder, size_t round, struct error *err)
{
    size_t order[SIDE_COUNT] = {SIDE_A, SIDE_B};
    round_order(i->seed, round, order, SIDE_COUNT);
    for (size_t k = 0; k < SIDE_COUNT; k++) {
        unsigned side = (unsigned)order[k];
        CLEANUP(memory_freep)
        char *path = memory_printf("%s/%s%s%s-%zu.data", folder, e->label, e->label[0] ? "-" : "",
                                   side ? "new" : "base", round + 1);
        for (char *c = path + strlen(folder) + 1; *c; c++)
            if (*c == '/' || *c == ' ')
                *c = '_';
        int r = record_or_less(i, side, plan, path, err);
        if (r < 0 && r != -EINTR && plan->off_cpu && round == 0 && k == 0) {
            /* Waits need more than every machine allows; the rest can be had without. */
            plan->off_cpu = false;
            const char *why = strstr(err->message, "assay record: ");
            strbuf_printf(&e->notes, "waits cannot be recorded: %s\n",
                          why ? why + strlen("assay record: ") : err->message);
            r = record_run(i, side, plan, path, err);
        }
        if (r < 0)
            return r;
        profile_set_add(&e->recordings.sides[side], path, work_done(e, &i->result));
    }
    return 0;
}

/* How many of the call chains of a recording go beyond what was copied of the stack. */
static double cut_share(const char *path)
{
    struct profile *p = NULL;
    struct error err;
    if (profile_load(&p, path, &(struct profile_options){0}, &err) < 0)
        return 0;
    double share = p->chains.unwound ? (double)p->chains.stack_cut / (double)p->chains.unwound : 0;
    profile_free(p);
    return share;
}

/* Copies as much of the stack as the callers need, by trial.  What cannot be recorded is told by
 * the first round. */
static int size_stacks(struct interleaving *i, struct record_plan *plan, const char *folder)
{
    CLEANUP(memory_freep) char *path = memory_printf("%s/trial.data", folder);
    struct error ignored = {0};
    int r = 0;
    for (unsigned side = 0; side < SIDE_COUNT && plan->dwarf && r == 0; side++)
        while (plan->stack_bytes < STACK_BYTES_MOST) {
            unlink(path); /* else it would be kept as an older one */
            r = record_or_less(i, side, plan, path, &ignored);
            if (r < 0 || cut_share(path) < CUT_SHARE_MOST)
                break;
            plan->stack_bytes *= 4;
            if (plan->stack_bytes > STACK_BYTES_MOST)
                plan->stack_bytes = STACK_BYTES_MOST;
        }
    unlink(path);
    return r == -EINTR ? r : 0;
}

static int profile(struct explain *e, const struct explain_settings *s,
                   const struct explain_runs *runs, struct error *err)
{
    struct event_list none = {0};
    struct interleaving i = {0};
    struct record_plan plan;
    size_t rounds = s->profile_rounds ? s->profile_rounds : PROFILES_DEFAULT;
    int r = interleaving_open(&i, runs, &none, s->seed + 1, err);
    if (r == 0)
        r = probe(e, &i, s, &plan, err);
    if (r == 0 && size_stacks(&i, &plan, s->folder) < 0)
        r = error_set(err, -EINTR, "interrupted");
    for (size_t round = 0; round < rounds && r == 0; round++) {
        runs->progress(runs->context, EXPLAIN_PROFILE, round, rounds);
        r = profile_round(e, &i, &plan, s->folder, round, err);
    }
    e->has_waits = r == 0 && plan.off_cpu;
    interleaving_done(&i);
    return r;
}

/* What the profiles could not see. */
static void note_losses(struct explain *e)
{
    uint64_t lost = 0, kept = 0;
    for (unsigned side = 0; side < SIDE_COUNT; side++)
        for (size_t i = 0; i < e->loads.counts[side]; i++) {
            const struct perfdata_losses *l = &e->loads.profiles[side][i]->losses;
            lost += perfdata_lost(l);
            kept += l->samples;
        }
    if (lost)
        strbuf_printf(&e->notes, "%llu %s (%.1f %%) lost while profiling: waits may be missing\n",
                      (unsigned long long)lost, plural(lost, "record", "records"),
                      100 * (double)lost / (double)(lost + kept));
    strbuf_puts(&e->notes, strbuf_text(&e->diff.match.notes));
    if (e->diff.user_only)
        strbuf_puts(&e->notes, "no permission to sample the kernel, so its work is unattributed; "
                               "run as root, or set kernel.perf_event_paranoid to 1 or less\n");
}

static int read_profiles(struct explain *e, struct error *err)
{
    e->loads.with_lines = true;
    int r = profile_loads_read(&e->loads, &e->recordings, err);
    return r < 0 ? r : diff_build(&e->diff, &e->loads.options, err);
}

static int load(struct explain *e, struct error *err)
{
    e->recordings.paired = e->measured.paired;
    for (unsigned side = 0; side < SIDE_COUNT; side++) {
        struct profile_set *set = &e->recordings.sides[side];
        size_t size = e->measured.counts[side] * sizeof(double);
        set->measured = memory_alloc(size + 1);
        memcpy(set->measured, e->measured.cpu[side], size);
        set->measured_count = e->measured.counts[side];
        set->name = memory_strdup(e->names[side]);
    }
    e->recordings.label = memory_strdup(e->label);
    e->recordings.work = e->unit ? memory_strdup(e->unit) : NULL;
    int r = read_profiles(e, err);
    /* What was inlined can only be compared where both builds tell it. */
    if (r == 0 && e->diff.match.lacks_debug) {
        strbuf_printf(
            &e->notes,
            "%s has no debug information, unlike its other build: inlined functions count "
            "as part of those that they were inlined into; compile both with -g\n",
            e->diff.match.lacks_debug);
        diff_done(&e->diff);
        profile_loads_done(&e->loads);
        e->loads.no_inlines = true;
        r = read_profiles(e, err);
    }
    if (r == 0)
        note_losses(e);
    return r;
}

static int count_round(const struct explain *e, struct interleaving *i, struct explain_counts *c,
                       size_t round, struct error *err)
{
    size_t order[SIDE_COUNT] = {SIDE_A, SIDE_B};
    round_order(i->seed, round, order, SIDE_COUNT);
    for (size_t k = 0; k < SIDE_COUNT; k++) {
        size_t side = order[k];
        int r = run_once(i, (unsigned)side, NULL, err);
        if (r < 0)
            return r;
        double work = work_done(e, &i->result);
        c->work[side] = work;
        for (size_t n = 0; n < c->events.count; n++) {
            const struct counter_value *v = &i->result.values[n];
            bool counted = !i->runner.counters.items[n].why && counter_was_counted(v);
            c->values[side][n * c->rounds + round] = counted ? counter_scaled(v) / work : NAN;
        }
    }
    return 0;
}

static int count(struct explain *e, const struct explain_settings *s,
                 const struct explain_runs *runs, struct explain_counts *c, struct error *err)
{
    struct interleaving i = {0};
    c->rounds = s->count_rounds ? s->count_rounds : COUNTS_DEFAULT;
    for (unsigned side = 0; side < SIDE_COUNT; side++)
        c->values[side] = memory_zalloc(c->events.count * c->rounds + 1, sizeof(double));
    int r = interleaving_open(&i, runs, &c->events, s->seed + 2, err);
    for (size_t round = 0; round < c->rounds && r == 0; round++) {
        runs->progress(runs->context, EXPLAIN_COUNT, round, c->rounds);
        r = count_round(e, &i, c, round, err);
    }
    interleaving_done(&i);
    return r;
}

/* Whether caches could be a reason: code of the program itself moved. */
static bool user_code_moved(const struct parts *parts)
{
    double weights[SIDE_COUNT] = {0}, all = 0;
    for (size_t i = 0; i < parts->count; i++)
        for (unsigned s = 0; s < SIDE_COUNT; s++)
            for (size_t run = 0; run < parts->run_counts[s]; run++)
                if (!parts->items[i].is_wait) {
                    double weight = parts->items[i].weights[s][run] / (double)parts->run_counts[s];
                    all += weight;
                    weights[s] += parts->items[i].kind == PART_FUNCTION ? weight : 0;
                }
    return fabs(weights[SIDE_B] - weights[SIDE_A]) > 0.05 * all;
}

static bool wants_simulation(const struct explain *e, const struct explain_settings *s,
                             const struct explain_counts *c, const struct parts *parts)
{
    double cpu = 0;
    for (unsigned side = 0; side < SIDE_COUNT; side++)
        cpu += typical(e->measured.cpu[side], e->measured.counts[side]) * c->work[side] / 1e9;
    if (s->simulate != EXPLAIN_SIM_SHORT)
        return s->simulate == EXPLAIN_SIM_ALWAYS;
    return cpu * SIMULATION_SLOWDOWN < SIMULATION_SECONDS_MOST && user_code_moved(parts);
}

/* The second half: counts, perhaps a simulation, and the reasons. */
static int conclude(struct explain *e, const struct explain_settings *settings,
                    const struct explain_runs *runs, struct parts *parts, struct error *err)
{
    struct explain_counts counts = {0};
    explain_choose_counts(&counts, parts);
    int r = count(e, settings, runs, &counts, err);
    if (r == 0 && wants_simulation(e, settings, &counts, parts))
        explain_simulate(
            e, runs, &counts,
            settings->simulate == EXPLAIN_SIM_ALWAYS ? 0 : SIMULATION_SECONDS_MOST * NS_PER_S);
    if (r == 0)
        explain_conclude(e, parts, &counts);
    if (r == 0)
        explain_find_wakers(e, settings, runs);
    e->profiled = r == 0;
    explain_counts_done(&counts);
    return r;
}

static void build_parts(struct explain *e, const struct explain_settings *settings,
                        const struct explain_runs *runs, struct parts *parts)
{
    struct parts_waits waits = {0};
    parts_build(parts, &e->loads, &e->diff, NULL);
    if (e->has_waits)
        explain_look_at_waits(&waits, e, settings, runs, parts);
    if (waits.count) {
        parts_done(parts);
        parts_build(parts, &e->loads, &e->diff, &waits);
    }
    parts_waits_done(&waits);
}

int explain_run(struct explain *e, const struct explain_settings *settings,
                const struct explain_runs *runs, struct error *err)
{
    bool measured_before = e->measured.cpu[SIDE_A] != NULL;
    int r = measured_before ? 0 : measure(e, settings, runs, err);
    if (r == 0)
        r = explain_judge(&e->measured, err);
    /* What the store has is not run again for nothing. */
    if (r < 0 || (!e->measured.moved && !settings->force && measured_before))
        return r;
    struct parts parts = {0};
    r = profile(e, settings, runs, err);
    if (r == 0)
        r = load(e, err);
    if (r == 0) {
        build_parts(e, settings, runs, &parts);
        explain_confirm(e, &parts);
        e->looked_at_waits = e->has_waits;
        if (e->outcome == EXPLAIN_EXPLAINED || settings->force)
            r = conclude(e, settings, runs, &parts, err);
    }
    parts_done(&parts);
    return r;
}

void explain_done(struct explain *e)
{
    for (unsigned side = 0; side < SIDE_COUNT; side++) {
        free(e->names[side]);
        free(e->uuids[side]);
        free(e->cells[side]);
        free(e->measured.wall[side]);
        free(e->measured.cpu[side]);
    }
    for (size_t i = 0; i < e->reason_count; i++) {
        free(e->reasons[i].name);
        free(e->reasons[i].where);
        free(e->reasons[i].evidence);
        free(e->reasons[i].waiter);
    }
    for (size_t i = 0; i < e->fact_count; i++) {
        free(e->facts[i].name);
        free(e->facts[i].words);
    }
    for (size_t i = 0; i < e->program_count; i++)
        free(e->programs[i].name);
    free(e->programs);
    for (size_t i = 0; i < e->owner_count; i++)
        free(e->owners[i].name);
    free(e->owners);
    free(e->reasons);
    free(e->facts);
    free(e->unattributed_where);
    free(e->label);
    free(e->work);
    free(e->unit);
    diff_done(&e->diff);
    profile_loads_done(&e->loads);
    profile_pair_done(&e->recordings);
    strbuf_done(&e->notes);
    *e = (struct explain){0};
}
