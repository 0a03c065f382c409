/* SPDX-License-Identifier: MIT */
/* What a run is worth: figures from the marks of both sides, for people, as JSON, and for assay. */
#ifndef ASSAY_MOVE_REPORT_H
#define ASSAY_MOVE_REPORT_H

#include "base/strings.h"
#include "run.h"

/* A figure that could not be had is not in the list. */
struct figure {
    const char *name, *unit;
    double value;
    const char *words; /* for the table */
};

enum { FIGURES_MAX = 40 };

struct figures {
    struct figure list[FIGURES_MAX];
    size_t count;
};

void figures_from(const struct settings *s, const struct run_result *r, struct figures *ret);
/* The value by name; NAN when it is not there. */
double figures_get(const struct figures *f, const char *name);

void report_text(const struct settings *s, const struct run_result *r, const struct figures *f,
                 struct strbuf *out);
void report_json(const struct settings *s, const struct run_result *r, const struct figures *f,
                 struct strbuf *out);
/* To the descriptor that ASSAY_METRICS_FD names, if any. */
void report_metrics(const struct figures *f);

#endif
