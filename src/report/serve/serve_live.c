/* SPDX-License-Identifier: MIT */
/* What happens now and happened lately: experiments under way with the time they still need, and
 * changes of level in the histories of the newest ones. */
#include "analysis/history.h"
#include "analysis/losses.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/measured.h"
#include "base/memory.h"
#include "report/html/html.h"
#include "report/serve/serve_internal.h"
#include "report/text/bisect.h"
#include "report/text/history.h"
#include "spec/spec.h"
#include "store/store_rows.h"

#include <math.h>
#include <stdio.h>

enum {
    RUNS_TIMED = 64,       /* the newest runs, by which the rest is foretold */
    NAMES_WATCHED = 12,    /* experiments of so many names … */
    NEWEST_WATCHED = 200,  /* … among the newest */
    RUNS_WATCHED = 200000, /* of one name; more are not read here */
    CHANGES_SHOWN = 12,
};

/* ---- how far it is ---- */

/* How far an experiment is that runs now. */
struct serve_progress {
    uint64_t done, total; /* runs; total is 0 where it depends on the results */
    double seconds_left;  /* NAN where it is not known */
};

static uint64_t planned_runs(struct store *store, const struct store_experiment *e)
{
    CLEANUP(memory_freep) char *text = NULL;
    struct spec spec;
    if (e->adaptive || store_document(store, e->id, "spec", &text, NULL) < 0 ||
        spec_parse(&spec, "spec", text, strlen(text), strstr(e->selection, "quick") != NULL, NULL) <
            0)
        return 0;
    bool depends = spec.precision > 0 || spec.budget_ns;
    uint64_t rounds = spec.rounds;
    spec_done(&spec);
    return depends ? 0 : rounds * e->cell_count;
}

static void find_progress(struct store *store, const struct store_experiment *e,
                          struct serve_progress *ret)
{
    *ret = (struct serve_progress){
        .done = e->run_count, .total = planned_runs(store, e), .seconds_left = NAN};
    double each = NAN;
    struct error ignored;
    if (ret->total > ret->done && store_pace(store, e->id, RUNS_TIMED, &each, &ignored) == 0)
        ret->seconds_left = (double)(ret->total - ret->done) * each;
    if (ret->total <= ret->done)
        ret->total = 0; /* runs that failed were tried again: it is not known how many more */
}

void serve_put_state(struct strbuf *out, struct store *store, const struct store_experiment *e)
{
    const char *state = losses_state(e);
    strbuf_puts(out, state);
    if (!str_eq(state, "running"))
        return;
    struct serve_progress p;
    char text[32];
    find_progress(store, e, &p);
    if (p.total)
        strbuf_printf(out,
                      " <progress value=\"%llu\" max=\"%llu\" aria-label=\"runs done\"></progress> "
                      "%llu of %llu runs",
                      (unsigned long long)p.done, (unsigned long long)p.total,
                      (unsigned long long)p.done, (unsigned long long)p.total);
    else
        strbuf_printf(out, " %llu %s so far", (unsigned long long)p.done,
                      plural(p.done, "run", "runs"));
    if (isfinite(p.seconds_left))
        strbuf_printf(out, ", about %s left",
                      format_duration(p.seconds_left * NS_PER_S, text, sizeof(text)));
}

/* What pages that are open are told: it is another text whenever the list is another one. */
int serve_live(struct store *store, struct strbuf *out)
{
    struct error err = {0};
    CLEANUP(store_list_done) struct store_list list = {0};
    uint64_t count = 0, runs = 0;
    struct json j = {.out = out, .compact = true};
    if (store_search(store, "", 0, SERVE_EXPERIMENTS, &list, &count, &err) < 0)
        return 500;
    json_object(&j, NULL);
    json_u64(&j, "experiments", count);
    json_i64(&j, "newest", list.count ? list.items[0].id : 0);
    json_array(&j, "running");
    for (size_t i = 0; i < list.count; i++) {
        const struct store_experiment *e = &list.items[i];
        runs += e->run_count;
        if (!str_eq(losses_state(e), "running"))
            continue;
        struct serve_progress p;
        find_progress(store, e, &p);
        json_object(&j, NULL);
        json_i64(&j, "id", e->id);
        json_string(&j, "name", e->name);
        json_u64(&j, "runs", p.done);
        json_u64(&j, "failed", e->failed_count);
        if (p.total)
            json_u64(&j, "runs_planned", p.total);
        else
            json_null(&j, "runs_planned");
        json_double(&j, "seconds_left", p.seconds_left);
        json_end(&j);
    }
    json_end(&j);
    json_u64(&j, "runs", runs);
    json_end(&j);
    return 200;
}

/* ---- what moved lately ---- */

struct moved {
    struct histories *histories; /* one for each name */
    size_t history_count, history_capacity;
    struct moved_change {
        const struct history *one;
        size_t change;
        uint64_t at_ns;
    } * items;
    size_t count, capacity;
    size_t left_out; /* names with more runs than are read here */
};

static void moved_done(struct moved *m)
{
    for (size_t i = 0; i < m->history_count; i++)
        histories_done(&m->histories[i]);
    free(m->histories);
    free(m->items);
}

static int newest_first(const void *left, const void *right)
{
    const struct moved_change *a = left, *b = right;
    return a->at_ns < b->at_ns ? 1 : a->at_ns > b->at_ns ? -1 : 0;
}

static void add_history(struct moved *m, struct store *store, const struct store_experiment *e)
{
    struct error ignored = {0};
    struct histories h = {0};
    CLEANUP(memory_freep) char *metric = memory_strndup(e->headline, strcspn(e->headline, "\n"));
    struct history_options options = {
        .metric = *metric ? metric : "wall", .name = e->name, .chance = 0.05, .seed = 1};
    if (histories_load(&h, store, &options, &ignored) < 0) {
        histories_done(&h);
        return;
    }
    ARRAY_PUSH(m->histories, m->history_count, m->history_capacity) = h;
}

