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
    double lag1;     /* autocorrelation of the ranks at distance 1, corrected for its bias */
    double widening; /* factor for intervals made for independent values, 1 or more */
    bool found;      /* beyond what chance gives independent values (one-sided 1 %) */
};

/* `scores` are ranks (or any bounded scores) in the order in which the values were taken. */
void dependence_estimate(const double *scores, size_t count, struct dependence *ret_dependence);

#endif
