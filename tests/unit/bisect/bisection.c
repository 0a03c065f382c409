/* SPDX-License-Identifier: MIT */
/* The search for a commit, on simulated repositories with known changes and known noise. */
#include "bisect/bisection.h"
#include "numbers/random.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

enum { COMMITS = 65 };

/* A repository: what each commit does to the metric, and which ones cannot be built. */
struct world {
    double level[COMMITS]; /* of the logarithm */
    bool broken[COMMITS];
    double noise;     /* of a run, on the same scale */
    double outliers;  /* share of runs that are disturbed */
    double drift;     /* of the machine, from round to round */
    size_t run_count; /* out: how many runs it took */
};

static struct world steady(double noise)
{
    return (struct world){.noise = noise};
}

static void plant(struct world *w, size_t commit, double change)
{
    for (size_t i = commit; i < COMMITS; i++)
        w->level[i] += log1p(change);
}

static void search(struct bisection *b, struct world *w, const struct bisection_options *o,
                   struct rng *rng)
{
    struct bisection_action a;
    double machine = 0;
    bisection_init(b, COMMITS, o);
    for (size_t turns = 0; turns < 200000; turns++) {
        bisection_next(b, &a);
        if (a.kind == BISECTION_END)
            return;
        if (a.kind == BISECTION_BUILD) {
            bisection_built(b, a.commits[0], !w->broken[a.commits[0]]);
            continue;
        }
        double values[3] = {0};
        machine += w->drift * rng_normal(rng);
        for (size_t i = 0; i < a.commit_count; i++) {
            values[i] = 100 * exp(w->level[a.commits[i]] + machine + w->noise * rng_normal(rng));
            values[i] *= rng_uniform(rng) < w->outliers ? 1.5 : 1;
            w->run_count++;
        }
        bisection_round(b, values);
    }
    test_fail(__FILE__, __LINE__, "the search does not end");
}

/* How often the planted commit is found, and nothing else is accused. */
static void find_one(struct world *w, double change, size_t trials, uint64_t seed,
                     size_t *ret_right, size_t *ret_wrong, size_t *ret_builds_max)
{
    struct rng rng;
    rng_seed(&rng, seed);
    const struct world fresh = *w;
    *ret_right = *ret_wrong = *ret_builds_max = 0;
    size_t runs = 0, covered = 0;
    for (size_t t = 0; t < trials; t++) {
        struct bisection b;
        size_t culprit = 1 + (size_t)rng_below(&rng, COMMITS - 1);
        *w = fresh;
        plant(w, culprit, change);
        search(&b, w, &(struct bisection_options){0}, &rng);
        bool found = b.verdict == BISECTION_FOUND;
        *ret_right += found && b.found[0].hi == culprit && b.found[0].lo == culprit - 1;
        *ret_wrong += found && b.found[0].hi != culprit;
        covered +=
            found && b.found[0].change.low <= 1 + change && b.found[0].change.high >= 1 + change;
        size_t builds = bisection_build_count(&b);
        *ret_builds_max = builds > *ret_builds_max ? builds : *ret_builds_max;
        runs += w->run_count;
        bisection_done(&b);
    }
    if (getenv("BISECTION_SHOW"))
        printf("# noise %g: %zu right, %zu wrong of %zu, interval holds in %zu, at most %zu "
               "builds, %zu runs\n",
               w->noise, *ret_right, *ret_wrong, trials, covered, *ret_builds_max, runs / trials);
    CHECK(covered * 100 >= *ret_right * 90);
}

TEST(a_regression_of_3_percent_is_found)
{
    size_t right, wrong, builds;
    struct world w = steady(0.01);
    find_one(&w, 0.03, 200, 1, &right, &wrong, &builds);
    CHECK(right >= 196);
    CHECK(wrong <= 2);
    CHECK(builds <= 12);
}

TEST(so_is_an_improvement_on_a_noisy_machine_that_drifts)
{
    size_t right, wrong, builds;
    struct world w = steady(0.015);
    w.drift = 0.01;
    w.outliers = 0.1;
    find_one(&w, -0.03, 100, 2, &right, &wrong, &builds);
    CHECK(right >= 95);
    CHECK(wrong <= 1);
    CHECK(builds <= 12);
}

TEST(metrics_without_noise_need_few_rounds)
{
    struct world w = steady(0);
    struct rng rng;
    rng_seed(&rng, 3);
    plant(&w, 20, 0.0005);
    struct bisection b;
    search(&b, &w, &(struct bisection_options){.min_change = 1e-4}, &rng);
    CHECK_INT(b.verdict, BISECTION_FOUND);
    CHECK_INT(b.found[0].hi, 20);
    CHECK_INT(bisection_build_count(&b), 8);
    CHECK(w.run_count <= 250);
    bisection_done(&b);
}

