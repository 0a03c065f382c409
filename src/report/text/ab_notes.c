/* SPDX-License-Identifier: MIT */
/* What the reader of a comparison must know before believing it: see ab.h. */
#include "base/clock.h"
#include "base/memory.h"
#include "counters/accounting.h"
#include "report/text/ab.h"

#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

/* Shorter than this, starting the process is most of what elapsed. */
#define SHORT_RUN_NS (2 * NS_PER_MS)
/* From this share of disturbed runs on, it is worth a word. */
#define DISTURBED_SHARE 0.1

void report_note(struct doubt_list *notes, const char *id, const char *format, ...)
{
    va_list args;
    char *text = NULL;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        text = memory_strdup("");
    va_end(args);
    ARRAY_PUSH(notes->items, notes->count, notes->capacity) =
        (struct doubt){.id = id, .text = text};
}

/* One sentence for all events that are missing for the same reason. */
static void missing_events(struct doubt_list *notes, const struct ab_view *v)
{
    const struct rounds *r = v->rounds;
    for (size_t i = 0; i < r->event_count; i++) {
        bool seen = !r->why[i];
        for (size_t j = 0; j < i && !seen; j++)
            seen = r->why[j] && str_eq(r->why[i], r->why[j]);
        if (seen)
            continue;
        CLEANUP(strbuf_done) struct strbuf names = {0};
        for (size_t j = i; j < r->event_count; j++)
            if (r->why[j] && str_eq(r->why[i], r->why[j]))
                strbuf_printf(&names, "%s%s", names.length ? ", " : "",
                              v->spec->events->items[j].name);
        report_note(notes, "not-supported", "not supported: %s: %s.", strbuf_text(&names),
                    r->why[i]);
    }
}

static void partial_events(struct doubt_list *notes, const struct ab_view *v)
{
    CLEANUP(strbuf_done) struct strbuf names = {0};
    for (size_t i = 0; i < v->rounds->event_count; i++)
        if (v->rounds->user_only[i])
            strbuf_printf(&names, "%s%s", names.length ? ", " : "", v->spec->events->items[i].name);
    if (names.length)
        report_note(notes, "user-only",
                    "%s: counted in user mode only; to count the kernel, too, run as root or set "
                    "kernel.perf_event_paranoid=1.",
                    strbuf_text(&names));
}

static void accounted_events(struct doubt_list *notes, const struct ab_view *v)
{
    CLEANUP(strbuf_done) struct strbuf names = {0}, text = {0};
    for (size_t i = 0; i < v->rounds->event_count; i++)
        if (v->rounds->accounted[i])
            strbuf_printf(&names, "%s%s", names.length ? ", " : "", v->spec->events->items[i].name);
    if (!names.length)
        return;
    accounting_explain(&text, strbuf_text(&names));
    report_note(notes, "accounted", "%s.", strbuf_text(&text));
}

/* Opening an event is no proof that it counts: virtual machines offer counters that stand still. */
static void standing_counters(struct doubt_list *notes, const struct ab_view *v)
{
    const struct rounds *r = v->rounds;
    for (size_t i = 0; i < r->event_count; i++) {
        const struct event *e = &v->spec->events->items[i];
        uint64_t sum = 0, running_ns = 0;
        if (r->why[i] || e->attr.type != PERF_TYPE_HARDWARE ||
            e->attr.config > PERF_COUNT_HW_INSTRUCTIONS)
            continue;
        for (size_t j = 0; j < r->count; j++)
            for (size_t k = 0; k < r->contestant_count; k++) {
                sum += r->items[j].runs[k].values[i].raw;
                running_ns += r->items[j].runs[k].values[i].running_ns;
            }
        if (!sum && running_ns > NS_PER_MS)
            report_note(
                notes, "standing-counter",
                "%s: the counter ran but stayed at 0: this machine's PMU does not count it.",
                e->name);
    }
}

