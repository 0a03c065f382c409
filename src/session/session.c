/* SPDX-License-Identifier: MIT */
/* See session.h: opening and the rounds. */
#include "session/session.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/process.h"
#include "counters/accounting.h"
#include "numbers/order.h"
#include "run/command.h"
#include "session/experiments.h"
#include "session/guests.h"
#include "session/hosts.h"
#include "session/session_internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <sys/random.h>

/* Extra rounds end here when neither precision nor budget ends them. */
#define ROUNDS_CEILING 10000

/* Whether it is the program of the cell before, which need not be read again. */
static bool same_program(const struct session *s, size_t index, const char *folder)
{
    if (s->spec.build_count || index == 0 || !s->cells[index - 1].build_id)
        return false;
    return str_eq(s->cells[index].argv[0], s->cells[index - 1].argv[0]) &&
           folder == spec_folder(&s->spec, s->matrix.cells[index - 1].levels);
}

static int fill_cell(struct session *s, size_t index, struct error *err)
{
    struct session_cell *c = &s->cells[index];
    const struct matrix_cell *cell = &s->matrix.cells[index];
    c->build_folders = builds_folders(&s->builds, index);
    struct hole_values values = {
        .spec = &s->spec, .levels = cell->levels, .builds = c->build_folders, .cell = index + 1};
    const char *folder = spec_folder(&s->spec, cell->levels);
    int r = holes_command(&s->spec.command, &values, &c->argv, err);
    if (r < 0)
        return r;
    CLEANUP(strbuf_done) struct strbuf text = {0}, input = {0};
    strbuf_put_command(&text, c->argv);
    c->command = memory_strdup(strbuf_text(&text));
    if (s->spec.input) {
        holes_fill(&input, s->spec.input, &values);
        c->input = strbuf_text(&input)[0] == '/'
                       ? memory_strdup(strbuf_text(&input))
                       : memory_printf("%s/%s", folder, strbuf_text(&input));
    }
    c->build_id = same_program(s, index, folder)
                      ? memory_strdup(s->cells[index - 1].build_id)
                      : builds_identity(&s->builds, index, c->argv[0], folder);
    size_t count = 0, capacity = 0;
    const struct text_pairs *lists[SPEC_FACTORS_MAX + 1] = {&s->spec.environment};
    for (size_t f = 0; f < s->spec.factor_count; f++)
        lists[f + 1] = &cell->levels[f]->environment;
    for (size_t l = 0; l <= s->spec.factor_count; l++)
        for (size_t i = 0; i < lists[l]->count; i++) {
            struct strbuf pair = {0};
            strbuf_printf(&pair, "%s=", lists[l]->items[i].name);
            holes_fill(&pair, lists[l]->items[i].value, &values);
            ARRAY_PUSH(c->environment, count, capacity) = pair.data;
        }
    ARRAY_PUSH(c->environment, count, capacity) = NULL;
    return 0;
}

static void report_build(const char *command, size_t done, size_t total, void *context)
{
    (void)done, (void)total;
    struct session *s = context;
    s->phase = SESSION_BUILD;
    s->current = command;
    session_show_progress(s);
}

