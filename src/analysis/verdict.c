/* SPDX-License-Identifier: MIT */
/* See verdict.h. */
#include "analysis/verdict.h"
#include "analysis/judge.h"
#include "base/measured.h"
#include "base/memory.h"
#include "stats/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double default_interesting = 0.01;
static const double patience_seconds = 600; /* what may be proposed as "more" */
static const double patience_rounds = 1000; /* where it is not known how long one takes */

/* How many decimals a distance needs to be seen. */
static int decimals_for(double distance)
{
    return distance > 0 ? (int)ceil(-log10(distance) - 1e-9) : 0;
}

int verdict_ratio_decimals(double low, double high)
{
    bool exact = high - low < 1e-9 * high;
    int decimals = exact ? 0 : decimals_for(high - low), edge = decimals_for(low - 1);
    decimals = decimals > edge ? decimals : edge;
    int least = low >= 100 ? 0 : low >= 10 ? 1 : 2;
    decimals = decimals > least ? decimals : least;
    return decimals < 9 ? decimals : 9;
}

/* A bound is rounded upwards to two digits, so that it stays true. */
static double round_up(double value)
{
    if (!(value > 0) || !isfinite(value))
        return value;
    double unit = pow(10, floor(log10(value)) - 1);
    return ceil(value / unit - 1e-6) * unit;
}

static void put_measured(char *out, size_t size, double amount, const char *unit)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    strbuf_put_measured(&text, amount, unit);
    snprintf(out, size, "%s", strbuf_text(&text));
}

/* "0.8 %" on the scale of ratios, "12 ms" on that of differences. */
static void put_amount(char *out, size_t size, const struct comparison *c,
                       const struct verdict_options *o, double amount)
{
    if (c->scale == COMPARISON_RATIO)
        snprintf(out, size, amount >= 1 ? "%.0f %%" : "%.2g %%", 100 * amount);
    else
        put_measured(out, size, amount, o->unit);
}

static void put_time(char *out, size_t size, const struct verdict *v)
{
    double s = v->more_seconds;
    if (s <= 0)
        snprintf(out, size, "%.0f more rounds", v->more_rounds);
    else if (s < 120)
        snprintf(out, size, "%.*f s more", s < 9.5 ? 1 : 0, s < 0.1 ? 0.1 : s);
    else if (s < 7200)
        snprintf(out, size, "%.0f min more", s / 60);
    else
        snprintf(out, size, "%.0f h more", s / 3600);
}

/* ", from 1.04× in the first round to 1.52× in the last" */
static void put_movement(struct verdict *v, const struct comparison *c, bool higher,
                         const char *unit)
{
    bool ratio = c->scale == COMPARISON_RATIO;
    double ends[2] = {c->first, c->last};
    char texts[2][48];
    for (int i = 0; i < 2; i++) {
        double turned = higher ? ends[i] : ratio ? 1 / ends[i] : -ends[i];
        if (ratio)
            snprintf(texts[i], sizeof(texts[i]), "%.*f×", turned >= 10 ? 1 : 2, turned);
        else
            put_measured(texts[i], sizeof(texts[i]), turned, unit);
    }
    size_t length = strlen(v->text);
    snprintf(v->text + length, sizeof(v->text) - length,
             ", in all %zu %s: %s in the first, %s in the last", c->base_count,
             plural(c->base_count, "round", "rounds"), texts[0], texts[1]);
}

static const char *amount_word(const struct verdict_options *o, bool higher)
{
    return higher ? "more" : o->facts.is_count ? "fewer" : "less";
}

/* The word for how the new one is, given whether its value is the higher. */
static const char *word(const struct verdict_options *o, bool higher)
{
    if (o->facts.is_speed && o->facts.better != METRIC_NEITHER)
        return higher == (o->facts.better == METRIC_HIGHER) ? "faster" : "slower";
    return amount_word(o, higher);
}

static enum verdict_kind kind_of(const struct verdict_options *o, bool higher)
{
    if (o->facts.better == METRIC_NEITHER)
        return VERDICT_DIFFERENT;
    return higher == (o->facts.better == METRIC_HIGHER) ? VERDICT_BETTER : VERDICT_WORSE;
}

