/* SPDX-License-Identifier: MIT */
/* The first screen: a sentence with the winner, the baseline, how much and how sure, and beside it
 * one picture that tells the same. */
#include "base/memory.h"
#include "report/html/html.h"

#include <math.h>
#include <stdio.h>

enum {
    FOREST_MAX = 16,
    FOREST_TALL = 10,
    NAME_COLUMNS = 60,
    BASE_COLUMNS = 40,
    LABEL_COLUMNS = 120,
    NOTE_MAX = 48
};

static void put_name(struct strbuf *out, const char *name)
{
    CLEANUP(strbuf_done) struct strbuf word = {0};
    svg_put_word(&word, name, NAME_COLUMNS);
    strbuf_puts(out, "<b>");
    strbuf_put_markup(out, strbuf_text(&word));
    strbuf_puts(out, "</b>");
}

static bool has_best(const struct page_first *f)
{
    return f->best < f->count;
}

static void put_count(struct strbuf *out, enum verdict_kind kind, size_t count)
{
    const struct html_kind *k = html_kind(kind);
    strbuf_printf(out,
                  "<span class=\"%s\"><span aria-hidden=\"true\">%s</span>&nbsp;%s in %zu</span>",
                  k->class, k->sign, k->word, count);
}

/* A mean of cells of which some are better and some worse is no verdict: they come first. */
static bool is_mixed(const struct page_entry *e)
{
    return e->better && e->worse;
}

static const char *mixed_words(char *room, const struct page_entry *e)
{
    snprintf(room, VERDICT_TEXT_MAX, "better in %zu, worse in %zu", e->better, e->worse);
    return room;
}

static void put_mixed(struct strbuf *out, const struct page_entry *e)
{
    strbuf_puts(out, "<strong>it depends</strong>, ");
    put_count(out, VERDICT_BETTER, e->better);
    strbuf_puts(out, " and ");
    put_count(out, VERDICT_WORSE, e->worse);
    strbuf_printf(out, " of %zu cells; on average ", e->cells);
    strbuf_put_markup(out, e->verdict.text);
}

static void put_certain(struct strbuf *out, const struct html_kind *k, const char *text)
{
    const char *end = strchr(text, ']'); /* what follows are reservations */
    size_t length = end ? (size_t)(end + 1 - text) : strlen(text);
    strbuf_printf(out, "<strong class=\"%s\"><span aria-hidden=\"true\">%s</span>&nbsp;", k->class,
                  k->sign);
    strbuf_put_markup_n(out, text, length);
    strbuf_puts(out, "</strong>");
    strbuf_put_markup(out, text + length);
}

static void put_sentence(struct strbuf *out, const struct page *page)
{
    const struct page_first *f = &page->first;
    const struct page_entry *e = &f->entries[f->best];
    const struct html_kind *k = html_kind(e->verdict.kind);
    strbuf_puts(out, "<p class=\"lead main\">");
    put_name(out, e->name);
    strbuf_puts(out, " against ");
    put_name(out, f->base);
    strbuf_printf(out, "%s, ", page->is_compared ? "" : " (the baseline)");
    strbuf_put_markup(out, page->view->metrics[f->metric].name);
    strbuf_puts(out, ": ");
    if (is_mixed(e))
        put_mixed(out, e);
    else
        put_certain(out, k, e->verdict.text);
    if (*e->note || *e->caveat) {
        strbuf_puts(out, " (");
        strbuf_put_markup(out, e->note);
        strbuf_puts(out, *e->note && *e->caveat ? "; " : "");
        strbuf_put_markup(out, e->caveat);
        strbuf_puts(out, ")");
    }
    strbuf_puts(out, ".</p>\n");
}

/* "x is best with …", where the sentence names x already. */
static bool says_the_same(const struct page_first *f, const char *text)
{
    if (!has_best(f) || f->entries[f->best].verdict.kind != VERDICT_BETTER)
        return false;
    const char *name = f->entries[f->best].name;
    return str_has_prefix(text, name) && str_has_prefix(text + strlen(name), " is best");
}

/* Which of all is best, as the answers have it; they are about the whole experiment. */
static void put_best(struct strbuf *out, const struct page *page)
{
    if (!page->has_answers || page->is_compared)
        return;
    for (size_t i = 0; i < page->answers.count; i++) {
        const struct answer *a = &page->answers.items[i];
        if (!str_eq(a->kind, "best") ||
            (page->first.metric != DATASET_NONE &&
             !str_eq(a->metric, page->view->metrics[page->first.metric].name)))
            continue;
        if (!*a->where && says_the_same(&page->first, a->text))
            return;
        strbuf_puts(out, "<p class=\"lead\">By ");
        strbuf_put_markup(out, a->metric);
        if (*a->where) {
            strbuf_puts(out, " at ");
            html_put_words(out, a->where);
        }
        strbuf_puts(out, ": ");
        html_put_words(out, a->text);
        strbuf_puts(out, ".</p>\n");
        return;
    }
}

