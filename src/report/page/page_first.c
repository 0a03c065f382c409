/* SPDX-License-Identifier: MIT */
/* What stands on the first screen: which is best, against what, by how much, and on what machine.
 * The comparisons and their words are the judge's. */
#include "analysis/losses.h"
#include "base/json_read.h"
#include "base/memory.h"
#include "report/page/page.h"

#include <math.h>

enum { ENTRIES_MAX = 40 };

void page_first_done(struct page_first *first)
{
    for (size_t i = 0; i < first->count; i++) {
        free(first->entries[i].name);
        free(first->entries[i].note);
        free(first->entries[i].caveat);
    }
    free(first->entries);
    free(first->base);
    free(first->machine);
    free(first->row_factors);
    *first = (struct page_first){0};
}

/* "batch" of "variant=batch", where one factor alone differs; a value may have blanks of its own.
 */
static char *short_name(const struct page *page, const char *key)
{
    const char *equals = strchr(key, '=');
    if (!equals || !equals[1])
        return memory_strdup(key);
    bool alone = !strchr(equals, ' ');
    const struct dataset *d = page->view;
    for (size_t f = 0; f < d->factor_count && !alone; f++)
        for (size_t c = 0; c < d->cell_count && !alone; c++)
            alone = str_has_prefix(key, d->factors[f]) && key + strlen(d->factors[f]) == equals &&
                    str_eq(equals + 1, d->cells[c].levels[f]);
    return memory_strdup(alone ? equals + 1 : key);
}

static void add_entry(struct page_first *f, char *name, const struct comparison *c,
                      const struct verdict *v, char *note, char *caveat)
{
    ARRAY_PUSH(f->entries, f->count, f->capacity) = (struct page_entry){
        .name = name, .comparison = *c, .verdict = *v, .note = note, .caveat = caveat};
}

static char *note_of_suite(const struct compare_suite *s)
{
    return s->is_mean ? memory_printf("geometric mean of %zu cells", s->mean_count)
                      : memory_strdup("");
}

/* Of a variant, those of its cells that have no values and so no row, too. */
static bool count_variant(const struct page *page, const char *name, size_t *failed, size_t *runs)
{
    const struct dataset *d = page->view;
    bool found = false;
    if (page->is_compared || page->variant == DATASET_NONE)
        return false;
    for (size_t c = 0; c < d->cell_count; c++)
        if (str_eq(d->cells[c].levels[page->variant], name)) {
            *failed += d->cells[c].failed_count;
            *runs += d->cells[c].run_count;
            found = true;
        }
    return found;
}

static char *caveat_of_suite(const struct page *page, const char *name,
                             const struct compare_suite *s)
{
    size_t failed = 0, runs = 0;
    if (count_variant(page, name, &failed, &runs))
        return failed ? memory_printf("%zu of %zu runs failed", failed, runs) : memory_strdup("");
    for (size_t i = 0; i < s->row_count; i++) {
        const struct compare_pair *pair = &page->compare.pairs[s->rows[i]->pair];
        const struct dataset_cell *cell = &page->compare.new->cells[pair->new_cell];
        failed += cell->failed_count;
        runs += cell->run_count;
    }
    return failed ? memory_printf("%zu of %zu runs failed", failed, runs) : memory_strdup("");
}

/* Variants of which no run succeeded anywhere. */
static void add_lost(struct page *page)
{
    const struct dataset *d = page->view;
    struct page_axis axis;
    if (page->variant == DATASET_NONE || page->is_compared)
        return;
    page_axis_init(&axis, d, page->variant);
    for (size_t k = 0; k < axis.count && page->first.count < ENTRIES_MAX; k++) {
        size_t cells = 0, lost = 0, runs = 0;
        for (size_t c = 0; c < d->cell_count; c++)
            if (str_eq(d->cells[c].levels[page->variant], axis.levels[k])) {
                cells++;
                lost += losses_is_lost(&d->cells[c]);
                runs += d->cells[c].run_count;
            }
        if (!cells || lost < cells)
            continue;
        struct comparison none = {.estimate = NAN, .low = NAN, .high = NAN};
        struct verdict verdict = {.kind = VERDICT_CANNOT_TELL};
        add_entry(&page->first, memory_strdup(axis.levels[k]), &none, &verdict, memory_strdup(""),
                  memory_printf("%zu of %zu %s failed", runs, runs, plural(runs, "run", "runs")));
        page->first.entries[page->first.count - 1].is_lost = true;
    }
    page_axis_done(&axis);
}

