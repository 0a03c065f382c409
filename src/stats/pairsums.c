/* SPDX-License-Identifier: MIT */
/*
 * See pairsums.h.  In a matrix whose rows and columns ascend, the border between "at or below v"
 * and "above v" is a staircase that one walk of n + m steps follows (Johnson & Mizoguchi 1978;
 * Monahan 1984 for the Hodges-Lehmann estimate).  Selecting closes a bracket around the wanted
 * place, by turns with the secant and with bisection, until what lies inside fits the scratch.
 */
#include "stats/pairsums.h"
#include "stats/sort.h"

#include <assert.h>
#include <math.h>

uint64_t pair_sums_total(const struct pair_sums *s)
{
    uint64_t rows = s->row_count, cols = s->col_count;
    return s->upper ? rows * (rows + 1) / 2 : rows * cols;
}

static double element(const struct pair_sums *s, size_t row, size_t col)
{
    return (s->rows[row] + s->cols[col]) * s->scale;
}

uint64_t pair_sums_count(const struct pair_sums *s, double value, double *ret_at_or_below,
                         double *ret_above)
{
    uint64_t count = 0;
    double below = -INFINITY, above = INFINITY;
    size_t end = s->col_count; /* columns [first, end) of this row are at or below the value */
    for (size_t row = 0; row < s->row_count; row++) {
        size_t first = s->upper ? row : 0;
        while (end > first && element(s, row, end - 1) > value)
            end--;
        if (end > first) {
            count += end - first;
            below = fmax(below, element(s, row, end - 1));
        }
        size_t next = end > first ? end : first;
        if (next < s->col_count)
            above = fmin(above, element(s, row, next));
    }
    if (ret_at_or_below)
        *ret_at_or_below = below;
    if (ret_above)
        *ret_above = above;
    return count;
}

/* As pair_sums_count without the neighbours: the inner loop of selection. */
static uint64_t count_only(const struct pair_sums *s, double value)
{
    uint64_t count = 0;
    size_t end = s->col_count;
    for (size_t row = 0; row < s->row_count; row++) {
        size_t first = s->upper ? row : 0;
        while (end > first && element(s, row, end - 1) > value)
            end--;
        if (end <= first)
            break;
        count += end - first;
    }
    return count;
}

/* Collects the elements in (low, high]; the caller knows that they fit. */
static size_t collect(const struct pair_sums *s, double low, double high, double *out)
{
    size_t count = 0, end = s->col_count, start = s->col_count;
    for (size_t row = 0; row < s->row_count; row++) {
        size_t first = s->upper ? row : 0;
        while (end > first && element(s, row, end - 1) > high)
            end--;
        if (end <= first)
            break;
        start = start < end ? start : end;
        while (start > first && element(s, row, start - 1) > low)
            start--;
        for (size_t col = start > first ? start : first; col < end; col++)
            out[count++] = element(s, row, col);
    }
    return count;
}

double pair_sums_select(const struct pair_sums *s, uint64_t place, double *scratch,
                        size_t scratch_count)
{
    uint64_t total = pair_sums_total(s);
    assert(place < total);
    double high = element(s, s->row_count - 1, s->col_count - 1);
    double low = nextafter(element(s, 0, 0), -INFINITY);
    uint64_t low_count = 0, high_count = total; /* place lies in [low_count, high_count) */
    for (int turn = 0; high_count - low_count > scratch_count; turn++) {
        double share = ((double)(place - low_count) + 0.5) / (double)(high_count - low_count);
        double middle = turn % 3 == 2 ? low + (high - low) / 2 : low + (high - low) * share;
        if (!(middle > low && middle < high))
            middle = low + (high - low) / 2;
        if (!(middle > low && middle < high))
            return high; /* no number lies between them: all that is left is equal to high */
        uint64_t count = count_only(s, middle);
        if (count <= place) {
            low = middle;
            low_count = count;
        } else {
            high = middle;
            high_count = count;
        }
    }
    size_t count = collect(s, low, high, scratch);
    assert(count == high_count - low_count);
    return select_double(scratch, count, (size_t)(place - low_count));
}
