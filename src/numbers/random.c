/* SPDX-License-Identifier: MIT */
/* See random.h.  Bounded numbers follow Lemire (2019), "Fast random integer generation in an
 * interval"; normals are Marsaglia's polar method without keeping the second value, so that the
 * generator's state is all there is. */
#include "numbers/random.h"

#include <assert.h>
#include <math.h>

static uint64_t rotate_left(uint64_t x, int by)
{
    return (x << by) | (x >> (64 - by));
}

void rng_seed(struct rng *rng, uint64_t seed)
{
    for (size_t i = 0; i < 4; i++) {
        seed += 0x9e3779b97f4a7c15ULL;
        uint64_t z = seed;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        rng->state[i] = z ^ (z >> 31);
    }
}

uint64_t rng_next(struct rng *rng)
{
    uint64_t *s = rng->state;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

double rng_uniform(struct rng *rng)
{
    return (double)(rng_next(rng) >> 11) * 0x1p-53;
}

uint64_t rng_below(struct rng *rng, uint64_t bound)
{
    assert(bound > 0);
    unsigned __int128 product = (unsigned __int128)rng_next(rng) * bound;
    if ((uint64_t)product < bound) {
        uint64_t threshold = -bound % bound;
        while ((uint64_t)product < threshold)
            product = (unsigned __int128)rng_next(rng) * bound;
    }
    return (uint64_t)(product >> 64);
}

double rng_normal(struct rng *rng)
{
    for (;;) {
        double x = 2 * rng_uniform(rng) - 1, y = 2 * rng_uniform(rng) - 1;
        double s = x * x + y * y;
        if (s > 0 && s < 1)
            return x * sqrt(-2 * log(s) / s);
    }
}

double rng_exponential(struct rng *rng)
{
    return -log1p(-rng_uniform(rng));
}

void rng_shuffle(struct rng *rng, size_t *order, size_t count)
{
    for (size_t i = count; i > 1; i--) {
        size_t j = (size_t)rng_below(rng, i);
        size_t kept = order[i - 1];
        order[i - 1] = order[j];
        order[j] = kept;
    }
}
