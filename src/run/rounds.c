/* SPDX-License-Identifier: MIT */
/* Rounds in which every command runs once: see rounds.h. */
#include "run/rounds.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/process.h"
#include "numbers/order.h"
#include "numbers/random.h"
#include "run/duet.h"
#include "run/hooks.h"
#include "run/layout.h"

#include <errno.h>
#include <string.h>

/* Warm-up rounds have orders of their own. */
#define WARMUP_SALT 0x9e3779b97f4a7c15ULL

/* Rounds under way. */
struct sitting {
    const struct rounds_spec *spec;
    struct rounds *r;
    struct rng rng;
    struct hooks hooks;
    struct runner runner;
    struct duet duet;
    bool hooks_opened, runner_opened, duet_opened;
    struct run_result results[2]; /* the second for duets */
    size_t *order;                /* of contestants, or of groups in a duet */
    size_t order_count;
    uint64_t rounds_begun; /* warm-up rounds apart */
    struct layout_turns layouts;
    uint64_t start_ns;
    size_t running; /* the contestant that runs */
};

static void round_done(struct round *round, size_t run_count)
{
    for (size_t i = 0; i < run_count; i++) {
        free(round->runs[i].values);
        free(round->runs[i].metrics);
    }
    free(round->runs);
    round->runs = NULL;
}

void rounds_done(struct rounds *r)
{
    for (size_t i = 0; i < r->count; i++)
        round_done(&r->items[i], r->contestant_count);
    for (size_t i = 0; i < r->event_count; i++)
        free(r->why[i]);
    free(r->items);
    free(r->why);
    free(r->user_only);
    free(r->accounted);
    for (size_t i = 0; r->states && i < r->contestant_count; i++)
        failure_done(&r->states[i].failure);
    free(r->states);
    failure_done(&r->failure);
    *r = (struct rounds){0};
}

static void remember_states(struct sitting *s)
{
    const struct counters *c =
        s->spec->duet ? &s->duet.sides[0].runner.counters : &s->runner.counters;
    for (size_t i = 0; i < s->r->event_count; i++) {
        if (c->items[i].why)
            s->r->why[i] = memory_strdup(c->items[i].why);
        s->r->user_only[i] = c->items[i].user_only;
        s->r->accounted[i] = c->items[i].accounted;
    }
}

/* Hooks first: their thread must be there before the events are. */
static int sitting_open(struct sitting *s, struct error *err)
{
    const struct rounds_spec *spec = s->spec;
    int r = hooks_open(&s->hooks, spec->hook_shell, spec->working_dir, err);
    s->hooks_opened = r == 0;
    if (r < 0)
        return r;
    if (spec->duet) {
        if (spec->cpu_count >= 2) {
            s->r->duet_cpus[0] = spec->cpus[0];
            s->r->duet_cpus[1] = spec->cpus[1];
        } else {
            r = duet_choose_cpus(s->r->duet_cpus, &s->r->duet_shares_core, err);
        }
        if (r == 0)
            r = duet_open(&s->duet, spec->events, s->r->duet_cpus, err);
        s->duet_opened = r == 0;
    } else {
        r = runner_open(&s->runner, spec->events, err);
        s->runner_opened = r == 0;
    }
    if (r == 0)
        remember_states(s);
    return r;
}

static void sitting_done(struct sitting *s)
{
    if (s->duet_opened)
        duet_done(&s->duet);
    if (s->runner_opened)
        runner_done(&s->runner);
    if (s->hooks_opened)
        hooks_done(&s->hooks);
    run_result_done(&s->results[0]);
    run_result_done(&s->results[1]);
    free(s->order);
    layout_turns_done(&s->layouts);
}

static void end_with_failure(struct sitting *s, const char *what, const char *text,
                             const struct run_result *result, bool stdout_was_discarded)
{
    failure_keep(&s->r->failure, what, text, result, stdout_was_discarded);
    s->r->end = ROUNDS_FAILURE;
}

/* Runs a hook; false when the rounds cannot go on, with s->r or err saying why. */
static int run_hook(struct sitting *s, const char *what, const char *text, bool *ret_go_on,
                    struct error *err)
{
    *ret_go_on = true;
    if (!text)
        return 0;
    int r = hooks_run(&s->hooks, text, err);
    if (r < 0)
        return error_wrap(err, r, "%s", what);
    if (s->hooks.result.signal) {
        *ret_go_on = false;
    } else if (run_failed(&s->hooks.result)) {
        end_with_failure(s, what, text, &s->hooks.result, false);
        *ret_go_on = false;
    }
    return 0;
}