/* Without a comparison, the first answer is what there is to say. */
static void put_first_answer(struct strbuf *out, const struct page *page)
{
    const struct answer *a = &page->answers.items[0];
    strbuf_puts(out, "<p class=\"lead main\">");
    put_name(out, a->metric);
    if (*a->where) {
        strbuf_puts(out, " at ");
        html_put_words(out, a->where);
    }
    strbuf_puts(out, ": ");
    html_put_words(out, a->text);
    strbuf_puts(out, a->certain ? ".</p>\n" : " <i>(not certain)</i>.</p>\n");
}

static void put_range(struct strbuf *out, const char *before, double low, const char *between,
                      double high, const char *after, const char *unit)
{
    strbuf_puts(out, before);
    html_put_measured(out, low, unit);
    strbuf_puts(out, between);
    html_put_measured(out, high, unit);
    strbuf_puts(out, after);
}

/* Of one cell alone, what was measured is what there is to say. */
static bool put_figure(struct strbuf *out, const struct page *page)
{
    const struct page_row *only = NULL;
    for (size_t i = 0; i < page->row_count; i++)
        if (page->rows[i].headline && page->rows[i].metric == page->first.metric) {
            if (only)
                return false;
            only = &page->rows[i];
        }
    if (!only || !only->new.count)
        return false;
    const struct store_metric *m = &page->view->metrics[only->metric];
    bool has_interval = only->interval.level >= HTML_INTERVAL_LEVEL;
    strbuf_puts(out, "<p class=\"lead main\">");
    put_name(out, m->name);
    strbuf_puts(out, ": <strong>");
    html_put_measured(out, only->new.median, m->unit);
    if (has_interval)
        put_range(out, " [", only->interval.low, ", ", only->interval.high, "]", m->unit);
    strbuf_printf(out, "</strong>, the median of %zu %s", only->new.count,
                  plural(only->new.count, "run", "runs"));
    if (!has_interval && only->new.count > 1)
        put_range(out, " (", only->new.min, " to ", only->new.max, ")", m->unit);
    strbuf_puts(out, ".</p>\n<p>");
    strbuf_puts(out, page->first.curve && str_eq(page->first.curve->kind, "history")
                         ? "There is nothing in this experiment to compare it with; those of the "
                           "same name before it are in the picture."
                         : "There is nothing to compare it with.");
    strbuf_puts(out, "</p>\n");
    return true;
}

/* How sure, on what, and what speaks against it. */
static void put_circumstances(struct strbuf *out, const struct page *page)
{
    const struct page_first *f = &page->first;
    const struct page_entry *e = has_best(f) ? &f->entries[f->best] : NULL;
    const char *what = !e                             ? NULL
                       : strchr(e->verdict.text, '[') ? "The interval in brackets"
                       : strstr(e->verdict.text, " than ") || strstr(e->verdict.text, " below ")
                           ? "The limit"
                           : NULL;
    strbuf_puts(out, "<p class=\"note\">");
    if (what)
        strbuf_printf(out, "%s is at %.4g %% confidence. ", what, 100 * e->comparison.level);
    if (f->machine && *f->machine) {
        strbuf_puts(out, "Measured on ");
        strbuf_put_markup(out, f->machine);
        strbuf_puts(out, ". ");
    }
    const struct compare *c = &page->compare;
    if (page->is_compared && (c->unmatched_base || c->unmatched_new))
        strbuf_printf(
            out,
            "Not compared: %zu %s of the base and %zu of the new one, which the other does "
            "not have. ",
            c->unmatched_base, plural(c->unmatched_base, "cell", "cells"), c->unmatched_new);
    for (size_t i = 0; i < page->data.set_count; i++) {
        const struct store_experiment *set = &page->data.sets[i].experiment;
        if (set->disturbed_count * 10 > set->run_count)
            strbuf_printf(out, "Other work used the machine in %llu of %llu runs%s. ",
                          (unsigned long long)set->disturbed_count,
                          (unsigned long long)set->run_count,
                          page->data.set_count < 2 ? ""
                          : i                      ? " of the new one"
                                                   : " of the base");
    }
    strbuf_puts(out, "</p>\n");
}

static bool is_plain(const char *text)
{
    return *text && strlen(text) <= 80 && !strpbrk(text, "'\n");
}

