/* SPDX-License-Identifier: MIT */
/* Rivals: which is best in each cell, and at what size one overtakes another. */
#include "analysis/answers_internal.h"
#include "analysis/judge.h"
#include "base/memory.h"
#include "base/strings.h"
#include "fits/crossover.h"
#include "stats/family.h"

#include <math.h>
#include <stdio.h>

/* Pairs of more variants than VARIANTS_MAX are not looked at one by one; of more than FEW_VARIANTS
 * not everything is told. */
enum { VARIANTS_MAX = 32, FEW_VARIANTS = 4 };

static bool is_better(const struct question *q, double a, double b)
{
    return q->better == METRIC_HIGHER ? a > b : a < b;
}

struct tally {
    size_t *wins; /* of each variant */
    size_t cells, undecided;
    size_t too_few; /* of the undecided: cells with fewer rounds than it takes */
};

/* DATASET_NONE for none. */
static struct lead find_lead(const struct question *q, size_t cell)
{
    const struct axis *axis = &q->axes[q->variant];
    struct lead l = {.metric = q->metric,
                     .cell = cell,
                     .best = DATASET_NONE,
                     .second = DATASET_NONE,
                     .best_median = NAN,
                     .second_median = NAN};
    for (size_t k = 0; k < axis->count; k++) {
        size_t c = dataset_cell_with(q->d, cell, q->variant, axis->levels[k]);
        double median = c == DATASET_NONE ? NAN : dataset_median(q->d, q->metric, c);
        if (isnan(median))
            continue;
        if (l.best == DATASET_NONE || is_better(q, median, l.best_median)) {
            l.second = l.best;
            l.second_median = l.best_median;
            l.best = c;
            l.best_median = median;
            l.best_level = k;
        } else if (l.second == DATASET_NONE || is_better(q, median, l.second_median)) {
            l.second = c;
            l.second_median = median;
        }
    }
    return l;
}

/* A value can have kilobytes; a sentence has room for its beginning. */
static const char *name_text(struct question *q, const char *name)
{
    enum { NAME_COLUMNS = 60 };
    if (str_columns(name) <= NAME_COLUMNS)
        return name;
    CLEANUP(memory_freep)
    char *text = memory_printf("%.*s…", (int)str_column_bytes(name, NAME_COLUMNS), name);
    return arena_strdup(&q->a->arena, text);
}

static void add_lead(struct question *q, size_t cell, void *context)
{
    struct lead lead = find_lead(q, cell);
    (void)context;
    if (lead.second == DATASET_NONE)
        return;
    lead.row = (struct judge_row){
        .sides = {q->d, q->d, q->metric, q->metric, lead.second, lead.best}, .headline = true};
    ARRAY_PUSH(q->leads, q->lead_count, q->lead_capacity) = lead;
}

void find_leads(struct question *q)
{
    if (q->better != METRIC_NEITHER && q->variant != DATASET_NONE)
        each_context(q, q->variant, q->variant, add_lead, NULL);
}

void judge_leads(struct question *q)
{
    CLEANUP(memory_freep)
    struct judge_row **rows = memory_zalloc(q->lead_count + 1, sizeof(*rows));
    for (size_t i = 0; i < q->lead_count; i++)
        rows[i] = &q->leads[i].row;
    judge_rows(rows, q->lead_count);
}

static size_t rivals_of(const struct question *q)
{
    return q->axes[q->variant].count;
}

static void tell_lead(struct question *q, const struct lead *lead, struct tally *tally)
{
    const struct lead l = *lead;
    const struct comparison c = l.row.comparison;
    tally->cells++;
    bool certain = comparison_differs(&c);
    const char *name = name_text(q, q->axes[q->variant].levels[l.best_level]);
    const char *rival = name_text(q, q->d->cells[l.second].levels[q->variant]);
    char *where = where_without(q, l.cell, q->variant, q->variant);
    if (certain) {
        tally->wins[l.best_level]++;
    } else {
        tally->undecided++;
        tally->too_few += !comparison_has_interval(&c);
    }
    double ratio = c.estimate, low = c.low, high = c.high;
    if (c.scale == COMPARISON_RATIO && ratio < 1) {
        ratio = 1 / c.estimate;
        low = 1 / c.high;
        high = 1 / c.low;
    }
    int decimals = verdict_ratio_decimals(low, high);
    struct answer *answer;
    if (!certain)
        answer = answer_add(
            q, "best", where, false, "%s and %s %scannot be told apart (%s, %s; %s)", name, rival,
            rivals_of(q) > 2 ? "have the best medians and " : "", value_text(q, l.best_median),
            value_text(q, l.second_median), why_undecided(q, &c));
    else if (c.scale == COMPARISON_RATIO)
        answer = answer_add(q, "best", where, true,
                            "%s is best with %s, %.*f× better than %s [%.*f, %.*f] (n = %zu)", name,
                            value_text(q, l.best_median), decimals, ratio, rival, decimals, low,
                            decimals, high, c.base_count);
    else
        answer = answer_add(
            q, "best", where, true, "%s is best with %s; next is %s with %s (n = %zu)", name,
            value_text(q, l.best_median), rival, value_text(q, l.second_median), c.base_count);
    answer_number(answer, "best", l.best_median);
    answer_number(answer, "second", l.second_median);
    answer_number(answer, "ratio", ratio);
    answer_number(answer, "low", low);
    answer_number(answer, "high", high);
    answer_number(answer, "n", (double)c.base_count);
}

