/* SPDX-License-Identifier: MIT */
/* Exact counts as text for people, JSON or CSV for programs. */
#ifndef ASSAY_REPORT_EXACT_EXACT_H
#define ASSAY_REPORT_EXACT_EXACT_H

#include "base/strings.h"
#include "exact/functions.h"
#include "exact/run.h"
#include "machine/machine.h"

/* The runs of `assay stat --exact`. */
struct exact_view {
    const struct exact_tool *tool;
    char *const *argv;
    const struct exact_result *runs;
    size_t run_count;
    uint64_t requested_runs;
    const struct exact_functions *functions; /* of the first run; NULL where they are not known */
    const struct exact_functions *others;    /* of a run that differs from it, or NULL */
    int signal;
    const struct machine *machine; /* for JSON and CSV */
    bool colour;
};

void report_exact_text(struct strbuf *out, const struct exact_view *v);
void report_exact_json(struct strbuf *out, const struct exact_view *v);
void report_exact_csv(struct strbuf *out, const struct exact_view *v);

/* Which functions account for a difference: lines that add up to it. */
void report_exact_changes(struct strbuf *out, const struct exact_functions *base,
                          const struct exact_functions *new, size_t most);

#endif
