/* SPDX-License-Identifier: MIT */
/* What is missing stands at the top: experiments that did not end, and runs that failed. */
#include "analysis/losses.h"
#include "base/memory.h"
#include "report/html/html.h"

enum { FAILURES_OPEN = 6, WORDS_COLUMNS = 160, LABEL_COLUMNS = 100 };

void html_put_shortened(struct strbuf *out, const char *text, size_t columns)
{
    if (str_columns(text) <= columns) {
        strbuf_put_markup(out, text);
        return;
    }
    size_t head = str_column_bytes(text, columns);
    strbuf_puts(out, "<details class=\"long\"><summary>");
    strbuf_put_markup_n(out, text, head);
    strbuf_puts(out, "…</summary>");
    strbuf_put_markup(out, text + head);
    strbuf_puts(out, "</details>");
}

void html_put_words(struct strbuf *out, const char *text)
{
    enum { WORD_COLUMNS = 64 };
    while (*text) {
        size_t length = strcspn(text, " ");
        CLEANUP(memory_freep) char *word = memory_strndup(text, length);
        bool is_long = str_columns(word) > WORD_COLUMNS;
        strbuf_put_markup_n(out, word, is_long ? str_column_bytes(word, WORD_COLUMNS) : length);
        strbuf_puts(out, is_long ? "…" : "");
        text += length;
        strbuf_puts(out, *text ? " " : "");
        text += *text != 0;
    }
}

static void put_banner(struct strbuf *out, const char *class, const char *name, const char *text)
{
    if (!*text)
        return;
    strbuf_printf(out, "<p class=\"banner %s\"><span aria-hidden=\"true\">%s</span> ", class,
                  str_eq(class, "lost") ? "✕" : "■");
    if (*name) {
        strbuf_puts(out, "<b>");
        strbuf_put_markup(out, name);
        strbuf_puts(out, "</b>: ");
    }
    strbuf_put_markup(out, text);
    strbuf_puts(out, "</p>\n");
}

static void put_failure(struct strbuf *out, const struct dataset_cell *cell)
{
    CLEANUP(strbuf_done) struct strbuf status = {0};
    losses_put_status(&status, cell->last_status);
    strbuf_puts(out, "<tr><th scope=\"row\">");
    html_put_shortened(out, cell->label, LABEL_COLUMNS);
    strbuf_printf(out, "</th><td>%zu of %zu (%.0f %%)</td><td>", cell->failed_count,
                  cell->run_count, 100 * (double)cell->failed_count / (double)cell->run_count);
    strbuf_put_markup(out, strbuf_text(&status));
    strbuf_puts(out, "</td><td class=\"words\">");
    if (cell->last_words && *cell->last_words)
        html_put_shortened(out, cell->last_words, WORDS_COLUMNS);
    else
        strbuf_puts(out, "–");
    strbuf_puts(out, "</td></tr>\n");
}

void html_put_failures(struct strbuf *out, const struct dataset *d)
{
    size_t count = 0;
    for (size_t c = 0; c < d->cell_count; c++)
        count += d->cells[c].failed_count > 0;
    if (!count)
        return;
    strbuf_printf(out,
                  "<details class=\"failures\"%s><summary>What failed: %zu %s</summary>\n"
                  "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Failed runs\">"
                  "<table><thead><tr><th scope=\"col\">Cell</th><th scope=\"col\">Failed</th>"
                  "<th scope=\"col\">Ended with</th><th scope=\"col\">Last words of the program"
                  "</th></tr></thead><tbody>\n",
                  count <= FAILURES_OPEN ? " open" : "", count, plural(count, "cell", "cells"));
    for (size_t c = 0; c < d->cell_count; c++)
        if (d->cells[c].failed_count)
            put_failure(out, &d->cells[c]);
    strbuf_puts(out, "</tbody></table></div></details>\n");
}

void html_put_banners(struct strbuf *out, const struct page *page)
{
    for (size_t i = 0; i < page->data.set_count; i++) {
        const struct dataset *d = &page->data.sets[i];
        const char *name = page->data.set_count > 1 ? (i ? "new" : "base") : "";
        CLEANUP(strbuf_done) struct strbuf state = {0}, failed = {0};
        losses_put_state(&state, &d->experiment);
        losses_put_failed(&failed, d);
        put_banner(out, "unfinished", name, strbuf_text(&state));
        put_banner(out, "lost", name, strbuf_text(&failed));
        put_banner(out, "emulated", name, d->emulated ? d->emulated : "");
    }
}
