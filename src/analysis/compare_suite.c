/* SPDX-License-Identifier: MIT */
/*
 * Several benchmarks, one sentence: the geometric mean of their ratios, and which of them moved.
 * Benchmarks are pairs of cells that differ in the same values: "variant=new" against its baseline
 * at every size is one suite, another variant is another.
 */
#include "analysis/compare.h"
#include "base/memory.h"
#include "stats/suite.h"

#include <stdio.h>

enum { NAMES_MOST = 6 };

/* The values by which the new cell differs from the base; "" for two experiments. */
static char *key_of(const struct compare *c, const struct compare_row *row)
{
    const struct compare_pair *pair = &c->pairs[row->pair];
    struct strbuf key = {0};
    for (size_t f = 0; c->base == c->new &&f < c->new->factor_count; f++) {
        const char *level = c->new->cells[pair->new_cell].levels[f];
        if (!str_eq(level, c->base->cells[pair->base_cell].levels[f]))
            strbuf_printf(&key, "%s%s=%s", key.length ? " " : "", c->new->factors[f], level);
    }
    return key.data ? key.data : memory_strdup("");
}

/* What the cell is besides the key. */
static void put_name(struct strbuf *out, const struct compare *c, const struct compare_row *row,
                     const char *things)
{
    const struct compare_pair *pair = &c->pairs[row->pair];
    const struct dataset *d = c->new;
    size_t start = out->length;
    for (size_t f = 0; f < d->factor_count; f++) {
        const char *level = d->cells[pair->new_cell].levels[f];
        bool differs =
            c->base == c->new && !str_eq(level, c->base->cells[pair->base_cell].levels[f]);
        bool is_thing = things && f == 0; /* "sort n=64" */
        if (!differs && *level)
            strbuf_printf(out, "%s%s%s%s", out->length > start ? " " : "",
                          is_thing ? "" : d->factors[f], is_thing ? "" : "=", level);
    }
    if (out->length == start)
        strbuf_puts(out, pair->label);
}

static struct compare_suite *suite_of(struct compare_suites *s, const struct compare_row *row,
                                      const char *key)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->items[i].metric == row->metric && str_eq(s->items[i].key, key))
            return &s->items[i];
    return NULL;
}

static void put_moved(struct strbuf *out, const struct compare *c, const struct compare_suite *s,
                      enum verdict_kind kind, const char *word, const char *things)
{
    size_t count = 0;
    for (size_t i = 0; i < s->row_count; i++) {
        if (!s->rows[i]->judged.changed || s->rows[i]->judged.verdict.kind != kind)
            continue;
        if (count == NAMES_MOST)
            strbuf_puts(out, ", …");
        if (count < NAMES_MOST) {
            strbuf_puts(out, count ? ", " : word);
            put_name(out, c, s->rows[i], things);
        }
        count++;
    }
}

/* The geometric mean of the rows. */
static void take_mean(struct compare_suite *s)
{
    struct suite suite;
    CLEANUP(memory_freep) struct comparison *rows = memory_zalloc(s->row_count, sizeof(*rows));
    for (size_t i = 0; i < s->row_count; i++)
        rows[i] = s->rows[i]->judged.comparison;
    stats_suite(rows, s->row_count, 0.95, &suite);
    s->is_mean = true;
    s->mean_count = suite.count;
    s->is_told = suite.count >= 2;
    if (!s->is_told)
        return;
    s->comparison = (struct comparison){.scale = COMPARISON_RATIO,
                                        .estimate = suite.estimate,
                                        .low = suite.low,
                                        .high = suite.high,
                                        .level = suite.level,
                                        .p = suite.p,
                                        .base_median = 1,
                                        .new_median = suite.estimate,
                                        .base_count = suite.count,
                                        .new_count = suite.count,
                                        .effective_count = (double)suite.count,
                                        .widening = 1,
                                        .method = "geometric mean"};
    judge_words(&s->comparison, s->metric->facts, s->metric->unit, &s->verdict);
    if (s->verdict.kind == VERDICT_CANNOT_TELL)
        snprintf(s->verdict.text, sizeof(s->verdict.text),
                 "no certain difference: %.3f× [%.3f, %.3f]", suite.estimate, suite.low,
                 suite.high);
}

/* How many did not move, and of how many nobody knows. */
static void put_others(struct strbuf *out, const struct compare_suite *s)
{
    size_t same = 0, unknown = 0;
    for (size_t i = 0; i < s->row_count; i++) {
        const struct judge_row *row = &s->rows[i]->judged;
        same += !row->changed && row->verdict.kind == VERDICT_SAME;
        unknown += !row->changed && row->verdict.kind != VERDICT_SAME;
    }
    if (same)
        strbuf_printf(out, "; no difference: %zu", same);
    if (unknown)
        strbuf_printf(out, "; not certain: %zu", unknown);
}

static void put_sentence(struct strbuf *out, const struct compare *c, const struct compare_suite *s,
                         const char *things)
{
    strbuf_printf(out, "all %zu%s%s, %s: %s (geometric mean)", s->mean_count,
                  things    ? " "
                  : *s->key ? " of "
                            : "",
                  things ? things : s->key, s->metric->name, s->verdict.text);
    bool is_speed = s->metric->facts.is_speed;
    put_moved(out, c, s, VERDICT_WORSE, is_speed ? "; slower: " : "; worse: ", things);
    put_moved(out, c, s, VERDICT_BETTER, is_speed ? "; faster: " : "; better: ", things);
    put_moved(out, c, s, VERDICT_DIFFERENT, "; different: ", things);
    put_others(out, s);
    strbuf_putc(out, '\n');
}

void compare_suites_find(struct compare_suites *s, const struct compare *c)
{
    *s = (struct compare_suites){0};
    for (size_t i = 0; i < c->row_count; i++) {
        const struct compare_row *row = &c->rows[i];
        if (!row->judged.headline)
            continue;
        CLEANUP(memory_freep) char *key = key_of(c, row);
        struct compare_suite *suite = suite_of(s, row, key);
        if (!suite) {
            suite = &ARRAY_PUSH(s->items, s->count, s->capacity);
            *suite = (struct compare_suite){.key = key, .metric = row->metric};
            key = NULL;
        }
        ARRAY_PUSH(suite->rows, suite->row_count, suite->row_capacity) = row;
    }
    for (size_t i = 0; i < s->count; i++) {
        struct compare_suite *suite = &s->items[i];
        if (suite->row_count > 1) {
            take_mean(suite);
            continue;
        }
        suite->comparison = suite->rows[0]->judged.comparison;
        suite->verdict = suite->rows[0]->judged.verdict;
        suite->is_told = true;
    }
}

void compare_suites_done(struct compare_suites *s)
{
    for (size_t i = 0; i < s->count; i++) {
        free(s->items[i].key);
        free(s->items[i].rows);
    }
    free(s->items);
    *s = (struct compare_suites){0};
}

void compare_put_suites(struct strbuf *out, const struct compare *c, const char *things)
{
    CLEANUP(compare_suites_done) struct compare_suites s;
    compare_suites_find(&s, c);
    for (size_t i = 0; i < s.count; i++)
        if (s.items[i].is_mean && s.items[i].is_told)
            put_sentence(out, c, &s.items[i], things);
}
