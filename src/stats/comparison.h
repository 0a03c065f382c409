/* SPDX-License-Identifier: MIT */
/*
 * Is the new one different from the base, by how much, and how sure is that?
 *
 * Two ways in: rounds in which both ran (paired: the difference is taken within each round, so
 * that drift and neighbours which hit both alike cancel), and two samples taken apart (unpaired).
 * docs/METHOD.md says why these methods and shows how often their intervals hold.
 */
#ifndef ASSAY_STATS_COMPARISON_H
#define ASSAY_STATS_COMPARISON_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    /* From this many rounds (paired) or values on each side (unpaired) on, an interval is called a
     * 95 % interval. */
    COMPARISON_ROUNDS_MIN = 8,
    COMPARISON_VALUES_MIN = 4,
};

enum comparison_scale {
    COMPARISON_RATIO,      /* estimate = new / base; every value was positive */
    COMPARISON_DIFFERENCE, /* estimate = new - base; some value was zero or negative */
};

struct comparison {
    enum comparison_scale scale;
    double estimate, low, high; /* low and high are NaN where one value is all there is */
    double level;               /* what the interval achieves, 0.95 from 8 rounds on */
    double p;                   /* two-sided; below 1 - level exactly when 1 (or 0) lies outside */
    double base_median, new_median;
    size_t base_count, new_count; /* equal when paired: the number of rounds */
    double autocorrelation;       /* from one round to the next, corrected for small samples */
    double widening;              /* how much wider than for independent rounds, 1 or more */
    double effective_count;       /* how many independent rounds would tell as much */
    double sure;                  /* the part of it that is beyond doubt (dependence.h) */
    bool autocorrelated;          /* the rounds depend on each other beyond chance */
    bool too_few;                 /* too few rounds for a 95 % interval without assumptions */
    /* No exact interval of this level exists for so few rounds: this one takes the noise to be
     * log-normal (normal on the scale of differences), of the size that was seen. */
    bool assumes_normal;
    bool paired;
    bool running; /* measuring may stop because of what it shows (stats_compared_paired) */
    /* The ratio (difference) moves in one direction from round to round, so the estimate and its
     * interval are of the middle round, with the movement taken out (judge_trend.h). */
    bool moves;
    double first, last; /* of the first and the last round; only where it moves */
    double least, most; /* of all rounds; NaN where it is not paired */
    const char *method;
};

/*
 * Compares base[i] with new[i] of the same round i, rounds in the order in which they ran.  `level`
 * is 0.95 unless there is a reason.  Fails with -EINVAL on no rounds, on a value that is not
 * finite (the message says which) and on a level outside (0, 1).
 */
int stats_compare_paired(const double *base_values, const double *new_values, size_t round_count,
                         double level, struct comparison *ret_comparison, struct error *err);

/* Compares two samples that were not taken in common rounds, each in the order in which it ran. */
int stats_compare_unpaired(const double *base_values, size_t base_count, const double *new_values,
                           size_t new_count, double level, struct comparison *ret_comparison,
                           struct error *err);

/* The same in two steps, for who asks at several levels: whatever does not depend on the level is
 * found once.  The values are copied. */
struct compared;
/*
 * `running`: for rounds that are still being made.  It may be asked after each round, and measuring
 * may stop as soon as plan_may_stop says that it is narrow enough.  Such a rule catches lucky
 * moments, in which noise or dependence look smaller than they are; the interval (and p with it) is
 * widened for that and holds as often as it says, up to an autocorrelation of 0.9.
 */
int stats_compared_paired(const double *base_values, const double *new_values, size_t round_count,
                          bool running, struct compared **ret_compared, struct error *err);
int stats_compared_unpaired(const double *base_values, size_t base_count, const double *new_values,
                            size_t new_count, struct compared **ret_compared, struct error *err);
/* Of rounds only: other rows of the same rounds showed this correlation from one round to the next,
 * the mean of so many series (dependence.h).  One row of few rounds cannot tell dependence from
 * luck, many rows can. */
void compared_depend(struct compared *compared, double lag1, size_t series);
/* Of rounds only: the clock hides this much (ticks.h; of logs, or of differences), so both ends are
 * that much further out. */
void compared_hide(struct compared *compared, double hidden);
/* Paired values are counts of an emulator, of which few rounds hide little. */
void compared_emulated(struct compared *compared);
/* `level` lies between 0 and 1. */
void compared_at(const struct compared *compared, double level, struct comparison *ret_comparison);
void compared_free(struct compared *compared);

/* The interval reaches its level: on enough rounds, exactly or with an assumption that is said. */
bool comparison_is_tested(const struct comparison *comparison);

/* The same, and it says something: one of few rounds that leaves everything open, from far less to
 * far more, does not. */
bool comparison_has_interval(const struct comparison *comparison);
/* The interval is worth showing: one that leaves everything open is not, however many rounds it is
 * of; the verdict says that they are too noisy. */
bool comparison_shows_interval(const struct comparison *comparison);

/* The interval shows a difference and reaches its level. */
bool comparison_differs(const struct comparison *comparison);

/* The interval excludes 1 (or 0), however few the rounds are: p is below 1 - level. */
bool comparison_excludes_same(const struct comparison *comparison);

/* ---- for the two kinds of comparisons ---- */

/* What each of them begins with: what is known at every level, and how to find the rest. */
struct compared {
    struct comparison known;
    void (*at)(const struct compared *compared, double level, struct comparison *c);
};

/* Asks once at one level, and frees.  -EINVAL for a level outside (0, 1). */
int compared_ask(struct compared *compared, double level, struct comparison *ret_comparison,
                 struct error *err);

#endif