static int read_plan(struct session *s, struct error *err)
{
    const struct session_options *o = s->options;
    int r = o->spec_text ? spec_parse(&s->spec, o->spec_path, o->spec_text, strlen(o->spec_text),
                                      o->quick, err)
                         : spec_load(&s->spec, o->spec_path, o->quick, err);
    if (r == 0 && o->side_count)
        r = spec_add_factor(&s->spec, "side", o->sides, o->side_count, err);
    if (r == 0)
        r = matrix_make(&s->matrix, &s->spec, err);
    if (r < 0)
        return r;
    r = spec_add_monitors(&s->spec, o->monitors, o->monitor_count, err);
    if (r < 0)
        return r;
    if (!o->elsewhere)
        r = hosts_place(&s->spec, o->hosts, o->launcher, err);
    if (r < 0)
        return r;
    s->kept = memory_zalloc(s->matrix.count, sizeof(*s->kept));
    for (size_t c = 0; c < s->matrix.count; c++)
        s->kept[c] = true;
    if (o->cells)
        r = matrix_select(&s->matrix, o->cells, s->kept, err);
    for (size_t c = 0; r == 0 && c < s->matrix.count; c++)
        s->kept_count += s->kept[c];
    if (r == 0)
        r = session_open_exact(s, err);
    s->headline = memory_strdup(session_default_headline(&s->spec));
    for (size_t m = 0; r == 0 && m < s->spec.metric_count; m++)
        if (s->spec.metrics[m].headline) {
            free(s->headline);
            s->headline = memory_strdup(s->spec.metrics[m].name);
            break;
        }
    if (r == 0 && o->headline) {
        free(s->headline);
        s->headline = memory_strdup(o->headline);
    }
    const char *cpus = o->cpus ? o->cpus : s->spec.cpus;
    if (r == 0 && cpus && parse_cpu_list(cpus, &s->cpus, &s->cpu_count, err) < 0)
        r = error_wrap(err, -EINVAL, "%s: cpus", s->spec.file);
    if (o->rounds) {
        s->spec.rounds = o->rounds;
        s->spec.rounds_max = 0;
    }
    if (o->budget_ns)
        s->spec.budget_ns = o->budget_ns;
    CLEANUP(strbuf_done) struct strbuf selection = {0};
    strbuf_printf(&selection, "%s%s%s%s%s", o->elsewhere ? "elsewhere" : "",
                  o->elsewhere && o->quick ? " " : "", o->quick ? "quick" : "",
                  o->cells ? " cells=" : "", o->cells ? o->cells : "");
    for (size_t i = 0; i < o->monitor_count; i++)
        strbuf_printf(&selection, " monitor=%s", o->monitors[i]);
    s->selection = memory_strdup(strbuf_text(&selection));
    return r;
}

/* The spec's counters, of which sim:instructions is no event. */
static int parse_counters(struct session *s, struct error *err)
{
    CLEANUP(memory_freep) char *rest = NULL;
    s->simulates |= simulated_take_event(s->spec.counters, &rest);
    int r = s->simulates ? simulator_open(&s->simulator, err) : 0;
    return r == 0 && *rest ? event_list_parse(&s->events, rest, err) : r;
}

static void note_accounted(struct session *s)
{
    CLEANUP(strbuf_done) struct strbuf names = {0};
    for (size_t i = 0; i < s->events.count; i++)
        if (s->runner.counters.items[i].accounted)
            strbuf_printf(&names, "%s%s", names.length ? ", " : "", s->events.items[i].name);
    if (!names.length)
        return;
    accounting_explain(&s->notes, strbuf_text(&names));
    strbuf_putc(&s->notes, '\n');
}

/* Threads and workers first: events that are opened later must not count them. */
static int open_instruments(struct session *s, struct error *err)
{
    int r = steps_open(&s->steps, &s->spec, err);
    if (r < 0)
        return r;
    s->steps_open = true;
    r = s->guests ? monitors_open_elsewhere(&s->monitors, s->spec.monitors, s->spec.monitor_count,
                                            guests_read_file, s->guests, err)
                  : monitors_open(&s->monitors, s->spec.monitors, s->spec.monitor_count,
                                  MONITOR_READS, s->spec.monitor_interval_ns, err);
    if (r < 0)
        return r;
    s->monitors_open = true;
    if (s->monitors.missing.length)
        strbuf_printf(&s->notes, "not available %s: %s\n",
                      s->guests ? "in emulated machines" : "on this machine",
                      strbuf_text(&s->monitors.missing));
    r = session_open_watchers(s, err);
    if (r < 0)
        return r;
    if (s->guests)
        r = 0; /* they count for themselves */
    else if (str_eq(s->spec.counters, "default"))
        event_list_default(&s->events, false, 0);
    else
        r = parse_counters(s, err);
    if (r < 0)
        return error_wrap(err, r, "%s: counters", s->spec.file);
    if (s->options->task && (r = session_drop_events(s, err)) < 0)
        return r;
    r = runner_open(&s->runner, &s->events, err);
    s->runner_open = r == 0;
    for (size_t i = 0; r == 0 && i < s->events.count; i++)
        if (s->runner.counters.items[i].why)
            strbuf_printf(&s->notes, "not counted: %s: %s\n", s->events.items[i].name,
                          s->runner.counters.items[i].why);
    if (r == 0)
        note_accounted(s);
    return r;
}

/* On this machine; a task does it for its node. */
static int check_needs_here(struct session *s, struct error *err)
{
    bool any = s->spec.needs[0];
    for (size_t f = 0; f < s->spec.factor_count; f++)
        for (size_t l = 0; l < s->spec.factors[f].level_count; l++)
            any |= s->spec.factors[f].levels[l].attributes.count > 0;
    if (!any)
        return 0;
    struct machine machine;
    machine_probe(&machine, MACHINE_QUICK);
    int r = session_check_needs(s, &machine, err);
    machine_done(&machine);
    return r == -ENOTSUP ? error_wrap(err, r,
                                      "this machine lacks something that a cell needs (--cells can "
                                      "leave that cell out)")
                         : r;
}

