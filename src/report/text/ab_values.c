/* SPDX-License-Identifier: MIT */
/* Values, spreads, ratios and verdicts in words, as the tables of `assay ab` share them: see ab.h.
 */
#include "report/text/ab.h"
#include "report/text/stat.h"

#include <math.h>
#include <stdio.h>

void strbuf_put_deviation(struct strbuf *out, const char *unit, const struct summary *sum)
{
    /* With most values the same, the median distance is 0 and says too little. */
    double spread = sum->mad > 0 ? sum->mad : sum->stddev;
    if (sum->count < 2) {
        strbuf_puts(out, "one value");
    } else if (sum->median != 0 && spread / fabs(sum->median) < 10) {
        double percent = 100 * spread / fabs(sum->median);
        strbuf_printf(out, "± %.*f %%", percent < 9.95 ? 1 : 0, percent);
    } else {
        strbuf_puts(out, "± ");
        strbuf_put_measured(out, spread, unit);
    }
}

/* Decimals by which the ends of an interval can be told apart, three at least. */
static int ratio_decimals(const struct comparison *c)
{
    double width = c->high - c->low;
    int decimals = isfinite(width) && width > 0 ? (int)ceil(-log10(width)) + 1 : 3;
    return decimals < 3 ? 3 : decimals > 6 ? 6 : decimals;
}

void strbuf_put_ratio(struct strbuf *out, const char *unit, const struct comparison *c)
{
    bool has_interval = comparison_shows_interval(c);
    if (c->scale == COMPARISON_RATIO) {
        int decimals = ratio_decimals(c);
        strbuf_printf(out, "%.*f", decimals, c->estimate);
        if (has_interval)
            strbuf_printf(out, " [%.*f, %.*f]", decimals, c->low, decimals, c->high);
        return;
    }
    strbuf_puts(out, c->estimate >= 0 ? "+" : "");
    strbuf_put_measured(out, c->estimate, unit);
    if (!has_interval)
        return;
    strbuf_puts(out, c->low >= 0 ? " [+" : " [");
    strbuf_put_measured(out, c->low, unit);
    strbuf_puts(out, c->high >= 0 ? ", +" : ", ");
    strbuf_put_measured(out, c->high, unit);
    strbuf_putc(out, ']');
}

void strbuf_put_verdict(struct strbuf *out, const struct judge_row *judged)
{
    strbuf_puts(out, judged->verdict.text);
    if (verdict_is_difference(&judged->verdict) && !judged->changed)
        strbuf_puts(out, ", but with this many metrics it could be chance");
}

bool report_ab_is_shown(const struct ab_view *v, size_t metric)
{
    const struct outcome *o = v->outcome;
    return v->all || metric == o->headline || str_eq(o->data->metrics[metric].kind, "metric") ||
           outcome_differs(o, metric);
}

/* The largest difference that the intervals leave room for, in words; nothing where that is more
 * than the values themselves. */
static void put_bound(struct strbuf *out, const struct ab_view *v, size_t metric)
{
    double bound = 0, whole = 0;
    bool ratio = true;
    for (size_t i = 0; i < v->outcome->data->cell_count; i++) {
        const struct judge_row *j = outcome_cell(v->outcome, metric, i)->judged;
        if (!j)
            continue;
        bound = fmax(bound, j->verdict.bound);
        ratio &= j->comparison.scale == COMPARISON_RATIO;
        whole = fmax(whole, fabs(j->comparison.base_median));
    }
    if (!isfinite(bound) || bound == 0 || bound > (ratio ? 1 : whole))
        return;
    strbuf_puts(out, " (± ");
    if (ratio && bound > 10)
        strbuf_puts(out, "> 1000 %"); /* a few rounds leave room for numbers of forty digits */
    else if (ratio)
        strbuf_printf(out, bound < 0.0995 ? "%.2g %%" : "%.0f %%", 100 * bound);
    else
        strbuf_put_measured(out, bound, v->outcome->data->metrics[metric].unit);
    strbuf_putc(out, ')');
}

void report_ab_folded(struct strbuf *out, const struct ab_view *v, bool same)
{
    const struct outcome *o = v->outcome;
    bool first = true;
    for (size_t i = 0; i < o->data->metric_count; i++) {
        bool any = false;
        for (size_t j = 0; j < o->data->cell_count; j++)
            any |= outcome_cell(o, i, j)->judged != NULL;
        if (report_ab_is_shown(v, i) || !any || outcome_is_same(o, i) != same)
            continue;
        strbuf_puts(out, !first ? ", " : same ? "no difference: " : "cannot tell: ");
        strbuf_puts(out, o->data->metrics[i].name);
        put_bound(out, v, i);
        first = false;
    }
}
