/* SPDX-License-Identifier: MIT */
/* The store as pages: lists are read a page at a time, so that 10^5 runs cost what 100 cost. */
#include "report/serve/serve.h"
#include "analysis/losses.h"
#include "base/memory.h"
#include "report/html/html.h"
#include "report/serve/serve_internal.h"
#include "report/text/experiment.h"
#include "store/store_rows.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

static const char *home(int depth)
{
    static const char *const ups[] = {"./", "../", "../../", "../../../", "../../../../"};
    const int most = ARRAY_COUNT(ups) - 1;
    return ups[depth < most ? depth : most];
}

/* How far below the list a path is. */
static int depth_of(const char *path)
{
    int depth = -1;
    for (; *path; path++)
        depth += *path == '/';
    return depth > 0 ? depth : 0;
}

void serve_put_start(struct strbuf *out, const char *title, const char *subtitle, int depth)
{
    CLEANUP(memory_freep) char *moved = memory_printf("%smoved", home(depth));
    struct html_link links[] = {{home(depth), "Experiments"}, {moved, "What moved lately"}};
    html_put_head(out, &(struct html_head){.title = title,
                                           .subtitle = subtitle,
                                           .links = links,
                                           .link_count = ARRAY_COUNT(links),
                                           .script = HTML_LIVE});
}

static int fail(struct strbuf *out, int status, const char *title, const char *words, int depth)
{
    strbuf_clear(out);
    serve_put_start(out, title, "", depth);
    strbuf_puts(out, "<p>");
    strbuf_put_markup(out, words);
    strbuf_puts(out, "</p>\n");
    html_put_foot(out, HTML_LIVE, NULL);
    return status;
}

int serve_trouble(struct strbuf *out, const struct error *err, int code, int depth)
{
    return fail(out,
                code == -ENOENT   ? 404
                : code == -EINVAL ? 400
                                  : 500,
                code == -ENOENT ? "Not found" : "An error occurred", err->message, depth);
}

bool serve_page_number(const char *text, uint64_t *ret_page)
{
    *ret_page = 1;
    return !text || (parse_u64(text, ret_page, NULL) == 0 && *ret_page >= 1 && *ret_page < 1000000);
}

bool serve_page_exists(uint64_t page, uint64_t count, uint64_t each)
{
    return page == 1 || (page - 1) * each < count;
}

const char *serve_behind_id(const char *path, const char *before, int64_t *ret_id)
{
    enum { DIGITS_MOST = 18 }; /* fewer than overflow */
    if (!str_has_prefix(path, before))
        return NULL;
    const char *digits = path + strlen(before);
    size_t count = strspn(digits, "0123456789");
    if (count < 1 || count > DIGITS_MOST || *digits == '0')
        return NULL;
    *ret_id = strtoll(digits, NULL, 10);
    return digits + count;
}

/* What the page's script replaces when the store has changed: it is asked for the same page. */
static void put_live_start(struct strbuf *out, int depth)
{
    strbuf_printf(out, "<div id=\"live\" data-events=\"%sevents\">\n", home(depth));
}

static void put_pager(struct strbuf *out, uint64_t page, uint64_t pages, const char *extra)
{
    strbuf_printf(out, "<nav aria-label=\"Pages\"><p>Page %llu of %llu", (unsigned long long)page,
                  (unsigned long long)(pages ? pages : 1));
    if (page > 1)
        strbuf_printf(out, " <a href=\"?page=%llu%s\" rel=\"prev\">Previous</a>",
                      (unsigned long long)page - 1, extra);
    if (page < pages)
        strbuf_printf(out, " <a href=\"?page=%llu%s\" rel=\"next\">Next</a>",
                      (unsigned long long)page + 1, extra);
    strbuf_puts(out, "</p></nav>\n");
}