static struct run_record make_record(const struct sitting *s, const struct run_result *result,
                                     size_t position)
{
    const struct rusage *u = &result->usage;
    struct run_record record = {
        .start_ns = result->start_ns - s->start_ns,
        .wall_ns = result->wall_ns,
        .user_ns = timeval_ns(u->ru_utime),
        .sys_ns = timeval_ns(u->ru_stime),
        .rss_bytes_max = (uint64_t)u->ru_maxrss * 1024,
        .minor_faults = (uint64_t)u->ru_minflt,
        .major_faults = (uint64_t)u->ru_majflt,
        .voluntary_switches = (uint64_t)u->ru_nvcsw,
        .involuntary_switches = (uint64_t)u->ru_nivcsw,
        .blocks_read = (uint64_t)u->ru_inblock,
        .blocks_written = (uint64_t)u->ru_oublock,
        .status = result->status,
        .timed_out = result->timed_out,
        .left_behind = result->left_behind,
        .position = position,
        .disturbance = result->disturbance,
        .metric_count = result->metrics.count,
    };
    record.rss_is_bound = record.rss_bytes_max <= result->rss_bytes_floor;
    record.values = memory_zalloc(s->r->event_count + 1, sizeof(*record.values));
    if (s->r->event_count)
        memcpy(record.values, result->values, s->r->event_count * sizeof(*record.values));
    record.metrics = memory_zalloc(record.metric_count + 1, sizeof(*record.metrics));
    if (record.metric_count)
        memcpy(record.metrics, result->metrics.items,
               record.metric_count * sizeof(*record.metrics));
    return record;
}

static void note_metric_lines(struct rounds *r, const struct metric_list *metrics)
{
    metric_refusals_add(&r->refused_metrics, &metrics->refused);
    r->truncated_metrics += metrics->truncated;
}

static void tick(void *context)
{
    const struct sitting *s = context;
    hooks_trim(&s->hooks);
    if (s->spec->on_tick)
        s->spec->on_tick(s->r, s->spec, s->running, s->spec->context);
}

/* The round being made; its records are NULL for a warm-up. */
struct making {
    struct round *round;
    bool is_warmup;
};

static struct run_spec make_spec(const struct sitting *s, const struct making *making,
                                 size_t contestant)
{
    const struct rounds_spec *spec = s->spec;
    const struct command *command = &spec->contestants[contestant].command;
    const char *own_dir = spec->contestants[contestant].working_dir;
    const char *program =
        spec->layout_programs
            ? spec->layout_programs[making->round->layout * spec->contestant_count + contestant]
            : command->program;
    bool shown = spec->stdout_to == RUN_SHOW;
    /* A warm-up's output costs nothing that counts, so it is kept to be shown on failure. */
    bool kept = making->is_warmup && spec->stdout_to == RUN_DISCARD;
    return (struct run_spec){.argv = command->argv,
                             .program = program,
                             .working_dir = own_dir ? own_dir : spec->working_dir,
                             .input_path = spec->input_path,
                             .stdout_to = kept ? RUN_KEEP : spec->stdout_to,
                             .stderr_to = shown ? RUN_SHOW : RUN_KEEP,
                             .output_path = spec->output_path,
                             .cpus = spec->cpus,
                             .cpu_count = spec->cpu_count,
                             .timeout_ns = spec->timeout_ns,
                             .padding_bytes = making->round->padding_bytes,
                             .small_start = !layout_has_still_rounds(spec)};
}

/* Whether the contestant, or the group of a duet, is still run: a duet takes two. */
static bool is_left(const struct sitting *s, size_t entry)
{
    if (!s->spec->duet)
        return !s->r->states[entry].is_out;
    for (size_t i = 0; i < s->spec->contestant_count; i++)
        if (s->spec->contestants[i].group == entry && s->r->states[i].is_out)
            return false;
    return true;
}

static bool anyone_left(const struct sitting *s)
{
    for (size_t i = 0; i < s->order_count; i++)
        if (is_left(s, s->order[i]))
            return true;
    return false;
}