static void tell_difference(const struct comparison *c, const struct verdict_options *o,
                            struct verdict *v)
{
    bool ratio = c->scale == COMPARISON_RATIO, higher = c->estimate > (ratio ? 1 : 0);
    v->kind = kind_of(o, higher);
    double estimate = c->estimate, low = c->low, high = c->high;
    if (!higher) { /* turned round: 0.75 [0.73, 0.76] becomes 1.33 [1.31, 1.37] */
        estimate = ratio ? 1 / c->estimate : -c->estimate;
        low = ratio ? 1 / c->high : -c->high;
        high = ratio ? 1 / c->low : -c->low;
    }
    if (ratio) {
        int decimals = verdict_ratio_decimals(low, high);
        snprintf(v->text, sizeof(v->text), "%.*f× %s [%.*f, %.*f]", decimals, estimate,
                 word(o, higher), decimals, low, decimals, high);
    } else {
        char texts[3][48];
        put_measured(texts[0], sizeof(texts[0]), estimate, o->unit);
        put_measured(texts[1], sizeof(texts[1]), low, o->unit);
        put_measured(texts[2], sizeof(texts[2]), high, o->unit);
        snprintf(v->text, sizeof(v->text), "%s %s [%s, %s]", texts[0], amount_word(o, higher),
                 texts[1], texts[2]);
    }
    if (c->moves)
        put_movement(v, c, higher, o->unit);
}

/* "31×" or "12 ms": how far one round is from no difference. */
static void put_round(char *out, size_t size, const struct comparison *c, double value,
                      const char *unit)
{
    if (c->scale == COMPARISON_RATIO) {
        double turned = value > 1 ? value : 1 / value;
        int near = decimals_for(turned - 1) + 1, least = turned >= 10 ? 0 : 2;
        int decimals = near < least ? least : near < 6 ? near : 6;
        double unit_of = pow(10, decimals); /* downwards, so that it stays true */
        snprintf(out, size, "%.*f×", decimals, floor(turned * unit_of * (1 + 1e-9)) / unit_of);
    } else {
        put_measured(out, size, fabs(value), unit);
    }
}

/* What the rounds say by themselves, where they are few: ", in all 4 rounds by 31× or more". */
static void add_rounds(const struct comparison *c, const struct verdict_options *o,
                       const char *before, struct verdict *v)
{
    double same = c->scale == COMPARISON_RATIO ? 1 : 0;
    bool higher = c->least > same, agree = higher || c->most < same;
    char nearest[48];
    size_t length = strlen(v->text);
    bool known = isfinite(c->least) && isfinite(c->most) && c->least <= c->most &&
                 (c->scale == COMPARISON_DIFFERENCE || c->least > 0);
    if (!agree || !known || c->base_count < 2)
        return;
    put_round(nearest, sizeof(nearest), c, higher ? c->least : c->most, o->unit);
    if (c->base_count == 2)
        snprintf(v->text + length, sizeof(v->text) - length, "%sin both rounds by %s or more",
                 before, nearest);
    else
        snprintf(v->text + length, sizeof(v->text) - length, "%sin all %zu %s by %s or more",
                 before, c->base_count, plural(c->base_count, "round", "rounds"), nearest);
}

/* The same of rounds that are too few to be sure: "; slower in all 4 rounds by 31× or more". */
static void add_direction(const struct comparison *c, const struct verdict_options *o,
                          struct verdict *v)
{
    char before[24];
    bool ratio = c->scale == COMPARISON_RATIO, higher = c->estimate > (ratio ? 1 : 0);
    snprintf(before, sizeof(before), "; %s ", ratio ? word(o, higher) : amount_word(o, higher));
    add_rounds(c, o, before, v);
}

static void tell_too_few(const struct comparison *c, const struct verdict_options *o,
                         struct verdict *v)
{
    size_t least = c->paired ? COMPARISON_ROUNDS_MIN : COMPARISON_VALUES_MIN;
    size_t count = c->base_count < c->new_count ? c->base_count : c->new_count;
    v->kind = VERDICT_CANNOT_TELL;
    v->more_rounds = (double)(least - count);
    v->more_seconds = v->more_rounds * o->round_seconds;
    char more[48] = "";
    if (v->more_seconds > 0) {
        char time[32];
        put_time(time, sizeof(time), v);
        snprintf(more, sizeof(more), ", about %s", time);
    }
    snprintf(v->text, sizeof(v->text),
             "cannot tell: %zu %s%s too few for a 95 %% interval; %zu would do%s", count,
             c->paired ? "round" : "value", count == 1 ? " is" : "s are", least, more);
    add_direction(c, o, v);
}

