/* SPDX-License-Identifier: MIT */
/*
 * How does throughput grow with threads?  The universal scalability law (Gunther 1993):
 *
 *     X(n) = lambda n / (1 + sigma (n - 1) + kappa n (n - 1))
 *
 * lambda is what one thread does, sigma the share of the work that cannot be done side by side
 * (contention), kappa the price of keeping the threads in agreement (coherence).  With kappa > 0
 * there is a number of threads beyond which more of them do less.
 */
#ifndef ASSAY_FITS_SCALING_H
#define ASSAY_FITS_SCALING_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SCALING_POINTS_MIN = 6, /* different numbers of threads; fewer are too few for three terms */
};

struct scaling_value {
    double value, low, high; /* 95 % */
};

struct scaling {
    struct scaling_value lambda, sigma, kappa;
    /* Where X(n) is largest.  Infinity where the law sees no such place: then more threads go on
     * helping, ever less if sigma > 0. */
    struct scaling_value peak_threads;
    double peak_throughput; /* X there; lambda / sigma where the peak is at infinity */
    double spread;          /* typical distance of a measurement from the curve, 0.02 = 2 % */
    size_t point_count;     /* different numbers of threads */
    size_t value_count;
    bool peak_seen; /* the peak lies within what was measured, not beyond it */
};

/*
 * Fits the law to throughput[i] at threads[i]; the same number of threads may come several times.
 * Fails with -EINVAL on values that are not positive and finite, and with -ENODATA on fewer than
 * six different numbers of threads: such a fit would be drawn through noise.
 */
int scaling_fit(const double *threads, const double *throughput, size_t count, uint64_t seed,
                struct scaling *ret_scaling, struct error *err);

/* X(n) of the fitted curve. */
double scaling_throughput(const struct scaling *scaling, double threads);

#endif
