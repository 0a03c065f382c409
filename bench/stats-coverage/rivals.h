/* SPDX-License-Identifier: MIT */
/* Other ways to make an interval or to call two samples different: what was tried and rejected for
 * assay, and the rules of two known tools. */
#ifndef ASSAY_BENCH_STATS_COVERAGE_RIVALS_H
#define ASSAY_BENCH_STATS_COVERAGE_RIVALS_H

#include "numbers/random.h"

#include <stdbool.h>
#include <stddef.h>

struct interval {
    double low, high;
};

enum { RIVAL_VALUES_MAX = 512, RIVAL_RESAMPLES = 1000 };

/* All take log ratios of paired rounds and give a nominal 95 % interval of their centre. */
struct interval rival_student(const double *logs, size_t count);
struct interval rival_sign(const double *logs, size_t count);
struct interval rival_signed_rank(const double *logs, size_t count);
struct interval rival_percentile(const double *logs, size_t count, struct rng *rng);
struct interval rival_bca(const double *logs, size_t count, struct rng *rng);
struct interval rival_block_bootstrap(const double *logs, size_t count, struct rng *rng);

/* hyperfine prints the ratio of means with the propagated standard deviation; read as people read
 * it, 1 outside of "ratio ± sigma" is a difference. */
bool rival_hyperfine_differs(const double *base_values, const double *new_values, size_t count);
/* The kernel test robot's: each median lies outside of the other's range. */
bool rival_robot_differs(const double *base_values, const double *new_values, size_t count);

#endif