/* 0.01 -> 0.02 -> 0.05 -> 0.1 … */
static double next_step(double step)
{
    double unit = pow(10, floor(log10(step) + 1e-9));
    double digit = step / unit;
    return unit * (digit < 1.5 ? 2 : digit < 3.5 ? 5 : 10);
}

static bool is_patient(const struct verdict_options *o, const struct verdict *v)
{
    return o->round_seconds > 0 ? v->more_seconds <= patience_seconds
                                : v->more_rounds <= patience_rounds;
}

/* What more measuring would show: what is interesting, or as near to it as patience allows. */
static void plan_more(const struct comparison *c, const struct verdict_options *o, double target,
                      struct verdict *v)
{
    double half = plan_half_width(c);
    size_t count = c->base_count < c->new_count ? c->base_count : c->new_count;
    if (target > half / 1.4) /* the interval is narrow enough, but lies to one side */
        target = half / 2;
    for (;; target = next_step(target)) {
        v->target = target;
        v->more_rounds = fmax(1, plan_rounds_for_width(c, target) - (double)count);
        v->more_seconds = v->more_rounds * o->round_seconds;
        if (is_patient(o, v) || next_step(target) > half / 1.4)
            return;
    }
}

/* Beyond this, the bound says nothing about the programs. */
static const double noisy_bound = 0.5;
/* From this share of disturbed runs on, it is worth a word. */
static const double disturbed_share = 0.1;
/* What more rounds must be able to show to be worth proposing then. */
static const double noisy_target = 0.1;

/* Few rounds say too little of their own noise to tell how many it takes. */
static void plan_enough(const struct comparison *c, const struct verdict_options *o,
                        struct verdict *v, char *out, size_t size)
{
    char time[32];
    v->more_rounds = (double)(PLAN_STOP_ROUNDS_MIN - c->base_count);
    v->more_seconds = v->more_rounds * o->round_seconds;
    if (!is_patient(o, v))
        return;
    put_time(time, sizeof(time), v);
    snprintf(out, size, "; %d %s would tell much more%s%s", PLAN_STOP_ROUNDS_MIN,
             plural(PLAN_STOP_ROUNDS_MIN, "round", "rounds"), v->more_seconds > 0 ? ", about " : "",
             v->more_seconds > 0 ? time : "");
}

static bool is_realistic(const struct verdict_options *o, const struct verdict *v)
{
    return v->target <= noisy_target && is_patient(o, v);
}

/* Runs that agree this well are not noisy: a wide interval is for want of rounds. */
static const double agreeing = 0.1;

static void tell_noisy(const struct comparison *c, const struct verdict_options *o, double target,
                       struct verdict *v)
{
    char vary[80] = "", busy[80] = "", more[128] = "", what[48] = "too noisy to tell";
    v->kind = VERDICT_CANNOT_TELL;
    v->too_noisy = !(c->too_few && c->paired && o->apart > 0 && o->apart < agreeing);
    if (!v->too_noisy)
        snprintf(what, sizeof(what), "%zu %s are too few to tell", c->base_count,
                 plural(c->base_count, "round", "rounds"));
    else if (o->apart > 0)
        snprintf(vary, sizeof(vary), ": runs of the same command differ by up to %.*f %%",
                 o->apart < 0.1 ? 1 : 0, 100 * o->apart);
    if ((double)o->disturbed_count > disturbed_share * (double)o->run_count)
        snprintf(busy, sizeof(busy), "%s other work used the machine in %zu of %zu",
                 *vary ? ", and" : ":", o->disturbed_count, o->run_count);
    if (c->too_few && c->paired)
        plan_enough(c, o, v, more, sizeof(more));
    else
        plan_more(c, o, target, v);
    if (!(c->too_few && c->paired) && is_realistic(o, v)) {
        char time[32], show[48];
        put_time(time, sizeof(time), v);
        put_amount(show, sizeof(show), c, o, round_up(v->target));
        snprintf(more, sizeof(more), "; about %s would show %s", time, show);
    }
    snprintf(v->text, sizeof(v->text), "%s%s%s%s", what, vary, busy, more);
}

