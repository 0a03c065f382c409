/* SPDX-License-Identifier: MIT */
/*
 * See family.h.  Holm's steps would call a few more headlines, but have no intervals that go with
 * the calls; with one step both are the same statement.  Šidák's level is exact for independent
 * rows, and errs on the safe side for rows that share their base (Šidák 1967, for two-sided tests
 * of any correlation under normality).
 */
#include "stats/family.h"
#include "base/memory.h"
#include "stats/fdr.h"

#include <math.h>

double family_level(double level, size_t tests)
{
    return tests > 1 ? exp(log(level) / (double)tests) : level;
}

static size_t count_tests(const struct family_row *rows, size_t count, bool is_headline)
{
    size_t tests = 0;
    for (size_t i = 0; i < count; i++)
        tests += rows[i].is_headline == is_headline && !isnan(rows[i].p);
    return tests;
}

static void adjust_headlines(struct family_row *rows, size_t count, double error)
{
    size_t tests = count_tests(rows, count, true);
    double level = family_level(1 - error, tests);
    for (size_t i = 0; i < count; i++) {
        struct family_row *row = &rows[i];
        if (!row->is_headline)
            continue;
        row->level = level;
        row->p_adjusted = isnan(row->p) ? NAN : -expm1((double)tests * log1p(-row->p));
        row->differs = row->p < 1 - level;
    }
}

static void adjust_rest(struct family_row *rows, size_t count, double error)
{
    double *p CLEANUP(memory_freep) = memory_alloc((count + 1) * sizeof(double));
    for (size_t i = 0; i < count; i++)
        p[i] = rows[i].is_headline ? NAN : rows[i].p;
    size_t tests = fdr_adjust(p, count, p), found = 0;
    for (size_t i = 0; i < count; i++)
        found += p[i] <= error;
    /* Every row found has p at most this, every other one more. */
    double share = tests ? (double)(found ? found : 1) / (double)tests : 1;
    for (size_t i = 0; i < count; i++) {
        struct family_row *row = &rows[i];
        if (row->is_headline)
            continue;
        row->level = 1 - error * share * (1 + 1e-9);
        row->p_adjusted = p[i];
        row->differs = p[i] <= error;
    }
}

void family_adjust(struct family_row *rows, size_t count, double error)
{
    adjust_headlines(rows, count, error);
    adjust_rest(rows, count, error);
}