/* Notes a failure that is not allowed; false when the rounds cannot go on. */
static bool survive_failure(struct sitting *s, bool is_warmup, size_t contestant,
                            const struct run_result *result)
{
    const struct rounds_spec *spec = s->spec;
    const char *text = spec->contestants[contestant].command.text;
    bool shown = spec->stdout_to == RUN_SHOW || spec->stdout_to == RUN_KEEP || is_warmup;
    if (!spec->keep_going) {
        end_with_failure(s, "the command", text, result, !shown);
        return false;
    }
    failure_keep(&s->r->states[contestant].failure, "the command", text, result, !shown);
    return true;
}

/* Looks at a finished run and keeps it; false when the rounds cannot go on. */
static bool keep_run(struct sitting *s, const struct making *making, size_t contestant,
                     size_t position, struct run_result *result)
{
    struct rounds *r = s->r;
    struct contestant_state *state = &r->states[contestant];
    if (result->signal) {
        r->stopped_ns = result->wall_ns;
        return false;
    }
    if (s->spec->on_result && !s->spec->on_result(r, s->spec, result, contestant, s->spec->context))
        return false;
    bool allowed = run_failed(result) && failure_is_allowed(&s->spec->ignored_failures, result);
    bool failed = run_failed(result) && !allowed;
    if (failed && !survive_failure(s, making->is_warmup, contestant, result))
        return false;
    contestant_state_note(state, failed);
    if (making->is_warmup)
        return true;
    r->failed_runs += allowed;
    state->counted_failures += allowed;
    if (!failed)
        note_metric_lines(r, &result->metrics);
    free(making->round->runs[contestant].values);
    making->round->runs[contestant] = make_record(s, result, position);
    making->round->runs[contestant].is_left_out = failed;
    return true;
}

static int run_alone(struct sitting *s, const struct making *making, size_t contestant,
                     size_t position, bool *ret_go_on, struct error *err)
{
    int r = run_hook(s, "the prepare command", s->spec->contestants[contestant].prepare, ret_go_on,
                     err);
    if (r < 0 || !*ret_go_on)
        return r;
    struct run_spec spec = make_spec(s, making, contestant);
    s->running = s->r->last_started = contestant;
    spec.on_tick = tick;
    spec.tick_context = s;
    r = layout_run(&s->runner, &spec, making->round->is_still, &s->results[0],
                   &s->r->cannot_be_still, err);
    s->r->start_code = s->results[0].start_code;
    if (r < 0)
        return r;
    *ret_go_on = keep_run(s, making, contestant, position, &s->results[0]);
    return *ret_go_on ? run_hook(s, "the conclude command",
                                 s->spec->contestants[contestant].conclude, ret_go_on, err)
                      : 0;
}

/* The two contestants of a group, the reference's side told by the round's number. */
static int run_duet(struct sitting *s, const struct making *making, size_t group, size_t swap,
                    bool *ret_go_on, struct error *err)
{
    const struct rounds_spec *spec = s->spec;
    size_t pair[2], found = 0;
    for (size_t i = 0; i < spec->contestant_count && found < 2; i++)
        if (spec->contestants[i].group == group)
            pair[found++] = i;
    if (swap) {
        size_t first = pair[0];
        pair[0] = pair[1];
        pair[1] = first;
    }
    for (size_t side = 0; side < 2; side++) {
        int r = run_hook(s, "the prepare command", spec->contestants[pair[side]].prepare, ret_go_on,
                         err);
        if (r < 0 || !*ret_go_on)
            return r;
    }
    struct run_spec specs[2] = {make_spec(s, making, pair[0]), make_spec(s, making, pair[1])};
    s->running = pair[0];
    specs[0].on_tick = tick;
    specs[0].tick_context = s;
    const struct run_spec *const spec_of[2] = {&specs[0], &specs[1]};
    struct run_result *const result_of[2] = {&s->results[0], &s->results[1]};
    int r = duet_run(&s->duet, spec_of, result_of, err);
    s->r->start_code =
        s->results[0].start_code ? s->results[0].start_code : s->results[1].start_code;
    if (r < 0)
        return r;
    for (size_t side = 0; side < 2 && *ret_go_on; side++)
        *ret_go_on = keep_run(s, making, pair[side], side, &s->results[side]);
    for (size_t side = 0; side < 2 && r == 0 && *ret_go_on; side++)
        r = run_hook(s, "the conclude command", spec->contestants[pair[side]].conclude, ret_go_on,
                     err);
    return r;
}