static char *base_name(const struct page *page)
{
    const struct dataset *d = page->view;
    if (page->is_compared)
        return short_name(page, page->compare.base_name);
    for (size_t c = 0; page->variant != DATASET_NONE && c < d->cell_count; c++)
        if (d->cells[c].baseline != DATASET_NONE)
            return memory_strdup(d->cells[d->cells[c].baseline].levels[page->variant]);
    return memory_strdup(d->experiment.baseline);
}

/* A level of each variant against its baseline, over all cells. */
static void add_suites(struct page *page, const struct store_metric *metric)
{
    CLEANUP(compare_suites_done) struct compare_suites suites;
    compare_suites_find(&suites, &page->compare);
    for (size_t i = 0; i < suites.count && page->first.count < ENTRIES_MAX; i++) {
        const struct compare_suite *s = &suites.items[i];
        if (!s->is_told || !str_eq(s->metric->name, metric->name) ||
            !str_eq(s->metric->unit, metric->unit))
            continue;
        char *name =
            short_name(page, page->is_compared && !*s->key ? page->compare.new_name : s->key);
        add_entry(&page->first, name, &s->comparison, &s->verdict, note_of_suite(s),
                  caveat_of_suite(page, name, s));
        struct page_entry *e = &page->first.entries[page->first.count - 1];
        e->cells = s->is_mean ? s->mean_count : s->row_count;
        for (size_t k = 0; k < s->row_count; k++) {
            e->better += s->rows[k]->judged.verdict.kind == VERDICT_BETTER;
            e->worse += s->rows[k]->judged.verdict.kind == VERDICT_WORSE;
        }
    }
}

/* "4096 2": what tells a pair from the others; their labels begin alike. */
static char *levels_name(const struct page *page, const struct page_row *r, const bool *varies)
{
    const struct dataset *d = page->view;
    struct strbuf name = {0};
    for (size_t f = 0; f < d->factor_count; f++)
        if (varies[f])
            strbuf_printf(&name, "%s%s", name.length ? " " : "", d->cells[r->cell].levels[f]);
    return name.data ? name.data : memory_strdup(r->label);
}

static bool is_pair(const struct page *page, const struct page_row *r)
{
    return r->compared && r->headline && r->metric == page->first.metric;
}

/* Each pair of a comparison of two, after their mean. */
static void add_pairs(struct page *page)
{
    const struct dataset *d = page->view;
    CLEANUP(memory_freep) bool *varies = memory_zalloc(d->factor_count + 1, sizeof(*varies));
    CLEANUP(strbuf_done) struct strbuf factors = {0};
    const struct page_row *one = NULL;
    for (size_t i = 0; i < page->row_count; i++) {
        if (!is_pair(page, &page->rows[i]))
            continue;
        one = one ? one : &page->rows[i];
        for (size_t f = 0; f < d->factor_count; f++)
            varies[f] |=
                !str_eq(d->cells[one->cell].levels[f], d->cells[page->rows[i].cell].levels[f]);
    }
    for (size_t f = 0; f < d->factor_count; f++)
        if (varies[f])
            strbuf_printf(&factors, "%s%s", factors.length ? ", " : "", d->factors[f]);
    page->first.row_factors = memory_strdup(strbuf_text(&factors));
    for (size_t i = 0; i < page->row_count && page->first.count < ENTRIES_MAX; i++) {
        const struct page_row *r = &page->rows[i];
        if (!is_pair(page, r))
            continue;
        CLEANUP(strbuf_done) struct strbuf caveat = {0};
        losses_put_caveat(&caveat,
                          r->base_cell == DATASET_NONE ? NULL : &page->view->cells[r->base_cell],
                          &page->view->cells[r->cell]);
        add_entry(&page->first, levels_name(page, r, varies), &r->comparison, &r->verdict,
                  memory_strdup(""), memory_strdup(strbuf_text(&caveat)));
    }
}

/* Which entry the sentence names: what is better, and of those the one that moved most; else the
 * one that moved most. */
