/* SPDX-License-Identifier: MIT */
/* Rivals: which is best in each cell, and at what size one overtakes another. */
#include "analysis/answers_internal.h"
#include "analysis/judge.h"
#include "base/memory.h"
#include "base/strings.h"
#include "fits/crossover.h"

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

/* The best and the second best of the variants in one context; DATASET_NONE for none. */
struct leaders {
    size_t best, second, best_level;
    double best_median, second_median;
};

static struct leaders find_leaders(const struct question *q, size_t cell)
{
    const struct axis *axis = &q->axes[q->variant];
    struct leaders l = {DATASET_NONE, DATASET_NONE, 0, NAN, NAN};
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

static void judge_context(struct question *q, size_t cell, void *context)
{
    struct tally *tally = context;
    const struct leaders l = find_leaders(q, cell);
    struct comparison c;
    if (l.second == DATASET_NONE || !judge_cells(q->d, q->metric, l.second, l.best, &c))
        return;
    tally->cells++;
    bool certain = comparison_differs(&c);
    const char *name = name_text(q, q->axes[q->variant].levels[l.best_level]);
    const char *rival = name_text(q, q->d->cells[l.second].levels[q->variant]);
    char *where = where_without(q, cell, q->variant, q->variant);
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
    struct answer *answer;
    if (!certain)
        answer = answer_add(q, "best", where, false, "%s and %s cannot be told apart (%s, %s; %s)",
                            name, rival, value_text(q, l.best_median),
                            value_text(q, l.second_median), why_undecided(q, &c));
    else if (c.scale == COMPARISON_RATIO)
        answer = answer_add(q, "best", where, true,
                            "%s is best with %s, %.3g× better than %s [%.3g, %.3g] (n = %zu)", name,
                            value_text(q, l.best_median), ratio, rival, low, high, c.base_count);
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
    each_context(q, q->variant, q->variant, judge_context, &tally);
    if (tally.cells < 2)
        return;
    CLEANUP(strbuf_done) struct strbuf text = {0};
    for (size_t k = 0; k < axis->count; k++)
        if (tally.wins[k])
            strbuf_printf(&text, "%s%s is best in %zu of %zu cells", text.length ? "; " : "",
                          axis->levels[k], tally.wins[k], tally.cells);
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

static void tell_crossovers(struct question *q, const struct duel *duel, const char *where,
                            const struct crossovers *found, const struct comparison *first,
                            size_t point_count)
{
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
    const struct axis *axis = &q->axes[duel->sizes];
    if (duel->overtakings_only)
        return;
    if (found->state == CROSSOVER_NEW_LOWER || found->state == CROSSOVER_NEW_HIGHER) {
        bool new_wins = (found->state == CROSSOVER_NEW_HIGHER) == higher;
        answer_add(q, "crossover", where, true,
                   "%s is better than %s wherever they differ, from %s = %s to %s (%zu points)",
                   new_wins ? duel->new : duel->base, new_wins ? duel->base : duel->new, sizes,
                   axis->levels[0], axis->levels[axis->count - 1], point_count);
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
        tell_crossovers(q, duel, where_without(q, cell, q->variant, duel->sizes), &found,
                        &points[0].comparison, count);
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