static int choose_seed(struct session *s, struct error *err)
{
    if (s->options->has_seed)
        s->seed = s->options->seed;
    else if (s->spec.has_seed)
        s->seed = s->spec.seed;
    else if (getrandom(&s->seed, sizeof(s->seed), 0) != sizeof(s->seed))
        return error_errno(err, -errno, "getting a random seed");
    s->seed &= INT64_MAX;
    return 0;
}

static int make_builds(struct session *s, struct error *err)
{
    static const struct build_place named = {.only_named = true};
    if (s->options->task)
        return session_make_task_builds(s, report_build, err);
    return builds_make(&s->builds, &s->matrix, s->kept, s->options->elsewhere ? &named : NULL,
                       report_build, s, err);
}

static int open_place(struct session *s, struct error *err)
{
    if (!s->options->task)
        return store_open(&s->store, store_place(s->options->db), STORE_CREATE, err);
    CLEANUP(memory_freep) char *path = memory_printf("%s.spool", s->options->task);
    return store_open_task(&s->store, path, s->plan.uuid, err);
}

/* Metrics that are read from standard output need it kept. */
static int check_output(const struct session *s, struct error *err)
{
    if (output_parse(s->options->output) == RUN_KEEP)
        return 0;
    for (size_t i = 0; i < s->spec.metric_count; i++)
        if (s->spec.metrics[i].source != METRIC_PRINTED && !s->spec.metrics[i].file)
            return error_set(err, -EINVAL,
                             "--output %s: the spec reads the metric '%s' from standard output; "
                             "leave --output out",
                             s->options->output, s->spec.metrics[i].name);
    return 0;
}

int session_open(struct session **ret_session, const struct session_options *options,
                 struct error *err)
{
    struct session *s = memory_zalloc(1, sizeof(*s));
    *s = (struct session){.options = options, .widest = NAN};
    *ret_session = s;
    bool runs_here = !options->dry_run && !options->elsewhere;
    int r = read_plan(s, err);
    if (r == 0)
        r = check_output(s, err);
    if (r == 0)
        experiments_find_programs(s->spec.folder);
    if (r == 0 && options->task)
        r = session_read_task(s, err);
    if (r == 0 && runs_here && !options->task)
        r = check_needs_here(s, err);
    if (r == 0)
        r = choose_seed(s, err);
    if (r == 0 && !options->dry_run)
        r = make_builds(s, err);
    if (r == 0) {
        s->cells = memory_zalloc(s->matrix.count, sizeof(*s->cells));
        session_make_values(s);
        for (size_t c = 0; r == 0 && c < s->matrix.count; c++) {
            s->cells[c].kept = s->kept[c];
            s->cells[c].half_width = NAN;
            if (s->kept[c] && !options->dry_run)
                r = fill_cell(s, c, err);
        }
    }
    if (r == 0 && runs_here)
        r = session_open_guests(s, err);
    if (r == 0 && !options->dry_run)
        r = open_place(s, err);
    if (r == 0 && runs_here)
        r = session_apply_limits(s, err);
    if (r == 0 && runs_here)
        r = open_instruments(s, err);
    if (r == 0 && !options->dry_run)
        r = options->task ? session_enter_task(s, err) : session_enter(s, err);
    return r;
}

/* Cells of one round in an order that follows from the seed and the round alone. */
void session_shuffle(const struct session *s, uint64_t round, size_t *cells, size_t count)
{
    round_order(s->seed, round, cells, count);
}

static void guess_time(struct session *s)
{
    uint64_t sum_ns = clock_now_ns() - s->started_ns;
    size_t done = s->runs_done;
    if (!done || s->runs_planned <= done) {
        s->eta_ns = 0;
        return;
    }
    s->eta_ns = (uint64_t)((double)sum_ns / (double)done * (double)(s->runs_planned - done));
    if (s->spec.budget_ns && s->spent_ns + sum_ns + s->eta_ns > s->spec.budget_ns &&
        s->phase == SESSION_EXTRA)
        s->eta_ns =
            s->spec.budget_ns > s->spent_ns + sum_ns ? s->spec.budget_ns - s->spent_ns - sum_ns : 0;
}