static size_t choose(const struct page_first *f)
{
    size_t best = DATASET_NONE;
    double most = -1;
    for (int pass = 0; pass < 2 && best == DATASET_NONE; pass++)
        for (size_t i = 0; i < f->count; i++) {
            const struct page_entry *e = &f->entries[i];
            const struct comparison *c = &e->comparison;
            if (e->is_lost || (pass == 0 && e->verdict.kind != VERDICT_BETTER))
                continue;
            double far = c->scale == COMPARISON_RATIO && c->estimate > 0 ? fabs(log(c->estimate))
                                                                         : fabs(c->estimate);
            bool sure = verdict_is_difference(&e->verdict);
            double weight = isfinite(far) ? far + (sure ? 1e6 : 0) : 0;
            if (weight > most) {
                most = weight;
                best = i;
            }
        }
    return best;
}

static char *machine_words(const struct page *page)
{
    const struct embedded *data = &page->data;
    if (!data->set_count || !data->documents)
        return memory_strdup("");
    const char *document = data->documents[data->set_count - 1].machine;
    CLEANUP(memory_freep) char *model = json_member_text(document, "cpu_model");
    CLEANUP(memory_freep) char *count = json_member_text(document, "cpu_count");
    CLEANUP(memory_freep)
    char *host = json_member_text(data->documents[data->set_count - 1].environment, "host");
    const struct dataset *d = &data->sets[data->set_count - 1];
    if (d->node_count > 1)
        return memory_printf("%zu nodes", d->node_count);
    struct strbuf out = {0};
    if (host && *host)
        strbuf_puts(&out, host);
    if (model && *model)
        strbuf_printf(&out, "%s%s%s%s%s", out.length ? " (" : "", model, count ? ", " : "",
                      count ? count : "",
                      count ? str_eq(count, "1") ? " processor" : " processors" : "");
    if (out.length && host && *host && model && *model)
        strbuf_putc(&out, ')');
    return out.data ? out.data : memory_strdup("");
}

/* The first of that kind, perhaps only one where something is marked; it stands alone, and large.
 */
static struct plot *plot_of_kind(const struct page *page, const char *kind, bool is_marked)
{
    for (size_t i = 0; i < page->plot_count; i++) {
        struct plot *p = &page->plots[i];
        bool found = str_eq(p->kind, kind) && plot_has_points(p) && !is_marked;
        for (size_t k = 0; str_eq(p->kind, kind) && k < p->mark_count; k++)
            found |= p->marks[k].vertical;
        if (!found)
            continue;
        p->group = NULL;
        return p;
    }
    return NULL;
}

/* Where there are no ratios to draw: a curve, how it was before, or the runs themselves. */
static struct plot *picture_of_runs(const struct page *page)
{
    static const char *const kinds[] = {"curve", "history", "strip"};
    struct plot *found = NULL;
    for (size_t i = 0; i < ARRAY_COUNT(kinds) && !found; i++)
        found = plot_of_kind(page, kinds[i], false);
    return found;
}

/* Values of 0 have no ratio: then there is nothing to draw on an axis of ratios. */
static bool has_ratio(const struct page_first *f)
{
    for (size_t i = 0; i < f->count; i++)
        if (!f->entries[i].is_lost && f->entries[i].comparison.scale == COMPARISON_RATIO)
            return true;
    return false;
}

void page_find_first(struct page *page)
{
    struct page_first *f = &page->first;
    size_t position = 0;
    page_first_done(f);
    f->metric = f->best = DATASET_NONE;
    f->machine = machine_words(page);
    f->base = memory_strdup("");
    if (!page->view)
        return;
    f->metric = dataset_headline(page->view, &position);
    if (f->metric == DATASET_NONE || !page->has_compare) {
        add_lost(page);
        f->curve = picture_of_runs(page);
        return;
    }
    free(f->base);
    f->base = base_name(page);
    add_suites(page, &page->view->metrics[f->metric]);
    if (page->is_compared && f->count && page->compare.pair_count > 1)
        add_pairs(page);
    f->best = page->is_compared ? (f->count ? 0 : DATASET_NONE) : choose(f);
    add_lost(page);
    f->curve = plot_of_kind(page, "ratio", true);
    if (!f->curve && !has_ratio(f))
        f->curve = picture_of_runs(page);
}
