/* SPDX-License-Identifier: MIT */
/*
 * How much rounds depend on the rounds before them.  Values that follow each other tell less than
 * independent ones, and an interval that ignores it is too narrow.
 */
#ifndef ASSAY_STATS_DEPENDENCE_H
#define ASSAY_STATS_DEPENDENCE_H

#include <stdbool.h>
#include <stddef.h>

struct dependence {
    double lag1;  /* correlation of a value with the one before; mean 0 for independent ones */
    double block; /* how much more blocks of values vary than independence allows, 1 or more */
    bool found;   /* beyond what chance gives independent values (about 1 %) */
};

/* `scores` are the ranks of the values in the order in which they were taken; they are
 * overwritten.  Ranks, because an outlier must neither make nor hide a dependence. */
void dependence_estimate(double *scores, size_t count, struct dependence *ret_dependence);

/* The mean lag1 of several series of `count` values each, measured in the same rounds, once what
 * all of them share in a round is taken out: by logs, or by differences where a value is not
 * positive.
 */
double dependence_of_series(const double *const *series, size_t series_count, size_t count);

/* The correlation that values show beyond doubt, with its own error added; 0 where chance may have
 * made what there is.  `lag1` is the mean over that many series of `count` values each. */
double dependence_sure(double lag1, size_t count, size_t series);
/* By which factor the standard error of a mean of such values is larger than for independent ones,
 * and the degrees of freedom that are left of it. */
double dependence_sure_error(double sure, size_t count, double *ret_freedom);
/* What such a correlation does to the ends of an interval for the error alpha.  The spread of few
 * values that resemble each other is known badly, so the factor grows as alpha shrinks. */
double dependence_sure_widening(double sure, size_t count, double alpha);

/* The factor by which an interval made for `count` independent values is to be widened. */
double dependence_widening(double lag1, double block, size_t count);

/* The same with the most that the true correlation may be, for rounds that were stopped because the
 * interval looked narrow: moments at which the dependence happens to look small are the ones at
 * which one stops. */
double dependence_widening_most(double lag1, double block, size_t count);

/* dependence_widening_most of values in the order in which they were taken, with what stopping at a
 * lucky moment costs independent ones as well. */
double dependence_running(const double *values, size_t count);

/* The error probability to ask of the interval before it is widened: a little more than what is
 * wanted in the end, because chance widens the interval of independent values too.  dependence_p
 * is its inverse, for p-values. */
double dependence_alpha(double alpha, size_t count);
double dependence_p(double p, size_t count);

#endif