static void tell_cannot(const struct comparison *c, const struct verdict_options *o, double target,
                        struct verdict *v)
{
    char bound[48], show[48], time[32];
    v->kind = VERDICT_CANNOT_TELL;
    put_amount(bound, sizeof(bound), c, o, round_up(v->bound));
    snprintf(v->text, sizeof(v->text),
             "cannot tell: differences below %s are invisible in this run", bound);
    size_t length = strlen(v->text);
    if (c->too_few && c->paired) {
        plan_enough(c, o, v, v->text + length, sizeof(v->text) - length);
        return;
    }
    if (!(target > 0))
        return;
    plan_more(c, o, target, v);
    if (!is_patient(o, v))
        return;
    put_amount(show, sizeof(show), c, o, round_up(v->target));
    put_time(time, sizeof(time), v);
    snprintf(v->text + length, sizeof(v->text) - length, "; about %s would show %s", time, show);
}

/* "mean +90 % [60, 124]" */
static void put_mean(char *out, size_t size, const struct judge_tails *t)
{
    const struct comparison *m = &t->mean;
    if (m->scale == COMPARISON_RATIO && isfinite(m->low) && isfinite(m->high))
        snprintf(out, size, ": mean %+.3g %% [%+.3g, %+.3g]", 100 * (m->estimate - 1),
                 100 * (m->low - 1), 100 * (m->high - 1));
}

/* "1 run in 10 is 10× slower: mean +90 % [60, 124]" */
static void put_tails(char *out, size_t size, const struct verdict_options *o)
{
    const struct judge_tails *t = o->tails;
    char slow[96] = "", mean[80] = "";
    put_mean(mean, sizeof(mean), t);
    if (o->facts.is_speed)
        slow_runs_text(&t->slow, slow, sizeof(slow));
    if (!*slow)
        snprintf(slow, sizeof(slow), "the %s differs", tails_look_name(t->strongest));
    snprintf(out, size, "%s%s", slow, mean);
}

/* The centre is the same for all that can be told, the rest is not. */
static void tell_tails(const struct comparison *c, const struct verdict_options *o, double limit,
                       struct verdict *v)
{
    char within[64] = "", bound[48];
    const struct judge_tails *t = o->tails;
    char tails[180];
    double same = t->mean.scale == COMPARISON_RATIO ? 1 : 0;
    bool mean_moved = isfinite(t->mean.low) && (t->mean.low > same || t->mean.high < same);
    v->kind = mean_moved ? kind_of(o, t->mean.estimate > same) : VERDICT_DIFFERENT;
    put_tails(tails, sizeof(tails), o);
    if (v->bound > limit) {
        put_amount(bound, sizeof(bound), c, o, round_up(v->bound));
        snprintf(within, sizeof(within), " to within %s", bound);
    }
    snprintf(v->text, sizeof(v->text), "same median%s, but %s", within, tails);
}

/* The centre differs, and the rest by more than that: a median of +0.2 % must not hide a mean of
 * +90 %. */
static void add_tails(const struct verdict_options *o, struct verdict *v)
{
    char tails[180];
    size_t length = strlen(v->text);
    put_tails(tails, sizeof(tails), o);
    snprintf(v->text + length, sizeof(v->text) - length, " in the median; %s", tails);
}

/* The largest difference of the mean that its interval leaves room for; 0 when it is not known. */
static double mean_bound(const struct verdict_options *o)
{
    if (!o->tails || o->tails->mean.scale != COMPARISON_RATIO)
        return 0;
    const struct comparison *m = &o->tails->mean;
    return isfinite(m->low) && isfinite(m->high) ? fmax(m->high - 1, 1 - m->low) : 0;
}

/* Nothing differs; the mean may be less sure than the median. */
static void tell_same(const struct comparison *c, const struct verdict_options *o, double limit,
                      struct verdict *v)
{
    char bound[48], mean[48];
    double of_mean = c->scale == COMPARISON_RATIO ? mean_bound(o) : 0;
    v->kind = VERDICT_SAME;
    if (of_mean > limit) {
        put_amount(bound, sizeof(bound), c, o, round_up(v->bound));
        put_amount(mean, sizeof(mean), c, o, round_up(of_mean));
        snprintf(v->text, sizeof(v->text),
                 "no difference of the median larger than %s, of the mean larger than %s", bound,
                 mean);
        return;
    }
    v->bound = fmax(v->bound, of_mean);
    put_amount(bound, sizeof(bound), c, o, round_up(v->bound));
    if (v->bound > 0)
        snprintf(v->text, sizeof(v->text), "no difference larger than %s", bound);
    else
        snprintf(v->text, sizeof(v->text), "no difference");
}

