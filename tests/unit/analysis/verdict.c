/* SPDX-License-Identifier: MIT */
/* Words, gates, plans and false discoveries. */
#include "analysis/judge.h"
#include "simulate.h"
#include "stats/fdr.h"
#include "stats/plan.h"
#include "test.h"

static struct comparison ratio(double estimate, double low, double high, size_t count)
{
    return (struct comparison){.scale = COMPARISON_RATIO,
                               .estimate = estimate,
                               .low = low,
                               .high = high,
                               .level = count < COMPARISON_ROUNDS_MIN ? 0.9 : 0.95,
                               .base_count = count,
                               .new_count = count,
                               .widening = 1,
                               .paired = true,
                               .base_median = 100,
                               .new_median = 100 * estimate,
                               .too_few = count < COMPARISON_ROUNDS_MIN};
}

static const struct verdict_options time_options = {
    .facts = {.better = METRIC_LOWER, .is_speed = true}, .unit = "ns", .round_seconds = 0.5};

static struct verdict judged(struct comparison c, struct verdict_options options)
{
    struct verdict v;
    verdict_judge(&c, &options, &v);
    return v;
}

TEST(differences_in_words)
{
    struct verdict v = judged(ratio(1 / 1.34, 1 / 1.37, 1 / 1.31, 20), time_options);
    CHECK_STR(v.text, "1.34× faster [1.31, 1.37]");
    CHECK_INT(v.kind, VERDICT_BETTER);
    v = judged(ratio(1.34, 1.31, 1.37, 20), time_options);
    CHECK_STR(v.text, "1.34× slower [1.31, 1.37]");
    CHECK_INT(v.kind, VERDICT_WORSE);
    struct verdict_options rate = {.facts = {.better = METRIC_HIGHER, .is_speed = true},
                                   .unit = ""};
    v = judged(ratio(1.34, 1.31, 1.37, 20), rate);
    CHECK_STR(v.text, "1.34× faster [1.31, 1.37]");
    CHECK_INT(v.kind, VERDICT_BETTER);
    struct verdict_options memory = {.facts = {.better = METRIC_LOWER}, .unit = ""};
    v = judged(ratio(0.5, 0.499, 0.501, 20), memory);
    CHECK_STR(v.text, "2.000× less [1.996, 2.004]");
    CHECK_INT(v.kind, VERDICT_BETTER);
    struct verdict_options neither = {.facts = {.better = METRIC_NEITHER}, .unit = ""};
    v = judged(ratio(3, 2, 4, 20), neither);
    CHECK_STR(v.text, "3.00× more [2.00, 4.00]");
    CHECK_INT(v.kind, VERDICT_DIFFERENT);
}

TEST(too_noisy_in_words)
{
    struct verdict_options noisy = time_options;
    struct verdict v = judged(ratio(1.5, 0.4, 6, 12), noisy);
    CHECK_INT(v.kind, VERDICT_CANNOT_TELL);
    CHECK(v.too_noisy);
    CHECK(!strstr(v.text, "invisible") && !strstr(v.text, "500 %"));
    noisy.apart = 0.9;
    noisy.run_count = 24;
    noisy.disturbed_count = 20;
    noisy.round_seconds = 60;
    CHECK_STR(judged(ratio(1.5, 0.4, 6, 12), noisy).text,
              "too noisy to tell: runs of the same command differ by up to 90 %, and other work "
              "used the machine in 20 of 24");
    noisy.disturbed_count = 0;
    CHECK_STR(judged(ratio(1.5, 0.4, 6, 12), noisy).text,
              "too noisy to tell: runs of the same command differ by up to 90 %");
    /* Few rounds that agree are not noisy. */
    noisy.apart = 0.017;
    struct comparison few = ratio(1.002, 0.456, 2.199, 5);
    few.level = 0.95;
    v = judged(few, noisy);
    CHECK(!v.too_noisy);
    CHECK_STR(v.text, "5 rounds are too few to tell");
    noisy.round_seconds = 0.5;
    CHECK_STR(judged(few, noisy).text,
              "5 rounds are too few to tell; 20 rounds would tell much more, about 7.5 s more");
    noisy.apart = 0.9;
    /* More rounds are proposed where they are realistic. */
    noisy.round_seconds = 0.02;
    CHECK(strstr(judged(ratio(1.05, 0.7, 1.55, 12), noisy).text, " more would show "));
    /* A moderate bound is a figure. */
    v = judged(ratio(1.05, 0.9, 1.25, 12), noisy);
    CHECK(!v.too_noisy && strstr(v.text, "differences below 25 % are invisible"));
}

