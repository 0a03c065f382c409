/* SPDX-License-Identifier: MIT */
/* How it was measured: origin, losses, the machine, the method in plain words, and the command
 * that does it again. */
#include "base/memory.h"
#include "report/html/html.h"
#include "report/text/experiment.h"

#include <stdio.h>

static void put_pair(struct strbuf *out, const char *name, const char *value)
{
    if (!*value)
        return;
    strbuf_printf(out, "<dt>%s</dt><dd>", name);
    strbuf_put_markup(out, value);
    strbuf_puts(out, "</dd>\n");
}

/* A text of several lines or a JSON document: folded, and only what can be read. */
static void put_text(struct strbuf *out, const char *name, const char *text)
{
    if (!*text)
        return;
    strbuf_printf(out, "<details><summary>%s</summary>", name);
    if (html_put_document(out, text)) {
        strbuf_puts(out, "</details>\n");
        return;
    }
    strbuf_puts(out, "<pre tabindex=\"0\">");
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        strbuf_put_content_n(out, line, length);
        strbuf_putc(out, '\n');
        line += length + (line[length] == '\n');
    }
    strbuf_puts(out, "</pre></details>\n");
}

/* `assay ab` has no file that could be run; its commands are the cells'. */
static void put_commands(struct strbuf *out, const struct dataset *d)
{
    enum { COMMANDS_MOST = 20 };
    bool are_commands = d->factor_count == 1 && str_eq(d->factors[0], "command") && d->cell_count &&
                        d->cell_count <= COMMANDS_MOST;
    for (size_t c = 0; c < d->cell_count; c++)
        are_commands &= d->cells[c].command && *d->cells[c].command;
    if (!are_commands)
        return;
    strbuf_puts(out, "<p>To measure the same commands again:</p>\n<pre tabindex=\"0\">");
    strbuf_printf(out, "assay ab --seed %llu", (unsigned long long)d->experiment.seed);
    for (size_t c = 0; c < d->cell_count; c++) {
        CLEANUP(strbuf_done) struct strbuf quoted = {0};
        char *words[] = {d->cells[c].command, NULL};
        strbuf_put_command(&quoted, words);
        strbuf_putc(out, ' ');
        strbuf_put_markup(out, strbuf_text(&quoted));
    }
    strbuf_puts(out, "</pre>\n");
}

static void put_command(struct strbuf *out, const struct dataset *d)
{
    const struct store_experiment *e = &d->experiment;
    if (str_has_prefix(e->spec_path, "assay ")) {
        put_commands(out, d);
        return;
    }
    if (!*e->spec_path)
        return;
    strbuf_puts(out, "<p>To run it again:</p>\n"
                     "<pre tabindex=\"0\">");
    if (*e->git_commit) {
        strbuf_puts(out, "git checkout ");
        strbuf_put_markup_n(out, e->git_commit, strcspn(e->git_commit, "-"));
        strbuf_putc(out, '\n');
    }
    strbuf_printf(out, "assay run%s --fresh --seed %llu ",
                  strstr(e->selection, "quick") ? " --quick" : "", (unsigned long long)e->seed);
    strbuf_put_markup(out, e->spec_path);
    strbuf_puts(out, "</pre>\n");
    if (str_has_suffix(e->git_commit, "-dirty"))
        strbuf_puts(out, "<p class=\"note\">The source tree had uncommitted changes.</p>\n");
}

