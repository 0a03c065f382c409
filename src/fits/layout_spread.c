/* SPDX-License-Identifier: MIT */
/* See layout_spread.h. */
#include "fits/layout_spread.h"
#include "base/memory.h"
#include "numbers/sort.h"
#include "stats/summary.h"

#include <math.h>

/* Keeps the finite ones, sorted. */
static size_t sort_finite(const double *values, size_t count, double *ret)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        if (isfinite(values[i]))
            ret[found++] = values[i];
    sort_doubles(ret, found);
    return found;
}

/* From the two mean squares and how many values each is of.  The logarithm of their ratio is about
 * normal, with these degrees of freedom. */
static void find_share(struct layout_spread *s, double all, double noise, size_t count,
                       size_t noise_count)
{
    double sd = sqrt(2 / ((double)count - 1) + 2 / ((double)noise_count - 1));
    s->share = all > 0 ? fmax(0, 1 - noise / all) : 0;
    s->is_noise = !(all > 0) || (noise > 0 && log(all / noise) < 1.645 * sd);
}

bool layout_spread(const double *ratios, const double *halves, size_t count,
                   struct layout_spread *ret)
{
    CLEANUP(memory_freep) double *sorted = memory_zalloc(count + 1, sizeof(*sorted));
    struct running between = {0}, within = {0};
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(ratios[i]))
            continue;
        sorted[found++] = ratios[i];
        running_add(&between, ratios[i]);
        if (isfinite(halves[i])) /* a half varies twice as much as the whole, a difference of two
                                    halves four times */
            running_add(&within, halves[i] * halves[i] / 4);
    }
    if (found < LAYOUTS_MIN)
        return false;
    sort_doubles(sorted, found);
    double all = running_stddev(&between) * running_stddev(&between);
    *ret = (struct layout_spread){.count = found,
                                  .low = exp(stats_quantile(sorted, found, 0.025)),
                                  .high = exp(stats_quantile(sorted, found, 0.975)),
                                  .share = NAN};
    if (within.count > 1)
        find_share(ret, all, within.mean, found, within.count);
    return true;
}

/* The mean square of distances to the median; the tenth that is farthest, which a neighbour of the
 * machine may have made, is left out. */
static double trimmed_square(const double *sorted, size_t count, double *room)
{
    double centre = stats_quantile(sorted, count, 0.5), sum = 0;
    for (size_t i = 0; i < count; i++)
        room[i] = fabs(sorted[i] - centre);
    sort_doubles(room, count);
    size_t kept = count - count / 10;
    for (size_t i = 0; i < kept; i++)
        sum += room[i] * room[i];
    return sum / (double)kept;
}

bool layout_spread_still(const double *ratios, size_t count, const double *still,
                         size_t still_count, struct layout_spread *ret)
{
    size_t most = count > still_count ? count : still_count;
    CLEANUP(memory_freep) double *sorted = memory_zalloc(3 * most + 1, sizeof(*sorted));
    double *calm = sorted + most, *room = calm + most;
    size_t found = sort_finite(ratios, count, sorted);
    size_t calm_count = sort_finite(still, still_count, calm);
    if (found < LAYOUTS_MIN)
        return false;
    *ret = (struct layout_spread){.count = found,
                                  .low = exp(stats_quantile(sorted, found, 0.025)),
                                  .high = exp(stats_quantile(sorted, found, 0.975)),
                                  .share = NAN};
    if (calm_count >= LAYOUTS_MIN)
        find_share(ret, trimmed_square(sorted, found, room), trimmed_square(calm, calm_count, room),
                   found, calm_count);
    return true;
}