TEST(counts_that_repeat_assume_nothing)
{
    struct comparison c = ratio(1.61, 1.5, 1.7, 3);
    c.assumes_normal = true;
    c.level = 0.95;
    CHECK_STR(judged(c, time_options).text, "1.61× slower [1.50, 1.70], assuming log-normal noise");
    c.low = c.high = c.estimate; /* exact counts that repeat have no noise */
    CHECK_STR(judged(c, time_options).text, "1.61× slower [1.61, 1.61]");
}

enum { ROUNDS = 60 };

static struct comparison of_rounds(const double *base, const double *new)
{
    struct judge_values values = {base, new, ROUNDS, ROUNDS, .paired = true};
    struct comparison c = {0};
    CHECK_INT(judge_values(&values, JUDGE_LEVEL, &c, NULL), 0);
    return c;
}

TEST(a_ratio_that_moves_is_judged_without_its_movement)
{
    struct rng rng;
    rng_seed(&rng, 5);
    double base[ROUNDS], slower[ROUNDS], crossing[ROUNDS];
    for (size_t i = 0; i < ROUNDS; i++) {
        base[i] = 100 * exp(0.01 * rng_normal(&rng));
        slower[i] = base[i] * (1.04 + 0.008 * (double)i) * exp(0.003 * rng_normal(&rng));
        crossing[i] = base[i] * (0.8 + 0.008 * (double)i) * exp(0.003 * rng_normal(&rng));
    }
    struct comparison c = of_rounds(base, slower);
    CHECK(c.moves && comparison_excludes_same(&c));
    CHECK(c.low < 1.276 && c.high > 1.27);
    CHECK_NEAR(c.first, 1.04, 0.03);
    CHECK_NEAR(c.last, 1.51, 0.05);
    struct verdict v = judged(c, time_options);
    CHECK_INT(v.kind, VERDICT_WORSE);
    CHECK(strstr(v.text, "slower [") && strstr(v.text, ", in all 60 rounds: 1.0"));
    /* Where rounds disagree, nothing is taken out. */
    c = of_rounds(base, crossing);
    CHECK(!c.moves && !comparison_excludes_same(&c));
}

TEST(rounds_that_were_stopped_have_a_wider_interval)
{
    struct rng rng;
    rng_seed(&rng, 6);
    double base[ROUNDS], new[ROUNDS];
    for (size_t i = 0; i < ROUNDS; i++) {
        base[i] = 100 * exp(0.01 * rng_normal(&rng));
        new[i] = 101 * exp(0.01 * rng_normal(&rng));
    }
    struct comparison fixed = of_rounds(base, new), running;
    struct judge_values values = {base, new, ROUNDS, ROUNDS, .paired = true, .adaptive = true};
    CHECK_INT(judge_values(&values, JUDGE_LEVEL, &running, NULL), 0);
    CHECK(running.running && !fixed.running);
    CHECK_NEAR(running.estimate, fixed.estimate, 1e-9);
    CHECK(plan_half_width(&running) > 1.05 * plan_half_width(&fixed));
    CHECK(plan_may_stop(&running, 0.05) && !plan_may_stop(&fixed, 0.05));
}

TEST(digits_follow_the_interval)
{
    CHECK_STR(judged(ratio(1.002, 1.001, 1.003, 99), time_options).text,
              "1.002× slower [1.001, 1.003]");
    CHECK_STR(judged(ratio(1.01, 1.0004, 1.02, 99), time_options).text,
              "1.0100× slower [1.0004, 1.0200]");
    CHECK_STR(judged(ratio(1.25, 1.25, 1.25, 99), time_options).text, "1.25× slower [1.25, 1.25]");
    CHECK_STR(judged(ratio(4.0 / 3, 4.0 / 3, 4.0 / 3 + 1e-12, 99), time_options).text,
              "1.33× slower [1.33, 1.33]");
    CHECK_STR(judged(ratio(250, 210, 300, 99), time_options).text, "250× slower [210, 300]");
    CHECK_STR(judged(ratio(1.000002, 1.000002, 1.000002, 99), time_options).text,
              "1.000002× slower [1.000002, 1.000002]");
}