void serve_put_escaped(struct strbuf *out, const char *text)
{
    for (; *text; text++)
        if ((*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') ||
            (*text >= '0' && *text <= '9') || strchr("-_.", *text))
            strbuf_putc(out, *text);
        else
            strbuf_printf(out, "%%%02X", (unsigned char)*text);
}

/* ---- experiments ---- */

static void put_search(struct strbuf *out, const char *query)
{
    strbuf_puts(out,
                "<form method=\"get\" action=\"./\" role=\"search\" class=\"tools\"><label>Search "
                "names, questions and commits <input type=\"search\" name=\"q\" value=\"");
    strbuf_put_markup(out, query);
    strbuf_puts(out, "\"></label> <button type=\"submit\">Search</button></form>\n"
                     "<form method=\"get\" action=\"compare\" class=\"tools\" id=\"pair\">"
                     "<span>Choose a base and a new one in the list:</span> <button "
                     "type=\"submit\">Compare</button></form>\n");
}

/* "base" and "new" of the row, which the form above sends. */
static void put_choice(struct strbuf *out, const char *side, long long id)
{
    strbuf_printf(out,
                  "<td><input type=\"radio\" form=\"pair\" name=\"%s\" value=\"%lld\" required "
                  "aria-label=\"%lld as %s\"></td>",
                  side, id, id, side);
}

/* Leads to the experiments at the same commit. */
static void put_commit(struct strbuf *out, const char *commit, size_t digits, const char *home)
{
    CLEANUP(memory_freep) char *hash = memory_strndup(commit, strcspn(commit, "-"));
    if (!*commit)
        return;
    strbuf_printf(out, "<a href=\"%s?q=", home);
    serve_put_escaped(out, hash);
    strbuf_puts(out, "\">");
    strbuf_put_markup_n(out, commit, strnlen(commit, digits));
    strbuf_puts(out, "</a>");
}

static void put_experiment_row(struct strbuf *out, struct store *store,
                               const struct store_experiment *e)
{
    char moment[32];
    long long id = e->id;
    strbuf_printf(out, "<tr><th scope=\"row\"><a href=\"e/%lld\">%lld</a></th>", id, id);
    put_choice(out, "base", id);
    put_choice(out, "new", id);
    strbuf_printf(out, "<td><a href=\"e/%lld\">", id);
    strbuf_put_markup(out, e->name);
    strbuf_puts(out, "</a></td><td>");
    strbuf_put_markup(out, e->question);
    strbuf_printf(out, "</td><td>%s</td><td>",
                  format_moment(e->started_at_ns, moment, sizeof(moment)));
    serve_put_state(out, store, e);
    strbuf_printf(out, "</td><td>%llu</td><td>%llu</td><td%s>%llu</td><td>",
                  (unsigned long long)e->cell_count, (unsigned long long)e->run_count,
                  e->failed_count ? " class=\"worse\"" : "", (unsigned long long)e->failed_count);
    put_commit(out, e->git_commit, 12, "");
    strbuf_puts(out, "</td><td><a href=\"history?name=");
    serve_put_escaped(out, e->name);
    strbuf_printf(out, "\">history<span class=\"sr\"> of %lld</span></a></td></tr>\n", id);
}

static int list_page(struct store *store, const struct serve_request *q, struct strbuf *out)
{
    struct error err = {0};
    const char *query = q->query ? q->query : "";
    uint64_t page, count = 0;
    if (!serve_page_number(q->page, &page))
        return fail(out, 400, "Not a page", "The page number is not valid.", 0);
    CLEANUP(store_list_done) struct store_list list = {0};
    int r = store_search(store, query, (page - 1) * SERVE_EXPERIMENTS, SERVE_EXPERIMENTS, &list,
                         &count, &err);
    if (r < 0)
        return serve_trouble(out, &err, r, 0);
    if (!serve_page_exists(page, count, SERVE_EXPERIMENTS))
        return fail(out, 404, "Not found", "There are not that many experiments.", 0);
    serve_put_start(out, "Experiments", "", 0);
    put_search(out, query);
    put_live_start(out, 0);
    strbuf_puts(
        out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Experiments\">"
             "<table class=\"list\"><thead><tr><th scope=\"col\">Id</th><th scope=\"col\">Base</th>"
             "<th scope=\"col\">New</th><th scope=\"col\">Name</th>"
             "<th scope=\"col\">Question</th><th scope=\"col\">Started</th>"
             "<th scope=\"col\">State</th><th scope=\"col\">Cells</th><th "
             "scope=\"col\">Runs</th><th scope=\"col\">Failed</th><th "
             "scope=\"col\">Commit</th><th scope=\"col\">History</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < list.count; i++)
        put_experiment_row(out, store, &list.items[i]);
    strbuf_puts(out, "</tbody></table></div>\n");
    CLEANUP(strbuf_done) struct strbuf extra = {0};
    if (*query) {
        strbuf_puts(&extra, "&amp;q=");
        serve_put_escaped(&extra, query);
    }
    put_pager(out, page, (count + SERVE_EXPERIMENTS - 1) / SERVE_EXPERIMENTS, strbuf_text(&extra));
    strbuf_puts(out, "</div>\n");
    if (!*query && page == 1)
        strbuf_puts(out, "<section id=\"moved\" aria-labelledby=\"h-moved\" data-from=\"moved\">"
                         "<h2 id=\"h-moved\">What moved lately</h2>\n<div id=\"moved-list\"><p "
                         "class=\"note\"><a href=\"moved\">Look through the histories</a></p></div>"
                         "</section>\n");
    html_put_foot(out, HTML_LIVE, NULL);
    return 200;
}

/* ---- one experiment ---- */

static void put_fact(struct strbuf *out, const char *name, const char *value)
{
    if (!*value)
        return;
    strbuf_printf(out, "<dt>%s</dt><dd>", name);
    strbuf_put_markup(out, value);
    strbuf_puts(out, "</dd>\n");
}

static void put_banner(struct strbuf *out, const char *class, const struct strbuf *text)
{
    if (!text->length)
        return;
    strbuf_printf(out, "<p class=\"banner %s\">", class);
    strbuf_put_markup(out, strbuf_text(text));
    strbuf_puts(out, "</p>\n");
}

static void put_losses(struct strbuf *out, struct store *store, const struct store_experiment *e)
{
    struct dataset d;
    struct error err = {0};
    CLEANUP(strbuf_done) struct strbuf state = {0}, failed = {0};
    losses_put_state(&state, e);
    put_banner(out, "unfinished", &state);
    if (!e->failed_count || dataset_load(&d, store, e->id, &err) < 0)
        return;
    losses_put_failed(&failed, &d);
    put_banner(out, "lost", &failed);
    html_put_failures(out, &d);
    dataset_done(&d);
}

/* The experiment of the same name before this one; 0 for none. */
static int64_t previous_of(struct store *store, const struct store_experiment *e)
{
    struct error ignored;
    CLEANUP(store_list_done) struct store_list list = {0};
    if (store_list(store, &(struct store_filter){.name = e->name, .most = 500}, &list, &ignored) <
        0)
        return 0;
    for (size_t i = 0; i < list.count; i++)
        if (list.items[i].id < e->id)
            return list.items[i].id;
    return 0;
}

static bool is_explained(struct store *store, int64_t id)
{
    struct error ignored;
    CLEANUP(explanations_done) struct explanations list = {0};
    return explanations_load(&list, store, id, &ignored) == 0 && list.count;
}

/* Where to go from here. */
static void put_ways(struct strbuf *out, struct store *store, const struct store_experiment *e)
{
    long long id = e->id, previous = previous_of(store, e);
    strbuf_printf(
        out,
        "<ul><li><a href=\"%lld/report\">Report</a></li>\n<li><a href=\"%lld/runs\">Every "
        "run</a></li>\n<li><a href=\"../history?name=",
        id, id);
    serve_put_escaped(out, e->name);
    strbuf_puts(out, "\">History</a> of this name</li>\n");
    if (previous)
        strbuf_printf(
            out,
            "<li><a href=\"../compare?base=%lld&amp;new=%lld\">Compare with %lld</a>, the "
            "one before it</li>\n",
            previous, id, previous);
    if (is_explained(store, e->id))
        strbuf_printf(
            out, "<li><a href=\"%lld/report#reasons\">Explanation</a>: why it differs</li>\n", id);
    strbuf_printf(
        out, "<li>For programs: <a href=\"../api/v1/experiments/%lld\">JSON</a></li></ul>\n", id);
}

static int experiment_page(struct store *store, int64_t id, struct strbuf *out)
{
    struct error err = {0};
    CLEANUP(store_experiment_done) struct store_experiment e = {0};
    int r = store_experiment(store, id, &e, &err);
    if (r < 0)
        return serve_trouble(out, &err, r, 1);
    char moment[32], text[160];
    CLEANUP(memory_freep) char *title = memory_printf("%lld: %s", (long long)id, e.name);
    serve_put_start(out, title, e.question, 1);
    put_live_start(out, 1);
    strbuf_puts(out, "<dl>\n<dt>State</dt><dd>");
    serve_put_state(out, store, &e);
    strbuf_puts(out, "</dd>\n");
    put_fact(out, "Started", format_moment(e.started_at_ns, moment, sizeof(moment)));
    if (*e.git_commit) {
        strbuf_puts(out, "<dt>Commit</dt><dd>");
        put_commit(out, e.git_commit, 60, "../");
        strbuf_puts(out, "</dd>\n");
    }
    put_fact(out, "Spec", e.spec_path);
    put_fact(out, "Baseline", e.baseline);
    snprintf(text, sizeof(text), "%llu %s, %llu %s; %llu failed, %llu disturbed",
             (unsigned long long)e.cell_count, plural(e.cell_count, "cell", "cells"),
             (unsigned long long)e.run_count, plural(e.run_count, "run", "runs"),
             (unsigned long long)e.failed_count, (unsigned long long)e.disturbed_count);
    put_fact(out, "Runs", text);
    strbuf_puts(out, "</dl>\n");
    put_losses(out, store, &e);
    strbuf_puts(out, "</div>\n");
    put_ways(out, store, &e);
    if (e.run_count) /* comes by itself: it takes as long as the report */
        strbuf_printf(
            out,
            "<section id=\"verdict\" data-from=\"%lld/report\" "
            "aria-labelledby=\"h-verdict\"><h2 id=\"h-verdict\">Verdict</h2>\n<p "
            "class=\"note\">It is in the <a href=\"%lld/report\">report</a>.</p></section>\n",
            (long long)id, (long long)id);
    html_put_foot(out, HTML_LIVE, NULL);
    return 200;
}

static void put_value(struct strbuf *out, double value, const char *unit)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    strbuf_put_measured(&text, value, unit);
    strbuf_put_markup(out, strbuf_text(&text));
}

static void put_run_row(struct strbuf *out, const struct store_run_line *run)
{
    char moment[32];
    strbuf_printf(out, "<tr><th scope=\"row\">%lld</th><td>", (long long)run->id);
    strbuf_put_markup(out, run->cell);
    strbuf_printf(out, "</td><td>%llu</td><td>%s</td><td>", (unsigned long long)run->round,
                  format_moment(run->started_at_ns, moment, sizeof(moment)));
    strbuf_put_measured(out, (double)run->wall_ns, "ns");
    strbuf_puts(out, "</td><td>");
    losses_put_status(out, run->status);
    strbuf_printf(out, "</td><td>%s</td><td>", run->disturbed ? "yes" : "");
    if (!isnan(run->value))
        put_value(out, run->value, run->unit ? run->unit : "");
    strbuf_puts(out, "</td></tr>\n");
}

static int runs_page(struct store *store, const struct serve_request *q, int64_t id,
                     struct strbuf *out)
{
    struct error err = {0};
    CLEANUP(store_experiment_done) struct store_experiment e = {0};
    uint64_t page;
    if (!serve_page_number(q->page, &page))
        return fail(out, 400, "Not a page", "The page number is not valid.", 2);
    int r = store_experiment(store, id, &e, &err);
    if (r < 0)
        return serve_trouble(out, &err, r, 2);
    if (!serve_page_exists(page, e.run_count, SERVE_RUNS))
        return fail(out, 404, "Not found", "There are not that many runs.", 2);
    CLEANUP(memory_freep) char *headline = memory_strndup(e.headline, strcspn(e.headline, "\n"));
    CLEANUP(memory_freep) char *title = memory_printf("Runs of %lld: %s", (long long)id, e.name);
    serve_put_start(out, title, "", 2);
    strbuf_puts(out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Runs\">"
                     "<table><thead><tr><th scope=\"col\">Run</th><th scope=\"col\">Cell</th><th "
                     "scope=\"col\">Round</th><th scope=\"col\">Started</th><th "
                     "scope=\"col\">Wall</th><th scope=\"col\">End</th><th "
                     "scope=\"col\">Disturbed</th><th scope=\"col\">");
    strbuf_put_markup(out, *headline ? headline : "Value");
    strbuf_puts(out, "</th></tr></thead><tbody>\n");
    CLEANUP(store_cursor_done) struct store_cursor rows = {0};
    struct store_run_line run;
    int64_t first;
    r = serve_pages_find(q->pages, store, &e, page, &first, &err);
    if (r == 0)
        r = store_run_lines(store, id, headline, first, SERVE_RUNS, &rows, &err);
    if (r < 0)
        return serve_trouble(out, &err, r, 2);
    while ((r = store_next_run_line(&rows, &run, &err)) > 0)
        put_run_row(out, &run);
    strbuf_puts(out, "</tbody></table></div>\n");
    put_pager(out, page, (e.run_count + SERVE_RUNS - 1) / SERVE_RUNS, "");
    html_put_foot(out, HTML_LIVE, NULL);
    return r < 0 ? serve_trouble(out, &err, r, 2) : 200;
}

/* ---- reports ---- */

static int finish_report(struct page *page, struct strbuf *out, int depth)
{
    struct error err = {0};
    page->home = home(depth);
    int r = page_prepare(page, &err);
    if (r < 0)
        return serve_trouble(out, &err, r, depth);
    page_plot(page);
    html_put_page(out, page);
    return 200;
}

static int report_page(struct store *store, int64_t id, struct strbuf *out)
{
    struct error err = {0};
    CLEANUP(page_done) struct page page = {0};
    int r = page_add_experiment(&page, store, id, &err);
    if (r == 0)
        r = page_add_monitors(&page, store, id, &err);
    if (r == 0)
        r = page_add_history(&page, store, id, &err);
    if (r == 0)
        r = page_add_explanations(&page, store, &err);
    if (r == 0)
        page_add_profiles(&page, store, id);
    return r < 0 ? serve_trouble(out, &err, r, 2) : finish_report(&page, out, 2);
}

static int compare_page(struct store *store, const struct serve_request *q, struct strbuf *out)
{
    struct error err = {0};
    CLEANUP(page_done) struct page page = {0};
    int64_t ids[2];
    const char *words[2] = {q->base ? q->base : "", q->new ? q->new : ""};
    int r = 0;
    for (size_t i = 0; i < 2 && r == 0; i++) {
        r = *words[i] ? store_find(store, words[i], &ids[i], &err)
                      : error_set(&err, -EINVAL, "name two experiments to compare");
        if (r == 0)
            r = page_add_experiment(&page, store, ids[i], &err);
    }
    if (r == 0 && ids[0] == ids[1])
        r = error_set(&err, -EINVAL, "these are the same experiment");
    if (r == 0)
        r = page_add_explanations(&page, store, &err);
    return r < 0 ? serve_trouble(out, &err, r, 0) : finish_report(&page, out, 0);
}

static int history_page(struct store *store, const struct serve_request *q, struct strbuf *out)
{
    struct error err = {0};
    CLEANUP(page_done) struct page page = {0};
    int64_t id;
    int r = q->name && *q->name ? store_find(store, q->name, &id, &err)
                                : error_set(&err, -EINVAL, "name an experiment");
    if (r == 0)
        r = page_add_experiment(&page, store, id, &err);
    if (r == 0)
        r = page_add_history(&page, store, id, &err);
    if (r < 0)
        return serve_trouble(out, &err, r, 0);
    page.view = &page.data.sets[0];
    page_plot_time(&page);
    CLEANUP(memory_freep)
    char *title = memory_printf("History of %s", page.view->experiment.name);
    serve_put_start(out, title, page.view->experiment.question, 0);
    if (page.plot_count)
        html_put_plots(out, &page);
    else
        strbuf_puts(out, "<p>There are too few experiments with this name: a history needs at "
                         "least three.</p>\n");
    html_put_foot(out, HTML_LIVE, NULL);
    return 200;
}

int serve_page(struct store *store, const struct serve_request *q, struct strbuf *out)
{
    if (str_has_prefix(q->path, SERVE_API))
        return serve_api(store, q, q->path + strlen(SERVE_API), out);
    if (str_eq(q->path, SERVE_LIVE))
        return serve_live(store, out);
    if (str_eq(q->path, "/moved"))
        return serve_moved(store, out);
    int64_t id;
    const char *rest = serve_behind_id(q->path, "/e/", &id);
    if (str_eq(q->path, "/"))
        return list_page(store, q, out);
    if (str_eq(q->path, "/compare"))
        return compare_page(store, q, out);
    if (str_eq(q->path, "/history"))
        return history_page(store, q, out);
    if (rest && !*rest)
        return experiment_page(store, id, out);
    if (rest && str_eq(rest, "/runs"))
        return runs_page(store, q, id, out);
    if (rest && str_eq(rest, "/report"))
        return report_page(store, id, out);
    return fail(out, 404, "Not found", "There is no such page.", depth_of(q->path));
}
