/* SPDX-License-Identifier: MIT */
/* What `assay ab` found, as text for people, and as JSON, CSV, Markdown and the formats of other
 * tools for programs. */
#ifndef ASSAY_REPORT_TEXT_AB_H
#define ASSAY_REPORT_TEXT_AB_H

#include "analysis/outcome.h"
#include "base/json.h"
#include "base/measured.h"
#include "base/strings.h"
#include "counters/doubts.h"
#include "fits/layout_spread.h"
#include "machine/machine.h"

#include <time.h>

struct ab_view {
    const struct outcome *outcome;
    const struct doubt_list *notes;
    bool all; /* nothing is folded */
    bool colour;
    bool events_given;   /* asked for by name: that one is missing is news */
    bool verbose;        /* with the notes that are the same every time */
    const size_t *order; /* of the rows; NULL: as they were given */
    bool sketches;       /* the terminal can draw distributions */
    size_t columns;      /* of the text */
    /* What was run here; NULL for values that were read from files. */
    const struct rounds *rounds;
    const struct rounds_spec *spec;
    const struct layout_spread *layouts; /* of each participant; NULL: nobody asked */
    const struct machine *machine;       /* for JSON and the like; may be NULL for text */
    time_t started;
    const char *shell;         /* that ran the commands, NULL for none */
    uint64_t shell_startup_ns; /* 0 when unknown */
};

void report_ab_text(struct strbuf *out, const struct ab_view *v);
void report_ab_json(struct strbuf *out, const struct ab_view *v);
void report_ab_csv(struct strbuf *out, const struct ab_view *v);
void report_ab_markdown(struct strbuf *out, const struct ab_view *v);
/* As hyperfine --export-json writes it, for its scripts; says besides that it is paired. */
void report_ab_hyperfine(struct strbuf *out, const struct ab_view *v);
/* As hyperfine --export-csv writes it. */
void report_ab_summary_csv(struct strbuf *out, const struct ab_view *v);
/* A line for each command, by the headline. */
void report_ab_asciidoc(struct strbuf *out, const struct ab_view *v);
void report_ab_orgmode(struct strbuf *out, const struct ab_view *v);
/* As google-benchmark's --benchmark_out writes it, for its compare.py. */
void report_ab_google(struct strbuf *out, const struct ab_view *v);

/* What the result's reader must know: losses, disturbances, and what cannot be believed. */
void report_ab_notes(struct doubt_list *notes, const struct ab_view *v);
/* "zstd is fastest: 3.95× [3.60, 4.20] faster than pigz, …", a line for each group of three or more
 * commands; false where there is none. */
bool report_ab_ranking(struct strbuf *out, const struct ab_view *v);
/* Of commands at several values of their parameters, a line for each that is compared; false: none.
 */
bool report_ab_suites(struct strbuf *out, const struct ab_view *v);
void report_ab_ranking_table(struct strbuf *out, const struct ab_view *v);
void report_ab_ranking_json(struct json *j, const struct ab_view *v);

/* Adds one. */
void report_note(struct doubt_list *notes, const char *id, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Whether the metric gets a table of its own: the headline, what programs print, and what differs.
 */
bool report_ab_is_shown(const struct ab_view *v, size_t metric);
/* How the headline's values lie: mean, extremes, quartiles, a sketch, and which runs stand out. */
void report_ab_distribution(struct strbuf *out, const struct ab_view *v);
/* The same as rows of a Markdown table. */
void report_ab_distribution_markdown(struct strbuf *out, const struct ab_view *v);
/* A command's name, not too long. */
void strbuf_put_ab_name(struct strbuf *out, const char *name);
/* Text inside a cell of a Markdown table, as code. */
void strbuf_put_markdown_code(struct strbuf *out, const char *text);
/* Appends "no difference: a (± 0.8 %), b" or "cannot tell: …" of the metrics without a table. */
void report_ab_folded(struct strbuf *out, const struct ab_view *v, bool same);

/* "over 20 layouts new takes +1.8 % [+1.2, +2.3]; one layout alone says between -3.0 and +5.0 %.
 * Layout is 80 % of that variation, noise the rest." */
void strbuf_put_layouts(struct strbuf *out, const char *name, const struct comparison *c,
                        const struct layout_spread *s);
/* "± 1.2 %" of the median, "± 3" where the median is about zero. */
void strbuf_put_deviation(struct strbuf *out, const char *unit, const struct summary *sum);
/* "0.746 [0.730, 0.763]", or a difference in the unit. */
void strbuf_put_ratio(struct strbuf *out, const char *unit, const struct comparison *c);
/* "failed: exit code 3: last words" of a participant that never succeeded; nothing for others. */
void strbuf_put_failure(struct strbuf *out, const struct ab_view *v, size_t participant);
/* The verdict in words. */
void strbuf_put_verdict(struct strbuf *out, const struct judge_row *judged);

#endif