TEST(no_difference_in_words)
{
    struct verdict v = judged(ratio(1.001, 0.994, 1.008, 50), time_options);
    CHECK_STR(v.text, "no difference larger than 0.8 %");
    CHECK_INT(v.kind, VERDICT_SAME);
    CHECK_NEAR(v.bound, 0.008, 1e-12);
    CHECK_STR(judged(ratio(1, 0.9977, 1.0021, 50), time_options).text,
              "no difference larger than 0.23 %");
    CHECK_STR(judged(ratio(1, 1, 1, 50), time_options).text, "no difference");
    struct verdict_options coarse = time_options;
    coarse.interesting = 0.1;
    CHECK_STR(judged(ratio(1, 0.95, 1.09, 50), coarse).text, "no difference larger than 9 %");
}

TEST(not_knowing_in_words)
{
    struct verdict v = judged(ratio(1, 1 / 1.03, 1.03, 10), time_options);
    CHECK_STR(v.text, "cannot tell: differences below 3 % are invisible in this run; "
                      "about 40 s more would show 1 %");
    CHECK_INT(v.kind, VERDICT_CANNOT_TELL);
    CHECK_NEAR(v.more_rounds, 79, 1);
    struct verdict_options unknown = {.facts = {.better = METRIC_LOWER, .is_speed = true},
                                      .unit = ""};
    CHECK_STR(judged(ratio(1, 1 / 1.03, 1.03, 10), unknown).text,
              "cannot tell: differences below 3 % are invisible in this run; "
              "about 79 more rounds would show 1 %");
    /* 1 % would take hours: what ten minutes would show is said instead. */
    v = judged(ratio(1, 1 / 1.8, 1.8, 20), time_options);
    CHECK_STR(v.text, "too noisy to tell; "
                      "about 6 min more would show 10 %");
    /* Thousands of rounds are no advice. */
    CHECK_STR(judged(ratio(1, 1 / 4.5, 4.5, 10), unknown).text, "too noisy to tell");
    /* Narrow, but to one side. */
    v = judged(ratio(1.007, 0.999, 1.015, 100), time_options);
    CHECK_INT(v.kind, VERDICT_CANNOT_TELL);
    CHECK_CONTAINS(v.text, "differences below 1.5 % are invisible");
    CHECK(v.target < 0.005 && v.more_rounds > 200);
}

TEST(too_few_in_words)
{
    CHECK_STR(judged(ratio(0.5, 0.4, 0.6, 5), time_options).text,
              "cannot tell: 5 rounds are too few for a 95 % interval; 8 would do, "
              "about 1.5 s more");
    CHECK_STR(judged(ratio(1, NAN, NAN, 1), (struct verdict_options){0}).text,
              "cannot tell: 1 round is too few for a 95 % interval; 8 would do");
}

TEST(absolute_differences_in_words)
{
    struct comparison c = ratio(0, 0, 0, 20);
    c.scale = COMPARISON_DIFFERENCE;
    c.base_median = 0;
    c.estimate = 12;
    c.low = 8;
    c.high = 16;
    struct verdict_options options = {.facts = {.better = METRIC_LOWER}, .unit = ""};
    struct verdict v = judged(c, options);
    CHECK_STR(v.text, "12 more [8, 16]");
    CHECK_INT(v.kind, VERDICT_WORSE);
    c.low = -4;
    v = judged(c, options);
    CHECK_STR(v.text, "cannot tell: differences below 16 are invisible in this run");
    c.low = c.high = c.estimate = 0;
    CHECK_STR(judged(c, options).text, "no difference");
}

TEST(gates_know_three_answers)
{
    struct comparison worse = ratio(1.05, 1.03, 1.07, 20), maybe = ratio(1.03, 1.01, 1.05, 20);
    struct comparison fine = ratio(1.005, 0.995, 1.015, 20), better = ratio(0.9, 0.88, 0.92, 20);
    CHECK_INT(verdict_gate(&worse, METRIC_LOWER, 0.02), GATE_REGRESSION);
    CHECK_INT(verdict_gate(&maybe, METRIC_LOWER, 0.02), GATE_INCONCLUSIVE);
    CHECK_INT(verdict_gate(&fine, METRIC_LOWER, 0.02), GATE_PASS);
    CHECK_INT(verdict_gate(&better, METRIC_LOWER, 0.02), GATE_PASS);
    CHECK_INT(verdict_gate(&better, METRIC_HIGHER, 0.02), GATE_REGRESSION);
    CHECK_INT(verdict_gate(&worse, METRIC_HIGHER, 0.02), GATE_PASS);
    CHECK_INT(verdict_gate(&better, METRIC_NEITHER, 0.02), GATE_REGRESSION);
    CHECK_INT(verdict_gate(&fine, METRIC_NEITHER, 0.02), GATE_PASS);
    worse.too_few = true;
    worse.level = 0.9;
    CHECK_INT(verdict_gate(&worse, METRIC_LOWER, 0.02), GATE_INCONCLUSIVE);
}

