/* SPDX-License-Identifier: MIT */
/* Results as a table that grows line by line, as JSON, and as metrics for assay. */
#ifndef SCALE_REPORT_H
#define SCALE_REPORT_H

#include "base/strings.h"
#include "measure.h"
#include "settings.h"

struct results {
    struct measure_result *items;
    size_t count, capacity;
    struct failed {
        const char *test;
        bool threads;
        unsigned task_count;
        char *reason;
    } * failures;
    size_t failure_count, failure_capacity;
};

void results_done(struct results *r);

/* The share of what the smallest number of tasks of the same test and mode would give if every
 * task did as well; NAN when there is no smaller one. */
double results_linear(const struct results *r, const struct measure_result *one,
                      double *ret_linear_ops_per_second);

/* Why more than linear was reached, in words; false when it was not, or by no more than a run
 * differs from the next (5 %). */
bool results_explain_linear(const struct results *r, const struct measure_result *one,
                            struct strbuf *out);

void report_list(struct strbuf *out, bool json);
/* The head, then one line for each result as it comes. */
void report_head(struct strbuf *out, const struct settings *s);
void report_line(struct strbuf *out, const struct settings *s, const struct results *r,
                 const struct measure_result *one);
void report_failure(struct strbuf *out, const struct failed *f);
/* Behind the last line: each task's share where it is one measurement, and notes. */
void report_tail(struct strbuf *out, const struct settings *s, const struct results *r);
void report_json(struct strbuf *out, const struct settings *s, const struct results *r);
void report_metrics(struct strbuf *out, const struct results *r);

#endif