/* What few rounds say by themselves, and what the verdict rests on. */
static void add_doubts(const struct comparison *c, const struct verdict_options *o,
                       struct verdict *v)
{
    if (c->too_few && !c->moves)
        add_rounds(c, o, ", ", v);
    size_t length = strlen(v->text);
    if (c->assumes_normal)
        length += (size_t)snprintf(v->text + length, sizeof(v->text) - length,
                                   ", assuming log-normal noise");
    if (c->running && o->disturbed_count && length < sizeof(v->text))
        snprintf(v->text + length, sizeof(v->text) - length,
                 "; other work used the machine in %zu of %zu runs", o->disturbed_count,
                 o->run_count);
}

/* What was not measured in the same rounds has not seen the same load, and no interval knows. */
static void add_load(const struct verdict_options *o, struct verdict *v)
{
    size_t length = strlen(v->text);
    snprintf(v->text + length, sizeof(v->text) - length,
             "; not measured together, and other work used the machine in %zu of %zu runs, which "
             "may be the reason",
             o->disturbed_count, o->run_count);
}

void verdict_judge(const struct comparison *c, const struct verdict_options *o,
                   struct verdict *ret_verdict)
{
    bool ratio = c->scale == COMPARISON_RATIO;
    double same = ratio ? 1 : 0;
    double interesting = o->interesting > 0 ? o->interesting : default_interesting;
    double limit = ratio ? interesting : interesting * fabs(c->base_median);
    struct verdict v = {.bound = fmax(c->high - same, same - c->low)};
    if (!comparison_has_interval(c))
        tell_too_few(c, o, &v);
    else if (comparison_excludes_same(c)) {
        tell_difference(c, o, &v);
        if (o->tails && o->tails->beyond)
            add_tails(o, &v);
    } else if (o->tails && o->tails->differs)
        tell_tails(c, o, limit, &v);
    else if (v.bound <= limit)
        tell_same(c, o, limit, &v);
    else if (ratio && v.bound >= noisy_bound)
        tell_noisy(c, o, limit, &v);
    else
        tell_cannot(c, o, limit, &v);
    bool repeats = c->high - c->low <= 1e-9 * fabs(c->high); /* exact counts have no noise */
    if (verdict_is_difference(&v) && (c->too_few || c->assumes_normal) && !repeats)
        add_doubts(c, o, &v);
    else if (v.kind == VERDICT_CANNOT_TELL && c->too_few && comparison_has_interval(c))
        add_direction(c, o, &v);
    if (verdict_is_difference(&v) && !c->paired && o->facts.is_speed &&
        (double)o->disturbed_count > disturbed_share * (double)o->run_count)
        add_load(o, &v);
    *ret_verdict = v;
}

const char *verdict_name(enum verdict_kind kind)
{
    static const char *const names[] = {[VERDICT_BETTER] = "better",
                                        [VERDICT_WORSE] = "worse",
                                        [VERDICT_DIFFERENT] = "different",
                                        [VERDICT_SAME] = "same",
                                        [VERDICT_CANNOT_TELL] = "cannot tell"};
    return names[kind];
}

bool verdict_is_difference(const struct verdict *verdict)
{
    return verdict->kind != VERDICT_SAME && verdict->kind != VERDICT_CANNOT_TELL;
}

const char *verdict_change_name(const struct comparison *c, enum metric_better better)
{
    double same = c->scale == COMPARISON_RATIO ? 1 : 0;
    if (c->low <= same && c->high >= same)
        return "no change";
    if (better == METRIC_NEITHER)
        return "change";
    return (c->estimate > same) == (better == METRIC_LOWER) ? "regression" : "improvement";
}

enum gate_result verdict_gate(const struct comparison *c, enum metric_better better,
                              double max_regression)
{
    if (!comparison_has_interval(c))
        return GATE_INCONCLUSIVE;
    bool ratio = c->scale == COMPARISON_RATIO;
    /* The harm as an interval of logs or of differences, upwards is worse. */
    double low = ratio ? log(c->low) : c->low, high = ratio ? log(c->high) : c->high;
    double limit = ratio ? log1p(max_regression) : max_regression * fabs(c->base_median);
    if (better == METRIC_HIGHER) {
        double turned = -low;
        low = -high;
        high = turned;
    }
    if (better == METRIC_NEITHER) { /* how far from 0, either way */
        double far = fmax(fabs(low), fabs(high));
        low = low > 0 ? low : high < 0 ? -high : 0;
        high = far;
    }
    if (high <= limit)
        return GATE_PASS;
    return low > limit ? GATE_REGRESSION : GATE_INCONCLUSIVE;
}