/* Events that took turns on the counters are estimates. */
static void scaled_events(struct doubt_list *notes, const struct ab_view *v)
{
    const struct rounds *r = v->rounds;
    CLEANUP(strbuf_done) struct strbuf names = {0};
    for (size_t i = 0; i < r->event_count; i++) {
        bool scaled = false;
        for (size_t j = 0; j < r->count; j++)
            for (size_t k = 0; k < r->contestant_count; k++) {
                const struct counter_value *value = &r->items[j].runs[k].values[i];
                scaled |= (double)value->running_ns < 0.999 * (double)value->enabled_ns;
            }
        if (scaled && !r->why[i])
            strbuf_printf(&names, "%s%s", names.length ? ", " : "", v->spec->events->items[i].name);
    }
    if (names.length)
        report_note(notes, "scaled",
                    "%s: shared a counter with other events, and is scaled; counting fewer events "
                    "at a time (-e) is exact.",
                    strbuf_text(&names));
}

static void ending(struct doubt_list *notes, const struct ab_view *v)
{
    const struct rounds *r = v->rounds;
    char time[32];
    if (r->end == ROUNDS_SIGNAL && r->is_partial)
        report_note(notes, "interrupted",
                    "interrupted by signal %d (%s) in the first round; what had finished is shown.",
                    r->signal, strsignal(r->signal));
    else if (r->end == ROUNDS_SIGNAL)
        report_note(notes, "interrupted",
                    "interrupted by signal %d (%s); finished rounds are kept: %zu; runs dropped "
                    "from the unfinished round: %zu.",
                    r->signal, strsignal(r->signal), r->count, r->unfinished_runs);
    if (r->end == ROUNDS_SIGNAL && r->stopped_ns)
        report_note(notes, "stopped-run", "the run of '%s' was stopped after %s.",
                    v->outcome->participants[r->last_started].name,
                    format_duration((double)r->stopped_ns, time, sizeof(time)));
    if (!r->failed_runs)
        return;
    CLEANUP(strbuf_done) struct strbuf names = {0};
    for (size_t i = 0; i < r->contestant_count; i++)
        if (r->states[i].counted_failures)
            strbuf_printf(&names, "%s%s (%zu of %zu)", names.length ? ", " : "",
                          v->outcome->participants[i].name, r->states[i].counted_failures,
                          r->count);
    report_note(notes, "failed-runs",
                "%zu of %zu runs failed but are counted (--ignore-failure): %s.", r->failed_runs,
                r->count * r->contestant_count, strbuf_text(&names));
}

/* "exit code 3: cannot open x" */
static void put_end(struct strbuf *out, const struct rounds_failure *f)
{
    strbuf_puts(out, strbuf_text(&f->end));
    size_t start = out->length;
    strbuf_puts(out, ": ");
    failure_last_words(f, out);
    if (out->length == start + 2)
        out->data[out->length = start] = '\0';
}

void strbuf_put_failure(struct strbuf *out, const struct ab_view *v, size_t participant)
{
    const struct contestant_state *state = v->rounds ? &v->rounds->states[participant] : NULL;
    if (!state || !state->failure.what)
        return;
    strbuf_puts(out, "failed: ");
    put_end(out, &state->failure);
}

/* Who failed, and how often. */
static void failures(struct doubt_list *notes, const struct ab_view *v)
{
    const struct rounds *r = v->rounds;
    for (size_t i = 0; i < r->contestant_count; i++) {
        const struct contestant_state *state = &r->states[i];
        if (!state->failure.what)
            continue;
        CLEANUP(strbuf_done) struct strbuf end = {0};
        put_end(&end, &state->failure);
        const char *name = v->outcome->participants[i].name;
        if (state->failed_count == state->run_count)
            report_note(notes, "failed", "'%s' failed in every run (%zu): %s.%s", name,
                        state->run_count, strbuf_text(&end),
                        v->spec->contestants[i].is_reference && r->contestant_count > 1
                            ? " Another command takes its place as the reference."
                            : "");
        else
            report_note(notes, "failed-sometimes",
                        "'%s' failed in %zu of %zu runs (%.0f %%): %s; those runs are left out, so "
                        "what is said of it holds for the others%s.",
                        name, state->failed_count, state->run_count,
                        100.0 * (double)state->failed_count / (double)state->run_count,
                        strbuf_text(&end),
                        state->is_out ? "; it is not run any more after 5 failures in a row" : "");
    }
}

