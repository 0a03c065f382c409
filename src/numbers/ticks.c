/* SPDX-License-Identifier: MIT */
/* See ticks.h. */
#include "numbers/ticks.h"
#include "base/memory.h"
#include "numbers/distributions.h"
#include "numbers/random.h"
#include "numbers/sort.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { GLANCE = 32, SEED = 20240611 };

/* A step of more than this share of the middle value is not a clock's. */
static const double tick_most = 0.3;
static const double rounding = 1e-6;

static bool is_multiple(double value, double tick)
{
    double steps = value / tick;
    return fabs(steps - rint(steps)) <= rounding * fmax(1, fabs(steps));
}

static double find(const double *sorted, size_t count)
{
    double tick = INFINITY;
    size_t levels = 1;
    for (size_t i = 1; i < count; i++) {
        double step = sorted[i] - sorted[i - 1];
        if (step <= rounding * fabs(sorted[i]))
            continue;
        levels++;
        tick = fmin(tick, step);
    }
    if (levels < 2 || 2 * levels > count || !(tick <= tick_most * sorted[count / 2]))
        return 0;
    for (size_t i = 0; i < count; i++)
        if (!is_multiple(sorted[i], tick))
            return 0;
    return tick;
}

static bool varies(const double *values, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (values[i] != values[0])
            return true;
    return false;
}

/* `sorted` has room for all. */
static double find_in(const double *base_values, size_t base_count, const double *new_values,
                      size_t new_count, double *sorted)
{
    size_t count = base_count + new_count;
    memcpy(sorted, base_values, base_count * sizeof(double));
    memcpy(sorted + base_count, new_values, new_count * sizeof(double));
    sort_doubles(sorted, count);
    return varies(base_values, base_count) && varies(new_values, new_count) && sorted[0] > 0
               ? find(sorted, count)
               : 0;
}

double ticks_find(const double *base_values, size_t base_count, const double *new_values,
                  size_t new_count)
{
    size_t count = base_count + new_count;
    if (!base_count || !new_count)
        return 0;
    double *sorted CLEANUP(memory_freep) = memory_alloc(count * sizeof(double));
    /* Most values are no ticks, and few of them show it. */
    if (base_count > GLANCE && new_count > GLANCE &&
        find_in(base_values, GLANCE, new_values, GLANCE, sorted) == 0)
        return 0;
    return find_in(base_values, base_count, new_values, new_count, sorted);
}

/* A value of a level, with its place in the drawn order. */
struct member {
    double level;
    uint64_t place;
    double *value;
};

static int compare_members(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    if (x->level != y->level)
        return x->level < y->level ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* In order of levels; returns the end of the level that begins at `start`. */
static size_t level_end(const struct member *members, size_t count, size_t start)
{
    size_t end = start;
    while (end < count && members[end].level == members[start].level)
        end++;
    return end;
}

static struct member *members_of(double *values, size_t count, double tick, uint64_t salt)
{
    struct member *members = memory_alloc((count + 1) * sizeof(*members));
    struct rng rng;
    rng_seed(&rng, SEED + salt);
    for (size_t i = 0; i < count; i++)
        members[i] = (struct member){rint(values[i] / tick), rng_next(&rng), &values[i]};
    qsort(members, count, sizeof(*members), compare_members);
    return members;
}

void ticks_spread(double *values, size_t count, double tick, uint64_t salt)
{
    struct member *members CLEANUP(memory_freep) = members_of(values, count, tick, salt);
    for (size_t start = 0, end; start < count; start = end) {
        end = level_end(members, count, start);
        for (size_t i = start; i < end; i++) {
            double part = ((double)(i - start) + 0.5) / (double)(end - start);
            *members[i].value = tick * (members[i].level - 0.5 + part);
        }
    }
}

double ticks_hidden(double *values, size_t count, double tick)
{
    struct member *members CLEANUP(memory_freep) = members_of(values, count, tick, 0);
    size_t below = 0, usual = 0;
    for (size_t start = 0, end; start < count; start = end) {
        end = level_end(members, count, start);
        if (end - start > usual) {
            usual = end - start;
            below = start;
        }
    }
    double n = (double)count, share = (double)usual / n;
    /* On one side of the usual tick is nothing: it may be anywhere from there on. */
    if (below == 0 || below + usual == count)
        return usual == count ? tick / 2 : tick * fmax(0, 1 - 0.5 / share);
    double low = dist_normal_quantile((double)below / n);
    double high = dist_normal_quantile((double)(below + usual) / n);
    double spread = 1 / (high - low); /* of normal noise, in ticks */
    /* The most by which the median of grouped data is wrong then, but for what two sides average.
     */
    return tick / 2 * exp(-4.5 * spread - pow(spread / 0.6, 6));
}
