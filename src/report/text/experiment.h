/* SPDX-License-Identifier: MIT */
/* Experiments of the store as text for people, JSON and CSV for programs. */
#ifndef ASSAY_REPORT_TEXT_EXPERIMENT_H
#define ASSAY_REPORT_TEXT_EXPERIMENT_H

#include "analysis/dataset.h"
#include "base/measured.h"
#include "base/strings.h"

/* `columns` of the terminal; 0 for none. */
void report_list_text(struct strbuf *out, const struct store_list *list, bool colour,
                      size_t columns);
void report_list_json(struct strbuf *out, const struct store_list *list);

/* Name, question, state, counts and origin of an experiment. */
void report_head_text(struct strbuf *out, const struct dataset *d, bool colour);
/* A table for each headline metric: each cell's median and spread, and how it compares with its
 * baseline. */
struct cells_view {
    bool all; /* every metric, and every cell of it */
    bool colour;
    bool bars;      /* draw the ratios: for a terminal that shows UTF-8 */
    size_t columns; /* the terminal's width; 0 for any */
};
void report_cells_text(struct strbuf *out, const struct dataset *d, const struct cells_view *v);
/* What the experiment lacks: that it did not end, what failed and why. */
void report_losses_text(struct strbuf *out, const struct dataset *d, bool colour);
/* Everything, raw values included. */
void report_experiment_json(struct strbuf *out, const struct dataset *d);
void report_experiment_csv(struct strbuf *out, const struct dataset *d);
/* A line for each run, a column for each metric. */
void report_experiment_csv_wide(struct strbuf *out, const struct dataset *d);

#endif
