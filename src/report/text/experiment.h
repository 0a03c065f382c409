/* SPDX-License-Identifier: MIT */
/* Experiments of the store as text for people, JSON and CSV for programs. */
#ifndef ASSAY_REPORT_TEXT_EXPERIMENT_H
#define ASSAY_REPORT_TEXT_EXPERIMENT_H

#include "analysis/dataset.h"
#include "base/strings.h"

/* 12345678 ns -> "12.3 ms", 1536 bytes -> "1.5 KiB", 0.25 % -> "0.25 %", else digits and unit. */
void strbuf_put_measured(struct strbuf *out, double value, const char *unit);
/* "2026-11-15 06:12" in local time; "" for 0. */
char *format_moment(uint64_t at_ns, char *buffer, size_t size);

void report_list_text(struct strbuf *out, const struct store_list *list, bool colour);
void report_list_json(struct strbuf *out, const struct store_list *list);

/* Name, question, state, counts and origin of an experiment. */
void report_head_text(struct strbuf *out, const struct dataset *d, bool colour);
/* A table for each headline metric: each cell's median and spread, and how it compares with its
 * baseline. */
void report_cells_text(struct strbuf *out, const struct dataset *d, bool all, bool colour);
/* Everything, raw values included. */
void report_experiment_json(struct strbuf *out, const struct dataset *d);
void report_experiment_csv(struct strbuf *out, const struct dataset *d);

/* The cell that this one is compared with: the baseline's factors replaced; DATASET_NONE when there
 * is no baseline or the cell is it. */
size_t report_baseline_of(const struct dataset *d, size_t cell);

#endif
