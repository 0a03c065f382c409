/* SPDX-License-Identifier: MIT */
/*
 * See signedrank.h.  The sum of the ranks of the positive values is at most k in as many of the 2^n
 * sign patterns as the product of (1 + x^i), i = 1 … n, has terms up to x^k (Hollander & Wolfe,
 * Nonparametric Statistical Methods, chapter 3).  That sum is the number of means of pairs (i <= j,
 * a value with itself included) above the centre, so the ends of the interval are means of pairs at
 * the critical place from either end.  They are found by counting passes of n steps, without
 * forming all pairs.
 */
#include "stats/signedrank.h"
#include "numbers/distributions.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* The tables of all counts that are counted out, one after the other, made once. */
enum { TABLES_SIZE = 37881 }; /* the sum of n (n + 1) / 2 + 1, n = 0 … SIGNED_RANK_EXACT_MAX */
static double tables[TABLES_SIZE];
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

/* Where the table of a count begins: the sum of the sizes of those before it. */
static size_t table_start(size_t count)
{
    return count * (count * count + 5) / 6;
}
static_assert(TABLES_SIZE == (SIGNED_RANK_EXACT_MAX + 1) *
                                 ((SIGNED_RANK_EXACT_MAX + 1) * (SIGNED_RANK_EXACT_MAX + 1) + 5) /
                                 6,
              "one table for each count from 0 on");

/* The shares of one count follow from those of the count before. */
static void count_out(void)
{
    tables[0] = 1;
    for (size_t n = 1; n <= SIGNED_RANK_EXACT_MAX; n++) {
        const double *before = tables + table_start(n - 1);
        double *shares = tables + table_start(n);
        size_t size = n * (n - 1) / 2 + 1;
        for (size_t k = 0; k < size; k++) {
            shares[k] += before[k] / 2;
            shares[k + n] += before[k] / 2;
        }
    }
    for (size_t n = 1; n <= SIGNED_RANK_EXACT_MAX; n++)
        for (size_t k = table_start(n) + 1; k < table_start(n + 1); k++)
            tables[k] += tables[k - 1];
}

void signed_rank_init(struct signed_rank *test, size_t count)
{
    double n = (double)count;
    pthread_once(&tables_once, count_out);
    test->mean = n * (n + 1) / 4;
    test->stddev = sqrt(n * (n + 1) * (2 * n + 1) / 24);
    test->tail = count <= SIGNED_RANK_EXACT_MAX ? tables + table_start(count) : NULL;
}

double signed_rank_p(const struct signed_rank *test, double k)
{
    k = fmax(k, 0);
    if (k >= test->mean)
        return 1;
    if (!test->tail)
        return fmin(1, 2 * dist_normal_cdf((k + 0.5 - test->mean) / test->stddev));
    size_t whole = (size_t)k;
    double part = k - (double)whole, tail = test->tail[whole];
    if (part > 0)
        tail += part * (test->tail[whole + 1] - tail);
    return fmin(1, 2 * tail);
}

double signed_rank_critical(const struct signed_rank *test, double alpha)
{
    if (!test->tail) {
        double k = test->mean - 0.5 + test->stddev * dist_normal_quantile(alpha / 2);
        return k < 0 ? -1 : k;
    }
    if (2 * test->tail[0] > alpha)
        return -1;
    size_t k = 0;
    while (2 * test->tail[k + 1] <= alpha)
        k++;
    return (double)k + (alpha / 2 - test->tail[k]) / (test->tail[k + 1] - test->tail[k]);
}

/*
 * Counts the sums of pairs, i <= j, at or below a value; finds the largest of these, and the
 * smallest of the others.  A step looks at one sum and decides for a whole row or column, so there
 * are as many steps as values, whatever the value is.  Steps have no branch: which way one goes
 * cannot be foretold, but several counts that go side by side do not wait for each other.
 */
struct tally {
    double value, below, above;
    uint64_t sums;
    size_t row, end; /* partners [row, end) of this row are not decided yet */
};

static void tally_init(struct tally *t, size_t count, double value)
{
    *t = (struct tally){.value = value, .below = -INFINITY, .above = INFINITY, .end = count};
}

static inline __attribute__((always_inline)) void tally_step(struct tally *t, const double *sorted)
{
    double sum = sorted[t->row] + sorted[t->end - 1];
    bool is_above = sum > t->value;
    double below = is_above ? t->below : sum, above = is_above ? sum : t->above;
    t->below = below > t->below ? below : t->below;
    t->above = above < t->above ? above : t->above;
    t->sums += (t->end - t->row) & ((uint64_t)is_above - 1);
    t->row += !is_above;
    t->end -= is_above;
}

