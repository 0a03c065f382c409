/* SPDX-License-Identifier: MIT */
/* The common ground of all answers: axes, contexts, comparisons of cells. */
#include "analysis/answers.h"
#include "analysis/answers_internal.h"
#include "base/measured.h"
#include "base/memory.h"
#include "base/strings.h"
#include "stats/plan.h"
#include "stats/summary.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#define ROUNDS_IN_REACH 1000.0 /* more are no advice */

struct answer *answer_add(struct question *q, const char *kind, const char *where, bool certain,
                          const char *format, ...)
{
    struct answers *a = q->a;
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    struct answer *answer = &ARRAY_PUSH(a->items, a->count, a->capacity);
    *answer = (struct answer){.kind = kind,
                              .metric = q->d->metrics[q->metric].name,
                              .where = arena_strdup(&a->arena, where),
                              .text = arena_strdup(&a->arena, text),
                              .certain = certain};
    return answer;
}

void answer_number(struct answer *answer, const char *name, double value)
{
    if (answer->number_count < ANSWER_NUMBERS_MAX)
        answer->numbers[answer->number_count++] = (struct answer_number){name, value};
}

char *where_without(struct question *q, size_t cell, size_t factor, size_t other)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    for (size_t f = 0; f < q->d->factor_count; f++)
        if (f != factor && f != other && q->axes[f].count > 1)
            strbuf_printf(&text, "%s%s=%s", text.length ? " " : "", q->d->factors[f],
                          q->d->cells[cell].levels[f]);
    return arena_strdup(&q->a->arena, strbuf_text(&text));
}

void each_context(struct question *q, size_t factor, size_t other,
                  void (*fn)(struct question *q, size_t cell, void *context), void *context)
{
    const struct dataset *d = q->d;
    for (size_t c = 0; c < d->cell_count; c++) {
        bool is_first = true;
        for (size_t e = 0; is_first && e < c; e++) {
            bool same = true;
            for (size_t f = 0; same && f < d->factor_count; f++)
                same = f == factor || f == other ||
                       str_eq(d->cells[e].levels[f], d->cells[c].levels[f]);
            is_first = !same;
        }
        if (is_first)
            fn(q, c, context);
    }
}

const char *why_undecided(struct question *q, const struct comparison *c)
{
    char text[96];
    size_t count = c->base_count < c->new_count ? c->base_count : c->new_count;
    double size = c->scale == COMPARISON_RATIO ? expm1(fabs(log(c->estimate))) : fabs(c->estimate);
    double rounds = plan_rounds_for_change(c, size, 0.9);
    if (!comparison_has_interval(c))
        snprintf(text, sizeof(text), "too few rounds: %zu of at least %d", count,
                 COMPARISON_ROUNDS_MIN);
    else if (rounds <= (double)count) /* it should have been seen: an unlucky round or two */
        snprintf(text, sizeof(text), "n = %zu; a few more rounds would decide it", count);
    else if (rounds <= ROUNDS_IN_REACH)
        snprintf(text, sizeof(text), "n = %zu; about %.0f rounds would decide it", count, rounds);
    else
        snprintf(text, sizeof(text), "n = %zu", count);
    return arena_strdup(&q->a->arena, text);
}

const char *value_text(struct question *q, double value)
{
    const char *unit = q->d->metrics[q->metric].unit;
    char text[64];
    CLEANUP(strbuf_done) struct strbuf measured = {0};
    if (str_eq(unit, "ns"))
        return arena_strdup(&q->a->arena, format_duration(value, text, sizeof(text)));
    if (str_eq(unit, "bytes")) {
        format_bytes(value, text, sizeof(text));
        return arena_strdup(&q->a->arena, text);
    }
    bool is_grouped = fabs(value) >= 999.5 && fabs(value) < 1e15;
    bool is_large = is_grouped && fabs(value) >= 9999.5;
    if ((value != 0 && fabs(value) < 0.1) || (is_large && measured_scales(unit))) {
        strbuf_put_measured(&measured, value, unit);
        return arena_strdup(&q->a->arena, strbuf_text(&measured));
    }
    if (is_grouped)
        format_thousands((uint64_t)rint(fabs(value)), text, sizeof(text));
    else
        snprintf(text, sizeof(text), "%.4g", value);
    strbuf_printf(&measured, "%s%s%s%s", is_grouped && value < 0 ? "-" : "", text, *unit ? " " : "",
                  unit);
    return arena_strdup(&q->a->arena, strbuf_text(&measured));
}

