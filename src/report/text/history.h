/* SPDX-License-Identifier: MIT */
/* Histories of a metric as drawings with their change points, and as JSON. */
#ifndef ASSAY_REPORT_TEXT_HISTORY_H
#define ASSAY_REPORT_TEXT_HISTORY_H

#include "analysis/history.h"
#include "base/strings.h"

struct history_view {
    const struct histories *h;
    size_t columns; /* of the drawing with its scale */
    size_t rows;
    bool colour;
    bool spark; /* one line each */
};

void report_history_text(struct strbuf *out, const struct history_view *v);
void report_history_json(struct strbuf *out, const struct histories *h);

/* "regression", "improvement", or "possible change" where the interval has no difference in it. */
const char *report_history_kind(const struct history *one, const struct change_point *change);
/* One change as a JSON document of its own, for an alarm. */
void report_history_alarm(struct strbuf *out, const struct history *one, size_t change);

#endif
