/* SPDX-License-Identifier: MIT */
/*
 * Several benchmarks, one sentence: the geometric mean of their ratios, and which of them moved.
 * Benchmarks are pairs of cells that differ in the same values: "variant=new" against its baseline
 * at every size is one suite, another variant is another.
 */
#include "analysis/compare.h"
#include "base/memory.h"
#include "stats/suite.h"

enum { NAMES_MOST = 6 };

/* The rows of one sentence. */
struct suite_rows {
    const struct compare_row **items;
    size_t count;
};

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
static void put_name(struct strbuf *out, const struct compare *c, const struct compare_row *row)
{
    const struct compare_pair *pair = &c->pairs[row->pair];
    const struct dataset *d = c->new;
    size_t start = out->length;
    for (size_t f = 0; f < d->factor_count; f++) {
        const char *level = d->cells[pair->new_cell].levels[f];
        bool differs =
            c->base == c->new && !str_eq(level, c->base->cells[pair->base_cell].levels[f]);
        if (!differs && *level)
            strbuf_printf(out, "%s%s=%s", out->length > start ? " " : "", d->factors[f], level);
    }
    if (out->length == start)
        strbuf_puts(out, pair->label);
}

static bool is_first(const struct compare *c, size_t index, const char *key)
{
    for (size_t i = 0; i < index; i++) {
        const struct compare_row *row = &c->rows[i];
        if (!row->judged.headline || !str_eq(row->metric->name, c->rows[index].metric->name))
            continue;
        CLEANUP(memory_freep) char *other = key_of(c, row);
        if (str_eq(other, key))
            return false;
    }
    return true;
}

static struct suite_rows collect(const struct compare *c, size_t first, const char *key)
{
    struct suite_rows s = {.items = memory_zalloc(c->row_count, sizeof(*s.items))};
    for (size_t i = first; i < c->row_count; i++) {
        const struct compare_row *row = &c->rows[i];
        CLEANUP(memory_freep) char *other = key_of(c, row);
        if (row->judged.headline && str_eq(row->metric->name, c->rows[first].metric->name) &&
            str_eq(other, key))
            s.items[s.count++] = row;
    }
    return s;
}

static void put_moved(struct strbuf *out, const struct compare *c, const struct suite_rows *s,
                      enum verdict_kind kind, const char *word)
{
    size_t count = 0;
    for (size_t i = 0; i < s->count; i++) {
        if (!s->items[i]->judged.changed || s->items[i]->judged.verdict.kind != kind)
            continue;
        if (count == NAMES_MOST)
            strbuf_puts(out, ", …");
        if (count < NAMES_MOST) {
            strbuf_puts(out, count ? ", " : word);
            put_name(out, c, s->items[i]);
        }
        count++;
    }
}

static void put_sentence(struct strbuf *out, const struct compare *c, const struct suite_rows *s,
                         const char *key)
{
    struct suite suite;
    const struct store_metric *m = s->items[0]->metric;
    CLEANUP(memory_freep) struct comparison *rows = memory_zalloc(s->count, sizeof(*rows));
    size_t moved = 0;
    for (size_t i = 0; i < s->count; i++) {
        rows[i] = s->items[i]->judged.comparison;
        moved += s->items[i]->judged.changed;
    }
    stats_suite(rows, s->count, 0.95, &suite);
    if (suite.count < 2)
        return;
    const struct comparison mean = {.scale = COMPARISON_RATIO,
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
    struct verdict verdict;
    judge_words(&mean, m->facts, m->unit, &verdict);
    strbuf_printf(out, "all %zu%s%s, %s: ", suite.count, *key ? " of " : "", key, m->name);
    if (verdict.kind == VERDICT_CANNOT_TELL)
        strbuf_printf(out, "no certain difference, %.3f [%.3f, %.3f]", suite.estimate, suite.low,
                      suite.high);
    else
        strbuf_puts(out, verdict.text);
    strbuf_puts(out, " (geometric mean)");
    bool is_speed = m->facts.is_speed;
    put_moved(out, c, s, VERDICT_WORSE, is_speed ? "; slower: " : "; worse: ");
    put_moved(out, c, s, VERDICT_BETTER, is_speed ? "; faster: " : "; better: ");
    put_moved(out, c, s, VERDICT_DIFFERENT, "; different: ");
    if (moved < s->count)
        strbuf_printf(out, "; not certain: %zu", s->count - moved);
    strbuf_putc(out, '\n');
}

void compare_put_suites(struct strbuf *out, const struct compare *c)
{
    for (size_t i = 0; i < c->row_count; i++) {
        if (!c->rows[i].judged.headline)
            continue;
        CLEANUP(memory_freep) char *key = key_of(c, &c->rows[i]);
        if (!is_first(c, i, key))
            continue;
        struct suite_rows s = collect(c, i, key);
        if (s.count > 1)
            put_sentence(out, c, &s, key);
        free(s.items);
    }
}