/* Plans come true: with the number of rounds that was planned, the interval is as narrow and the
 * change is found as often as was said. */
TEST(plans_come_true)
{
    enum { TRIALS = 40, ROUNDS_MAX = 4000 };
    static double a[ROUNDS_MAX], b[ROUNDS_MAX];
    struct rng rng;
    double widths = 0;
    size_t found = 0;
    rng_seed(&rng, 8);
    for (int trial = 0; trial < TRIALS; trial++) {
        struct comparison c;
        simulate(&rng, &shapes[trial % 2 ? 0 : 5], 1, true, a, b, 60);
        stats_compare_paired(a, b, 60, 0.95, &c, NULL);
        size_t rounds = (size_t)fmin(plan_rounds_for_width(&c, 0.004), ROUNDS_MAX);
        simulate(&rng, &shapes[trial % 2 ? 0 : 5], 1, true, a, b, rounds);
        struct comparison longer;
        stats_compare_paired(a, b, rounds, 0.95, &longer, NULL);
        widths += plan_half_width(&longer) / TRIALS;
        rounds = (size_t)fmin(plan_rounds_for_change(&c, 0.01, 0.9), ROUNDS_MAX);
        simulate(&rng, &shapes[trial % 2 ? 0 : 5], 1.01, true, a, b, rounds);
        stats_compare_paired(a, b, rounds, 0.95, &longer, NULL);
        found += longer.low > 1;
    }
    CHECK_NEAR(widths, 0.004, 0.0012);
    CHECK_NEAR((double)found / TRIALS, 0.9, 0.1);
}

TEST(plans_at_the_edges)
{
    struct comparison exact = ratio(1, 1, 1, 10), single = ratio(1, NAN, NAN, 1);
    CHECK_NEAR(plan_rounds_for_width(&exact, 0.01), 8, 0);
    CHECK(isinf(plan_rounds_for_width(&single, 0.01)));
    CHECK(isinf(plan_rounds_for_width(&exact, 0) + INFINITY));
    struct comparison c = ratio(1, 1 / 1.02, 1.02, 10);
    CHECK_NEAR(plan_rounds_for_width(&c, 0.02), 10, 1);
    CHECK_NEAR(plan_rounds_for_width(&c, 0.01), 40, 1);
    c.widening = 2; /* chance made it wide; more rounds will mend that */
    CHECK_NEAR(plan_rounds_for_width(&c, 0.01), 10, 1);
    c.autocorrelated = true;
    CHECK_NEAR(plan_rounds_for_width(&c, 0.01), 40, 1);
}

/* The example in Benjamini & Hochberg's paper: of these 15, the first four are discoveries. */
TEST(false_discoveries_are_held_down)
{
    double p[] = {0.0344, 0.0001, 0.0004, 0.4262, 0.0019, 0.0095, 0.0201, 0.0278,
                  0.0298, 0.0459, 0.3240, 0.5719, 0.6528, 0.7590, 1.0000, NAN};
    double adjusted[16];
    CHECK_INT(fdr_adjust(p, 16, adjusted), 15);
    size_t found = 0;
    for (size_t i = 0; i < 15; i++) {
        found += adjusted[i] <= 0.05;
        CHECK_INT(adjusted[i] <= 0.05, p[i] <= 0.0095);
        CHECK(adjusted[i] >= p[i] && adjusted[i] <= 1);
    }
    CHECK_INT(found, 4);
    CHECK_NEAR(adjusted[1], 0.0015, 1e-12);
    CHECK(isnan(adjusted[15]));
    CHECK_INT(fdr_adjust(p, 0, adjusted), 0);
}

TEST(few_rounds_say_what_they_assume)
{
    struct comparison few = ratio(2.6, 2.1, 3.2, 3);
    few.level = 0.95;
    few.assumes_normal = true;
    struct verdict v = judged(few, time_options);
    CHECK_STR(v.text, "2.60× slower [2.10, 3.20], assuming log-normal noise");
    CHECK_INT(v.kind, VERDICT_WORSE);
}

/* The load of two days is no property of the programs; of rounds it is taken out. */
TEST(load_is_named_where_sides_were_not_measured_together)
{
    struct verdict_options busy = time_options;
    busy.run_count = 24;
    busy.disturbed_count = 15;
    struct comparison c = ratio(0.261, 0.164, 0.559, 12);
    CHECK(!strstr(judged(c, busy).text, "together"));
    c.paired = false;
    CHECK(strstr(judged(c, busy).text, "; not measured together, and other work used the machine "
                                       "in 15 of 24 runs, which may be the reason"));
    busy.disturbed_count = 2;
    CHECK(!strstr(judged(c, busy).text, "together"));
    busy.disturbed_count = 15;
    busy.facts.is_speed = false; /* CPU time, sizes */
    CHECK(!strstr(judged(c, busy).text, "together"));
}

