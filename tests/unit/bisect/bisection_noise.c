/* SPDX-License-Identifier: MIT */
/*
 * The search for a commit under noise of many kinds: whatever the machine does, a commit that
 * changed nothing is accused in no more cases than was allowed, and a change that is as large as
 * the noise of one run is found with the settings that users get when they give none.
 * BISECTION_SHOW=1 prints what it took; BISECTION_TRIALS makes more of them.
 */
#include "base/memory.h"
#include "bisect/bisection.h"
#include "numbers/random.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

enum { COMMITS = 65, TRIALS = 40, BUILDS_MOST = 12 };

#define CHANGE 0.03

/* A machine whose runs are disturbed. */
struct machine_kind {
    const char *name;
    double (*noise)(struct rng *rng); /* of one run, in units of the spread */
    double spread;                    /* of the logarithm */
    double wander;                    /* of the machine from run to run */
    double position;                  /* the first run of a round is slower by this */
    bool bursts;                      /* ten times as loud, for a while */
    size_t right_least;               /* of 40 */
};

static double normal(struct rng *rng)
{
    return rng_normal(rng);
}

/* Student's t with two degrees of freedom: no variance. */
static double heavy(struct rng *rng)
{
    return rng_normal(rng) / sqrt(-log(1 - rng_uniform(rng)));
}

/* Nothing makes a run faster. */
static double only_slower(struct rng *rng)
{
    return -log(1 - rng_uniform(rng));
}

/* Two runs in five are preempted. */
static double preempted(struct rng *rng)
{
    return 0.3 * rng_normal(rng) + (rng_uniform(rng) < 0.4 ? 5 + 5 * rng_uniform(rng) : 0);
}

static const struct machine_kind machines[] = {
    {"as loud as the change", normal, 0.03, 0, 0, false, 38},
    {"three times as loud", normal, 0.09, 0, 0, false, 36},
    {"without variance", heavy, 0.03, 0, 0, false, 38},
    {"only ever slower", only_slower, 0.05, 0, 0, false, 38},
    {"preempted", preempted, 0.05, 0, 0, false, 38},
    {"drifting within rounds", normal, 0.01, 0.02, 0, false, 38},
    {"cold at first", normal, 0.02, 0, 0.05, false, 38},
    {"in bursts", heavy, 0.01, 0, 0, true, 38},
    {"much too loud", normal, 0.5, 0, 0, false, 0},
};

struct tally {
    size_t right, wrong, unsure, none, too_many_builds;
    uint64_t runs;
};

struct state {
    double machine;
    bool is_loud;
};

static void run_round(const struct machine_kind *m, const struct bisection_action *a,
                      size_t culprit, struct state *state, struct rng *rng, double *values)
{
    size_t order[3] = {0, 1, 2};
    rng_shuffle(rng, order, a->commit_count);
    if (m->bursts && rng_uniform(rng) < 0.05)
        state->is_loud = !state->is_loud;
    for (size_t k = 0; k < a->commit_count; k++) {
        size_t i = order[k];
        double level = a->commits[i] >= culprit ? log1p(CHANGE) : 0;
        state->machine += m->wander * rng_normal(rng);
        level += state->machine + (k == 0 ? m->position : 0);
        double spread = m->spread * (state->is_loud ? 10 : 1);
        double noise = spread * m->noise(rng);
        values[i] = 100 * exp(level + (noise < 3 ? noise > -3 ? noise : -3 : 3));
    }
}

static void search(const struct machine_kind *m, size_t culprit, struct rng *rng,
                   struct tally *tally)
{
    struct bisection b;
    struct bisection_action a;
    struct state state = {0};
    bisection_init(&b, COMMITS, &(struct bisection_options){0});
    for (bisection_next(&b, &a); a.kind != BISECTION_END; bisection_next(&b, &a)) {
        double values[3];
        if (a.kind == BISECTION_BUILD) {
            bisection_built(&b, a.commits[0], true);
            continue;
        }
        run_round(m, &a, culprit, &state, rng, values);
        bisection_round(&b, values);
        tally->runs += a.commit_count;
    }
    bool found = b.verdict == BISECTION_FOUND;
    tally->right += found && b.found[0].hi == culprit;
    tally->wrong += found && b.found[0].hi != culprit;
    tally->unsure += b.verdict == BISECTION_CANNOT_TELL;
    tally->none += b.verdict == BISECTION_NO_CHANGE;
    tally->too_many_builds += bisection_build_count(&b) > BUILDS_MOST;
    bisection_done(&b);
}

static size_t trial_count(void)
{
    const char *text = getenv("BISECTION_TRIALS");
    return text ? (size_t)atoi(text) : TRIALS;
}

/* Where nothing is planted all commits are alike. */
static struct tally try(const struct machine_kind *m, bool planted, uint64_t seed)
{
    struct rng rng;
    struct tally tally = {0};
    size_t trials = trial_count();
    rng_seed(&rng, seed);
    for (size_t t = 0; t < trials; t++)
        search(m, planted ? 1 + (size_t)rng_below(&rng, COMMITS - 1) : COMMITS, &rng, &tally);
    if (getenv("BISECTION_SHOW"))
        printf("# %-24s %s: %zu right, %zu wrong, %zu cannot tell, %zu no change, %zu built more "
               "than %d, %llu runs each\n",
               m->name, planted ? "+3 %" : "none", tally.right, tally.wrong, tally.unsure,
               tally.none, tally.too_many_builds, BUILDS_MOST,
               (unsigned long long)(tally.runs / trials));
    return tally;
}

TEST(nobody_is_accused_more_often_than_was_allowed)
{
    size_t wrong = 0, trials = 0;
    for (size_t i = 0; i < ARRAY_COUNT(machines); i++) {
        struct tally planted = try(&machines[i], true, 20 + i);
        struct tally none = try(&machines[i], false, 40 + i);
        size_t count = trial_count();
        CHECK(planted.wrong * 20 <= count);
        CHECK(none.wrong * 20 <= count);
        wrong += planted.wrong + none.wrong;
        trials += 2 * count;
        CHECK(planted.right * TRIALS >= machines[i].right_least * count);
        CHECK(planted.too_many_builds * 20 <= count);
    }
    if (getenv("BISECTION_SHOW"))
        printf("# wrong in all: %zu of %zu\n", wrong, trials);
    CHECK(wrong * 40 <= trials);
}