static void put_set(struct strbuf *out, const struct dataset *d, const struct embedded_documents *t)
{
    const struct store_experiment *e = &d->experiment;
    char moment[32], text[200];
    strbuf_puts(out, "<h3>");
    strbuf_put_markup(out, e->name);
    strbuf_puts(out, "</h3>\n<dl>\n");
    put_pair(out, "State", e->state);
    put_pair(out, "Started", format_moment(e->started_at_ns, moment, sizeof(moment)));
    put_pair(out, "Commit", e->git_commit);
    put_pair(out, "Spec", e->spec_path);
    put_pair(out, "Selection", e->selection);
    put_pair(out, "Baseline", e->baseline);
    snprintf(text, sizeof(text), "%llu", (unsigned long long)e->seed);
    put_pair(out, "Seed", text);
    snprintf(text, sizeof(text),
             "%zu %s, %zu %s; %llu failed (no values), %llu %s disturbed (kept and counted)",
             d->cell_count, plural(d->cell_count, "cell", "cells"), d->run_count,
             plural(d->run_count, "run", "runs"), (unsigned long long)e->failed_count,
             (unsigned long long)e->disturbed_count, plural(e->disturbed_count, "was", "were"));
    put_pair(out, "Losses", text);
    put_pair(out, "Emulated machines", d->emulated ? d->emulated : "");
    strbuf_puts(out, "</dl>\n");
    put_command(out, d);
    put_text(out, "The spec as it was run", t->spec);
    put_text(out, "Environment", t->environment);
    put_text(out, "Capability record: what the machine could measure, tested one by one",
             t->machine);
}

static void put_notes(struct strbuf *out, const struct page *page)
{
    if (!page->notes.length)
        return;
    strbuf_puts(out, "<h3>Notes</h3>\n<ul>\n");
    for (const char *line = strbuf_text(&page->notes); *line;) {
        size_t length = strcspn(line, "\n");
        strbuf_puts(out, "<li>");
        strbuf_put_markup_n(out, line, length);
        strbuf_puts(out, "</li>\n");
        line += length + (line[length] == '\n');
    }
    strbuf_puts(out, "</ul>\n");
}

static void put_method(struct strbuf *out, const struct page *page)
{
    strbuf_puts(out, "<h3>Method</h3>\n<ul>\n");
    if (page->view)
        strbuf_puts(out, "<li>Every cell ran once in each round, in a newly shuffled order; a "
                         "disturbance of the machine affects all cells of a round alike.</li>\n"
                         "<li>Medians have exact 95 % intervals (order statistics), which hold for "
                         "noise of any shape.</li>\n");
    if (page->view && page->is_joint && page->data.sets[0].node_count &&
        page->data.sets[1].node_count)
        strbuf_puts(out,
                    "<li>Two experiments that ran on a cluster are compared node by node, with the "
                    "runs of each node in their order, where there are enough; anything else that "
                    "changed on the nodes in between is part of the differences.</li>\n");
    else if (page->view && page->is_joint)
        strbuf_puts(out, "<li>Two experiments are compared as two samples (Hodges–Lehmann shift "
                         "with the Mann–Whitney interval); anything else that changed on the "
                         "machine in between is part of the differences.</li>\n");
    else if (page->view)
        strbuf_puts(out, "<li>Differences are taken within rounds, and intervals are widened where "
                         "rounds depend on each other.</li>\n");
    if (page->view)
        strbuf_puts(out, "<li>“Cannot tell” is an answer: the interval includes both a difference "
                         "that matters and no difference.</li>\n");
    if (page->data.flame_count)
        strbuf_puts(out, "<li>Profiles are samples: a share of 1 % from 1,000 samples is known to "
                         "about ± 0.6 points.</li>\n");
    strbuf_puts(out, "</ul>\n");
}

void html_put_about(struct strbuf *out, const struct page *page)
{
    strbuf_puts(out, "<section id=\"about\" aria-labelledby=\"h-about\"><h2 id=\"h-about\">How it "
                     "was measured</h2>\n");
    for (size_t i = 0; i < page->data.set_count; i++)
        put_set(out, &page->data.sets[i], &page->data.documents[i]);
    put_notes(out, page);
    put_method(out, page);
    if (page->data.command) {
        strbuf_puts(out, "<h3>This report</h3>\n<pre tabindex=\"0\">");
        strbuf_put_markup(out, page->data.command);
        strbuf_puts(out, "</pre>\n");
    }
    strbuf_puts(out, "</section>\n");
}
