/* SPDX-License-Identifier: MIT */
/* Parts of the report of a bisect: see bisect_internal.h. */
#include "analysis/judge.h"
#include "base/memory.h"
#include "report/text/ab.h"
#include "report/text/bisect_internal.h"

#include <math.h>
#include <stdio.h>

void bisect_metrics_init(struct bisect_metrics *m, const struct bisect *b, size_t step)
{
    const struct bisect_table *table = bisect_table(b, step);
    struct dataset *d = table ? (struct dataset *)&table->data : &m->none;
    *m = (struct bisect_metrics){0};
    if (!table)
        dataset_start(d, "");
    size_t headline = dataset_metric(d, b->settings.metric);
    if (headline != DATASET_NONE)
        d->metrics[headline].facts.better = b->better;
    dataset_settle(d);
    outcome_set_headline(d, b->settings.metric);
    outcome_judge(&m->outcome, d, NULL, b->settings.metric);
}

void bisect_metrics_done(struct bisect_metrics *m)
{
    outcome_done(&m->outcome);
    dataset_done(&m->none);
}

const char *bisect_unit(const struct bisect *b)
{
    return b->unit ? b->unit : "";
}

bool bisect_is_range(const struct bisection_change *c)
{
    return c->hi != c->lo + 1;
}

static void put_signed(struct strbuf *out, double value, int decimals)
{
    double least = 0.5 * pow(10, -decimals);
    strbuf_puts(out, fabs(value) < least ? "" : value < 0 ? "−" : "+");
    strbuf_printf(out, "%.*f", decimals, fabs(value));
}

void strbuf_put_change(struct strbuf *out, const struct comparison *c, const char *unit)
{
    if (c->scale == COMPARISON_DIFFERENCE) {
        strbuf_put_ratio(out, unit, c);
        return;
    }
    double percent = 100 * (c->estimate - 1), low = 100 * (c->low - 1), high = 100 * (c->high - 1);
    double width = high - low;
    int decimals = width > 0 ? (int)ceil(-log10(width)) + 1 : 3;
    decimals = decimals < 1 ? 1 : decimals > 4 ? 4 : decimals;
    put_signed(out, percent, decimals);
    strbuf_puts(out, " %");
    if (!isfinite(width))
        return;
    strbuf_puts(out, " [");
    put_signed(out, low, decimals);
    strbuf_puts(out, ", ");
    put_signed(out, high, decimals);
    strbuf_puts(out, "]");
}

void bisect_put_reproduce(struct strbuf *out, const struct bisect *b, size_t lo, size_t hi)
{
    const struct bisect_settings *s = &b->settings;
    char good[16], bad[16];
    snprintf(good, sizeof(good), "%.12s", b->commits[lo].hash);
    snprintf(bad, sizeof(bad), "%.12s", b->commits[hi].hash);
    bool of_bench = *s->bench;
    const char *argv[24] = {"assay", "bisect", "--good", good, "--bad", bad};
    size_t count = 6;
    const struct {
        const char *option, *value;
    } more[] = {{"--build", s->build},
                {"--bench", s->bench},
                {"--run", of_bench ? s->program : s->run},
                {"--metric", of_bench ? "" : s->metric},
                {"--better", of_bench ? "" : s->better},
                {"--cpus", s->cpus},
                {"--event", s->events}};
    if (*s->exact)
        argv[count++] = str_eq(s->exact, "user") ? "--exact=user" : "--exact";
    for (size_t i = 0; i < ARRAY_COUNT(more); i++)
        if (*more[i].value) {
            argv[count++] = more[i].option;
            argv[count++] = more[i].value;
        }
    argv[count] = NULL;
    strbuf_put_command(out, (char *const *)argv);
}

void bisect_put_verdict(struct strbuf *out, const struct bisect *b)
{
    const struct bisection *s = &b->search;
    const struct bisection_step *ends = bisection_ends(s);
    const char *unit = bisect_unit(b);
    switch (s->verdict) {
    case BISECTION_NO_CHANGE:
        strbuf_printf(out, "No change of %s by %.3g %% or more was found", b->settings.metric,
                      100 * s->options.min_change);
        break;
    case BISECTION_BAD_END:
        strbuf_printf(out, "%.12s (", b->commits[s->lo].hash);
        strbuf_put_safe(out, b->commits[s->lo].subject, strlen(b->commits[s->lo].subject), 200);
        strbuf_puts(out, ") cannot be built, but a search needs both of its ends.\n");
        return;
    case BISECTION_CANNOT_TELL:
        strbuf_printf(out, "Cannot tell %s: %s is too noisy for %zu %s. ",
                      s->options.all ? "whether a commit changed it" : "which commit it is",
                      b->settings.metric, s->options.rounds_max,
                      plural(s->options.rounds_max, "round", "rounds"));
        if (s->lo == 0 && s->hi == s->count - 1)
            strbuf_puts(out, "No commit could be ruled out");
        else
            strbuf_printf(out, "It is one of the %zu commits after %.12s up to %.12s",
                          s->hi - s->lo, b->commits[s->lo].hash, b->commits[s->hi].hash);
        break;
    case BISECTION_FOUND:
    case BISECTION_SEARCHING:
        return;
    }
    if (ends) {
        strbuf_puts(out, "; bad to good: ");
        strbuf_put_change(out, &ends->whole, unit);
    }
    strbuf_puts(out, s->verdict == BISECTION_CANNOT_TELL
                         ? ". More rounds (--max-rounds), --cpus and a quieter machine help.\n"
                         : ".\n");
}
