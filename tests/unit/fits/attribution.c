/* SPDX-License-Identifier: MIT */
/* Changes taken apart: parts add up, and their intervals hold as often as they say on simulated
 * programs whose truth is known.  Seeds are fixed, so this passes or fails for good. */
#include "fits/attribution.h"
#include "numbers/random.h"
#include "test.h"

enum { PARTS = 4, RUNS_MAX = 12, MEASURED = 10, EXPERIMENTS = 600 };

/* A program: what its parts cost, and how much they vary from run to run. */
struct program {
    double costs[PARTS]; /* nanoseconds for a unit of work */
    double jitter;       /* of each part in each run, as a share */
    double noise;        /* of a whole run */
};

struct profiled {
    double weights[PARTS][RUNS_MAX], samples[PARTS][RUNS_MAX];
    double run_weights[RUNS_MAX], run_samples[RUNS_MAX], work[RUNS_MAX], measured[MEASURED];
};

static double poisson(struct rng *rng, double mean)
{
    double count = 0;
    if (mean > 400)
        return fmax(0, round(mean + sqrt(mean) * rng_normal(rng)));
    for (double sum = rng_exponential(rng); sum < mean; sum += rng_exponential(rng))
        count++;
    return count;
}

static double factor(struct rng *rng, double spread)
{
    return exp(spread * rng_normal(rng));
}

/* Runs the program; `samples` are expected of a run whose work costs `cost`. */
static void run_program(struct rng *rng, const struct program *p, size_t runs, double samples,
                        struct profiled *out)
{
    double cost = 0, work = 1000;
    for (size_t i = 0; i < PARTS; i++)
        cost += p->costs[i];
    double period = cost * work / samples;
    for (size_t r = 0; r < runs; r++) {
        double whole = factor(rng, p->noise);
        out->work[r] = work;
        out->run_weights[r] = out->run_samples[r] = 0;
        for (size_t i = 0; i < PARTS; i++) {
            double mean = p->costs[i] * work * whole * factor(rng, p->jitter) / period;
            out->samples[i][r] = poisson(rng, mean);
            out->weights[i][r] = out->samples[i][r] * period;
            out->run_samples[r] += out->samples[i][r];
            out->run_weights[r] += out->weights[i][r];
        }
    }
    for (size_t m = 0; m < MEASURED; m++) {
        out->measured[m] = 0;
        double whole = factor(rng, p->noise);
        for (size_t i = 0; i < PARTS; i++)
            out->measured[m] += p->costs[i] * whole * factor(rng, p->jitter);
    }
}

static struct attribution_options options_of(const struct profiled sides[SIDE_COUNT], size_t runs,
                                             bool measured)
{
    struct attribution_options o = {0};
    for (size_t s = 0; s < SIDE_COUNT; s++)
        o.sides[s] = (struct attribution_side){.run_count = runs,
                                               .weights = sides[s].run_weights,
                                               .samples = sides[s].run_samples,
                                               .work = sides[s].work,
                                               .measured = measured ? sides[s].measured : NULL,
                                               .measured_count = measured ? MEASURED : 0};
    return o;
}

static struct attributed part_of(const struct attribution *a,
                                 const struct profiled sides[SIDE_COUNT], size_t part)
{
    return attribution_part(
        a, (const double *const[]){sides[SIDE_A].weights[part], sides[SIDE_B].weights[part]},
        (const double *const[]){sides[SIDE_A].samples[part], sides[SIDE_B].samples[part]});
}

/* B has more of part 0; parts 1 to 3 are a large, a small and a rare one that do not change. */
static const struct program before = {.costs = {10, 60, 4, 0.3}};
static const struct program after = {.costs = {30, 60, 4, 0.3}};

struct tally {
    size_t covered[PARTS], called[PARTS], below[PARTS];
};

static struct tally try_out(size_t runs, double samples, double jitter, bool measured)
{
    struct tally tally = {0};
    struct rng rng;
    rng_seed(&rng, (uint64_t)((double)runs * 1000 + samples + 77 * measured + 1000 * jitter));
    for (size_t x = 0; x < EXPERIMENTS; x++) {
        static struct profiled sides[SIDE_COUNT];
        struct program a = before, b = after;
        a.jitter = b.jitter = jitter;
        a.noise = b.noise = 0.03;
        run_program(&rng, &a, runs, samples, &sides[SIDE_A]);
        run_program(&rng, &b, runs, samples, &sides[SIDE_B]);
        struct attribution_options o = options_of(sides, runs, measured);
        struct attribution whole;
        attribution_init(&whole, &o);
        for (size_t i = 0; i < PARTS; i++) {
            struct attributed p = part_of(&whole, sides, i);
            double truth = after.costs[i] - before.costs[i];
            tally.covered[i] += fabs(p.change - truth) <= p.half_width;
            tally.called[i] += p.significant;
            tally.below[i] += p.below_resolution;
        }
        attribution_done(&whole);
    }
    return tally;
}

