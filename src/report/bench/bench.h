/* SPDX-License-Identifier: MIT */
/* What `assay bench` found, as text for people and as JSON for programs. */
#ifndef ASSAY_REPORT_BENCH_BENCH_H
#define ASSAY_REPORT_BENCH_BENCH_H

#include "bench/figures.h"
#include "bench/growth.h"
#include "bench/table.h"
#include "counters/doubts.h"
#include "machine/machine.h"

#include <time.h>

#define BENCH_THINGS "benchmarks" /* for compare_put_suites */

struct bench_view {
    const struct bench_cases *cases;
    const struct bench_results *results;
    const struct outcome *outcome;
    const char *const *names; /* of the versions */
    const char *const *paths;
    const struct doubt_list *notes;
    const struct machine *machine; /* for JSON; may be NULL for text */
    const struct bench_fits *fits; /* how time grows */
    uint64_t seed;
    time_t started;
    bool colour, all;
    bool layouts;     /* each round had a layout of its own, and that is what was asked for */
    bool one_process; /* both versions were in one */
    size_t columns;
};

void report_bench_text(struct strbuf *out, const struct bench_view *v);
void report_bench_json(struct strbuf *out, const struct bench_view *v);
/* What the reader must know: failures are not among them. */
void report_bench_notes(struct doubt_list *notes, const struct bench_view *v);
/* The benchmarks that there are, a line each. */
void report_bench_list(struct strbuf *out, const struct bench_cases *cases);
void report_bench_list_json(struct strbuf *out, const struct bench_cases *cases);

#endif
