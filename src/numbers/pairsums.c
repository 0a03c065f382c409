/* SPDX-License-Identifier: MIT */
/*
 * See pairsums.h.  In a matrix whose rows and columns ascend, the border between "at or below v"
 * and "above v" is a staircase that one walk of n + m steps follows (Johnson & Mizoguchi 1978;
 * Monahan 1984).  Selecting closes a bracket around the wanted
 * place, by turns with the secant and with bisection, until what lies inside fits the scratch.
 */
#include "numbers/pairsums.h"
#include "numbers/sort.h"

#include <assert.h>
#include <math.h>

uint64_t pair_sums_total(const struct pair_sums *s)
{
    return (uint64_t)s->row_count * s->col_count;
}

static double element(const struct pair_sums *s, size_t row, size_t col)
{
    return s->rows[row] + s->cols[col];
}

uint64_t pair_sums_count(const struct pair_sums *s, double value, double *ret_at_or_below,
                         double *ret_above)
{
    uint64_t count = 0;
    double below = -INFINITY, above = INFINITY;
    size_t end = s->col_count; /* columns [0, end) of this row are at or below the value */
    for (size_t row = 0; row < s->row_count; row++) {
        while (end > 0 && element(s, row, end - 1) > value)
            end--;
        count += end;
        if (end > 0 && element(s, row, end - 1) > below)
            below = element(s, row, end - 1);
        if (end < s->col_count && element(s, row, end) < above)
            above = element(s, row, end);
    }
    *ret_at_or_below = below;
    *ret_above = above;
    return count;
}

/* Collects the sums in [low, high]; the caller knows that they fit. */
static size_t collect(const struct pair_sums *s, double low, double high, double *out)
{
    size_t count = 0, end = s->col_count, start = s->col_count;
    for (size_t row = 0; row < s->row_count && end > 0; row++) {
        while (end > 0 && element(s, row, end - 1) > high)
            end--;
        while (start > 0 && element(s, row, start - 1) >= low)
            start--;
        for (size_t col = start; col < end; col++)
            out[count++] = element(s, row, col);
    }
    return count;
}

double pair_sums_select(const struct pair_sums *s, uint64_t place, double *scratch,
                        size_t scratch_count)
{
    uint64_t low_count = 0, high_count = pair_sums_total(s);
    assert(place < high_count);
    /* The wanted sum lies in [low, high]; low_count sums are below low, high_count at or below
     * high.  Both ends are sums themselves, so that equal sums close the bracket at once. */
    double low = element(s, 0, 0), high = element(s, s->row_count - 1, s->col_count - 1);
    for (int turn = 0; high_count - low_count > scratch_count && low < high; turn++) {
        double share = ((double)(place - low_count) + 0.5) / (double)(high_count - low_count);
        double middle = low + (high - low) * (turn % 3 == 2 ? 0.5 : share);
        if (!(middle >= low && middle < high))
            middle = low;
        double below, above;
        uint64_t count = pair_sums_count(s, middle, &below, &above);
        if (count <= place) {
            low = above;
            low_count = count;
        } else {
            high = below;
            high_count = count;
        }
    }
    if (!(low < high))
        return low;
    size_t count = collect(s, low, high, scratch);
    assert(count == high_count - low_count);
    return select_double(scratch, count, (size_t)(place - low_count));
}