const char *level_text(struct question *q, double level)
{
    char text[48];
    if (level >= 999.5 && level < 1e15) {
        double unit = pow(10, floor(log10(level)) - 2); /* three digits tell enough */
        format_thousands((uint64_t)(rint(level / unit) * unit), text, sizeof(text));
    } else {
        snprintf(text, sizeof(text), "%.3g", level);
    }
    return arena_strdup(&q->a->arena, text);
}

static void sort_axis(struct axis *axis)
{
    for (size_t i = 1; i < axis->count; i++)
        for (size_t k = i; k > 0 && axis->numbers[k - 1] > axis->numbers[k]; k--) {
            double number = axis->numbers[k];
            const char *level = axis->levels[k];
            axis->numbers[k] = axis->numbers[k - 1];
            axis->levels[k] = axis->levels[k - 1];
            axis->numbers[k - 1] = number;
            axis->levels[k - 1] = level;
        }
}

static void make_axis(struct question *q, size_t factor)
{
    const struct dataset *d = q->d;
    struct axis *axis = &q->axes[factor];
    axis->factor = factor;
    axis->levels = arena_alloc(&q->a->arena, (d->cell_count + 1) * sizeof(*axis->levels));
    axis->numbers = arena_alloc(&q->a->arena, (d->cell_count + 1) * sizeof(*axis->numbers));
    bool numeric = true;
    for (size_t c = 0; c < d->cell_count; c++) {
        size_t k = 0;
        while (k < axis->count && !str_eq(axis->levels[k], d->cells[c].levels[factor]))
            k++;
        if (k < axis->count)
            continue;
        axis->levels[k] = d->cells[c].levels[factor];
        numeric &= dataset_level_number(axis->levels[k], &axis->numbers[k]);
        axis->count++;
    }
    if (numeric)
        sort_axis(axis);
    else
        axis->numbers = NULL;
}

static int find_variant(struct question *q, const char *variant, struct error *err)
{
    const struct dataset *d = q->d;
    q->variant = DATASET_NONE;
    if (variant) {
        q->variant = dataset_factor(d, variant);
        if (q->variant == DATASET_NONE)
            return error_set(err, -ENOENT, "the experiment has no factor '%s'", variant);
        return 0;
    }
    for (size_t f = 0; f < d->factor_count && q->variant == DATASET_NONE; f++) {
        CLEANUP(memory_freep) char *head = memory_printf("%s=", d->factors[f]);
        const char *found = strstr(d->experiment.baseline, head);
        if (found && (found == d->experiment.baseline || found[-1] == ' '))
            q->variant = f;
    }
    for (size_t f = 0; f < d->factor_count && q->variant == DATASET_NONE; f++)
        if (!q->axes[f].numbers && q->axes[f].count > 1 && dataset_has_rivals(d, f))
            q->variant = f;
    return 0;
}

static void answer_all(struct question *q, const char *work)
{
    if (q->variant != DATASET_NONE && q->axes[q->variant].count > 1) {
        answer_best(q);
        answer_crossovers(q);
    }
    answer_saturation(q);
    answer_surprises(q);
    answer_constants(q);
    answer_efficiency(q, work);
}

int answers_find(struct answers *a, const struct dataset *d, const struct spec *spec,
                 const char *variant, const char *work, struct error *err)
{
    *a = (struct answers){.d = d};
    if (!work && spec)
        work = spec->work;
    struct question q = {.a = a, .d = d};
    q.axes = memory_zalloc(d->factor_count + 1, sizeof(*q.axes));
    for (size_t f = 0; f < d->factor_count; f++)
        make_axis(&q, f);
    int r = find_variant(&q, variant, err);
    size_t position = 0, asked = 0;
    while (r == 0 && (q.metric = dataset_headline(d, &position)) != DATASET_NONE) {
        q.better = d->metrics[q.metric].facts.better;
        find_leads(&q);
    }
    judge_leads(&q);
    position = 0;
    while (r == 0 && (q.metric = dataset_headline(d, &position)) != DATASET_NONE) {
        q.better = d->metrics[q.metric].facts.better;
        answer_all(&q, work);
        asked++;
    }
    if (r == 0 && asked == 0)
        r = error_set(err, -ENODATA, "experiment %lld has no values of its headline metrics",
                      (long long)d->experiment.id);
    if (r == 0 && spec)
        answer_notes(&q, spec);
    free(q.axes);
    free(q.leads);
    return r;
}

void answers_done(struct answers *a)
{
    free(a->items);
    arena_done(&a->arena);
    *a = (struct answers){0};
}
