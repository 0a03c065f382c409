/* SPDX-License-Identifier: MIT */
/*
 * See scaling.h.  n / X(n) = a + b (n - 1) + c n (n - 1) with a = 1 / lambda, b = sigma / lambda,
 * c = kappa / lambda is linear, so the fit is a linear least-squares problem with b, c >= 0,
 * weighted by 1 / fitted^2, because measurements scatter by a share of their value.
 *
 * Intervals come from drawing (a, b, c) from the multivariate t distribution around the fit with
 * n - 3 degrees of freedom and taking quantiles of the terms that follow; sigma, kappa and the peak
 * are ratios and roots of the three, for which a symmetric interval would be wrong.
 */
#include "fits/scaling.h"
#include "base/memory.h"
#include "numbers/random.h"
#include "numbers/sort.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { TERMS = 3, DRAWS = 2000, WEIGHT_TURNS = 20 };

/* Terms are those of n / X, each in units of what it adds at the largest number of threads. */
struct fit {
    double unit[TERMS];
    double free[TERMS];              /* the best terms if they could be negative */
    double covariance[TERMS][TERMS]; /* of these, for a spread of 1 */
    double terms[TERMS];             /* the best that are not */
    double spread;
    double freedom;
};

static void basis(const struct fit *fit, double threads, double *ret_row)
{
    ret_row[0] = 1 / fit->unit[0];
    ret_row[1] = (threads - 1) / fit->unit[1];
    ret_row[2] = threads * (threads - 1) / fit->unit[2];
}

static double curve(const struct fit *fit, const double *terms, double threads)
{
    double row[TERMS];
    basis(fit, threads, row);
    return row[0] * terms[0] + row[1] * terms[1] + row[2] * terms[2];
}

/* The inverse of a symmetric 3 x 3 matrix by its cofactors. */
static bool invert(double m[TERMS][TERMS], double ret_inverse[TERMS][TERMS])
{
    double cofactor[TERMS][TERMS];
    for (int i = 0; i < TERMS; i++) {
        int p = (i + 1) % TERMS, q = (i + 2) % TERMS;
        for (int j = 0; j < TERMS; j++) {
            int r = (j + 1) % TERMS, s = (j + 2) % TERMS;
            cofactor[i][j] = m[p][r] * m[q][s] - m[p][s] * m[q][r];
        }
    }
    double determinant =
        m[0][0] * cofactor[0][0] + m[0][1] * cofactor[0][1] + m[0][2] * cofactor[0][2];
    if (!(determinant > 0))
        return false;
    for (int i = 0; i < TERMS; i++)
        for (int j = 0; j < TERMS; j++)
            ret_inverse[i][j] = cofactor[j][i] / determinant;
    return true;
}

/*
 * Moves terms to the nearest ones (in the sense of the fit) with b >= 0 and c >= 0: one or both of
 * them are forced to zero, and the others give way as far as they hang together.
 */
static void force_positive(const struct fit *fit, const double *free, double *ret_terms)
{
    const double(*v)[TERMS] = fit->covariance;
    double best_cost = INFINITY;
    for (int set = 0; set < 4; set++) { /* bit 0: b is zero, bit 1: c is zero */
        double pull[2] = {0, 0}, cost = 0, terms[TERMS];
        double determinant = v[1][1] * v[2][2] - v[1][2] * v[1][2];
        if (set == 1)
            pull[0] = free[1] / v[1][1];
        if (set == 2)
            pull[1] = free[2] / v[2][2];
        if (set == 3) {
            pull[0] = (v[2][2] * free[1] - v[1][2] * free[2]) / determinant;
            pull[1] = (v[1][1] * free[2] - v[1][2] * free[1]) / determinant;
        }
        for (int i = 0; i < TERMS; i++)
            terms[i] = free[i] - v[i][1] * pull[0] - v[i][2] * pull[1];
        cost = pull[0] * free[1] + pull[1] * free[2];
        if (set & 1)
            terms[1] = 0;
        if (set & 2)
            terms[2] = 0;
        if (terms[1] < 0 || terms[2] < 0 || cost >= best_cost)
            continue;
        best_cost = cost;
        memcpy(ret_terms, terms, sizeof(terms));
    }
    /* One thread does something, and not infinitely much. */
    ret_terms[0] = fmax(ret_terms[0], 1e-9 * fabs(fit->free[0]));
}