static void shell(struct doubt_list *notes, const struct ab_view *v)
{
    char time[32];
    if (!v->shell)
        return;
    CLEANUP(strbuf_done) struct strbuf safe = {0};
    strbuf_put_safe(&safe, v->shell, strlen(v->shell), 60);
    if (v->shell_startup_ns)
        report_note(notes, "shell",
                    "all commands ran in %s -c; starting it takes about %s of every run, which is "
                    "included in all values.",
                    strbuf_text(&safe),
                    format_duration((double)v->shell_startup_ns, time, sizeof(time)));
    else
        report_note(notes, "shell",
                    "all commands ran in %s -c; starting it is included in all values.",
                    strbuf_text(&safe));
}

static void disturbances(struct doubt_list *notes, const struct ab_view *v)
{
    const struct rounds *r = v->rounds;
    size_t disturbed = 0, left = 0, total = 0;
    uint64_t steal_ns = 0, stalled = 0;
    const char *reasons[8] = {0};
    size_t counts[8] = {0}, most = 0;
    for (size_t i = 0; i < r->count; i++)
        for (size_t j = 0; j < r->contestant_count; j++) {
            const struct run_record *run = &r->items[i].runs[j];
            if (run->is_absent)
                continue;
            total++;
            const char *why = disturbance_reason(&run->disturbance, run->wall_ns);
            disturbed += why != NULL;
            for (size_t at = 0; why && at < ARRAY_COUNT(reasons); at++)
                if (!reasons[at] || reasons[at] == why) {
                    reasons[at] = why;
                    counts[at]++;
                    most = counts[at] > counts[most] ? at : most;
                    break;
                }
            left += run->left_behind;
            steal_ns += run->disturbance.steal_ns;
            stalled += run->disturbance.stalled_ns > 0;
        }
    if (total && (double)disturbed >= DISTURBED_SHARE * (double)total)
        report_note(notes, "disturbed",
                    "%zu of %zu %s disturbed (%s%s); they are counted, and --json marks "
                    "each. 'assay doctor' shows how noisy this machine is.",
                    disturbed, total, plural(total, "run was", "runs were"),
                    counts[most] < disturbed ? "mostly: " : "", reasons[most]);
    else if (stalled)
        report_note(notes, "stalled", "assay was suspended during %zu %s.", (size_t)stalled,
                    plural((size_t)stalled, "run", "runs"));
    if (steal_ns > r->elapsed_ns / 50 && steal_ns > NS_PER_S / 10)
        report_note(notes, "steal",
                    "the host took %.1f s of CPU time during the measurement (steal).",
                    (double)steal_ns / 1e9);
    if (left)
        report_note(notes, "left-behind",
                    "%zu of %zu runs left processes behind; those in the command's own process "
                    "group were killed.",
                    left, total);
}

static void metrics(struct doubt_list *notes, const struct ab_view *v)
{
    const struct rounds *r = v->rounds;
    const struct metric_refusals *refused = &r->refused_metrics;
    CLEANUP(strbuf_done) struct strbuf lines = {0};
    for (size_t i = 0; i < refused->count; i++)
        strbuf_printf(&lines, "%s'%s': %s", i ? "; " : "", refused->items[i].line,
                      refused->items[i].why);
    if (refused->line_count)
        report_note(notes, "metric-lines", "%zu %s on ASSAY_METRICS_FD could not be used: %s.",
                    refused->line_count, plural(refused->line_count, "line", "lines"),
                    strbuf_text(&lines));
    if (r->truncated_metrics)
        report_note(
            notes, "metrics-lost", "%zu %s wrote more than %d bytes of metrics; the rest is lost.",
            r->truncated_metrics, plural(r->truncated_metrics, "run", "runs"), METRICS_BYTES_MAX);
}