static int run_entry(struct sitting *s, const struct making *making, size_t position,
                     bool *ret_go_on, struct error *err)
{
    int r;
    size_t round_number = making->is_warmup ? s->r->warmup_done : s->r->count;
    *ret_go_on = true;
    if (!is_left(s, s->order[position]))
        return 0;
    if (s->spec->duet)
        r = run_duet(s, making, s->order[position], round_number % 2, ret_go_on, err);
    else
        r = run_alone(s, making, s->order[position], position, ret_go_on, err);
    hooks_trim(&s->hooks);
    if (r == 0 && *ret_go_on && s->spec->on_run)
        s->spec->on_run(s->r, s->spec, s->spec->context);
    return r;
}

/* Runs that are not made yet. */
static void make_absent(const struct rounds *r, struct round *round)
{
    round->runs = memory_zalloc(r->contestant_count, sizeof(*round->runs));
    for (size_t i = 0; i < r->contestant_count; i++)
        round->runs[i] = (struct run_record){
            .is_absent = true,
            .values = memory_zalloc(r->event_count + 1, sizeof(*round->runs[i].values))};
}

static size_t count_values(const struct round *round, size_t run_count)
{
    size_t count = 0;
    for (size_t i = 0; i < run_count; i++)
        count += run_counts(&round->runs[i]);
    return count;
}

/* Rounds at the end in which every command failed tell nothing. */
static void drop_empty_rounds(struct rounds *r)
{
    while (r->count && !count_values(&r->items[r->count - 1], r->contestant_count))
        round_done(&r->items[--r->count], r->contestant_count);
}

/* One round.  *ret_whole says that it was finished; then it is in r->items unless it was a
 * warm-up. */
static int run_round(struct sitting *s, bool is_warmup, bool *ret_whole, struct error *err)
{
    struct rounds *r = s->r;
    struct round round = {0};
    if (!is_warmup)
        make_absent(r, &round);
    struct making making = {.round = &round, .is_warmup = is_warmup};
    round_order(s->spec->seed ^ (is_warmup ? WARMUP_SALT : 0),
                is_warmup ? r->warmup_done : s->spec->round_first + s->rounds_begun++, s->order,
                s->order_count);
    layout_turns_choose(&s->layouts, &s->rng, is_warmup ? r->warmup_done : r->count, &round);
    int res = 0;
    bool go_on = true;
    size_t done = 0;
    for (; done < s->order_count && res == 0 && go_on; done += go_on && res == 0)
        res = run_entry(s, &making, done, &go_on, err);
    *ret_whole = res == 0 && go_on;
    /* Of a first round that was stopped, what there is is better than nothing. */
    bool partial = !*ret_whole && res == 0 && !r->count && process_signals_caught() &&
                   count_values(&round, is_warmup ? 0 : r->contestant_count);
    if (!is_warmup && (*ret_whole || partial)) {
        r->is_partial = partial;
        ARRAY_PUSH(r->items, r->count, r->capacity) = round;
    } else if (!is_warmup) {
        r->unfinished_runs = done;
        round_done(&round, r->contestant_count);
    }
    return res;
}

/* Whether one more round is wanted; sets why not. */
static bool wants_more(struct sitting *s)
{
    const struct rounds_spec *spec = s->spec;
    struct rounds *r = s->r;
    uint64_t round_ns = r->count ? r->elapsed_ns / r->count : 0;
    if (!anyone_left(s)) {
        r->end = ROUNDS_FAILURE;
        return false;
    }
    r->end = ROUNDS_DONE;
    size_t whole = layout_has_still_rounds(spec) ? 2 : spec->layout_count;
    if (spec->layout_count && (r->count < 2 * spec->layout_count || r->count % whole != 0))
        return true;
    if (spec->rounds_max && r->count >= spec->rounds_max)
        return false;
    if (spec->time_max_ns && r->count && r->elapsed_ns + round_ns / 2 >= spec->time_max_ns) {
        r->end = ROUNDS_TIME;
        return false;
    }
    if (r->count < spec->rounds_min)
        return true;
    if (spec->is_precise) {
        if (!spec->is_precise(r, spec, spec->context))
            return true;
        r->end = ROUNDS_PRECISE;
        return false;
    }
    return r->elapsed_ns < spec->time_min_ns;
}

static int run_warmups(struct sitting *s, bool *ret_go_on, struct error *err)
{
    *ret_go_on = true;
    while (s->r->warmup_done < s->spec->warmup_count && *ret_go_on) {
        int r = run_round(s, true, ret_go_on, err);
        if (r < 0)
            return r;
        s->r->warmup_done += *ret_go_on;
    }
    return 0;
}

