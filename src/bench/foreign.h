/* SPDX-License-Identifier: MIT */
/*
 * Programs with benchmarks of another harness (bench/programs.h), run as they are: each run
 * of a program is a process of its own and gives one sample of a benchmark.  In every round all
 * benchmarks run once in each version, in shuffled order, one benchmark at a time where the harness
 * can choose.
 */
#ifndef ASSAY_BENCH_FOREIGN_H
#define ASSAY_BENCH_FOREIGN_H

#include "bench/measure.h"
#include "bench/programs.h"

/* The harness that the file was built with; NULL when none is recognised. */
const struct program_harness *bench_foreign_detect(const char *path);

/* Finds the benchmarks of both versions.  The paths are those of the plan's targets.  *h becomes
 * its other one where a program refuses its words. */
int bench_foreign_list(const struct bench_plan *plan, const struct program_harness **h,
                       struct program_results *lists, struct error *err);
/* The cases of what was found, as bench_cases_make has it. */
int bench_foreign_cases(struct bench_cases *cases, const struct program_results *lists,
                        size_t side_count, const char *const *filters, size_t filter_count,
                        struct error *err);
/* As bench_measure. */
int bench_foreign_measure(const struct bench_plan *plan, const struct program_harness *h,
                          struct bench_results *results, struct error *err);

#endif
