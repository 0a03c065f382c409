/* SPDX-License-Identifier: MIT */
/* Why it changed: the rows of a difference of profiles, in words. */
#include "base/memory.h"
#include "profile/diff.h"
#include "report/page/page.h"
#include "report/profile/cost.h"

#include <math.h>

enum { CAUSES_MAX = 15 };
/* Functions that change by less of the larger side than this are not worth a line. */
#define SMALL_CHANGE 0.005

void page_why_done(struct page_why *why)
{
    for (size_t i = 0; i < why->count; i++) {
        struct page_cause *c = &why->causes[i];
        char *texts[] = {c->name, c->before, c->after, c->change, c->share, c->words};
        for (size_t t = 0; t < ARRAY_COUNT(texts); t++)
            free(texts[t]);
    }
    free(why->causes);
    free(why->label);
    free(why->whole);
    free(why->unit);
    free(why->note);
}

static char *cost_text(const struct cost_unit *unit, double value)
{
    struct strbuf text = {0};
    strbuf_put_cost(&text, unit, value);
    return text.data ? text.data : memory_strdup("");
}

static void add_cause(struct page_why *why, const struct cost_unit *unit, const char *name,
                      const struct attributed *a, bool no_share, const char *words, bool is_grey)
{
    struct strbuf change = {0}, share = {0};
    strbuf_put_attributed(&change, unit, a);
    strbuf_put_share(&share, no_share ? NAN : a->share);
    ARRAY_PUSH(why->causes, why->count, why->capacity) =
        (struct page_cause){.name = memory_strdup(name),
                            .before = cost_text(unit, a->a),
                            .after = cost_text(unit, a->b),
                            .change = change.data ? change.data : memory_strdup(""),
                            .share = share.data ? share.data : memory_strdup(""),
                            .words = memory_strdup(words),
                            .is_function = *words,
                            .is_grey = is_grey};
}

static void fill(struct page_why *why, const struct diff *d)
{
    struct cost_unit unit;
    double larger = fmax(fabs(d->whole.a), fabs(d->whole.b));
    cost_unit_choose(&unit, larger, d->is_time, d->work);
    struct strbuf whole = {0};
    strbuf_put_attributed(&whole, &unit, &d->whole);
    why->whole = whole.data ? whole.data : memory_strdup("");
    why->unit = memory_strdup(unit.text);
    bool no_share = d->has_interval ? !d->whole.significant : d->whole.below_resolution;
    for (size_t i = 0; i < d->row_count && why->count < CAUSES_MAX; i++) {
        const struct diff_row *row = &d->rows[i];
        if (fabs(row->self.change) < SMALL_CHANGE * larger)
            break;
        bool grey = !attributed_is_told(&row->self);
        add_cause(why, &unit, row->name, &row->self, no_share,
                  row->self.below_resolution ? "below the resolution"
                  : grey                     ? "could be chance"
                  : row->self.change > 0     ? "costs more"
                                             : "costs less",
                  grey);
    }
    add_cause(why, &unit, "not explained by any function", &d->unattributed, no_share, "", true);
    if (!d->has_interval && d->why_no_interval)
        why->note = memory_strdup(d->why_no_interval);
}

static int add_flames(struct page *page, const struct diff *d, const struct profile_loads *loads,
                      char *const *labels, struct error *err)
{
    struct embedded *data = &page->data;
    size_t before = data->flame_count;
    for (unsigned s = 0; s < SIDE_COUNT; s++) {
        int r = page_add_flame(page, loads->profiles[s][0], labels[s], err);
        if (r < 0) {
            while (data->flame_count > before)
                flame_done(&data->flames[--data->flame_count]);
            return r;
        }
        flame_mark(&data->flames[before + s], d, s);
    }
    return 0;
}

int page_add_pair(struct page *page, const struct profile_pair *pair, char *const *labels,
                  struct error *err)
{
    struct profile_loads loads = {.with_samples = labels != NULL};
    struct diff d;
    int r = profile_loads_read(&loads, pair, err);
    if (r == 0)
        r = diff_build(&d, &loads.options, err);
    if (r == 0) {
        if (labels)
            r = add_flames(page, &d, &loads, labels, err);
        if (r == 0) {
            struct page_why *why = &ARRAY_PUSH(page->whys, page->why_count, page->why_capacity);
            *why = (struct page_why){.label = memory_strdup(pair->label ? pair->label : "")};
            fill(why, &d);
        }
        diff_done(&d);
    }
    profile_loads_done(&loads);
    return r;
}

/* ---- what explain found ---- */

/* Whether the cell has all of "factor=value, …". */
static bool has_levels(const struct dataset *d, const char *label, const char *levels)
{
    size_t cell = dataset_cell(d, label);
    CLEANUP(memory_freep) char *text = memory_strdup(levels);
    char *save = NULL;
    if (cell == DATASET_NONE)
        return false;
    for (char *word = strtok_r(text, ", ", &save); word; word = strtok_r(NULL, ", ", &save)) {
        char *equals = strchr(word, '=');
        if (!equals)
            return false;
        *equals = '\0';
        size_t factor = dataset_factor(d, word);
        if (factor == DATASET_NONE || !str_eq(d->cells[cell].levels[factor], equals + 1))
            return false;
    }
    return true;
}

/* Whether it explains what the page compares: the two experiments, the two values of a factor, or
 * anything within the one. */
static bool is_about(const struct embedded *data, const struct explanation *e)
{
    const struct dataset *base = &data->sets[0], *new = &data->sets[data->set_count - 1];
    if (!str_eq(e->uuids[SIDE_A], base->experiment.uuid) ||
        !str_eq(e->uuids[SIDE_B], new->experiment.uuid))
        return false;
    return !data->base || (has_levels(base, e->cells[SIDE_A], data->base) &&
                           has_levels(new, e->cells[SIDE_B], data->new));
}

int page_add_explanations(struct page *page, struct store *store, struct error *err)
{
    struct embedded *data = &page->data;
    if (!data->set_count)
        return 0;
    size_t before = data->explanations.count;
    int64_t id = data->sets[data->set_count - 1].experiment.id;
    int r = explanations_load(&data->explanations, store, id, err);
    for (size_t i = data->explanations.count; i-- > before;)
        if (!is_about(data, &data->explanations.items[i]))
            explanations_drop(&data->explanations, i);
    return r;
}