static int run_all(struct sitting *s, struct error *err)
{
    bool go_on = true;
    int r = run_warmups(s, &go_on, err);
    s->start_ns = clock_now_ns();
    while (r == 0 && go_on && !process_signals_caught() && wants_more(s)) {
        r = run_round(s, false, &go_on, err);
        if (go_on || s->r->is_partial)
            s->r->elapsed_ns = clock_now_ns() - s->start_ns;
    }
    if (s->spec->keep_going)
        drop_empty_rounds(s->r);
    return r;
}

/* Each setup and cleanup once, also when several contestants share its text. */
static bool came_before(const struct rounds_spec *spec, size_t index, bool is_setup)
{
    const struct contestant *c = &spec->contestants[index];
    const char *text = is_setup ? c->setup : c->cleanup;
    for (size_t i = 0; i < index; i++) {
        const char *other = is_setup ? spec->contestants[i].setup : spec->contestants[i].cleanup;
        if (other && str_eq(other, text))
            return true;
    }
    return false;
}

static int run_setups(struct sitting *s, bool *ret_go_on, struct error *err)
{
    int r = 0;
    *ret_go_on = true;
    for (size_t i = 0; i < s->spec->contestant_count && r == 0 && *ret_go_on; i++)
        if (s->spec->contestants[i].setup && !came_before(s->spec, i, true))
            r = run_hook(s, "the setup command", s->spec->contestants[i].setup, ret_go_on, err);
    return r;
}

/* Cleanups run whatever came before; the first failure is the one that is told. */
static int run_cleanups(struct sitting *s, struct error *err)
{
    int first = 0;
    for (size_t i = 0; i < s->spec->contestant_count; i++) {
        const char *text = s->spec->contestants[i].cleanup;
        if (!text || came_before(s->spec, i, false))
            continue;
        int r = hooks_run(&s->hooks, text, first ? NULL : err);
        if (r < 0)
            first = first ? first : error_wrap(err, r, "the cleanup command");
        else if (run_failed(&s->hooks.result) && s->r->end != ROUNDS_FAILURE)
            end_with_failure(s, "the cleanup command", text, &s->hooks.result, false);
    }
    return first;
}

static void make_order(struct sitting *s)
{
    const struct rounds_spec *spec = s->spec;
    s->order = memory_zalloc(spec->contestant_count + 1, sizeof(*s->order));
    for (size_t i = 0; i < spec->contestant_count; i++) {
        if (!spec->duet)
            s->order[s->order_count++] = i;
        else if (spec->contestants[i].is_reference)
            s->order[s->order_count++] = spec->contestants[i].group;
    }
}

int rounds_run(const struct rounds_spec *spec, struct rounds *r, struct error *err)
{
    *r = (struct rounds){.contestant_count = spec->contestant_count,
                         .event_count = spec->events->count};
    r->why = memory_zalloc(r->event_count + 1, sizeof(*r->why));
    r->user_only = memory_zalloc(r->event_count + 1, sizeof(*r->user_only));
    r->accounted = memory_zalloc(r->event_count + 1, sizeof(*r->accounted));
    r->states = memory_zalloc(r->contestant_count + 1, sizeof(*r->states));
    CLEANUP(sitting_done) struct sitting s = {.spec = spec, .r = r};
    rng_seed(&s.rng, spec->seed + spec->round_first);
    make_order(&s);
    layout_turns_init(&s.layouts, spec, &s.rng);
    process_signals_catch();
    process_adopt_orphans();
    int res = sitting_open(&s, err);
    bool go_on = false;
    if (res == 0)
        res = run_setups(&s, &go_on, err);
    if (res == 0 && go_on)
        res = run_all(&s, err);
    r->signal = process_signals_caught();
    if (r->signal && r->end != ROUNDS_FAILURE)
        r->end = ROUNDS_SIGNAL;
    if (r->signal)
        process_kill_orphans();
    /* From here on a second signal ends what is still to be done. */
    process_signals_clear();
    if (s.hooks_opened) {
        struct error later = {0};
        int cleaned = run_cleanups(&s, &later);
        if (res == 0 && cleaned < 0) {
            *err = later;
            res = cleaned;
        }
    }
    process_signals_restore();
    return res;
}