/* One weighted fit; weights follow the curve of the turn before. */
static bool fit_once(struct fit *fit, const double *threads, const double *throughput, size_t count,
                     bool first)
{
    double matrix[TERMS][TERMS] = {{0}}, right[TERMS] = {0};
    for (size_t i = 0; i < count; i++) {
        double row[TERMS], y = threads[i] / throughput[i];
        double scale = first ? y : curve(fit, fit->terms, threads[i]);
        basis(fit, threads[i], row);
        for (int j = 0; j < TERMS; j++) {
            right[j] += row[j] * y / (scale * scale);
            for (int k = 0; k < TERMS; k++)
                matrix[j][k] += row[j] * row[k] / (scale * scale);
        }
    }
    if (!invert(matrix, fit->covariance))
        return false;
    for (int j = 0; j < TERMS; j++) {
        fit->free[j] = 0;
        for (int k = 0; k < TERMS; k++)
            fit->free[j] += fit->covariance[j][k] * right[k];
    }
    force_positive(fit, fit->free, fit->terms);
    return true;
}

static bool fit_terms(struct fit *fit, const double *threads, const double *throughput,
                      size_t count)
{
    double most = 1, squares = 0;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, threads[i]);
    fit->unit[0] = 1;
    fit->unit[1] = most;
    fit->unit[2] = most * most;
    for (int turn = 0; turn < WEIGHT_TURNS; turn++)
        if (!fit_once(fit, threads, throughput, count, turn == 0))
            return false;
    for (size_t i = 0; i < count; i++) {
        double fitted = curve(fit, fit->terms, threads[i]);
        squares += pow((threads[i] / throughput[i] - fitted) / fitted, 2);
    }
    fit->freedom = (double)count - TERMS;
    fit->spread = sqrt(squares / fit->freedom);
    return true;
}

enum { LAMBDA, SIGMA, KAPPA, PEAK, FIGURES };

/* What the terms mean. */
static void figures(const struct fit *fit, const double *terms, double *ret_figures)
{
    double a = terms[0] / fit->unit[0], b = terms[1] / fit->unit[1], c = terms[2] / fit->unit[2];
    ret_figures[LAMBDA] = 1 / a;
    ret_figures[SIGMA] = b / a;
    ret_figures[KAPPA] = c / a;
    /* dX/dn = 0 at kappa n^2 = 1 - sigma. */
    if (b >= a)
        ret_figures[PEAK] = 1;
    else
        ret_figures[PEAK] = c > 0 ? fmax(1, sqrt((a - b) / c)) : INFINITY;
}

/* L with L L' = the covariance. */
static void root_of(const double v[TERMS][TERMS], double lower[TERMS][TERMS])
{
    memset(lower, 0, sizeof(double[TERMS][TERMS]));
    for (int i = 0; i < TERMS; i++) {
        for (int j = 0; j <= i; j++) {
            double sum = v[i][j];
            for (int k = 0; k < j; k++)
                sum -= lower[i][k] * lower[j][k];
            if (i == j)
                lower[i][j] = sqrt(fmax(sum, 0));
            else
                lower[i][j] = lower[j][j] > 0 ? sum / lower[j][j] : 0;
        }
    }
}

/* A sum of squares of `freedom` normals: two make an exponential; many are as good as normal in the
 * cube root (Wilson & Hilferty 1931). */
static double draw_chi_square(struct rng *rng, double freedom)
{
    if (freedom > 40) {
        double part = 2 / (9 * freedom), root = 1 - part + sqrt(part) * rng_normal(rng);
        return freedom * root * root * root;
    }
    double sum = 0;
    for (; freedom >= 2; freedom -= 2)
        sum += 2 * rng_exponential(rng);
    double last = freedom >= 1 ? rng_normal(rng) : 0;
    return sum + last * last;
}

