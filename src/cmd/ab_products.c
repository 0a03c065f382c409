/* SPDX-License-Identifier: MIT */
/* The formats in which `assay ab` writes what it found: see ab.h. */
#include "base/memory.h"
#include "cmd/ab.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static bool is_stdout(const struct ab_product *p)
{
    return p->path && (!*p->path || str_eq(p->path, "-"));
}

int ab_products_open(struct ab_products *all, const struct ab_options *o, struct error *err)
{
    *all = (struct ab_products){
        .items = {{o->json, "--json", report_ab_json, {.fd = -1}},
                  {o->csv, "--csv", report_ab_csv, {.fd = -1}},
                  {o->markdown, "--markdown", report_ab_markdown, {.fd = -1}},
                  {o->html, "--html", ab_put_html, {.fd = -1}},
                  {o->export_hyperfine, "--export-hyperfine", report_ab_hyperfine, {.fd = -1}},
                  {o->export_google, "--export-google-benchmark", report_ab_google, {.fd = -1}},
                  {o->export_csv, "--export-csv", report_ab_summary_csv, {.fd = -1}},
                  {o->export_asciidoc, "--export-asciidoc", report_ab_asciidoc, {.fd = -1}},
                  {o->export_orgmode, "--export-orgmode", report_ab_orgmode, {.fd = -1}}},
        .silent = o->style && str_eq(o->style, "none")};
    const char *first = NULL;
    for (size_t i = 0; i < AB_PRODUCT_COUNT; i++) {
        struct ab_product *p = &all->items[i];
        if (is_stdout(p) && first)
            return error_set(err, -EINVAL,
                             "%s and %s both go to standard output; give one a file: %s=FILE",
                             first, p->name, p->name);
        if (is_stdout(p))
            first = p->name;
        int r = p->path && !is_stdout(p) ? outfile_open(&p->file, p->path, err) : 0;
        if (r < 0)
            return r;
    }
    all->to_stdout = first != NULL;
    return 0;
}

void ab_products_done(struct ab_products *all)
{
    for (size_t i = 0; i < AB_PRODUCT_COUNT; i++)
        outfile_done(&all->items[i].file);
}

int ab_products_write(struct ab_products *all, const struct ab_view *v, struct error *err)
{
    int first = 0;
    CLEANUP(strbuf_done) struct strbuf text = {0};
    if (!all->to_stdout && !all->silent) {
        report_ab_text(&text, v);
        fputs(strbuf_text(&text), stdout);
    }
    for (size_t i = 0; i < AB_PRODUCT_COUNT; i++) {
        struct ab_product *p = &all->items[i];
        if (!p->path)
            continue;
        strbuf_clear(&text);
        p->report(&text, v);
        if (is_stdout(p)) {
            fwrite(strbuf_text(&text), 1, text.length, stdout);
            continue;
        }
        int r = outfile_write(&p->file, text.data, text.length, first ? NULL : err);
        if (r == 0)
            r = outfile_commit(&p->file, first ? NULL : err);
        first = first ? first : r;
    }
    return first;
}

bool ab_has_colour(const struct ab_options *o)
{
    const char *style = o->style ? o->style : "auto";
    if (str_eq(style, "full") || str_eq(style, "color"))
        return true;
    return str_eq(style, "auto") && term_has_colour(STDOUT_FILENO);
}

bool ab_has_progress(const struct ab_options *o)
{
    const char *style = o->style ? o->style : "auto";
    return str_eq(style, "auto") || str_eq(style, "full") || str_eq(style, "nocolor");
}

size_t *ab_row_order(const struct ab_options *o, const struct outcome *outcome)
{
    size_t count = outcome->data->cell_count, metric = outcome->headline;
    if (!o->sort || !str_eq(o->sort, "mean-time") || metric == DATASET_NONE)
        return NULL;
    size_t *order = memory_zalloc(count + 1, sizeof(*order));
    for (size_t i = 0; i < count; i++) {
        const struct summary *s = &outcome_cell(outcome, metric, i)->summary;
        size_t at = i;
        for (; at > 0; at--) {
            const struct summary *other = &outcome_cell(outcome, metric, order[at - 1])->summary;
            if (!s->count || (other->count && other->mean <= s->mean))
                break;
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
    return order;
}
