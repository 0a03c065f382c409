/* SPDX-License-Identifier: MIT */
/* What a comparison of experiments found. */
#ifndef ASSAY_REPORT_TEXT_COMPARE_H
#define ASSAY_REPORT_TEXT_COMPARE_H

#include "analysis/compare.h"
#include "base/strings.h"

struct compare_view {
    const struct compare *c;
    bool all; /* every row */
    bool colour;
    bool bars;        /* draw the ratios: for a terminal that shows UTF-8 */
    size_t columns;   /* the terminal's width; 0 for any */
    const char *only; /* metrics whose names hold this; NULL for all */
};

void report_compare_text(struct strbuf *out, const struct compare_view *v);
void report_compare_markdown(struct strbuf *out, const struct compare_view *v);
void report_compare_json(struct strbuf *out, const struct compare_view *v);
void report_compare_csv(struct strbuf *out, const struct compare_view *v);
/* In the layout of the kernel test robot's mails. */
/* What is to be said of results from emulated machines; NULL where there are none. */
const char *report_compare_emulated(const struct compare *c);
void report_compare_lkp(struct strbuf *out, const struct compare_view *v);

/* What stands for a commit in those mails. */
struct compare_side {
    char *name, *subject;
    bool is_commit;
};
void compare_side_find(struct compare_side *s, const struct compare *c, size_t pair, bool is_new);
void compare_side_done(struct compare_side *s);
/* What is known of the kernel of a cell ("release", "git_commit") and of the emulated machines
 * ("memory_bytes"); NULL for nothing.  The caller frees it. */
char *compare_kernel_fact(const struct dataset *d, size_t cell, const char *key);
char *compare_vm_fact(const struct dataset *d, const char *key);

/* The text of a mail about the comparison: what changed, where, the table, and `functions`, the
 * cost of each function for each operation (may be ""). */
void report_compare_mail(struct strbuf *out, const struct compare_view *v, const char *functions);
/* "kernel-brk2: perf-stat.overall.path-length -39.1 %" */
void report_compare_subject(struct strbuf *out, const struct compare *c);

/* Whether the row is to be shown: headlines, and what changed by enough to matter. */
bool report_compare_shows(const struct compare_view *v, const struct compare_row *row);

/* "┊  ──●──": a ratio with its interval, and where it is 1, for a table on a terminal. */
enum { RATIO_BAR_HALF = 9, RATIO_BAR = 2 * RATIO_BAR_HALF + 1 }; /* columns */

/* All bars of a table have one scale, logarithmic: as far as the farthest reaches. */
struct ratio_scale {
    double reach; /* the logarithm of the ratio at an end; 0: there is no ratio */
};
void ratio_scale_take(struct ratio_scale *s, const struct comparison *c);
/* A bar; blanks with a mark at 1 where there is no ratio, or c is NULL.  What lies beyond the scale
 * is an arrow at its end. */
void strbuf_put_ratio_bar(struct strbuf *out, const struct ratio_scale *s,
                          const struct comparison *c);

#endif
