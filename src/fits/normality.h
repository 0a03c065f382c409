/* SPDX-License-Identifier: MIT */
/* Whether noise has the tails of normal noise, or others. */
#ifndef ASSAY_FITS_NORMALITY_H
#define ASSAY_FITS_NORMALITY_H

#include <stdbool.h>
#include <stddef.h>

enum { NORMALITY_VALUES_MIN = 390 };

/* The values pass for normal ones by their skewness and kurtosis, which 1 % of normal samples do
 * not (Jarque & Bera 1980).  Equal values do not, nor do fewer than NORMALITY_VALUES_MIN, which
 * tell too little: among 300 values of heavy tails there may be no large one but that which it is
 * about. */
bool look_normal(const double *values, size_t count);

#endif