void answer_best(struct question *q)
{
    const struct axis *axis = &q->axes[q->variant];
    CLEANUP(memory_freep) size_t *wins = memory_zalloc(axis->count + 1, sizeof(*wins));
    struct tally tally = {.wins = wins};
    if (q->better == METRIC_NEITHER)
        return;
    size_t first = q->a->count;
    for (size_t i = 0; i < q->lead_count; i++)
        if (q->leads[i].metric == q->metric && q->leads[i].row.is_there)
            tell_lead(q, &q->leads[i], &tally);
    if (tally.cells < 2)
        return;
    CLEANUP(strbuf_done) struct strbuf text = {0};
    for (size_t k = 0; k < axis->count; k++)
        if (tally.wins[k])
            strbuf_printf(&text, "%s%s is best in %zu of %zu cells", text.length ? "; " : "",
                          axis->levels[k], tally.wins[k], tally.cells);
    if (!text.length)
        strbuf_puts(&text, "none is best");
    if (tally.undecided)
        strbuf_printf(&text, "%s%zu %s undecided", text.length ? "; " : "", tally.undecided,
                      plural(tally.undecided, "cell is", "cells are"));
    if (tally.too_few)
        strbuf_printf(&text,
                      ", %zu of them because there are fewer than %d rounds (assay run --resume "
                      "%lld --rounds %d adds some)",
                      tally.too_few, COMPARISON_ROUNDS_MIN, (long long)q->d->experiment.id,
                      COMPARISON_ROUNDS_MIN);
    answer_add(q, "best", "", tally.undecided == 0, "%s", strbuf_text(&text));
    /* The summary comes before its cells. */
    struct answer summary = q->a->items[q->a->count - 1];
    memmove(&q->a->items[first + 1], &q->a->items[first],
            (q->a->count - 1 - first) * sizeof(summary));
    q->a->items[first] = summary;
}

/* Two variants along one numeric factor. */
struct duel {
    size_t sizes;           /* the factor */
    const char *base, *new; /* levels of the variant */
    bool overtakings_only;  /* that one is always better is no news */
};

/* Of several points one is likely to differ by chance, so that a lead needs one beyond that. */
static void doubt_lead(struct question *q, struct crossovers *found,
                       const struct crossover_point *points, size_t count)
{
    size_t tests = q->d->cell_count / q->axes[q->variant].count;
    double least = 1;
    for (size_t i = 0; i < count; i++)
        least = fmin(least, points[i].comparison.p);
    if (found->state != CROSSOVER_FOUND &&
        !(least <= 1 - family_level(JUDGE_LEVEL, tests > count ? tests : count)))
        found->state = CROSSOVER_CANNOT_TELL;
}

static const char *level_at(const struct axis *axis, double number)
{
    size_t k = 0;
    while (k + 1 < axis->count && axis->numbers[k] < number)
        k++;
    return axis->levels[k];
}