/* What the values themselves show. */
static void values(struct doubt_list *notes, const struct ab_view *v)
{
    const struct outcome *o = v->outcome;
    bool autocorrelated = false, bound = false;
    for (size_t i = 0; i < o->data->metric_count; i++)
        for (size_t j = 0; j < o->data->cell_count; j++) {
            const struct outcome_cell *cell = outcome_cell(o, i, j);
            autocorrelated |=
                i == o->headline && cell->judged && cell->judged->comparison.autocorrelated;
            bound |= cell->summary.count && dataset_is_bound(o->data, i, j);
        }
    if (autocorrelated)
        report_note(
            notes, "autocorrelated",
            "rounds depend on the rounds before them; the intervals are widened accordingly.");
    if (bound)
        report_note(notes, "rss-bound",
                    "peak-rss: a program that needs less memory than assay shows assay's own peak; "
                    "that is an upper bound and is not compared.");
    size_t wall = dataset_metric(o->data, "wall");
    if (wall == DATASET_NONE || !v->rounds)
        return;
    for (size_t j = 0; j < o->data->cell_count; j++) {
        const struct outcome_cell *cell = outcome_cell(o, wall, j);
        if (cell->summary.count && cell->summary.median < (double)SHORT_RUN_NS) {
            report_note(
                notes, "short",
                "runs under 2 ms are mostly process startup; let the program repeat its work.");
            return;
        }
    }
}

/* What helps where more rounds do not. */
static void noise(struct doubt_list *notes, const struct ab_view *v)
{
    const struct outcome *o = v->outcome;
    bool noisy = false;
    for (size_t i = 0; o->headline != DATASET_NONE && i < o->data->cell_count; i++) {
        const struct judge_row *j = outcome_cell(o, o->headline, i)->judged;
        noisy |= j && j->verdict.too_noisy;
    }
    if (noisy)
        report_note(notes, "noisy",
                    "what helps on a noisy machine: CPU time as the headline (--metric cpu), both "
                    "commands at once (--duet), exact counts (assay stat --sim), or a quieter "
                    "machine.");
}

void strbuf_put_layouts(struct strbuf *out, const char *name, const struct comparison *c,
                        const struct layout_spread *s)
{
    strbuf_printf(
        out,
        "over %zu layouts %s takes %+.1f %% [%+.1f, %+.1f]; one layout alone says between "
        "%+.1f and %+.1f %%.",
        s->count, name, 100 * (c->estimate - 1), 100 * (c->low - 1), 100 * (c->high - 1),
        100 * (s->low - 1), 100 * (s->high - 1));
    if (isfinite(s->share) && s->is_noise)
        strbuf_puts(out, " Noise alone may explain that variation.");
    else if (isfinite(s->share))
        strbuf_printf(out, " Layout is %.0f %% of that variation, noise the rest.", 100 * s->share);
}

static void layouts(struct doubt_list *notes, const struct ab_view *v)
{
    const struct outcome *o = v->outcome;
    for (size_t i = 0; v->layouts && i < o->data->cell_count; i++) {
        const struct judge_row *judged = outcome_cell(o, o->headline, i)->judged;
        if (!judged || !v->layouts[i].count || judged->comparison.scale != COMPARISON_RATIO)
            continue;
        CLEANUP(strbuf_done) struct strbuf name = {0}, text = {0};
        strbuf_put_ab_name(&name, o->participants[i].name);
        strbuf_put_layouts(&text, strbuf_text(&name), &judged->comparison, &v->layouts[i]);
        report_note(notes, "layouts", "%s", strbuf_text(&text));
    }
    if (v->layouts && v->rounds->cannot_be_still)
        report_note(notes, "layouts",
                    "this system does not let assay keep addresses as they are, so how much of the "
                    "variation is layout cannot be told.");
}

void report_ab_notes(struct doubt_list *notes, const struct ab_view *v)
{
    const struct outcome *o = v->outcome;
    layouts(notes, v);
    if (v->rounds) {
        ending(notes, v);
        failures(notes, v);
        shell(notes, v);
        if (v->rounds->duet_shares_core)
            report_note(notes, "duet-core",
                        "both CPUs of the duet are threads of one core and slow each other down; "
                        "ratios are right, single times are not.");
        metrics(notes, v);
        disturbances(notes, v);
    }
    values(notes, v);
    noise(notes, v);
    if (!v->rounds && o->data->apart)
        report_note(notes, "unpaired",
                    "hyperfine runs one command after the other: a drift between them looks like a "
                    "difference. 'assay ab' interleaves them.");
    if (v->rounds) {
        standing_counters(notes, v);
        scaled_events(notes, v);
        missing_events(notes, v);
        partial_events(notes, v);
        accounted_events(notes, v);
    }
}
