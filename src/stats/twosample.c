/* SPDX-License-Identifier: MIT */
/*
 * See twosample.h.  With N_k values of the new sample among the k smallest of all N, the distance
 * is the sum over k of (N_k N - k n)^2 / (k (N - k)), divided by n m; with ties only those k count
 * after which a larger value follows.  Exchanges are tried until twenty were as far (Besag &
 * Clifford 1991), which is soon where nothing differs.
 */
#include "stats/twosample.h"
#include "base/memory.h"
#include "numbers/random.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { EXCHANGES_MAX = 1999, EXCHANGES_MIN = 199, ENOUGH = 20, STEPS_MAX = 20000000 };

struct place {
    double value;
    size_t round; /* which pair, or which value */
    bool is_new;
};

struct pooled {
    struct place *places; /* ascending */
    double *weights;      /* 0 within ties */
    size_t count, new_count, block;
    bool *is_new; /* the labels that are tried, by round or by place */
};

static int by_value(const void *a, const void *b)
{
    double x = ((const struct place *)a)->value, y = ((const struct place *)b)->value;
    return (x > y) - (x < y);
}

static void pool(struct pooled *p, const double *base_values, size_t base_count,
                 const double *new_values, size_t new_count)
{
    size_t all = base_count + new_count;
    *p = (struct pooled){.count = all, .new_count = new_count, .block = 1};
    p->places = memory_zalloc(all + 1, sizeof(*p->places));
    p->weights = memory_zalloc(all + 1, sizeof(*p->weights));
    p->is_new = memory_zalloc(all + 1, sizeof(*p->is_new));
    for (size_t i = 0; i < base_count; i++)
        p->places[i] = (struct place){base_values[i], i, false};
    for (size_t i = 0; i < new_count; i++)
        p->places[base_count + i] = (struct place){new_values[i], i, true};
    qsort(p->places, all, sizeof(*p->places), by_value);
    for (size_t k = 1; k < all; k++)
        if (p->places[k - 1].value < p->places[k].value)
            p->weights[k] = 1 / ((double)k * (double)(all - k));
}

static void pooled_done(struct pooled *p)
{
    free(p->places);
    free(p->weights);
    free(p->is_new);
}

static double distance(const struct pooled *p, bool paired, bool as_it_is)
{
    double n = (double)p->new_count, all = (double)p->count, sum = 0;
    size_t seen = 0;
    for (size_t k = 1; k < p->count; k++) {
        const struct place *place = &p->places[k - 1];
        bool is_new = as_it_is ? place->is_new
                      : paired ? place->is_new != p->is_new[place->round / p->block]
                               : p->is_new[k - 1];
        seen += is_new;
        double excess = (double)seen * all - (double)k * n;
        sum += excess * excess * p->weights[k];
    }
    return sum / (n * (all - n));
}

/* Draws new labels: for each round whether its two are exchanged, or any of all. */
static void draw(struct pooled *p, bool paired, struct rng *rng)
{
    if (paired) {
        uint64_t bits = 0;
        for (size_t i = 0; i < p->new_count; i++, bits >>= 1) {
            bits = i % 64 ? bits : rng_next(rng);
            p->is_new[i] = bits & 1;
        }
        return;
    }
    size_t left = p->new_count;
    for (size_t i = 0; i < p->count; i++) {
        p->is_new[i] = rng_below(rng, p->count - i) < left;
        left -= p->is_new[i];
    }
}

static double permuted_p(struct pooled *p, bool paired, uint64_t seed)
{
    double found = distance(p, paired, true);
    size_t most = STEPS_MAX / (p->count + 1), as_far = 0, tried = 0;
    most = most > EXCHANGES_MAX ? EXCHANGES_MAX : most < EXCHANGES_MIN ? EXCHANGES_MIN : most;
    struct rng rng;
    rng_seed(&rng, seed);
    while (tried < most && as_far < ENOUGH) {
        draw(p, paired, &rng);
        as_far += distance(p, paired, false) >= found * (1 - 1e-9);
        tried++;
    }
    if (as_far == ENOUGH)
        return (double)as_far / (double)tried;
    return ((double)as_far + 1) / ((double)tried + 1);
}

double two_sample_p_paired(const double *base_values, const double *new_values, size_t round_count,
                           size_t block, uint64_t seed)
{
    struct pooled p CLEANUP(pooled_done);
    pool(&p, base_values, round_count, new_values, round_count);
    p.block = block;
    return permuted_p(&p, true, seed);
}

double two_sample_p_unpaired(const double *base_values, size_t base_count, const double *new_values,
                             size_t new_count, uint64_t seed)
{
    struct pooled p CLEANUP(pooled_done);
    pool(&p, base_values, base_count, new_values, new_count);
    return permuted_p(&p, false, seed);
}

double two_sample_distance(const double *base_values, size_t base_count, const double *new_values,
                           size_t new_count)
{
    struct pooled p CLEANUP(pooled_done);
    pool(&p, base_values, base_count, new_values, new_count);
    return distance(&p, false, true);
}
