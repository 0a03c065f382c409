/* SPDX-License-Identifier: MIT */
/* What a unit of work costs, in words: see cost.h. */
#include "report/profile/cost.h"
#include "base/memory.h"

#include <math.h>
#include <stdio.h>

void cost_unit_choose(struct cost_unit *unit, double largest, bool is_time, const char *work)
{
    static const struct {
        double below, divisor;
        const char *time, *count;
    } steps[] = {{1e3, 1, "ns", ""},
                 {1e6, 1e3, "µs", "k"},
                 {1e9, 1e6, "ms", "M"},
                 {INFINITY, 1e9, "s", "G"}};
    size_t step = 0;
    largest = fabs(largest);
    while (step + 1 < ARRAY_COUNT(steps) && largest >= steps[step].below)
        step++;
    double scaled = largest / steps[step].divisor;
    unit->divisor = steps[step].divisor;
    unit->decimals = scaled >= 100 ? 1 : scaled >= 10 ? 2 : scaled >= 1 || scaled == 0 ? 3 : 5;
    if (is_time)
        snprintf(unit->text, sizeof(unit->text), "%s%s%.40s", steps[step].time, work ? "/" : "",
                 work ? work : "");
    else
        snprintf(unit->text, sizeof(unit->text), "%s%sevents%s%.40s", steps[step].count,
                 steps[step].count[0] ? " " : "", work ? "/" : "", work ? work : "");
}

/* In the unit; what would be printed as -0.00 is 0. */
static double shown(const struct cost_unit *unit, double value)
{
    value /= unit->divisor;
    return fabs(value) < 0.5 * pow(10, -unit->decimals) ? 0 : value;
}

void strbuf_put_cost(struct strbuf *out, const struct cost_unit *unit, double value)
{
    strbuf_printf(out, "%.*f", unit->decimals, shown(unit, value));
}

void strbuf_put_cost_change(struct strbuf *out, const struct cost_unit *unit, double value)
{
    strbuf_printf(out, "%+.*f", unit->decimals, shown(unit, value));
}

void strbuf_put_attributed(struct strbuf *out, const struct cost_unit *unit,
                           const struct attributed *a)
{
    strbuf_put_cost_change(out, unit, a->change);
    if (isfinite(a->half_width))
        strbuf_printf(out, " ±%.*f", unit->decimals, a->half_width / unit->divisor);
    strbuf_printf(out, " %s", unit->text);
}

void strbuf_put_share(struct strbuf *out, double share)
{
    if (!isfinite(share))
        strbuf_putc(out, '-');
    else
        strbuf_printf(out, "%.*f %%", fabs(share) < 0.095 && fabs(share) >= 0.0005 ? 1 : 0,
                      fabs(share) < 0.0005 ? 0 : 100 * share);
}
