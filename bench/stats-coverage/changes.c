/* SPDX-License-Identifier: MIT */
/* See changes.h. */
#include "changes.h"
#include "base/memory.h"
#include "fits/changepoint.h"
#include "numbers/random.h"

#include <math.h>
#include <stdio.h>

enum { COUNT_MAX = 500, WARM_UP = 100 };

static const double error = 0.05;

enum noise {
    NORMAL,
    HEAVY_TAILS,
    SKEWED,
    LOG_NORMAL,
    TWO_MODES,
    TIES,
    RESTLESS,
    BURSTS,
    TWO_MACHINES,
    WAVE,
    UNDER_NOISE,
};

/* What a history is made of, and where it steps. */
struct history {
    enum noise noise;
    double lag1; /* what of it a result inherits from the one before */
    size_t count, spikes;
    double step; /* of the log, at `at` */
    size_t at;
};

static struct rng seeded(size_t row, size_t column, uint64_t salt)
{
    struct rng rng;
    rng_seed(&rng, row * 1000003 + column * 101 + salt * 7919);
    return rng;
}

/* Of deviation 1 or about that. */
static double draw(struct rng *rng, enum noise noise, size_t i, size_t count)
{
    double z = rng_normal(rng);
    switch (noise) {
    case HEAVY_TAILS: { /* Student's t with three degrees of freedom */
        double a = rng_normal(rng), b = rng_normal(rng), c = rng_normal(rng);
        return z / sqrt(a * a + b * b + c * c);
    }
    case SKEWED: /* as times are */
        return rng_exponential(rng) - 1;
    case LOG_NORMAL:
        return (exp(z) - 1.65) / 2.16;
    case TWO_MODES: /* drawn anew each time */
        return (rng_below(rng, 3) ? -0.7 : 1.4) + 0.2 * z;
    case TIES: /* a few values only */
        return floor(z + 0.5);
    case RESTLESS: /* in its second half */
        return i < count / 2 ? z / 2 : z;
    case BURSTS: /* one stretch in five is three times as loud */
        return i / 20 % 5 == 2 ? 2 * z : 0.67 * z;
    case TWO_MACHINES: /* in turn, one 2 % slower */
        return (double)(i % 2) * 2 - 1 + 0.3 * z;
    case WAVE: /* as of days and nights: 20 results long, half of the variation */
        return sin((double)i * 0.31416) + 0.7 * z;
    case NORMAL:
    case UNDER_NOISE:
        break;
    }
    return z;
}

/* Any change where there is none; else one within so many results of the step. */
static bool is_found(struct rng *rng, const struct history *h, size_t tolerance)
{
    static double values[COUNT_MAX];
    double state = 0, kept = sqrt(1 - h->lag1 * h->lag1);
    for (size_t i = 0; i < WARM_UP && h->lag1 > 0; i++)
        state = h->lag1 * state + kept * draw(rng, h->noise, i, h->count);
    for (size_t i = 0; i < h->count; i++) {
        state = h->lag1 * state + kept * draw(rng, h->noise, i, h->count);
        double white = h->noise == UNDER_NOISE ? 0.7 * rng_normal(rng) : 0;
        values[i] = 100 * exp(0.01 * (state + white) + (i >= h->at ? h->step : 0));
    }
    for (size_t i = 0; i < h->spikes; i++)
        values[rng_below(rng, h->count)] *= 1.5;
    struct change_points points;
    if (change_points_find(values, h->count, error, 1, &points, NULL) < 0)
        return false;
    bool found = h->step == 0 && points.count > 0;
    for (size_t i = 0; h->step > 0 && i < points.count; i++)
        found |= points.points[i].index + tolerance >= h->at &&
                 points.points[i].index <= h->at + tolerance;
    change_points_done(&points);
    return found;
}

/* Steps are anywhere but in the first and last `margin`, or where `from_end` says. */
static void print_share(struct rng rng, struct history h, size_t margin, size_t from_end,
                        size_t tolerance, size_t experiments)
{
    size_t found = 0;
    for (size_t e = 0; e < experiments; e++) {
        h.at = margin + (size_t)rng_below(&rng, h.count - 2 * margin);
        h.at = from_end ? h.count - from_end : h.at;
        found += is_found(&rng, &h, tolerance);
    }
    printf("%8.1f", 100 * (double)found / (double)experiments);
    fflush(stdout);
}

