/* SPDX-License-Identifier: MIT */
/*
 * See sort.h.  Quicksort with the median of three, insertion sort for short stretches and heap
 * sort where the recursion would go too deep (Musser 1997, introsort).  The C library's qsort
 * calls back for each comparison and allocates above a kilobyte.
 */
#include "stats/sort.h"

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

/* The first place in sorted[from..count) whose value is above (or not below) the given one. */
static size_t bound(const double *sorted, size_t from, size_t count, double value, bool above)
{
    size_t low = from, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sorted[middle] < value || (above && sorted[middle] == value))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void rank_doubles(const double *values, const double *sorted, size_t count, double *ret_ranks)
{
    for (size_t i = 0; i < count; i++) {
        size_t first = bound(sorted, 0, count, values[i], false), end = first + 1;
        if (end < count && sorted[end] == values[i])
            end = bound(sorted, end, count, values[i], true);
        ret_ranks[i] = (double)(first + end + 1) / 2;
    }
}