TEST(intervals_hold)
{
    static const size_t runs[] = {3, 6, 12};
    static const double samples[] = {40, 400, 4000}, jitters[] = {0, 0.05};
    for (size_t r = 0; r < 3; r++)
        for (size_t n = 0; n < 3; n++)
            for (size_t j = 0; j < 2; j++)
                for (int measured = 0; measured < 2; measured++) {
                    struct tally t = try_out(runs[r], samples[n], jitters[j], measured);
                    for (size_t i = 0; i < PARTS; i++) {
                        double covered = (double)t.covered[i] / EXPERIMENTS;
                        double called = (double)t.called[i] / EXPERIMENTS;
                        if (covered < 0.935)
                            test_fail(__FILE__, __LINE__,
                                      "part %zu, %zu runs of %g samples, jitter %g, %s: %.1f %%", i,
                                      runs[r], samples[n], jitters[j],
                                      measured ? "measured" : "sampled only", 100 * covered);
                        if (i > 0 && called > 0.065)
                            test_fail(__FILE__, __LINE__,
                                      "part %zu, %zu runs of %g samples: %.1f %% false alarms", i,
                                      runs[r], samples[n], 100 * called);
                    }
                }
}

TEST(a_real_change_is_found)
{
    struct tally t = try_out(6, 400, 0.05, true);
    CHECK(t.called[0] > EXPERIMENTS * 99 / 100);
    CHECK_INT(t.below[0], 0);
    /* What does not change is mostly below the resolution. */
    CHECK(t.below[3] > EXPERIMENTS * 90 / 100);
}

TEST(parts_add_up_to_what_was_measured)
{
    static struct profiled sides[SIDE_COUNT];
    struct rng rng;
    rng_seed(&rng, 5);
    struct program a = before, b = after;
    a.noise = b.noise = 0.1;
    run_program(&rng, &a, 5, 300, &sides[SIDE_A]);
    run_program(&rng, &b, 5, 300, &sides[SIDE_B]);
    for (int measured = 0; measured < 2; measured++)
        for (int paired = 0; paired < 2; paired++) {
            struct attribution_options o = options_of(sides, 5, measured);
            o.paired = paired;
            struct attribution whole;
            attribution_init(&whole, &o);
            double sum_a = 0, sum_b = 0, shares = 0;
            for (size_t i = 0; i < PARTS; i++) {
                struct attributed p = part_of(&whole, sides, i);
                sum_a += p.a;
                sum_b += p.b;
                shares += p.share;
            }
            CHECK_NEAR(sum_a, whole.whole.a, 1e-9);
            CHECK_NEAR(sum_b, whole.whole.b, 1e-9);
            CHECK_NEAR(shares, 1, 1e-9);
            struct attributed rest = attribution_rest(&whole, sum_a - 7, sum_b - 9);
            CHECK_NEAR(rest.change, 2, 1e-9);
            attribution_done(&whole);
        }
}

TEST(one_run_has_no_interval)
{
    static struct profiled sides[SIDE_COUNT];
    struct rng rng;
    rng_seed(&rng, 6);
    run_program(&rng, &before, 1, 300, &sides[SIDE_A]);
    run_program(&rng, &after, 1, 300, &sides[SIDE_B]);
    struct attribution_options o = options_of(sides, 1, false);
    struct attribution whole;
    attribution_init(&whole, &o);
    struct attributed p = part_of(&whole, sides, 0);
    CHECK(!whole.has_interval);
    CHECK(isnan(p.half_width) && !p.significant);
    CHECK(p.resolution > 0 && !p.below_resolution); /* what sampling can tell, it tells */
    CHECK(part_of(&whole, sides, 3).below_resolution);
    attribution_done(&whole);
}

TEST(one_wild_measured_run_does_not_decide)
{
    static struct profiled sides[SIDE_COUNT];
    struct rng rng;
    rng_seed(&rng, 7);
    run_program(&rng, &before, 5, 300, &sides[SIDE_A]);
    run_program(&rng, &after, 5, 300, &sides[SIDE_B]);
    sides[SIDE_A].measured[4] *= 50;
    struct attribution_options o = options_of(sides, 5, true);
    o.paired = true;
    struct attribution whole;
    attribution_init(&whole, &o);
    CHECK_NEAR(whole.whole.change, 20, 2);
    attribution_done(&whole);
}

TEST(nothing_at_all_is_nothing)
{
    static struct profiled sides[SIDE_COUNT];
    for (size_t s = 0; s < SIDE_COUNT; s++)
        for (size_t r = 0; r < 3; r++)
            sides[s].work[r] = 1;
    struct attribution_options o = options_of(sides, 3, false);
    o.every_one = true;
    struct attribution whole;
    attribution_init(&whole, &o);
    struct attributed p = part_of(&whole, sides, 0);
    CHECK_NEAR(p.change, 0, 0);
    CHECK(!p.significant);
    CHECK(isnan(p.share));
    attribution_done(&whole);
}
