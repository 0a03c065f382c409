/* SPDX-License-Identifier: MIT */
/*
 * Differences that the median does not see: a program that takes ten times as long in one run of
 * ten has the same median.  Several looks are taken at everything but the centre: the mean, upper
 * quantiles where there are enough values, and the whole distribution; together they are one
 * family, whose alarms come in at most a given share of comparisons of equal programs.
 */
#ifndef ASSAY_STATS_TAILS_H
#define ASSAY_STATS_TAILS_H

#include "stats/comparison.h"

/* Of the error that a row may make, this share belongs to the looks here, the rest to the centre:
 * compare centres at 1 - (1 - TAILS_SHARE) error, and call tails different when
 * tails.p <= TAILS_SHARE error (error divided among the rows as in family.h first). */
#define TAILS_SHARE 0.1

enum tails_look { TAILS_MEAN, TAILS_P90, TAILS_P95, TAILS_P99, TAILS_WHOLE, TAILS_LOOK_COUNT };

/* Runs that take much longer than the usual run of the same command: an outlying share or a second
 * mode. */
struct slow_runs {
    size_t base_slow, new_slow;   /* how many are slow … */
    size_t base_count, new_count; /* … of how many */
    double base_factor,
        new_factor; /* how many times the usual such a run takes; 1 if there are none */
};

struct tails {
    struct comparison mean;     /* new / base, at `level` */
    struct comparison upper[3]; /* 90th, 95th, 99th percentile; too_few where n does not allow it */
    double whole_p;             /* that the distributions differ in more than the factor */
    double p;                   /* of all looks together; 1 where nothing could be looked at */
    enum tails_look strongest;  /* the look that gave p */
    struct slow_runs slow;
};

/*
 * `centre` is the comparison of the centres: where it differs, the new values are divided by its
 * estimate first, so that the looks ask for what goes beyond it.  `level` is for the intervals of
 * the mean and the quantiles, which are of the values as they are.  `slow_is_high` is false for
 * rates, of which slow runs have low values.  Deterministic.  Fails as stats_compare_means_*.
 */
int stats_tails_paired(const double *base_values, const double *new_values, size_t round_count,
                       const struct comparison *centre, double level, bool slow_is_high,
                       struct tails *ret_tails, struct error *err);
int stats_tails_unpaired(const double *base_values, size_t base_count, const double *new_values,
                         size_t new_count, const struct comparison *centre, double level,
                         bool slow_is_high, struct tails *ret_tails, struct error *err);

/* The name of a look: "mean", "90th percentile", …, "distribution". */
const char *tails_look_name(enum tails_look look);

/* Which values are slow; for a rate pass slow_is_high = false. */
void slow_runs_count(const double *base_values, size_t base_count, const double *new_values,
                     size_t new_count, bool slow_is_high, struct slow_runs *ret_slow);

/* "1 run in 10 is 10× slower" for the side that has more slow runs, with " of the base" where that
 * is the base; "" where both have about the same share. */
void slow_runs_text(const struct slow_runs *slow, char *out, size_t size);

/* "3 of 30 runs take about 2.1× as long as the others" of the values alone; "" where none stand
 * out, or where there are too few runs to know what is usual. */
void slow_runs_alone(const double *values, size_t count, bool slow_is_high, char *out, size_t size);

#endif
