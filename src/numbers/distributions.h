/* SPDX-License-Identifier: MIT */
/*
 * The distributions that intervals and tests are read from.  Accurate to about 1e-10 in the ranges
 * that statistics need; tests/unit/numbers/distributions.c checks them against published tables.
 * Arguments outside a function's domain give NaN.
 */
#ifndef ASSAY_NUMBERS_DISTRIBUTIONS_H
#define ASSAY_NUMBERS_DISTRIBUTIONS_H

#include <stddef.h>

/* P(Z <= z), and the z below which a share p lies. */
double dist_normal_cdf(double z);
double dist_normal_quantile(double p);

/* The regularised incomplete beta function I_x(a, b) and its inverse in x. */
double dist_beta_cdf(double x, double a, double b);
double dist_beta_quantile(double p, double a, double b);

double dist_t_cdf(double t, double freedom);
double dist_t_quantile(double p, double freedom);
/* The upper tail of chi-square, P(X > x). */
double dist_chi_square_tail(double x, double freedom);

/* P(X <= successes) of `trials` draws that succeed with probability p each. */
double dist_binomial_cdf(size_t successes, size_t trials, double p);

/* The exact (Clopper-Pearson 1934) interval of a rate: `level` is 0.95 for 95 %. */
void dist_binomial_interval(size_t successes, size_t trials, double level, double *ret_low,
                            double *ret_high);

#endif