TEST(where_nothing_changed_nobody_is_accused)
{
    struct rng rng;
    size_t accused = 0, none = 0;
    rng_seed(&rng, 4);
    for (size_t t = 0; t < 100; t++) {
        struct world w = steady(0.01);
        struct bisection b;
        search(&b, &w, &(struct bisection_options){0}, &rng);
        accused += b.verdict == BISECTION_FOUND;
        none += b.verdict == BISECTION_NO_CHANGE;
        bisection_done(&b);
    }
    CHECK(accused <= 1);
    CHECK(none >= 90);
}

TEST(noise_that_is_too_loud_is_said_to_be)
{
    struct rng rng;
    rng_seed(&rng, 5);
    struct world w = steady(0.5);
    struct bisection b;
    plant(&w, 30, 0.03);
    search(&b, &w, &(struct bisection_options){.rounds_max = 40}, &rng);
    CHECK_INT(b.verdict, BISECTION_CANNOT_TELL);
    CHECK_INT(b.lo, 0);
    CHECK_INT(b.hi, COMMITS - 1);
    bisection_done(&b);
}

TEST(commits_that_do_not_build_are_gone_around)
{
    struct rng rng;
    rng_seed(&rng, 6);
    struct world w = steady(0.005);
    struct bisection b;
    plant(&w, 40, 0.05);
    for (size_t i = 25; i < 38; i++)
        w.broken[i] = true;
    search(&b, &w, &(struct bisection_options){0}, &rng);
    CHECK_INT(b.verdict, BISECTION_FOUND);
    CHECK_INT(b.found[0].lo, 39);
    CHECK_INT(b.found[0].hi, 40);
    if (getenv("BISECTION_SHOW"))
        printf("# 13 broken: %zu builds\n", bisection_build_count(&b));
    CHECK(bisection_build_count(&b) <= 14);
    bisection_done(&b);
}

TEST(a_change_among_them_is_one_of_several)
{
    struct rng rng;
    rng_seed(&rng, 7);
    struct world w = steady(0.005);
    struct bisection b;
    plant(&w, 30, 0.05);
    for (size_t i = 28; i < 33; i++)
        w.broken[i] = true;
    search(&b, &w, &(struct bisection_options){0}, &rng);
    CHECK_INT(b.verdict, BISECTION_FOUND);
    CHECK_INT(b.found[0].lo, 27);
    CHECK_INT(b.found[0].hi, 33);
    bisection_done(&b);
}

TEST(an_end_that_does_not_build_ends_it)
{
    struct rng rng;
    rng_seed(&rng, 8);
    struct world w = steady(0.01);
    struct bisection b;
    w.broken[COMMITS - 1] = true;
    search(&b, &w, &(struct bisection_options){0}, &rng);
    CHECK_INT(b.verdict, BISECTION_BAD_END);
    CHECK_INT(b.lo, COMMITS - 1);
    bisection_done(&b);
}

TEST(what_is_left_and_smaller_than_what_matters_is_not_told)
{
    struct rng rng;
    rng_seed(&rng, 9);
    for (size_t t = 0; t < 20; t++) {
        struct world w = steady(0.0005);
        struct bisection b;
        plant(&w, 10, 0.005);
        plant(&w, 50, 0.03);
        search(&b, &w, &(struct bisection_options){.min_change = 0.01}, &rng);
        CHECK_INT(b.verdict, BISECTION_FOUND);
        CHECK_INT(b.found[0].hi, 50);
        CHECK(!b.more_changes);
        bisection_done(&b);
    }
}

TEST(of_two_changes_one_is_found_and_the_other_told)
{
    struct rng rng;
    size_t right = 0, told = 0;
    rng_seed(&rng, 9);
    for (size_t t = 0; t < 20; t++) {
        struct world w = steady(0.01);
        struct bisection b;
        plant(&w, 10, 0.03);
        plant(&w, 50, 0.03);
        search(&b, &w, &(struct bisection_options){0}, &rng);
        right += b.verdict == BISECTION_FOUND && (b.found[0].hi == 10 || b.found[0].hi == 50);
        told += b.more_changes;
        bisection_done(&b);
    }
    CHECK(right >= 19);
    CHECK(told >= 15);
}

/* Two changes anywhere, the second of them back to where it was in half of the cases. */
TEST(all_finds_both)
{
    struct rng rng;
    size_t both = 0, extra = 0;
    rng_seed(&rng, 10);
    for (size_t t = 0; t < 60; t++) {
        struct world w = steady(0.01);
        struct bisection b;
        size_t first = 1 + (size_t)rng_below(&rng, 30), second = first + 18;
        plant(&w, first, 0.03);
        plant(&w, second, t % 2 ? -0.03 : 0.03);
        search(&b, &w, &(struct bisection_options){.all = true}, &rng);
        both += b.found_count == 2 && b.found[0].hi == first && b.found[1].hi == second;
        for (size_t i = 0; i < b.found_count; i++)
            extra += b.found[i].hi != first && b.found[i].hi != second;
        if (getenv("BISECTION_SHOW"))
            printf("# %zu %zu: %zu found, %zu builds, %zu runs\n", first, second, b.found_count,
                   bisection_build_count(&b), w.run_count);
        bisection_done(&b);
    }
    if (getenv("BISECTION_SHOW"))
        printf("# both in %zu of 60, %zu others\n", both, extra);
    CHECK(both >= 56);
    CHECK(extra <= 1);
}