/* The command that finds the reasons, where none are known. */
static void put_next(struct strbuf *out, const struct page *page)
{
    const struct page_first *f = &page->first;
    if (page->data.explanations.count || page->why_count || !has_best(f) ||
        !verdict_is_difference(&f->entries[f->best].verdict))
        return;
    CLEANUP(strbuf_done) struct strbuf command = {0};
    const struct compare_pair *pair = NULL;
    const struct dataset *sets = page->data.sets;
    for (size_t i = 0; i < page->compare.row_count && !pair; i++) {
        const struct compare_row *row = &page->compare.rows[i];
        const struct dataset_cell *cell =
            &page->compare.new->cells[page->compare.pairs[row->pair].new_cell];
        if (page->is_compared || (page->variant != DATASET_NONE &&
                                  str_eq(cell->levels[page->variant], f->entries[f->best].name)))
            pair = &page->compare.pairs[row->pair];
    }
    if (!pair)
        return;
    const char *texts[2] = {page->compare.base->cells[pair->base_cell].command,
                            page->compare.new->cells[pair->new_cell].command};
    if (!*texts[0] || !*texts[1])
        return; /* results of other tools, which cannot be run again */
    if (page->data.set_count == 2 && sets[0].experiment.id > 0 && sets[1].experiment.id > 0)
        strbuf_printf(&command, "assay explain %lld %lld", (long long)sets[0].experiment.id,
                      (long long)sets[1].experiment.id);
    else if (page->data.set_count == 1 && sets[0].experiment.id > 0 &&
             page->variant != DATASET_NONE && is_plain(f->base) &&
             is_plain(f->entries[f->best].name))
        strbuf_printf(&command, "assay explain --in %lld '%s=%s' '%s=%s'",
                      (long long)sets[0].experiment.id, sets[0].factors[page->variant], f->base,
                      sets[0].factors[page->variant], f->entries[f->best].name);
    else if (page->data.set_count == 1 && is_plain(texts[0]) && is_plain(texts[1]))
        strbuf_printf(&command, "assay explain '%s' '%s'", texts[0], texts[1]);
    if (!command.length)
        return;
    strbuf_puts(out, "<p class=\"next\">Why? <code>");
    strbuf_put_markup(out, strbuf_text(&command));
    strbuf_puts(out, "</code> finds the reasons.</p>\n");
}

/* What is noted of every row alike stands above them once; "" where they differ. */
static const char *shared_note(const struct page_entry *entries, size_t count)
{
    const char *shared = NULL;
    for (size_t i = 0; i < count; i++)
        if (!entries[i].is_lost && !shared)
            shared = entries[i].note;
        else if (!entries[i].is_lost && !str_eq(shared, entries[i].note))
            return "";
    return shared ? shared : "";
}

/* The verdict as far as a picture has room for it: neither where nor why it cannot tell, nor what
 * would help. */
static const char *picture_words(char *room, const struct verdict *v)
{
    static const char *const ends[] = {" are invisible in this run", ": runs of the same command",
                                       ": other work"};
    size_t length = strlen(v->text);
    for (size_t i = 0; v->kind == VERDICT_CANNOT_TELL && i < ARRAY_COUNT(ends); i++) {
        const char *end = strstr(v->text, ends[i]);
        length = end && (size_t)(end - v->text) < length ? (size_t)(end - v->text) : length;
    }
    if (v->kind == VERDICT_CANNOT_TELL && strcspn(v->text, ";") < length)
        length = strcspn(v->text, ";");
    snprintf(room, VERDICT_TEXT_MAX, "%.*s", (int)length, v->text);
    static const char head[] = "cannot tell: differences below"; /* … are invisible */
    if (str_has_prefix(room, head))
        memmove(room + strlen("cannot tell"), room + strlen("cannot tell:"),
                strlen(room + strlen("cannot tell:")) + 1);
    return room;
}

/* A row of the picture; its texts are kept in the two rooms. */
static struct forest_row forest_row_of(const struct page_entry *e, bool with_note, char *words,
                                       char *note)
{
    bool ratio = !e->is_lost && e->comparison.scale == COMPARISON_RATIO;
    bool interval = ratio && comparison_shows_interval(&e->comparison);
    if (with_note && *e->note) /* the sentence says which mean */
        snprintf(note, NOTE_MAX, "mean of %zu %s", e->cells, plural(e->cells, "cell", "cells"));
    return (struct forest_row){
        .name = e->name,
        .words = e->is_lost    ? e->caveat
                 : is_mixed(e) ? mixed_words(words, e)
                               : picture_words(words, &e->verdict),
        .caveat = e->is_lost ? "" : e->caveat,
        .note = note,
        .kind = e->is_lost ? "lost"
                           : html_kind(is_mixed(e) ? VERDICT_CANNOT_TELL : e->verdict.kind)->class,
        .estimate = ratio ? e->comparison.estimate : NAN,
        .low = interval ? e->comparison.low : NAN,
        .high = interval ? e->comparison.high : NAN,
    };
}

