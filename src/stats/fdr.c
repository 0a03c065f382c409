/* SPDX-License-Identifier: MIT */
/* See fdr.h.  adjusted(i) = min over j >= i of p(j) m / j, p ascending. */
#include "stats/fdr.h"
#include "base/memory.h"

#include <math.h>

struct ranked {
    double p;
    size_t index;
};

static int by_p(const void *a, const void *b)
{
    double x = ((const struct ranked *)a)->p, y = ((const struct ranked *)b)->p;
    return (x > y) - (x < y);
}

size_t fdr_adjust(const double *p, size_t count, double *ret_adjusted)
{
    struct ranked *order CLEANUP(memory_freep) = memory_zalloc(count + 1, sizeof(*order));
    size_t tests = 0;
    for (size_t i = 0; i < count; i++) {
        if (isnan(p[i]))
            ret_adjusted[i] = NAN;
        else
            order[tests++] = (struct ranked){p[i], i};
    }
    qsort(order, tests, sizeof(*order), by_p);
    double least = 1;
    for (size_t i = tests; i-- > 0;) {
        least = fmin(least, order[i].p * (double)tests / (double)(i + 1));
        ret_adjusted[order[i].index] = least;
    }
    return tests;
}