static int run_round(struct session *s, uint64_t round, size_t *cells, size_t count,
                     struct error *err)
{
    s->round = round;
    session_shuffle(s, round, cells, count);
    for (size_t i = 0; i < count; i++) {
        if (session_has_round(&s->cells[cells[i]], round))
            continue;
        s->position = i;
        int r = session_run_cell(s, cells[i], round, i, true, err);
        if (r < 0)
            return r;
        s->runs_done++;
        guess_time(s);
    }
    return 0;
}

static size_t list_kept(const struct session *s, size_t *cells)
{
    size_t count = 0;
    for (size_t c = 0; c < s->matrix.count; c++)
        if (s->kept[c])
            cells[count++] = c;
    return count;
}

static bool over_budget(const struct session *s)
{
    return s->spec.budget_ns && s->spent_ns + (clock_now_ns() - s->started_ns) >= s->spec.budget_ns;
}

static int warm_up(struct session *s, const size_t *cells, size_t count, struct error *err)
{
    s->phase = SESSION_WARMUP;
    for (uint64_t w = 0; w < s->spec.warmup; w++)
        for (size_t i = 0; i < count; i++) {
            bool complete = s->cells[cells[i]].count >= s->spec.rounds && s->spec.precision == 0;
            int r = complete || !s->kept[cells[i]]
                        ? 0
                        : session_run_cell(s, cells[i], 0, i, false, err);
            if (r < 0)
                return r;
        }
    return 0;
}

/* How many rounds every one of these cells has, those of earlier sessions included. */
static uint64_t rounds_done(const struct session *s, const size_t *cells, size_t count)
{
    uint64_t done = s->spec.rounds;
    for (size_t i = 0; i < count; i++)
        if (s->cells[cells[i]].count < done)
            done = s->cells[cells[i]].count;
    return done;
}

static int base_rounds(struct session *s, size_t *cells, size_t count, struct error *err)
{
    s->phase = SESSION_ROUNDS;
    s->started_ns = clock_now_ns();
    for (uint64_t round = 0; round < s->spec.rounds; round++) {
        count = list_kept(s, cells);
        int r = run_round(s, round, cells, count, err);
        if (r < 0)
            return r;
        uint64_t done = rounds_done(s, cells, count);
        if (over_budget(s) && done < s->spec.rounds) {
            strbuf_printf(&s->notes, "the budget ended after %llu of %llu %s%s\n",
                          (unsigned long long)done, (unsigned long long)s->spec.rounds,
                          plural(s->spec.rounds, "round", "rounds"),
                          s->spent_ns ? ", including the time of earlier sessions" : "");
            return 0;
        }
    }
    return 0;
}

static uint64_t next_round(const struct session *s)
{
    uint64_t next = s->spec.rounds;
    for (size_t c = 0; c < s->matrix.count; c++)
        if (s->cells[c].count && s->cells[c].rounds[s->cells[c].count - 1] >= next)
            next = s->cells[c].rounds[s->cells[c].count - 1] + 1ULL;
    return next;
}

bool session_wants_extra(const struct session *s)
{
    bool precise =
        !s->options->no_precision && (s->options->precision > 0 || s->spec.precision > 0);
    return precise || (s->spec.budget_ns && !s->options->rounds) || s->spec.rounds_max;
}

static int extra_rounds(struct session *s, size_t *cells, struct error *err)
{
    if (!session_wants_extra(s))
        return 0;
    uint64_t most = s->spec.rounds_max ? s->spec.rounds_max : ROUNDS_CEILING;
    s->phase = SESSION_EXTRA;
    for (uint64_t round = next_round(s); round < most && !over_budget(s); round++) {
        size_t count = session_choose_extra(s, cells);
        if (count == 0)
            return 0;
        s->runs_planned = s->runs_done + count;
        int r = run_round(s, round, cells, count, err);
        if (r < 0)
            return r;
    }
    session_measure_widths(s);
    return 0;
}

static int run_rounds(struct session *s, size_t *cells, size_t count, struct error *err)
{
    int r = warm_up(s, cells, count, err);
    if (r == 0)
        r = base_rounds(s, cells, count, err);
    return r < 0 ? r : extra_rounds(s, cells, err);
}