void changes_print(size_t experiments)
{
    static const double lags[] = {0, 0.3, 0.5, 0.7, 0.9};
    static const double steps[] = {0, 0, 0, 0.01, 0.02, 0.05, 0.02, 0.02, 0.03};
    static const size_t spikes[ARRAY_COUNT(steps)] = {0, 1, 10};
    static const size_t from_end[ARRAY_COUNT(steps)] = {0, 0, 0, 0, 0, 0, 10, 5, 5};
    printf("Histories of %d results with 1 %% noise, in %%: any change where there is none, the "
           "same with one spike, with ten; steps found within 5 results (20 if autocorrelated), "
           "anywhere, and 10 and 5 results from the end; %zu histories each\n\n"
           "%-18s%8s%8s%8s%8s%8s%8s%8s%8s%8s\n",
           COUNT_MAX, experiments, "autocorrelation", "none", "1 spike", "10", "1 %", "2 %", "5 %",
           "2 %, 10", "2 %, 5", "3 %, 5");
    for (size_t k = 0; k < ARRAY_COUNT(lags); k++) {
        printf("%-18.1f", lags[k]);
        for (size_t i = 0; i < ARRAY_COUNT(steps); i++) {
            struct history h = {
                .lag1 = lags[k], .count = COUNT_MAX, .spikes = spikes[i], .step = steps[i]};
            print_share(seeded(k, i, 8), h, COUNT_MAX / 20, from_end[i], lags[k] > 0 ? 20 : 5,
                        experiments);
        }
        putchar('\n');
    }
    putchar('\n');
}

void changes_print_odd(size_t experiments)
{
    static const struct {
        const char *name;
        enum noise noise;
        double lag1;
    } kinds[] = {{"normal", NORMAL, 0},
                 {"heavy tails", HEAVY_TAILS, 0},
                 {"skewed", SKEWED, 0},
                 {"log-normal", LOG_NORMAL, 0},
                 {"two modes", TWO_MODES, 0},
                 {"ties", TIES, 0},
                 {"restless", RESTLESS, 0},
                 {"bursts", BURSTS, 0},
                 {"two machines", TWO_MACHINES, 0},
                 {"a wave", WAVE, 0},
                 {"heavy tails, 0.5", HEAVY_TAILS, 0.5},
                 {"heavy tails, 0.9", HEAVY_TAILS, 0.9},
                 {"skewed, 0.9", SKEWED, 0.9},
                 {"log-normal, 0.5", LOG_NORMAL, 0.5},
                 {"log-normal, 0.9", LOG_NORMAL, 0.9},
                 {"bursts, 0.5", BURSTS, 0.5},
                 {"bursts, 0.9", BURSTS, 0.9},
                 {"0.5 under noise", UNDER_NOISE, 0.5},
                 {"0.9 under noise", UNDER_NOISE, 0.9}};
    static const double steps[] = {0, 0, 0.02, 0.05, 0.05, 0.05};
    static const size_t counts[] = {60, 200, 200, 200, 200, 200};
    static const size_t from_end[] = {0, 0, 0, 0, 10, 5};
    printf("The same with other noise, some of it autocorrelated: none among 60 results, and of "
           "200 none, steps of 2 %% and 5 %% anywhere, 5 %% at 10 and at 5 results from the end\n\n"
           "%-18s%8s%8s%8s%8s%8s%8s\n",
           "noise", "none, 60", "none", "2 %", "5 %", "10 left", "5 left");
    for (size_t k = 0; k < ARRAY_COUNT(kinds); k++) {
        printf("%-18s", kinds[k].name);
        for (size_t i = 0; i < ARRAY_COUNT(steps); i++) {
            struct history h = {.noise = kinds[k].noise,
                                .lag1 = kinds[k].lag1,
                                .count = counts[i],
                                .step = steps[i]};
            print_share(seeded(k, i, 18), h, counts[i] / 10, from_end[i],
                        kinds[k].lag1 > 0 ? 20 : 5, experiments);
        }
        putchar('\n');
    }
    putchar('\n');
}

void changes_print_short(size_t experiments)
{
    static const size_t counts[] = {12, 20, 40, 60, 100};
    static const double lags[] = {0, 0.3, 0.5, 0.7, 0, 0, 0};
    static const double steps[] = {0, 0, 0, 0, 0.03, 0.05, 0.08};
    printf("Short histories with 1 %% noise, in %%: any change where there is none, by "
           "autocorrelation; steps found after two thirds (autocorrelation 0); %zu each\n\n"
           "%-10s%8s%8s%8s%8s%8s%8s%8s\n",
           experiments, "results", "0", "0.3", "0.5", "0.7", "3 %", "5 %", "8 %");
    for (size_t k = 0; k < ARRAY_COUNT(counts); k++) {
        printf("%-10zu", counts[k]);
        for (size_t i = 0; i < ARRAY_COUNT(steps); i++) {
            struct history h = {.lag1 = lags[i], .count = counts[k], .step = steps[i]};
            print_share(seeded(k, i, 19), h, 0, counts[k] - counts[k] * 2 / 3,
                        counts[k] >= 40 ? 5 : 2, experiments);
        }
        putchar('\n');
    }
    putchar('\n');
}
