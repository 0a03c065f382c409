/* SPDX-License-Identifier: MIT */
/*
 * What a variant does whatever else is varied: eight system calls a message, no copy on receive,
 * not one zero-copy send granted.  Such a figure is the same in every cell of the variant, and says
 * more about why it is fast or slow than its speed does.
 */
#include "analysis/answers_internal.h"
#include "base/measured.h"
#include "base/memory.h"
#include "base/strings.h"

#include <math.h>
#include <stdio.h>

/* Values count as the same within this share, or, for shares themselves, within one percent point.
 */
#define SAME_SHARE 0.03
#define SAME_POINTS 1.0

struct range {
    double low, high;
    size_t value_count, cell_count;
};

static void widen(struct range *r, double value)
{
    r->low = r->value_count ? fmin(r->low, value) : value;
    r->high = r->value_count ? fmax(r->high, value) : value;
    r->value_count++;
}

/* The cells of this level: their medians, or, of a share, every single value. */
static struct range range_of(const struct question *q, size_t metric, const char *level)
{
    struct range r = {.low = NAN, .high = NAN};
    bool every = str_eq(q->d->metrics[metric].unit, "%");
    for (size_t c = 0; c < q->d->cell_count; c++) {
        struct dataset_column column = dataset_column(q->d, metric, c);
        if (!column.count || !str_eq(q->d->cells[c].levels[q->variant], level))
            continue;
        r.cell_count++;
        if (!every)
            widen(&r, dataset_median(q->d, metric, c));
        for (size_t i = 0; every && i < column.count; i++)
            widen(&r, column.values[i]);
    }
    return r;
}

static bool is_constant(const struct range *r, const char *unit)
{
    double width = r->high - r->low, size = fmax(fabs(r->low), fabs(r->high));
    return r->cell_count >= 2 && width <= (str_eq(unit, "%") ? SAME_POINTS : SAME_SHARE * size);
}

static void put_range(struct strbuf *out, const struct range *r, const char *unit)
{
    double size = fmax(fabs(r->low), fabs(r->high));
    if (str_eq(unit, "ns") || str_eq(unit, "bytes") || size < 0.1 || size >= 1000) {
        bool same = r->high - r->low <= SAME_SHARE * fabs(r->high);
        strbuf_put_measured(out, same ? (r->low + r->high) / 2 : r->low, unit);
        if (!same) {
            strbuf_puts(out, " to ");
            strbuf_put_measured(out, r->high, unit);
        }
        return;
    }
    char text[48];
    if (r->high - r->low <= SAME_SHARE * fabs(r->high))
        snprintf(text, sizeof(text), "%.3g", (r->low + r->high) / 2);
    else
        snprintf(text, sizeof(text), "%.2g to %.2g", r->low, r->high);
    strbuf_puts(out, text);
    strbuf_put_unit(out, str_eq(text, "1"), unit);
}

/* "8 calls for send8; 1 call for sendmsg, copy-send": levels of the same value stand together. */
static void tell_constant(struct question *q, size_t metric)
{
    const struct axis *axis = &q->axes[q->variant];
    const struct store_metric *m = &q->d->metrics[metric];
    CLEANUP(memory_freep) struct range *ranges = memory_zalloc(axis->count, sizeof(*ranges));
    CLEANUP(memory_freep) bool *told = memory_zalloc(axis->count, sizeof(*told));
    size_t constant = 0, zero = 0, reported = 0;
    for (size_t k = 0; k < axis->count; k++) {
        ranges[k] = range_of(q, metric, axis->levels[k]);
        reported += ranges[k].value_count > 0;
        told[k] = !ranges[k].value_count || !is_constant(&ranges[k], m->unit);
        constant += !told[k];
        zero += !told[k] && ranges[k].low == 0 && ranges[k].high == 0;
    }
    /* What never happens to anybody is no news. */
    if (!constant || 2 * constant < reported || zero == axis->count)
        return;
    CLEANUP(strbuf_done) struct strbuf text = {0};
    size_t metric_kept = q->metric;
    for (size_t k = 0; k < axis->count; k++) {
        if (told[k])
            continue;
        strbuf_puts(&text, text.length ? "; " : "");
        put_range(&text, &ranges[k], m->unit);
        const char *before = " for ";
        for (size_t i = k; i < axis->count; i++) {
            bool same =
                !told[i] &&
                fabs(ranges[i].high - ranges[k].high) <= SAME_SHARE * fabs(ranges[k].high) &&
                fabs(ranges[i].low - ranges[k].low) <= SAME_SHARE * fabs(ranges[k].low);
            if (!same)
                continue;
            strbuf_printf(&text, "%s%s", before, axis->levels[i]);
            before = ", ";
            told[i] = true;
        }
    }
    q->metric = metric;
    answer_add(q, "constant", "", true, "%s", strbuf_text(&text));
    q->metric = metric_kept;
}

/* Figures that the program reported itself: the machine's own are never quite constant. */
void answer_constants(struct question *q)
{
    size_t position = 0;
    if (q->variant == DATASET_NONE || dataset_headline(q->d, &position) != q->metric)
        return; /* once, with the first headline */
    for (size_t i = 0; i < q->d->metric_count; i++)
        if (str_eq(q->d->metrics[i].kind, "metric"))
            tell_constant(q, i);
}