/* Rounds whose ratios to 1 are these, beside other work. */
static struct comparison beside(const double *ratios, size_t count)
{
    static const double ones[] = {1, 1, 1, 1, 1, 1, 1, 1};
    struct judge_values values = {ones, ratios, count, count, .paired = true, .wary = true};
    struct comparison c = {0};
    CHECK_INT(judge_values(&values, JUDGE_LEVEL, &c, NULL), 0);
    return c;
}

TEST(few_rounds_beside_other_work_say_what_all_of_them_say)
{
    const double much[] = {98, 25.28, 31, 62}, some[] = {1.5, 1.1, 1.9, 1.2, 3, 1.3};
    const double wild[] = {0.5, 9, 2};
    struct verdict_options busy = time_options;
    busy.run_count = 8;
    busy.disturbed_count = 5;
    struct comparison c = beside(much, 4);
    struct verdict v = judged(c, busy);
    CHECK_INT(v.kind, VERDICT_WORSE);
    CHECK(c.low > 3);
    CHECK(strstr(v.text, ", in all 4 rounds by 25× or more, assuming log-normal noise; other work "
                         "used the machine in 5 of 8 runs"));
    v = judged(beside(much, 2), busy);
    CHECK_INT(v.kind, VERDICT_CANNOT_TELL);
    CHECK(strstr(v.text, "; slower in both rounds by 25× or more"));
    v = judged(beside(some, 6), busy);
    CHECK_INT(v.kind, VERDICT_CANNOT_TELL);
    CHECK(strstr(v.text, "; slower in all 6 rounds by 1.10× or more"));
    c = beside(wild, 3);
    CHECK(!comparison_has_interval(&c)); /* from far less to far more */
    CHECK_STR(judged(c, time_options).text,
              "cannot tell: 3 rounds are too few for a 95 % interval; 8 would do, about 2.5 s "
              "more");
}

/* A clock of 10 ms shows the same twice; two counts that repeat are exact. */
TEST(two_equal_rounds_have_not_shown_their_noise)
{
    const double a[] = {10, 10, 10}, b[] = {11, 11, 11};
    for (int paired = 0; paired < 2; paired++) {
        struct judge_values values = {a, b, 2, 2, .paired = paired};
        struct comparison c = {0};
        CHECK_INT(judge_values(&values, JUDGE_LEVEL, &c, NULL), 0);
        CHECK(!comparison_has_interval(&c) && c.p == 1);
        values.is_exact = true;
        CHECK_INT(judge_values(&values, JUDGE_LEVEL, &c, NULL), 0);
        CHECK(comparison_differs(&c));
        values = (struct judge_values){a, b, 3, 3, .paired = paired};
        CHECK_INT(judge_values(&values, JUDGE_LEVEL, &c, NULL), 0);
        CHECK(comparison_differs(&c));
    }
}

TEST(a_tail_that_the_median_does_not_see_is_told)
{
    struct judge_tails tails = {.looked = true,
                                .differs = true,
                                .strongest = TAILS_MEAN,
                                .mean = ratio(1.9, 1.6, 2.24, 100),
                                .slow = {.new_slow = 10,
                                         .base_count = 100,
                                         .new_count = 100,
                                         .base_factor = 1,
                                         .new_factor = 10}};
    struct verdict_options options = time_options;
    options.tails = &tails;
    struct verdict v = judged(ratio(1.0001, 0.999, 1.001, 100), options);
    CHECK_INT(v.kind, VERDICT_WORSE);
    CHECK(strstr(v.text, "same median, but 1 run in 10 is 10× slower") == v.text);
    CHECK(strstr(v.text, ": mean +90 % [+60, +124]"));
    v = judged(ratio(1.02, 0.97, 1.084, 100), options); /* the median is known less well */
    CHECK(strstr(v.text, "same median to within 8.4 %, but 1 run in 10 is 10× slower") == v.text);
    tails.differs = false; /* then the mean says how little is known of it */
    v = judged(ratio(1.0001, 0.999, 1.001, 100), options);
    CHECK_INT(v.kind, VERDICT_SAME);
    CHECK(strstr(v.text, "of the mean larger than 130 %"));
}