static int run_all(struct session *s, struct error *err)
{
    CLEANUP(memory_freep) size_t *cells = memory_zalloc(s->matrix.count, sizeof(*cells));
    size_t count = list_kept(s, cells);
    struct hole_values values = {.spec = &s->spec};
    for (size_t i = 0; i < count; i++)
        for (uint64_t round = 0; round < s->spec.rounds; round++)
            s->runs_planned += !session_has_round(&s->cells[cells[i]], round);
    bool nothing_left = s->runs_planned == 0 && s->spec.precision == 0 && !s->spec.budget_ns &&
                        s->options->precision == 0 && !s->spec.rounds_max;
    if (nothing_left && !session_profiles_left(s))
        return 0;
    int r = steps_before(&s->steps, &values, true, err);
    if (r == 0 && !nothing_left)
        r = run_rounds(s, cells, count, err);
    if (r == 0 && s->spec.profile != PROFILE_NONE)
        r = session_profile(s);
    struct error ignored;
    int after = steps_after(&s->steps, &values, true, r < 0 ? &ignored : err);
    return r < 0 ? r : after;
}

int session_run(struct session *s, struct error *err)
{
    s->started_ns = clock_now_ns();
    if (s->options->task)
        return session_run_task(s, err);
    int r = run_all(s, err);
    if (r == 0)
        r = session_check_failures(s, err);
    session_note_left_out(s);
    s->end = r == 0 ? SESSION_DONE : r == -EINTR ? SESSION_STOPPED : SESSION_FAILED;
    static const char *const states[] = {"done", "stopped", "failed"};
    struct error ignored;
    int finished = store_finish(s->store, s->experiment, states[s->end], r < 0 ? &ignored : err);
    if (r == -EINTR)
        r = 0;
    return r < 0 ? r : finished;
}

void session_close(struct session *s)
{
    if (!s)
        return;
    if (s->steps_open)
        steps_done(&s->steps);
    if (s->monitors_open)
        monitors_done(&s->monitors);
    session_close_watchers(s);
    if (s->runner_open)
        runner_done(&s->runner);
    event_list_done(&s->events);
    run_result_done(&s->result);
    session_close_guests(s);
    session_lift_limits(s);
    for (size_t c = 0; s->cells && c < s->matrix.count; c++) {
        struct session_cell *cell = &s->cells[c];
        command_free_words(cell->argv);
        command_free_words(cell->environment);
        free(cell->input);
        free(cell->command);
        free(cell->build_id);
        free(cell->build_folders);
        free(cell->rounds);
    }
    if (s->values)
        dataset_done(s->values);
    free(s->values);
    free(s->cells);
    free(s->kept);
    free(s->cpus);
    free(s->headline);
    session_close_exact(s);
    free(s->selection);
    free(s->resume_note);
    free(s->stop_path);
    free(s->node);
    free(s->layout);
    task_plan_done(&s->plan);
    strbuf_done(&s->notes);
    builds_done(&s->builds);
    matrix_done(&s->matrix);
    spec_done(&s->spec);
    store_close(s->store);
    free(s);
}

struct session_facts session_facts(const struct session *s)
{
    return (struct session_facts){.store = s->store,
                                  .experiment = s->experiment,
                                  .resumed = s->resumed,
                                  .resume_note = s->resume_note,
                                  .seed = s->seed,
                                  .cell_count = s->kept_count,
                                  .run_count_before = s->run_count_before,
                                  .failed_cells = session_failed_cells(s),
                                  .end = s->end,
                                  .node = s->node,
                                  .uncounted = s->uncounted};
}

struct session_progress session_progress(const struct session *s)
{
    return (struct session_progress){.phase = s->phase,
                                     .current = s->current,
                                     .round = s->round,
                                     .runs_done = s->runs_done,
                                     .runs_planned = s->runs_planned,
                                     .widest = s->widest,
                                     .eta_ns = s->eta_ns};
}

void session_show_progress(const struct session *s)
{
    struct session_progress progress = session_progress(s);
    if (s->options->on_progress)
        s->options->on_progress(&progress, s->options->context);
}

const struct spec *session_spec(const struct session *s)
{
    return &s->spec;
}

const struct matrix *session_matrix(const struct session *s)
{
    return &s->matrix;
}

bool session_keeps(const struct session *s, size_t cell)
{
    return s->kept[cell];
}

bool session_has_notes(const struct session *s)
{
    return s->notes.length > 0;
}

void session_take_notes(struct session *s, struct strbuf *out)
{
    strbuf_append(out, strbuf_text(&s->notes), s->notes.length);
    strbuf_clear(&s->notes);
}
