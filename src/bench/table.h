/* SPDX-License-Identifier: MIT */
/* What was measured of benchmarks as a table of values (analysis/dataset.h): a cell for each case
 * and version, a value for each round.  Whatever is judged, stored or shown is taken from there. */
#ifndef ASSAY_BENCH_TABLE_H
#define ASSAY_BENCH_TABLE_H

#include "analysis/outcome.h"
#include "bench/measure.h"

#define BENCH_METRIC "time" /* of one iteration: what a benchmark is about */
/* The mean of a round's samples, of which BENCH_METRIC is the median; the judge finds it by name.
 */
#define BENCH_MEAN_METRIC JUDGE_MEAN_PREFIX BENCH_METRIC

/* The cell of a case and version. */
static inline size_t bench_cell(size_t index, size_t side, size_t side_count)
{
    return index * side_count + side;
}

/* `names` and `paths` are of the versions.  `counters` names what the samples counted. */
void bench_table_make(struct dataset *d, const struct bench_cases *cases,
                      const struct bench_results *results, const char *const *names,
                      const char *const *paths, const char *const *counters, uint64_t seed,
                      uint64_t started_at_ns);

#endif