TEST(all_finds_neighbours_and_nothing_where_nothing_is)
{
    struct rng rng;
    size_t both = 0, found = 0;
    rng_seed(&rng, 11);
    for (size_t t = 0; t < 20; t++) {
        struct world w = steady(0.01), quiet = steady(0.01);
        struct bisection b;
        plant(&w, 30, 0.04);
        plant(&w, 31, 0.04);
        search(&b, &w, &(struct bisection_options){.all = true}, &rng);
        both += b.found_count == 2 && b.found[0].hi == 30 && b.found[1].hi == 31;
        bisection_done(&b);
        search(&b, &quiet, &(struct bisection_options){.all = true}, &rng);
        found += b.found_count;
        bisection_done(&b);
    }
    CHECK(both >= 18);
    CHECK(found <= 1);
}

/* Noise that hides any change: whatever is looked for, that is no proof that there is none. */
TEST(noise_is_no_proof)
{
    struct rng rng;
    size_t told[2] = {0}, claimed[2] = {0}, rests = 0;
    rng_seed(&rng, 12);
    for (size_t t = 0; t < 40; t++)
        for (size_t all = 0; all < 2; all++) {
            struct world w = steady(0.3);
            struct bisection b;
            plant(&w, 30, 0.03);
            search(&b, &w, &(struct bisection_options){.all = all, .rounds_max = 20}, &rng);
            told[all] += b.verdict == BISECTION_CANNOT_TELL;
            claimed[all] += b.verdict == BISECTION_NO_CHANGE;
            for (size_t i = 0; all && i < b.rest_count; i++)
                rests += !b.rests[i].differs && b.rests[i].lo < b.rests[i].hi;
            bisection_done(&b);
        }
    CHECK_INT(claimed[0], 0);
    CHECK_INT(claimed[1], 0);
    CHECK(told[0] >= 37);
    CHECK(told[1] >= 37);
    CHECK(rests >= told[1]);
}

/* The ends cannot be told apart and nothing between them can be built. */
TEST(ends_alone_that_are_unsure)
{
    struct rng rng;
    struct bisection b;
    rng_seed(&rng, 13);
    struct world w = steady(0.3);
    for (size_t i = 1; i + 1 < COMMITS; i++)
        w.broken[i] = true;
    search(&b, &w, &(struct bisection_options){.all = true, .rounds_max = 10}, &rng);
    CHECK_INT(b.verdict, BISECTION_CANNOT_TELL);
    CHECK_INT(b.rest_count, 1);
    CHECK_INT(b.rests[0].lo, 0);
    CHECK_INT(b.rests[0].hi, COMMITS - 1);
    CHECK(!b.rests[0].differs);
    bisection_done(&b);
}

/* A commit whose runs fail is left out, and what was measured with it does not count. */
TEST(a_commit_that_cannot_run_is_left_out)
{
    struct bisection b;
    struct bisection_action a;
    size_t asked_again = 0;
    bisection_init(&b, 3, &(struct bisection_options){0});
    for (;;) {
        bisection_next(&b, &a);
        if (a.kind == BISECTION_END)
            break;
        if (a.kind == BISECTION_BUILD) {
            bisection_built(&b, a.commits[0], true);
        } else if (a.commit_count == 3) {
            asked_again++;
            bisection_unusable(&b, 1);
        } else {
            bisection_round(&b, (const double[]){100, 110});
        }
    }
    CHECK_INT(asked_again, 1);
    CHECK_INT(b.verdict, BISECTION_FOUND);
    CHECK_INT(b.found[0].lo, 0);
    CHECK_INT(b.found[0].hi, 2);
    bisection_done(&b);
}

/* Zeros and negative values have no ratio: differences are taken. */
TEST(values_around_zero_are_compared_by_difference)
{
    struct bisection b;
    struct bisection_action a;
    struct rng rng;
    rng_seed(&rng, 12);
    bisection_init(&b, 17, &(struct bisection_options){0});
    for (;;) {
        bisection_next(&b, &a);
        if (a.kind == BISECTION_END)
            break;
        if (a.kind == BISECTION_BUILD) {
            bisection_built(&b, a.commits[0], true);
            continue;
        }
        double values[3];
        for (size_t i = 0; i < a.commit_count; i++)
            values[i] = (a.commits[i] >= 5 ? 3 : -1) + 0.5 * rng_normal(&rng);
        bisection_round(&b, values);
    }
    CHECK_INT(b.verdict, BISECTION_FOUND);
    CHECK_INT(b.found[0].hi, 5);
    CHECK_INT(b.found[0].change.scale, COMPARISON_DIFFERENCE);
    CHECK(b.found[0].change.low < 4 && b.found[0].change.high > 4);
    bisection_done(&b);
}