static double count_sums(const double *sorted, size_t count, double value, double *ret_at_or_below,
                         double *ret_above)
{
    struct tally t;
    tally_init(&t, count, value);
    for (size_t i = 0; i < count; i++)
        tally_step(&t, sorted);
    *ret_at_or_below = t.below;
    *ret_above = t.above;
    return (double)t.sums;
}

static double last_place(size_t count)
{
    return (double)count * ((double)count + 1) / 2 - 1;
}

/* Looks for the sum of a pair at a whole place, counted from 0. */
struct search {
    double place, low, high, low_count, high_count;
    struct tally tally;
};

enum { SEARCHES = 3 }; /* side by side */

static void search_init(struct search *s, const double *sorted, size_t count, double place)
{
    *s = (struct search){.place = place,
                         .low = 2 * sorted[0],
                         .high = 2 * sorted[count - 1],
                         .high_count = last_place(count) + 1};
}

/* Counts rise smoothly with the value, so a guess by proportion comes near at once; every third one
 * halves the range, whatever the values are. */
static void search_aim(struct search *s, size_t count, size_t pass)
{
    double part =
        pass % 3 == 2 ? 0.5 : (s->place + 0.5 - s->low_count) / (s->high_count - s->low_count);
    double middle = s->low + (s->high - s->low) * fmin(fmax(part, 0), 1);
    tally_init(&s->tally, count, middle < s->high ? middle : nextafter(s->high, s->low));
}

static void search_narrow(struct search *s)
{
    double at_or_below = (double)s->tally.sums;
    if (!(s->low < s->high))
        return;
    if (at_or_below > s->place) {
        s->high = s->tally.below;
        s->high_count = at_or_below;
    } else {
        s->low = s->tally.above;
        s->low_count = at_or_below;
    }
}

static void count_side_by_side(struct search s[SEARCHES], const double *sorted, size_t count)
{
    struct tally a = s[0].tally, b = s[1].tally, c = s[2].tally;
    for (size_t i = 0; i < count; i++) {
        tally_step(&a, sorted);
        tally_step(&b, sorted);
        tally_step(&c, sorted);
    }
    s[0].tally = a;
    s[1].tally = b;
    s[2].tally = c;
}

/* The means of pairs at three places, each of which may lie between two. */
static void select_means(const double *sorted, size_t count, const double places[SEARCHES],
                         double means[SEARCHES])
{
    struct search s[SEARCHES];
    for (size_t i = 0; i < SEARCHES; i++)
        search_init(&s[i], sorted, count, floor(places[i]));
    for (size_t pass = 0; s[0].low < s[0].high || s[1].low < s[1].high || s[2].low < s[2].high;
         pass++) {
        for (size_t i = 0; i < SEARCHES; i++)
            search_aim(&s[i], count, pass);
        count_side_by_side(s, sorted, count);
        for (size_t i = 0; i < SEARCHES; i++)
            search_narrow(&s[i]);
    }
    for (size_t i = 0; i < SEARCHES; i++)
        tally_init(&s[i].tally, count, s[i].low);
    count_side_by_side(s, sorted, count);
    for (size_t i = 0; i < SEARCHES; i++) {
        double value = s[i].low, beyond = places[i] - s[i].place;
        if (beyond > 0 && (double)s[i].tally.sums <= s[i].place + 1)
            value += beyond * (s[i].tally.above - value);
        means[i] = value / 2;
    }
}

void signed_rank_locate(const struct signed_rank *test, const double *sorted, size_t count,
                        double alpha, double *ret_centre, double *ret_low, double *ret_high)
{
    double critical = fmax(0, signed_rank_critical(test, alpha)), means[SEARCHES];
    double last = last_place(count), places[SEARCHES] = {critical, last - critical, last / 2};
    select_means(sorted, count, places, means);
    *ret_low = means[0];
    *ret_high = means[1];
    *ret_centre = means[2];
}

double signed_rank_p_of(const struct signed_rank *test, const double *sorted, size_t count,
                        double centre, double value)
{
    if (value == centre)
        return 1;
    double total = last_place(count) + 1, below, above;
    double at_or_below = count_sums(sorted, count, 2 * value, &below, &above);
    if (at_or_below < 1 || (at_or_below >= total && below < 2 * value))
        return signed_rank_p(test, 0);
    double part = above > below && isfinite(above) ? (2 * value - below) / (above - below) : 0;
    if (value < centre)
        return signed_rank_p(test, at_or_below - 1 + part);
    if (below < 2 * value)
        return signed_rank_p(test, total - at_or_below - part);
    /* Some means equal the value: place them from the upper end, with all that are equal. */
    at_or_below = count_sums(sorted, count, nextafter(2 * value, -INFINITY), &below, &above);
    return signed_rank_p(test, total - 1 - at_or_below);
}