static void put_forest(struct strbuf *out, const struct page *page)
{
    const struct page_first *f = &page->first;
    const struct store_metric *m = &page->view->metrics[f->metric];
    size_t count = f->count < FOREST_MAX ? f->count : FOREST_MAX;
    const char *shared = shared_note(f->entries, count);
    CLEANUP(memory_freep) struct forest_row *rows = memory_zalloc(count, sizeof(*rows));
    CLEANUP(memory_freep) char *texts = memory_zalloc(count + 1, VERDICT_TEXT_MAX);
    CLEANUP(memory_freep) char *notes = memory_zalloc(count + 1, NOTE_MAX);
    for (size_t i = 0; i < count; i++)
        rows[i] = forest_row_of(&f->entries[i], !*shared, texts + i * VERDICT_TEXT_MAX,
                                notes + i * NOTE_MAX);
    CLEANUP(memory_freep)
    char *title = memory_printf("%s, ratio to %s with its interval", m->name, f->base);
    strbuf_puts(out, "<figure id=\"first-picture\" data-kind=\"forest\"><figcaption>");
    strbuf_put_markup(out, m->name);
    strbuf_puts(out, ", ratio to ");
    CLEANUP(strbuf_done) struct strbuf base = {0};
    svg_put_word(&base, f->base, BASE_COLUMNS);
    strbuf_put_markup(out, strbuf_text(&base));
    if (*shared) {
        strbuf_puts(out, ", ");
        strbuf_put_markup(out, shared);
    }
    strbuf_puts(out, m->facts.better == METRIC_LOWER    ? "; lower is better"
                     : m->facts.better == METRIC_HIGHER ? "; higher is better"
                                                        : "");
    strbuf_puts(out, "</figcaption>");
    if (f->row_factors && *f->row_factors) {
        strbuf_puts(out, "<p class=\"note\">By ");
        strbuf_put_markup_n(out, f->row_factors, str_column_bytes(f->row_factors, LABEL_COLUMNS));
        strbuf_puts(out, ".</p>");
    }
    struct forest forest = {
        .id = "forest", .title = title, .base = f->base, .rows = rows, .count = count};
    forest_put_svg(&forest, PLOT_NARROW, out);
    forest_put_svg(&forest, PLOT_WIDE, out);
    if (count < f->count)
        strbuf_printf(out, "<p class=\"note\">%zu more %s in the table.</p>", f->count - count,
                      plural(f->count - count, "is", "are"));
    strbuf_puts(out, "</figure>\n");
}

bool html_is_tall(const struct page *page)
{
    return !page->first.curve && page->first.metric != DATASET_NONE &&
           page->first.count >= FOREST_TALL;
}

static bool has_other_tools(const struct page *page)
{
    const struct dataset *d = page->view;
    return d->factor_count && !dataset_has_rivals(d, 0);
}

void html_put_first(struct strbuf *out, const struct page *page)
{
    const struct page_first *f = &page->first;
    strbuf_puts(out, "<div class=\"first\"><div class=\"say\">\n");
    html_put_banners(out, page);
    bool has_answer = page->view && page->has_answers && page->answers.count;
    if (has_best(f))
        put_sentence(out, page);
    if (has_best(f) || f->metric == DATASET_NONE)
        put_best(out, page);
    if (page->view && f->metric == DATASET_NONE)
        strbuf_puts(out, "<p class=\"lead main\">There is no verdict: no run has a value of a "
                         "headline metric.</p>\n");
    else if (has_answer && !has_best(f))
        put_first_answer(out, page);
    else if (page->view && !has_best(f) && !put_figure(out, page))
        strbuf_puts(out,
                    has_other_tools(page)
                        ? "<p class=\"lead main\">There is nothing to compare yet: the benchmarks "
                          "of one file do different things.</p>\n<p>Import the same benchmarks "
                          "again, and <code>assay html 1 2</code> compares two imports.</p>\n"
                        : "<p class=\"lead main\">There is nothing to compare: the experiment "
                          "names no baseline, or only the baseline has values.</p>\n");
    html_put_tallies(out, page);
    if (page->view)
        put_circumstances(out, page);
    put_next(out, page);
    if (html_is_tall(page))
        html_put_strongest(out, page);
    strbuf_puts(out, "</div>\n");
    if (f->curve) {
        html_put_plot(out, f->curve, true);
    } else if (f->count && f->metric != DATASET_NONE) {
        put_forest(out, page);
    }
    strbuf_puts(out, "</div>\n");
}
