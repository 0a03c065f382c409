/* SPDX-License-Identifier: MIT */
/*
 * Which commit changed a metric, told from noisy measurements?  The search alone: no git, no clock.
 * The caller asks what to do next, does it, and tells what came out; the same answers give the same
 * search, so that a search which was interrupted is taken up by telling it all again.
 *
 *   bisection_init(&b, count, &options);
 *   while (bisection_next(&b, &action), action.kind != BISECTION_END)
 *       build action.commits[0], then bisection_built(), or
 *       run action.commits[] once each, then bisection_round().
 *   b.found, b.verdict
 *
 * Commits are numbered 0 (the good one) to count - 1 (the bad one).  A candidate between two
 * commits that differ runs in the same rounds as those two, so that drift hits all three alike.
 * After 10, 15, 22 … rounds it is looked at, each look with its share of the error that is allowed;
 * a decision that was wrong is noticed, because the two commits it leaves do not differ in the
 * rounds that follow, and is made again.  In the end the commit and its predecessor run in fresh
 * rounds whose number was set before: only these decide and only these give the interval.
 */
#ifndef ASSAY_BISECT_BISECTION_H
#define ASSAY_BISECT_BISECTION_H

#include "stats/comparison.h"

#include <stdbool.h>
#include <stddef.h>

#define BISECTION_NONE ((size_t)-1)

struct bisection_options {
    double error;      /* how often a commit that changed nothing may be accused: 0.05 */
    double min_change; /* what is smaller does not matter: 0.01 = 1 % */
    size_t rounds_first, rounds_max; /* of a decision: its first look, and when it gives up */
    bool all;                        /* every change of the range, not one */
    /* With all: stretches longer than this are split even when their ends do not differ, so that
     * changes which undo each other are found; 0 for a quarter of the range. */
    size_t stride;
};

enum bisection_kind {
    BISECTION_ENDS,    /* good and bad: is there a change at all? */
    BISECTION_SPLIT,   /* a candidate between two */
    BISECTION_CONFIRM, /* the commit before and the commit accused, in fresh rounds */
};

enum bisection_outcome {
    BISECTION_OPEN,
    BISECTION_DIFFERS,   /* ends, confirm */
    BISECTION_SAME,      /* ends, confirm: nothing that matters; split: neither half has a change */
    BISECTION_LEFT,      /* the change lies between lo and mid */
    BISECTION_RIGHT,     /* between mid and hi */
    BISECTION_BOTH,      /* there is one in each half */
    BISECTION_UNDECIDED, /* the rounds were used up, and of neither half it is known */
    BISECTION_REFUTED,   /* lo and hi, which were to differ, do not: an earlier step was wrong */
    BISECTION_DROPPED,   /* a commit could not be run: the step does not count */
};

/* A step: two or three commits that run in the same rounds until something is known. */
struct bisection_step {
    enum bisection_kind kind;
    size_t lo, hi, mid; /* mid is BISECTION_NONE where there are two */
    double *values[3];  /* of lo, hi, mid, by round */
    size_t round_count, capacity;
    size_t wanted; /* the round of the next look */
    double chance; /* that the decision is wrong, at most */
    enum bisection_outcome outcome;
    struct comparison whole;       /* hi to lo, at 95 %; from the last look on */
    struct comparison left, right; /* mid to lo, hi to mid; where there is a mid */
    double p;                      /* of the decision */
    /* Looking for all, the rounds were used up and the half neither differs nor is alike. */
    bool left_unsure, right_unsure;
};

enum bisection_verdict {
    BISECTION_SEARCHING,
    BISECTION_FOUND,
    BISECTION_NO_CHANGE,   /* the ends do not differ by what matters */
    BISECTION_CANNOT_TELL, /* noise: lo and hi are as far as it came */
    BISECTION_BAD_END,     /* an end cannot be built or run: lo is which */
};

/* A change that was confirmed: hi is the commit, lo the one before it that could be measured; when
 * they are no neighbours, those between cannot be built, and it is one of lo + 1 … hi. */
struct bisection_change {
    size_t lo, hi, step; /* step: the confirmation */
    struct comparison change;
};

/* A stretch that was not settled: it differs although no commit in it could be confirmed, or the
 * noise hides whether it does. */
struct bisection_rest {
    size_t lo, hi;
    bool differs;
    struct comparison change;
};

enum bisection_state { COMMIT_UNTOUCHED, COMMIT_BUILT, COMMIT_SKIPPED };

struct bisection_frame;

struct bisection {
    struct bisection_options options;
    size_t count;
    enum bisection_state *states;
    struct bisection_step *steps;
    size_t step_count, step_capacity;
    bool step_open; /* the last step is being measured */
    struct bisection_frame *frames;
    size_t frame_count, frame_capacity;
    size_t confirm_count, redo_count, ends_redone;
    enum bisection_verdict verdict;
    size_t lo, hi; /* what is left of the range: the answer where it cannot tell */
    struct bisection_change *found;
    size_t found_count, found_capacity; /* in the order of the commits, once it has ended */
    struct bisection_rest *rests;
    size_t rest_count, rest_capacity;
    bool more_changes; /* without all: a second change was seen on the way */
};

enum bisection_action_kind { BISECTION_BUILD, BISECTION_MEASURE, BISECTION_END };

struct bisection_action {
    enum bisection_action_kind kind;
    size_t commits[3]; /* to be built: one; to be run: lo, hi and perhaps mid */
    size_t commit_count;
    const struct bisection_step *step; /* that is measured */
};

/* count is at least 2.  Zeros in the options stand for 0.05, 0.01, 10 and 1000. */
void bisection_init(struct bisection *b, size_t count, const struct bisection_options *options);
void bisection_done(struct bisection *b);

void bisection_next(struct bisection *b, struct bisection_action *ret_action);
/* The commit was built, or cannot be. */
void bisection_built(struct bisection *b, size_t commit, bool ok);
/* The commit was built and cannot be run: as if it could not be built. */
void bisection_unusable(struct bisection *b, size_t commit);
/* One more round of the step: finite values in the order of the action's commits. */
void bisection_round(struct bisection *b, const double *values);

/* How many commits were built or tried. */
size_t bisection_build_count(const struct bisection *b);
/* The last comparison of good and bad that was decided; NULL when there is none. */
const struct bisection_step *bisection_ends(const struct bisection *b);
const char *bisection_outcome_name(enum bisection_outcome outcome);

#endif
