/* SPDX-License-Identifier: MIT */
/*
 * Random numbers that repeat: xoshiro256** (Blackman & Vigna 2018), seeded through splitmix64.
 * Everything in assay that shuffles or resamples takes one of these, so that a seed which was
 * printed gives the same run again.  One generator belongs to one thread.
 */
#ifndef ASSAY_NUMBERS_RANDOM_H
#define ASSAY_NUMBERS_RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct rng {
    uint64_t state[4];
};

void rng_seed(struct rng *rng, uint64_t seed);
uint64_t rng_next(struct rng *rng);
/* Uniform in [0, 1), 53 bits. */
double rng_uniform(struct rng *rng);
/* Uniform in [0, bound), without bias; bound is at least 1. */
uint64_t rng_below(struct rng *rng, uint64_t bound);
/* Standard normal. */
double rng_normal(struct rng *rng);
/* Exponential of mean 1. */
double rng_exponential(struct rng *rng);
/* Shuffles order[0..count) in place. */
void rng_shuffle(struct rng *rng, size_t *order, size_t count);

#endif
