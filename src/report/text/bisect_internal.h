/* SPDX-License-Identifier: MIT */
/* What the mail and the JSON of a bisect share. */
#ifndef ASSAY_REPORT_TEXT_BISECT_INTERNAL_H
#define ASSAY_REPORT_TEXT_BISECT_INTERNAL_H

#include "analysis/outcome.h"
#include "report/text/bisect.h"

/* The metrics of one confirmation, judged.  Does not move. */
struct bisect_metrics {
    struct dataset none; /* where there is no table */
    struct outcome outcome;
};

void bisect_metrics_init(struct bisect_metrics *m, const struct bisect *b, size_t step);
void bisect_metrics_done(struct bisect_metrics *m);

/* The unit of the metric that was searched for, "" until it is known. */
const char *bisect_unit(const struct bisect *b);
/* The command that measures the change again. */
void bisect_put_reproduce(struct strbuf *out, const struct bisect *b, size_t lo, size_t hi);

#endif
