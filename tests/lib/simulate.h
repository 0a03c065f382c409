/* SPDX-License-Identifier: MIT */
/*
 * Simulated machines: two programs of a known ratio, measured in rounds on machines whose noise has
 * a known shape.  Used by the unit tests of stats/ and by bench/stats-coverage.
 */
#ifndef ASSAY_TESTS_LIB_SIMULATE_H
#define ASSAY_TESTS_LIB_SIMULATE_H

#include "numbers/random.h"

#include <stdbool.h>
#include <stddef.h>

enum shape_group {
    SHAPE_INDEPENDENT, /* runs are independent: intervals must cover 93 to 97 % */
    SHAPE_DEPENDENT,   /* drift, autocorrelation up to 0.5, ties: never under 90 % */
    SHAPE_BEYOND,      /* worse than any promise; shown, not judged */
};

enum shape_kind {
    SHAPE_NORMAL,
    SHAPE_STUDENT, /* parameter: degrees of freedom */
    SHAPE_SKEWED,
    SHAPE_OUTLIERS,
    SHAPE_BIMODAL, /* parameter: autocorrelation of the mode */
    SHAPE_COARSE,  /* a clock that ticks in steps of 1 % of the value, or of `parameter` */
    SHAPE_UNLIKE,  /* the new program has outliers that the base has not */
    SHAPE_DRIFT,
    SHAPE_NEIGHBOURS,
    SHAPE_AR,         /* normal; parameter: autocorrelation */
    SHAPE_AR_STUDENT, /* steps of 2 degrees of freedom */
    SHAPE_AR_SKEWED,
    SHAPE_UNIFORM,
    SHAPE_MOVING,       /* the mean of two independent neighbours: autocorrelation 0.5, then none */
    SHAPE_STICKY,       /* skewed; a run repeats the one before it with probability `parameter` */
    SHAPE_MACHINE,      /* as SHAPE_AR, but what is remembered is the machine's, from run to run */
    SHAPE_NOW_AND_THEN, /* some runs take `parameter` times as long: 3 of 10, above twice 1 of 10 */
    SHAPE_FIRST,        /* normal; the first run of each round is longer by `parameter` */
    SHAPE_SLOW,         /* white noise on a level that wanders slowly (0.95 from round to round) */
};

struct shape {
    const char *name;
    enum shape_kind kind;
    enum shape_group group;
    double parameter;
};

extern const struct shape shapes[];
extern const size_t shape_count;

/*
 * Fills base[] and new[] with `rounds` runs each.  Interleaved: in each round both programs run, in
 * the order of numbers/order.h; else all runs of the base come first, as tools do that take one
 * command after the other.  `ratio` is the true ratio of new to base.
 */
void simulate(struct rng *rng, const struct shape *shape, double ratio, bool interleaved,
              double *base_values, double *new_values, size_t rounds);

/* Equal programs, any number of them, in rounds: values[cell * rounds + round]. */
void simulate_cells(struct rng *rng, const struct shape *shape, double *values, size_t cell_count,
                    size_t rounds);

/* What a perfect measurement would find: log(ratio) but for SHAPE_UNLIKE, whose programs differ in
 * more than a factor: there the median of the log ratios. */
double simulate_truth(const struct shape *shape, double ratio);

#endif
