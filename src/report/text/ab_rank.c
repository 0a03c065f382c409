/* SPDX-License-Identifier: MIT */
/* The order of three or more commands, and the sentence that sums it up: see ab.h. */
#include "analysis/ranking.h"
#include "base/memory.h"
#include "report/text/ab.h"

/* "fastest", "faster"; other metrics are lower or higher. */
struct words {
    const char *best, *better;
};

static struct words words_of(const struct store_metric *m)
{
    bool higher = m->facts.better == METRIC_HIGHER;
    return m->facts.is_speed ? (struct words){"fastest", "faster than"}
           : higher          ? (struct words){"highest", "higher than"}
                             : (struct words){"lowest", "lower than"};
}

static void put_name(struct strbuf *out, const struct ab_view *v, size_t participant)
{
    const char *name = v->outcome->participants[participant].name;
    strbuf_put_safe(out, name, strlen(name), 60);
}

/* "3.95× [3.60, 4.20] faster than pigz": how far the best is ahead. */
static void put_lead(struct strbuf *out, const struct ab_view *v, const struct ranking *r,
                     size_t participant, const char *better)
{
    const struct comparison *c = &ranking_row(r, participant)->comparison;
    const struct store_metric *m = &v->outcome->data->metrics[r->metric];
    bool higher = m->facts.better == METRIC_HIGHER;
    if (c->scale == COMPARISON_RATIO) {
        double low = higher ? 1 / c->high : c->low, high = higher ? 1 / c->low : c->high;
        double lead = higher ? 1 / c->estimate : c->estimate;
        int decimals = lead < 1.1 ? 3 : 2;
        strbuf_printf(out, "%.*f× [%.*f, %.*f]", decimals, lead, decimals, low, decimals, high);
    } else {
        strbuf_put_measured(out, higher ? -c->estimate : c->estimate, m->unit);
    }
    strbuf_printf(out, " %s ", better);
    put_name(out, v, participant);
}

/* One group: `count` participants from `order`, the best first. */
static void put_sentence(struct strbuf *out, const struct ab_view *v, const struct ranking *r,
                         const size_t *order, size_t count)
{
    struct words words = words_of(&v->outcome->data->metrics[r->metric]);
    size_t leaders = 1, told = 0;
    for (size_t i = 1; i < count; i++)
        leaders += !ranking_row(r, order[i]) || !ranking_row(r, order[i])->changed;
    if (leaders == count) {
        strbuf_printf(out, "None of the %zu is certainly %s any other.", count, words.better);
        return;
    }
    put_name(out, v, order[0]);
    for (size_t i = 1, put = 1; i < count; i++)
        if (!ranking_row(r, order[i]) || !ranking_row(r, order[i])->changed) {
            strbuf_puts(out, ++put == leaders ? " and " : ", ");
            put_name(out, v, order[i]);
        }
    strbuf_printf(out,
                  leaders == 1 ? " is %s: " : " are %s and cannot be told apart: ", words.best);
    if (leaders > 1) {
        put_name(out, v, order[0]);
        strbuf_puts(out, " is ");
    }
    for (size_t i = 1; i < count; i++) {
        const struct judge_row *row = ranking_row(r, order[i]);
        if (!row || !row->changed)
            continue;
        strbuf_puts(out, told++ ? ", " : "");
        put_lead(out, v, r, order[i], words.better);
    }
    strbuf_putc(out, '.');
}

bool report_ab_ranking(struct strbuf *out, const struct ab_view *v)
{
    struct ranking r;
    if (!ranking_make(&r, v->outcome, v->outcome->headline))
        return false;
    const struct participant *participants = v->outcome->participants;
    for (size_t from = 0, end; from < r.count; from = end) {
        size_t group = participants[r.order[from]].group;
        for (end = from; end < r.count && participants[r.order[end]].group == group; end++)
            ;
        if (*participants[r.order[from]].parameters && from + (r.count - end))
            strbuf_printf(out, "%s: ", participants[r.order[from]].parameters);
        put_sentence(out, v, &r, r.order + from, end - from);
        strbuf_putc(out, '\n');
    }
    ranking_done(&r);
    return true;
}

bool report_ab_suites(struct strbuf *out, const struct ab_view *v)
{
    size_t start = out->length;
    if (v->outcome->data->cell_count && v->outcome->participants[0].variant)
        compare_put_suites(out, &v->outcome->compare, NULL);
    return out->length > start;
}

void report_ab_ranking_table(struct strbuf *out, const struct ab_view *v)
{
    struct ranking r;
    if (!ranking_make(&r, v->outcome, v->outcome->headline))
        return;
    size_t widest = 0, number = 0;
    for (size_t i = 0; i < r.count; i++) {
        CLEANUP(strbuf_done) struct strbuf name = {0};
        put_name(&name, v, r.order[i]);
        size_t columns = str_columns(strbuf_text(&name));
        widest = columns > widest ? columns : widest;
    }
    strbuf_printf(out, " ranking by %s\n", v->outcome->data->metrics[r.metric].name);
    for (size_t i = 0; i < r.count; i++) {
        const struct judge_row *row = ranking_row(&r, r.order[i]);
        CLEANUP(strbuf_done) struct strbuf name = {0};
        put_name(&name, v, r.order[i]);
        number = row ? number + 1 : 1;
        strbuf_printf(out, "  %2zu. %s", number, strbuf_text(&name));
        if (row) {
            strbuf_pad(out, ' ', widest - str_columns(strbuf_text(&name)) + 2);
            if (row->changed)
                strbuf_put_verdict(out, row);
            else
                strbuf_puts(out, row->verdict.kind == VERDICT_SAME
                                     ? "no difference"
                                     : "cannot be told apart from the first");
        }
        strbuf_putc(out, '\n');
    }
    strbuf_putc(out, '\n');
    ranking_done(&r);
}

void report_ab_ranking_json(struct json *j, const struct ab_view *v)
{
    struct ranking r;
    CLEANUP(strbuf_done) struct strbuf text = {0};
    if (!ranking_make(&r, v->outcome, v->outcome->headline))
        return;
    json_array(j, "ranking");
    for (size_t i = 0; i < r.count; i++)
        json_u64(j, NULL, r.order[i]);
    json_end(j);
    ranking_done(&r);
    report_ab_ranking(&text, v);
    json_string(j, "summary", strbuf_text(&text));
}
