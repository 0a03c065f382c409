/* SPDX-License-Identifier: MIT */
/* Why it changed: the rows of a difference of profiles, in words. */
#include "base/memory.h"
#include "profile/diff.h"
#include "report/cost.h"
#include "report/page.h"

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
    bool no_share = d->has_interval ? !d->whole.significant : d->whole.below_resolution;
    for (size_t i = 0; i < d->row_count && why->count < CAUSES_MAX; i++) {
        const struct diff_row *row = &d->rows[i];
        if (fabs(row->self.change) < SMALL_CHANGE * larger)
            break;
        bool grey = row->self.below_resolution || (d->has_interval && !row->self.significant);
        add_cause(why, &unit, row->name, &row->self, no_share,
                  row->self.below_resolution ? "below the resolution"
                  : grey                     ? "could be chance"
                  : row->self.change > 0     ? "more"
                                             : "less",
                  grey);
    }
    add_cause(why, &unit, "what no function explains", &d->unattributed, no_share, "", true);
    if (!d->has_interval && d->why_no_interval)
        why->note = memory_strdup(d->why_no_interval);
}

int page_add_pair(struct page *page, const struct profile_pair *pair, struct error *err)
{
    struct profile_loads loads = {0};
    struct diff d;
    int r = profile_loads_read(&loads, pair, err);
    if (r == 0)
        r = diff_build(&d, &loads.options, err);
    if (r == 0) {
        struct page_why *why = &ARRAY_PUSH(page->whys, page->why_count, page->why_capacity);
        *why = (struct page_why){.label = memory_strdup(pair->label ? pair->label : "")};
        fill(why, &d);
        diff_done(&d);
    }
    profile_loads_done(&loads);
    return r;
}
