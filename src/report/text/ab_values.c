/* SPDX-License-Identifier: MIT */
/* Values, spreads, ratios and verdicts in words, as the tables of `assay ab` share them: see ab.h.
 */
#include "report/text/ab.h"
#include "report/text/stat.h"

#include <math.h>
#include <stdio.h>

/* Decimals that give a number four significant digits. */
static int four_digits(double value)
{
    double magnitude = fabs(value);
    return magnitude >= 999.95 ? 0 : magnitude >= 99.995 ? 1 : magnitude >= 9.9995 ? 2 : 3;
}

static void put_time(struct strbuf *out, double ns)
{
    static const struct {
        double below_ns, unit_ns;
        const char *name;
    } units[] = {{999.95, 1, "ns"}, {999.95e3, 1e3, "µs"}, {999.95e6, 1e6, "ms"}};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (fabs(ns) < units[i].below_ns) {
            double value = ns / units[i].unit_ns;
            strbuf_printf(out, "%.*f %s", ns == 0 ? 0 : four_digits(value), value, units[i].name);
            return;
        }
    strbuf_put_grouped(out, ns / 1e9, four_digits(ns / 1e9), 0);
    strbuf_puts(out, " s");
}

static void put_number(struct strbuf *out, double value)
{
    if (fabs(value) >= 1e15 || (value != 0 && fabs(value) < 1e-3))
        strbuf_printf(out, "%.4g", value);
    else if (value == floor(value) || fabs(value) >= 9999.5)
        strbuf_put_grouped(out, value, 0, 0);
    else
        strbuf_put_grouped(out, value, four_digits(value), 0);
}

void strbuf_put_value(struct strbuf *out, const struct series *s, double value)
{
    char text[32];
    switch (s->kind) {
    case SERIES_TIME:
        put_time(out, value);
        break;
    case SERIES_BYTES:
        strbuf_puts(out, value < 0 ? "-" : "");
        strbuf_puts(out, format_bytes(fabs(value), text, sizeof(text)));
        break;
    case SERIES_COUNT:
    case SERIES_VALUE:
        put_number(out, value);
        if (*s->unit)
            strbuf_printf(out, " %s", s->unit);
        break;
    }
}

void strbuf_put_deviation(struct strbuf *out, const struct series *s, const struct summary *sum)
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
        strbuf_put_value(out, s, spread);
    }
}

/* Decimals by which the ends of an interval can be told apart, three at least. */
static int ratio_decimals(const struct comparison *c)
{
    double width = c->high - c->low;
    int decimals = isfinite(width) && width > 0 ? (int)ceil(-log10(width)) + 1 : 3;
    return decimals < 3 ? 3 : decimals > 6 ? 6 : decimals;
}

void strbuf_put_ratio(struct strbuf *out, const struct series *s, const struct comparison *c)
{
    bool has_interval = isfinite(c->low) && isfinite(c->high) && !c->too_few;
    if (c->scale == COMPARISON_RATIO) {
        int decimals = ratio_decimals(c);
        strbuf_printf(out, "%.*f", decimals, c->estimate);
        if (has_interval)
            strbuf_printf(out, " [%.*f, %.*f]", decimals, c->low, decimals, c->high);
        return;
    }
    strbuf_puts(out, c->estimate >= 0 ? "+" : "");
    strbuf_put_value(out, s, c->estimate);
    if (!has_interval)
        return;
    strbuf_puts(out, c->low >= 0 ? " [+" : " [");
    strbuf_put_value(out, s, c->low);
    strbuf_puts(out, c->high >= 0 ? ", +" : ", ");
    strbuf_put_value(out, s, c->high);
    strbuf_putc(out, ']');
}

/* On the scale of differences the amounts have the series' unit. */
static void put_difference(struct strbuf *out, const struct series *s, const struct verdict *v,
                           const struct comparison *c)
{
    switch (v->kind) {
    case VERDICT_BETTER:
    case VERDICT_WORSE:
    case VERDICT_DIFFERENT:
        strbuf_put_value(out, s, fabs(c->estimate));
        strbuf_puts(out, c->estimate > 0 ? " more" : " less");
        break;
    case VERDICT_SAME:
        strbuf_puts(out, "no difference");
        if (v->bound > 0) {
            strbuf_puts(out, " larger than ");
            strbuf_put_value(out, s, v->bound);
        }
        break;
    case VERDICT_CANNOT_TELL:
        strbuf_puts(out, "cannot tell: differences below ");
        strbuf_put_value(out, s, v->bound);
        strbuf_puts(out, " are invisible in this run");
        break;
    }
}

void strbuf_put_verdict(struct strbuf *out, const struct series *s, const struct outcome_cell *cell)
{
    const struct verdict *v = &cell->verdict;
    if (cell->comparison.scale == COMPARISON_DIFFERENCE && !cell->comparison.too_few)
        put_difference(out, s, v, &cell->comparison);
    else
        strbuf_puts(out, v->text);
    bool differs = v->kind != VERDICT_SAME && v->kind != VERDICT_CANNOT_TELL;
    if (differs && !cell->stands)
        strbuf_puts(out, ", but one of so many metrics may look so by chance");
}

bool report_ab_is_shown(const struct ab_view *v, size_t series)
{
    const struct outcome *o = v->outcome;
    return v->all || series == o->headline || o->set->items[series].source == SERIES_PROGRAM ||
           outcome_differs(o, series);
}

/* The largest difference that the intervals leave room for, in words. */
static void put_bound(struct strbuf *out, const struct ab_view *v, size_t series)
{
    double bound = 0;
    bool ratio = true;
    for (size_t i = 0; i < v->outcome->set->contestant_count; i++) {
        const struct outcome_cell *cell = outcome_cell(v->outcome, series, i);
        if (!cell->is_compared)
            continue;
        bound = fmax(bound, cell->verdict.bound);
        ratio &= cell->comparison.scale == COMPARISON_RATIO;
    }
    if (!isfinite(bound) || bound == 0)
        return;
    strbuf_puts(out, " (± ");
    if (ratio)
        strbuf_printf(out, bound < 0.0995 ? "%.2g %%" : "%.0f %%", 100 * bound);
    else
        strbuf_put_value(out, &v->outcome->set->items[series], bound);
    strbuf_putc(out, ')');
}

void report_ab_folded(struct strbuf *out, const struct ab_view *v, bool same)
{
    const struct outcome *o = v->outcome;
    bool first = true;
    for (size_t i = 0; i < o->set->count; i++) {
        bool any = false;
        for (size_t j = 0; j < o->set->contestant_count; j++)
            any |= outcome_cell(o, i, j)->is_compared;
        if (report_ab_is_shown(v, i) || !any || outcome_is_same(o, i) != same)
            continue;
        strbuf_puts(out, !first ? ", " : same ? "no difference: " : "cannot tell: ");
        strbuf_puts(out, o->set->items[i].name);
        put_bound(out, v, i);
        first = false;
    }
}