static void draw(const struct fit *fit, const double root[TERMS][TERMS], struct rng *rng,
                 double *ret_figures)
{
    double z[TERMS], free[TERMS], terms[TERMS];
    for (int i = 0; i < TERMS; i++)
        z[i] = rng_normal(rng);
    double scale = fit->spread / sqrt(draw_chi_square(rng, fit->freedom) / fit->freedom);
    for (int i = 0; i < TERMS; i++) {
        free[i] = fit->free[i];
        for (int j = 0; j <= i; j++)
            free[i] += scale * root[i][j] * z[j];
    }
    force_positive(fit, free, terms);
    figures(fit, terms, ret_figures);
}

static struct scaling_value value_of(double value, double *draws)
{
    sort_doubles(draws, DRAWS);
    /* Whole places: draws may be infinite. */
    return (struct scaling_value){value, draws[DRAWS / 40], draws[DRAWS - 1 - DRAWS / 40]};
}

static void conclude(const struct fit *fit, uint64_t seed, struct scaling *s)
{
    double *draws CLEANUP(memory_freep) = memory_alloc(FIGURES * DRAWS * sizeof(double));
    double root[TERMS][TERMS], best[FIGURES], one[FIGURES];
    struct rng rng;
    rng_seed(&rng, seed);
    root_of(fit->covariance, root);
    figures(fit, fit->terms, best);
    for (size_t i = 0; i < DRAWS; i++) {
        draw(fit, root, &rng, one);
        for (size_t k = 0; k < FIGURES; k++)
            draws[k * DRAWS + i] = one[k];
    }
    s->lambda = value_of(best[LAMBDA], draws + LAMBDA * DRAWS);
    s->sigma = value_of(best[SIGMA], draws + SIGMA * DRAWS);
    s->kappa = value_of(best[KAPPA], draws + KAPPA * DRAWS);
    s->peak_threads = value_of(best[PEAK], draws + PEAK * DRAWS);
    s->spread = fit->spread;
    s->peak_throughput =
        isfinite(best[PEAK]) ? scaling_throughput(s, best[PEAK]) : best[LAMBDA] / best[SIGMA];
}

static size_t count_different(const double *threads, size_t count)
{
    double *sorted CLEANUP(memory_freep) = memory_alloc((count + 1) * sizeof(double));
    size_t different = 0;
    memcpy(sorted, threads, count * sizeof(double));
    sort_doubles(sorted, count);
    for (size_t i = 0; i < count; i++)
        different += i == 0 || sorted[i] != sorted[i - 1];
    return different;
}

int scaling_fit(const double *threads, const double *throughput, size_t count, uint64_t seed,
                struct scaling *ret_scaling, struct error *err)
{
    double most = 0;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(threads[i]) || threads[i] < 1)
            return error_set(err, -EINVAL, "%g is not a number of threads (value %zu of %zu)",
                             threads[i], i + 1, count);
        if (!isfinite(throughput[i]) || throughput[i] <= 0)
            return error_set(err, -EINVAL, "a throughput of %g at %g threads is not above zero",
                             throughput[i], threads[i]);
        most = fmax(most, threads[i]);
    }
    struct scaling s = {.value_count = count, .point_count = count_different(threads, count)};
    if (s.point_count < SCALING_POINTS_MIN)
        return error_set(
            err, -ENODATA,
            "too few different numbers of threads for a scalability curve: %zu of at least %d",
            s.point_count, SCALING_POINTS_MIN);
    struct fit fit = {0};
    if (!fit_terms(&fit, threads, throughput, count))
        return error_set(err, -EINVAL, "no scalability curve fits these values");
    conclude(&fit, seed, &s);
    s.peak_seen = s.peak_threads.value <= most;
    *ret_scaling = s;
    return 0;
}

double scaling_throughput(const struct scaling *s, double threads)
{
    double n = threads;
    return s->lambda.value * n / (1 + s->sigma.value * (n - 1) + s->kappa.value * n * (n - 1));
}