/* The newest experiment of each name. */
static void find_names(struct moved *m, struct store *store, const struct store_list *list)
{
    for (size_t i = 0; i < list->count && m->history_count < NAMES_WATCHED; i++) {
        uint64_t runs = 0;
        bool is_first = true;
        for (size_t k = 0; k < i && is_first; k++)
            is_first = !str_eq(list->items[k].name, list->items[i].name);
        for (size_t k = i; k < list->count; k++)
            if (str_eq(list->items[k].name, list->items[i].name))
                runs += list->items[k].run_count;
        if (is_first && runs > RUNS_WATCHED)
            m->left_out++;
        else if (is_first)
            add_history(m, store, &list->items[i]);
    }
}

static void find_changes(struct moved *m)
{
    for (size_t i = 0; i < m->history_count; i++)
        for (size_t k = 0; k < m->histories[i].count; k++) {
            const struct history *one = &m->histories[i].items[k];
            for (size_t c = 0; c < one->changes.count; c++)
                ARRAY_PUSH(m->items, m->count, m->capacity) = (struct moved_change){
                    one, c, one->points[one->changes.points[c].index].started_at_ns};
        }
    if (m->count)
        qsort(m->items, m->count, sizeof(*m->items), newest_first);
}

static void put_moved_row(struct strbuf *out, const struct moved_change *m)
{
    const struct history *one = m->one;
    const struct change_point *change = &one->changes.points[m->change];
    const struct history_point *p = &one->points[change->index], *before = p - 1;
    const char *kind = report_history_kind(one, change);
    bool good = str_eq(kind, "improvement"), bad = str_eq(kind, "regression");
    char moment[32];
    CLEANUP(strbuf_done) struct strbuf words = {0};
    strbuf_put_change(&words, &change->change, one->unit);
    strbuf_puts(out, "<tr><th scope=\"row\"><a href=\"history?name=");
    serve_put_escaped(out, one->name);
    strbuf_puts(out, "\">");
    strbuf_put_markup(out, one->name);
    strbuf_puts(out, "</a></th><td>");
    html_put_shortened(out, one->cell, 80);
    strbuf_puts(out, "</td><td>");
    strbuf_put_markup(out, one->metric);
    strbuf_printf(out, "</td><td class=\"%s\">%s ",
                  good  ? "better"
                  : bad ? "worse"
                        : "different",
                  good  ? "▲"
                  : bad ? "▼"
                        : "◆");
    strbuf_put_markup(out, strbuf_text(&words));
    strbuf_printf(out, " %s%s</td><td>%s</td><td><a href=\"e/%lld\">%lld</a></td><td>", kind,
                  one->remarks[m->change].note ? ", accepted" : "",
                  format_moment(p->started_at_ns, moment, sizeof(moment)), (long long)p->experiment,
                  (long long)p->experiment);
    strbuf_put_markup_n(out, p->commit, strnlen(p->commit, 12));
    strbuf_printf(out,
                  "</td><td><a href=\"compare?base=%lld&amp;new=%lld\"><span class=\"sr\">%lld "
                  "</span>with %lld</a></td></tr>\n",
                  (long long)before->experiment, (long long)p->experiment, (long long)p->experiment,
                  (long long)before->experiment);
}

static void put_moved(struct strbuf *out, const struct moved *m)
{
    strbuf_puts(out, "<div id=\"moved-list\">\n");
    if (!m->count)
        strbuf_puts(out, "<p class=\"note\">No history of the newest experiments has a significant "
                         "change of level. A history needs at least eight experiments of one "
                         "name.</p>\n");
    else
        strbuf_puts(out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
                         "aria-label=\"Changes\"><table><thead><tr><th scope=\"col\">Name</th><th "
                         "scope=\"col\">Cell</th><th scope=\"col\">Metric</th><th "
                         "scope=\"col\">Change</th><th scope=\"col\">Since</th><th "
                         "scope=\"col\">Experiment</th><th scope=\"col\">Commit</th><th "
                         "scope=\"col\">Compare</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < m->count && i < CHANGES_SHOWN; i++)
        put_moved_row(out, &m->items[i]);
    if (m->count)
        strbuf_puts(out, "</tbody></table></div>\n");
    if (m->count > CHANGES_SHOWN)
        strbuf_printf(out,
                      "<p class=\"note\">%zu older %s not shown; <code>assay history</code> has "
                      "them.</p>\n",
                      m->count - CHANGES_SHOWN,
                      plural(m->count - CHANGES_SHOWN, "change is", "changes are"));
    if (m->left_out)
        strbuf_printf(out,
                      "<p class=\"note\">%zu %s too many runs to be looked through here; "
                      "<code>assay history</code> does.</p>\n",
                      m->left_out, plural(m->left_out, "name has", "names have"));
    strbuf_puts(out, "</div>\n");
}

int serve_moved(struct store *store, struct strbuf *out)
{
    struct error err = {0};
    CLEANUP(store_list_done) struct store_list list = {0};
    CLEANUP(moved_done) struct moved m = {0};
    int r = store_list(store, &(struct store_filter){.most = NEWEST_WATCHED}, &list, &err);
    if (r < 0)
        return serve_trouble(out, &err, r, 0);
    find_names(&m, store, &list);
    find_changes(&m);
    serve_put_start(out, "What moved lately",
                    "Changes of level in the histories of headline metrics, the newest first", 0);
    put_moved(out, &m);
    html_put_foot(out, HTML_LIVE, NULL);
    return 200;
}
