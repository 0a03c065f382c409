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

/* Whether the row is to be shown: headlines, and what changed by enough to matter. */
bool report_compare_shows(const struct compare_view *v, const struct compare_row *row);

#endif
