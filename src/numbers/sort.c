/* SPDX-License-Identifier: MIT */
/*
 * See sort.h.  Quicksort with the median of three, insertion sort for short stretches and heap
 * sort where the recursion would go too deep (Musser 1997, introsort).  The C library's qsort
 * calls back for each comparison and allocates above a kilobyte.
 */
#include "numbers/sort.h"

#include <math.h>

enum { SHORT_STRETCH = 24 };

static void swap(double *a, double *b)
{
    double kept = *a;
    *a = *b;
    *b = kept;
}

static void insertion_sort(double *v, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        double value = v[i];
        size_t j = i;
        for (; j > 0 && v[j - 1] > value; j--)
            v[j] = v[j - 1];
        v[j] = value;
    }
}

static void sift_down(double *v, size_t root, size_t count)
{
    for (;;) {
        size_t child = 2 * root + 1;
        if (child >= count)
            return;
        if (child + 1 < count && v[child] < v[child + 1])
            child++;
        if (v[root] >= v[child])
            return;
        swap(&v[root], &v[child]);
        root = child;
    }
}

static void heap_sort(double *v, size_t count)
{
    for (size_t i = count / 2; i-- > 0;)
        sift_down(v, i, count);
    for (size_t i = count; i-- > 1;) {
        swap(&v[0], &v[i]);
        sift_down(v, 0, i);
    }
}

/* Splits v[0..count) so that v[0..split] <= pivot <= v[split+1..count); returns split, which is
 * below count - 1 (Hoare's partition; equal values are dealt to both sides). */
static size_t partition(double *v, size_t count)
{
    size_t middle = count / 2, last = count - 1;
    if (v[middle] < v[0])
        swap(&v[middle], &v[0]);
    if (v[last] < v[0])
        swap(&v[last], &v[0]);
    if (v[last] < v[middle])
        swap(&v[last], &v[middle]);
    double pivot = v[middle];
    size_t i = 0, j = last;
    for (;;) {
        do
            i++;
        while (v[i] < pivot);
        do
            j--;
        while (v[j] > pivot);
        if (i >= j)
            return j;
        swap(&v[i], &v[j]);
    }
}

static size_t depth_limit(size_t count)
{
    size_t limit = 2;
    for (; count > 1; count >>= 1)
        limit += 2;
    return limit;
}

static void intro_sort(double *v, size_t count, size_t depth)
{
    while (count > SHORT_STRETCH) {
        if (depth-- == 0) {
            heap_sort(v, count);
            return;
        }
        size_t left = partition(v, count) + 1;
        if (left < count - left) {
            intro_sort(v, left, depth);
            v += left;
            count -= left;
        } else {
            intro_sort(v + left, count - left, depth);
            count = left;
        }
    }
    insertion_sort(v, count);
}

void sort_doubles(double *values, size_t count)
{
    intro_sort(values, count, depth_limit(count));
}

double select_double(double *values, size_t count, size_t index)
{
    double *v = values;
    for (size_t depth = depth_limit(count); count > SHORT_STRETCH && depth > 0; depth--) {
        size_t left = partition(v, count) + 1;
        if (index < left) {
            count = left;
        } else {
            v += left;
            count -= left;
            index -= left;
        }
    }
    sort_doubles(v, count);
    return v[index];
}

/* How many of the sorted values lie below a value.  Without a branch that depends on the values:
 * half of these would be predicted wrongly. */
static size_t count_below(const double *sorted, size_t count, double value)
{
    const double *from = sorted;
    while (count > 1) {
        size_t half = count / 2;
        from += (size_t)(from[half - 1] < value) * half;
        count -= half;
    }
    return (size_t)(from - sorted) + (count == 1 && *from < value);
}

/* A coarse index into a long sorted list that stays in the nearest cache: every step-th value. */
enum { GUIDE_SIZE = 1024 };

struct guide {
    double values[GUIDE_SIZE];
    size_t step;
};

static void guide_init(struct guide *guide, const double *sorted, size_t count)
{
    guide->step = count / GUIDE_SIZE;
    for (size_t i = 0; guide->step > 0 && i < GUIDE_SIZE; i++)
        guide->values[i] = sorted[i * guide->step];
}

static size_t guided_count_below(const struct guide *guide, const double *sorted, size_t count,
                                 double value)
{
    if (guide->step == 0)
        return count_below(sorted, count, value);
    size_t knot = count_below(guide->values, GUIDE_SIZE, value);
    size_t from = knot > 0 ? (knot - 1) * guide->step : 0;
    size_t end = knot < GUIDE_SIZE ? knot * guide->step + 1 : count;
    return from + count_below(sorted + from, end - from, value);
}

void rank_doubles(const double *values, const double *sorted, size_t count, double *ret_ranks)
{
    struct guide guide;
    guide_init(&guide, sorted, count);
    for (size_t i = 0; i < count; i++) {
        size_t first = guided_count_below(&guide, sorted, count, values[i]), end = first + 1;
        if (end < count && sorted[end] == values[i])
            end = guided_count_below(&guide, sorted, count, nextafter(values[i], INFINITY));
        ret_ranks[i] = (double)(first + end + 1) / 2;
    }
}