static void tell_crossovers(struct question *q, const struct duel *duel, const char *where,
                            const struct crossovers *found, const struct crossover_point *points,
                            size_t point_count)
{
    const struct comparison *first = &points[0].comparison;
    const struct axis *axis = &q->axes[duel->sizes];
    const char *sizes = q->d->factors[duel->sizes];
    bool higher = q->better == METRIC_HIGHER;
    for (size_t i = 0; found->state == CROSSOVER_FOUND && i < found->count; i++) {
        const struct crossover *x = &found->items[i];
        bool new_wins = x->rises == higher;
        struct answer *answer =
            answer_add(q, "crossover", where, true, "%s overtakes %s at %s = %s [%s, %s]",
                       new_wins ? duel->new : duel->base, new_wins ? duel->base : duel->new, sizes,
                       level_text(q, x->size), level_text(q, x->low), level_text(q, x->high));
        answer_number(answer, "size", x->size);
        answer_number(answer, "low", x->low);
        answer_number(answer, "high", x->high);
    }
    if (duel->overtakings_only)
        return;
    if (found->state == CROSSOVER_NEW_LOWER || found->state == CROSSOVER_NEW_HIGHER) {
        bool new_wins = (found->state == CROSSOVER_NEW_HIGHER) == higher;
        answer_add(q, "crossover", where, true,
                   "%s is better than %s wherever they differ, from %s = %s to %s (%zu points)",
                   new_wins ? duel->new : duel->base, new_wins ? duel->base : duel->new, sizes,
                   level_at(axis, points[0].size), level_at(axis, points[point_count - 1].size),
                   point_count);
    } else if (found->state == CROSSOVER_CANNOT_TELL) {
        answer_add(q, "crossover", where, false,
                   "%s and %s cannot be told apart at any %s (%zu points%s%s)", duel->base,
                   duel->new, sizes, point_count, !comparison_has_interval(first) ? "; " : "",
                   !comparison_has_interval(first) ? why_undecided(q, first) : "");
    }
}

static void look_for_crossover(struct question *q, size_t cell, void *context)
{
    const struct duel *duel = context;
    const struct axis *axis = &q->axes[duel->sizes];
    struct crossover_point *points = memory_zalloc(axis->count + 1, sizeof(*points));
    size_t count = 0;
    for (size_t k = 0; k < axis->count; k++) {
        size_t at = dataset_cell_with(q->d, cell, q->variant, duel->base);
        at = at == DATASET_NONE ? at : dataset_cell_with(q->d, at, duel->sizes, axis->levels[k]);
        size_t other = at == DATASET_NONE ? at : dataset_cell_with(q->d, at, q->variant, duel->new);
        struct comparison c;
        if (other == DATASET_NONE || !judge_cells(q->d, q->metric, at, other, &c) ||
            c.scale != COMPARISON_RATIO || !isfinite(c.low) || !isfinite(c.high))
            continue;
        points[count++] = (struct crossover_point){.size = axis->numbers[k], .comparison = c};
    }
    struct crossovers found = {0};
    if (count >= 2 && crossovers_find(points, count, &found, NULL) == 0) {
        doubt_lead(q, &found, points, count);
        tell_crossovers(q, duel, where_without(q, cell, q->variant, duel->sizes), &found, points,
                        count);
        crossovers_done(&found);
    }
    free(points);
}

static bool str_has_word(const char *text, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        if ((at == text || at[-1] == ' ') && (!at[length] || at[length] == ' '))
            return true;
    return false;
}

/* Of few variants every pair is told, of many those with the baseline and those that cross.  Along
 * a number of threads only crossings are told where there is another number to look along. */
static bool overtakings_only(const struct question *q, size_t factor, const char *base,
                             const char *new)
{
    size_t numeric = 0;
    for (size_t f = 0; f < q->d->factor_count; f++)
        numeric += f != q->variant && q->axes[f].numbers && q->axes[f].count > 1;
    if (numeric > 1 && dataset_counts_workers(q->d->factors[factor]))
        return true;
    CLEANUP(memory_freep) char *first = memory_printf("%s=%s", q->d->factors[q->variant], base);
    CLEANUP(memory_freep) char *second = memory_printf("%s=%s", q->d->factors[q->variant], new);
    const char *baseline = q->d->experiment.baseline;
    return q->axes[q->variant].count > FEW_VARIANTS && !str_has_word(baseline, first) &&
           !str_has_word(baseline, second);
}

void answer_crossovers(struct question *q)
{
    const struct axis *variants = &q->axes[q->variant];
    if (q->better == METRIC_NEITHER || variants->count > VARIANTS_MAX)
        return;
    for (size_t f = 0; f < q->d->factor_count; f++) {
        if (f == q->variant || !q->axes[f].numbers || q->axes[f].count < 2 ||
            q->axes[f].numbers[0] <= 0)
            continue;
        for (size_t i = 0; i < variants->count; i++)
            for (size_t k = i + 1; k < variants->count; k++) {
                struct duel duel = {
                    .sizes = f, .base = variants->levels[i], .new = variants->levels[k]};
                duel.overtakings_only = overtakings_only(q, f, duel.base, duel.new);
                each_context(q, q->variant, f, look_for_crossover, &duel);
            }
    }
}
