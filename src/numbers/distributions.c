/* SPDX-License-Identifier: MIT */
/*
 * See distributions.h.  The incomplete beta function is its continued fraction, evaluated by the
 * modified Lentz method on whichever side of the mean converges quickly; Student's t, F and the
 * binomial are all read from it (Abramowitz & Stegun 26.5).  Quantiles start from a rational or
 * crude guess and are polished by a bracketed Newton iteration on our own cumulative function, so
 * that the two are inverses of each other.
 */
#include "numbers/distributions.h"

#include <math.h>

double dist_normal_cdf(double z)
{
    return 0.5 * erfc(-z * M_SQRT1_2);
}

/* Abramowitz & Stegun 26.2.23, good to 4.5e-4; the caller polishes it. */
static double normal_quantile_guess(double tail)
{
    double t = sqrt(-2 * log(tail));
    double above = 2.515517 + t * (0.802853 + t * 0.010328);
    double below = 1 + t * (1.432788 + t * (0.189269 + t * 0.001308));
    return t - above / below;
}

double dist_normal_quantile(double p)
{
    if (!(p >= 0 && p <= 1))
        return NAN;
    if (p == 0 || p == 1)
        return p == 0 ? -INFINITY : INFINITY;
    double tail = p < 0.5 ? p : 1 - p;
    double z = normal_quantile_guess(tail);
    for (int i = 0; i < 4; i++) { /* Halley's steps on the upper tail, each cubes the error. */
        double error = (0.5 * erfc(z * M_SQRT1_2) - tail) * sqrt(2 * M_PI) * exp(z * z / 2);
        z += error / (1 - 0.5 * z * error);
    }
    return p < 0.5 ? -z : z;
}

static double beta_fraction(double x, double a, double b)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double value = d;
    for (int m = 1; m < 100000; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        d = 1 + even * d;
        c = 1 + even / c;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        c = fabs(c) < tiny ? tiny : c;
        value *= d * c;
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 + odd * d;
        c = 1 + odd / c;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        c = fabs(c) < tiny ? tiny : c;
        value *= d * c;
        if (fabs(d * c - 1) < 1e-15)
            break;
    }
    return value;
}

/* lgamma() writes the global signgam; the arguments here are positive, so lgamma_r's sign is
 * of no interest. */
static double log_gamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

double dist_beta_cdf(double x, double a, double b)
{
    if (!(a > 0 && b > 0) || isnan(x))
        return NAN;
    if (x <= 0 || x >= 1)
        return x <= 0 ? 0 : 1;
    double front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(x, a, b) / a;
    return 1 - front * beta_fraction(1 - x, b, a) / b;
}

double dist_beta_quantile(double p, double a, double b)
{
    if (!(p >= 0 && p <= 1 && a > 0 && b > 0))
        return NAN;
    if (p == 0 || p == 1)
        return p;
    double low = 0, high = 1, x = a / (a + b);
    double scale = log_gamma(a + b) - log_gamma(a) - log_gamma(b);
    for (int i = 0; i < 200 && high - low > 1e-16 * x; i++) {
        double error = dist_beta_cdf(x, a, b) - p;
        if (error > 0)
            high = x;
        else
            low = x;
        double density = exp(scale + (a - 1) * log(x) + (b - 1) * log1p(-x));
        double next = x - error / density;
        if (!(next > low && next < high))
            next = (low + high) / 2;
        if (fabs(next - x) <= 1e-15 * x)
            return next;
        x = next;
    }
    return x;
}

double dist_t_cdf(double t, double freedom)
{
    if (!(freedom > 0) || isnan(t))
        return NAN;
    if (isinf(t))
        return t < 0 ? 0 : 1;
    double square = t * t;
    double tail = square < freedom
                      ? 0.5 - 0.5 * dist_beta_cdf(square / (freedom + square), 0.5, freedom / 2)
                      : 0.5 * dist_beta_cdf(freedom / (freedom + square), freedom / 2, 0.5);
    return t < 0 ? tail : 1 - tail;
}

double dist_t_quantile(double p, double freedom)
{
    if (!(p >= 0 && p <= 1 && freedom > 0))
        return NAN;
    if (p == 0 || p == 1)
        return p == 0 ? -INFINITY : INFINITY;
    double tail = p < 0.5 ? p : 1 - p;
    if (tail == 0.5)
        return 0;
    /* P(|T| > t) = I_{v/(v+t^2)}(v/2, 1/2); near the centre the other end of the beta is used,
     * because x close to 1 would lose digits. */
    double t;
    if (tail < 0.25) {
        double x = dist_beta_quantile(2 * tail, freedom / 2, 0.5);
        t = sqrt(freedom * (1 - x) / x);
    } else {
        double x = dist_beta_quantile(1 - 2 * tail, 0.5, freedom / 2);
        t = sqrt(freedom * x / (1 - x));
    }
    return p < 0.5 ? -t : t;
}

/* The regularised upper incomplete gamma function Q(a, x): the series for small x, the continued
 * fraction beyond. */
static double gamma_tail(double a, double x)
{
    double front = exp(a * log(x) - x - log_gamma(a));
    if (x < a + 1) {
        double term = 1 / a, sum = term;
        for (int i = 1; i < 100000 && term > sum * 1e-16; i++) {
            term *= x / (a + i);
            sum += term;
        }
        return 1 - front * sum;
    }
    double b = x + 1 - a, c = 1e300, d = 1 / b, value = d;
    for (int i = 1; i < 100000; i++) {
        double step = -i * (i - a);
        b += 2;
        d = 1 / (step * d + b);
        c = b + step / c;
        value *= d * c;
        if (fabs(d * c - 1) < 1e-15)
            break;
    }
    return front * value;
}

double dist_chi_square_tail(double x, double freedom)
{
    if (!(freedom > 0) || isnan(x))
        return NAN;
    return x <= 0 ? 1 : gamma_tail(freedom / 2, x / 2);
}

double dist_binomial_cdf(size_t successes, size_t trials, double p)
{
    if (!(p >= 0 && p <= 1))
        return NAN;
    if (successes >= trials)
        return 1;
    return dist_beta_cdf(1 - p, (double)(trials - successes), (double)successes + 1);
}

void dist_binomial_interval(size_t successes, size_t trials, double level, double *ret_low,
                            double *ret_high)
{
    double half = (1 - level) / 2, k = (double)successes, n = (double)trials;
    *ret_low = successes == 0 ? 0 : dist_beta_quantile(half, k, n - k + 1);
    *ret_high = successes >= trials ? 1 : dist_beta_quantile(1 - half, k + 1, n - k);
}
