/* SPDX-License-Identifier: MIT */
/*
 * Rows that are shown together are one family: of forty cells that did not change, two look changed
 * at 5 % each.  This decides for all rows at once which of them are called different, and at which
 * level each row's interval has to be drawn so that the picture agrees with the calls.
 *
 * Headlines are held to the family-wise error: in at most a share `error` of families is any row
 * called wrongly (Šidák 1967: each row is tested at 1 - (1 - error)^(1/rows)), and all their
 * intervals hold together in 1 - error of the cases.  The rest is held to the rate of false
 * discoveries: of the rows called different at most a share `error` is expected to be noise
 * (Benjamini & Hochberg 1995), and of the intervals of the rows called different at most that share
 * is expected to miss (Benjamini & Yekutieli 2005).
 *
 * How to use it: compare every row at any level, put its p here, and compare again at the level
 * that comes back.  p does not depend on the level, and is below 1 - level exactly when the
 * interval excludes 1; so a row differs exactly when its new interval does.
 */
#ifndef ASSAY_STATS_FAMILY_H
#define ASSAY_STATS_FAMILY_H

#include <stdbool.h>
#include <stddef.h>

struct family_row {
    double p; /* NaN for a row that could not be tested; it does not count */
    bool is_headline;
    /* What comes back: */
    double p_adjusted; /* at most `error` exactly when the row differs; NaN for NaN */
    double level;      /* for the row's interval */
    bool differs;
};

/* `error` is 0.05 unless there is a reason, between 0 and 1. */
void family_adjust(struct family_row *rows, size_t count, double error);

/* The level for each of `tests` intervals that shall hold together in a share `level` of cases. */
double family_level(double level, size_t tests);

#endif
