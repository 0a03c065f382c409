/* SPDX-License-Identifier: MIT */
/* What `assay ab` shows while it measures, and when it has measured enough: see ab.h. */
#include "base/clock.h"
#include "base/memory.h"
#include "cmd/ab.h"
#include "report/text/ab.h"
#include "stats/plan.h"

#include <math.h>
#include <stdio.h>

#define ESTIMATE_EVERY_NS (500 * NS_PER_MS)
#define TICK_EVERY_NS NS_PER_S

/* The headline of the finished rounds; false when there is no metric of that name. */
static bool judge_headline(const struct ab_watch *w, const struct rounds *r,
                           const struct rounds_spec *spec, struct dataset *d,
                           struct outcome *outcome)
{
    outcome_start(d, w->participants, r->contestant_count);
    d->experiment.adaptive = true; /* whoever sees it may stop */
    d->round_seconds = r->count ? (double)r->elapsed_ns / 1e9 / (double)r->count : 0;
    outcome_add_rounds(d, r, spec->events, w->metric);
    outcome_set_headline(d, w->metric);
    if (d->metric_count)
        outcome_judge(outcome, d, w->participants, w->metric);
    return d->metric_count;
}

/* The comparison that is least sure: the one that decides when to stop. */
static const struct comparison *widest_comparison(const struct outcome *o)
{
    const struct comparison *widest = NULL;
    for (size_t i = 0; i < o->data->cell_count; i++) {
        const struct judge_row *j = outcome_cell(o, 0, i)->judged;
        if (j && (!widest || plan_half_width(&j->comparison) > plan_half_width(widest)))
            widest = &j->comparison;
    }
    return widest;
}

static void describe(struct ab_watch *w, const struct outcome *o)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    const char *unit = o->data->metrics[0].unit;
    const struct comparison *widest = widest_comparison(o);
    if (widest) {
        strbuf_printf(&text, "%s ", w->metric);
        strbuf_put_ratio(&text, unit, widest);
    } else if (outcome_cell(o, 0, 0)->summary.count) {
        double half = outcome_half_width(o, 0);
        strbuf_printf(&text, "%s ", w->metric);
        strbuf_put_measured(&text, outcome_cell(o, 0, 0)->summary.median, unit);
        if (isfinite(half))
            strbuf_printf(&text, " ± %.1f %%", 100 * half);
    }
    snprintf(w->estimate, sizeof(w->estimate), "%s", strbuf_text(&text));
    w->rounds_needed = 0;
    if (w->precision > 0 && widest) {
        double rounds = plan_rounds_for_width(widest, w->precision);
        w->rounds_needed = isfinite(rounds) && rounds < 1e9 ? rounds : 0;
    }
}

static void renew_estimate(struct ab_watch *w, const struct rounds *r,
                           const struct rounds_spec *spec)
{
    uint64_t now_ns = clock_now_ns();
    if (!w->progress.enabled || !r->count || now_ns - w->estimated_ns < ESTIMATE_EVERY_NS)
        return;
    CLEANUP(dataset_done) struct dataset d = {0};
    CLEANUP(outcome_done) struct outcome outcome = {0};
    if (judge_headline(w, r, spec, &d, &outcome))
        describe(w, &outcome);
    w->estimated_ns = now_ns;
}

/* Nanoseconds that are still to come; 0 when that cannot be told. */
static double left_ns(const struct ab_watch *w, const struct rounds *r,
                      const struct rounds_spec *spec)
{
    if (!r->count)
        return 0;
    double round_ns = (double)r->elapsed_ns / (double)r->count;
    double elapsed_ns = (double)r->elapsed_ns, count = (double)r->count;
    double left =
        fmax(round_ns * ((double)spec->rounds_min - count), (double)spec->time_min_ns - elapsed_ns);
    if (w->precision > 0)
        left = w->rounds_needed > 0 ? round_ns * (w->rounds_needed - count) : INFINITY;
    if (spec->time_max_ns)
        left = fmin(left, (double)spec->time_max_ns - elapsed_ns);
    if (spec->rounds_max)
        left = fmin(left, round_ns * ((double)spec->rounds_max - count));
    return isfinite(left) && left > 0 ? left : 0;
}

static void show(struct ab_watch *w, const struct rounds *r, const struct rounds_spec *spec,
                 const char *running)
{
    char left[48] = "", time[32];
    if (r->warmup_done < spec->warmup_count) {
        progress_show(&w->progress, "warming up: round %zu of %llu%s", r->warmup_done + 1,
                      (unsigned long long)spec->warmup_count, running);
        return;
    }
    double ns = left_ns(w, r, spec);
    if (ns > 0)
        snprintf(left, sizeof(left), ", about %s left", format_duration(ns, time, sizeof(time)));
    progress_show(&w->progress, "round %zu%s%s%s%s", r->count + 1, left, *w->estimate ? ": " : "",
                  w->estimate, running);
}

void ab_watch_tick(const struct rounds *r, const struct rounds_spec *spec, size_t contestant,
                   void *context)
{
    struct ab_watch *w = context;
    uint64_t now_ns = clock_now_ns();
    /* Seldom: a terminal that draws competes with what is measured. */
    if (!w->progress.enabled || now_ns - w->ticked_ns < TICK_EVERY_NS ||
        now_ns - w->run_ns < TICK_EVERY_NS)
        return;
    w->ticked_ns = now_ns;
    CLEANUP(strbuf_done) struct strbuf running = {0};
    strbuf_printf(&running, " (%.0f s: ", (double)(now_ns - w->run_ns) / 1e9);
    const char *name = w->participants[contestant].name;
    strbuf_put_safe(&running, name, strlen(name), 40);
    strbuf_putc(&running, ')');
    show(w, r, spec, strbuf_text(&running));
}

void ab_watch_run(const struct rounds *r, const struct rounds_spec *spec, void *context)
{
    struct ab_watch *w = context;
    w->run_ns = clock_now_ns();
    renew_estimate(w, r, spec);
    show(w, r, spec, "");
}

bool ab_watch_is_precise(const struct rounds *r, const struct rounds_spec *spec, void *context)
{
    struct ab_watch *w = context;
    if (r->count < w->next_check)
        return false;
    /* Looking costs little, but not nothing, when there are thousands of short rounds. */
    w->next_check = r->count + 1 + r->count / 20;
    CLEANUP(dataset_done) struct dataset d = {0};
    CLEANUP(outcome_done) struct outcome outcome = {0};
    if (!judge_headline(w, r, spec, &d, &outcome))
        return true; /* more rounds would not bring it */
    return outcome_is_precise(&outcome, 0, w->precision);
}
