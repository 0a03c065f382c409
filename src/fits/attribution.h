/* SPDX-License-Identifier: MIT */
/*
 * A change taken apart: how much of it lies in one part of a profile, and how sure is that?
 *
 * Two sides, A and B, each with profiled runs whose samples are sorted into parts (functions,
 * system calls, …).  Where runs without a profiler were measured too, a part costs its share of the
 * samples times what a unit of work costs without sampling, so that the parts of a side add up to
 * what was measured; else it costs what the samples of a run weigh.  docs/METHOD.md says how the
 * intervals are made, tests/unit/fits/attribution.c how often they hold.
 */
#ifndef ASSAY_FITS_ATTRIBUTION_H
#define ASSAY_FITS_ATTRIBUTION_H

#include <stdbool.h>
#include <stddef.h>

enum { SIDE_A, SIDE_B, SIDE_COUNT };

/* One side's runs; the arrays are the caller's and must outlive the attribution. */
struct attribution_side {
    size_t run_count;       /* profiled ones */
    const double *weights;  /* of all samples of each run */
    const double *samples;  /* how many they are */
    const double *work;     /* units of work that each run did */
    const double *measured; /* what a unit costs in each run without sampling; NULL for none */
    size_t measured_count;
    bool is_partial; /* the samples see a part of what was measured: user code only */
};

struct attribution_options {
    struct attribution_side sides[SIDE_COUNT];
    bool paired;    /* measured[i] of both sides is of the same round */
    bool every_one; /* nothing was sampled: every event is there, and counts have no noise */
    double level;   /* 0 for 0.95 */
    /* So many parts are judged beside each other: significant is then said so seldom by chance
     * that it is right of all of them at the level.  Intervals stay those of one part.  0 for 1. */
    size_t family;
    /* Profiled run i of both sides is of the same round.  What is significant must then also show
     * in the differences within rounds: work beside it comes and goes, but hits both of a round. */
    bool in_rounds;
};

/* What a part costs per unit of work on each side. */
struct attributed {
    double a, b, change; /* b - a */
    double half_width;   /* of the change's interval; NAN when there is none */
    double resolution;   /* changes below this are within the luck of sampling */
    double share;        /* of the whole change; NAN when there is no whole change */
    bool below_resolution;
    bool significant; /* there is an interval, and 0 lies outside, by as much as the family asks */
};

/* Neither chance nor below the resolution: what tables print plainly and pictures colour. */
static inline bool attributed_is_told(const struct attributed *part)
{
    return !part->below_resolution && (part->significant || part->half_width != part->half_width);
}

struct attribution {
    struct attribution_options options;
    bool is_scaled;             /* to measured runs */
    bool has_interval;          /* two profiled runs on each side, and two measured ones if any */
    double cost[SIDE_COUNT];    /* per unit of work: measured, or as sampled */
    double seen[SIDE_COUNT];    /* of that, what the samples are of */
    double sampled[SIDE_COUNT]; /* per unit of work in the profiled runs */
    double run_weight[SIDE_COUNT], run_samples[SIDE_COUNT], run_work[SIDE_COUNT]; /* sums */
    double t[SIDE_COUNT], z;                                                      /* quantiles */
    double family_times; /* as many half widths must a change of a part have */
    double *scratch;
    struct attributed whole;
};

void attribution_init(struct attribution *a, const struct attribution_options *options);
void attribution_done(struct attribution *a);

/* One part, by its samples in each profiled run of each side; NULL for none on that side. */
struct attributed attribution_part(const struct attribution *a,
                                   const double *const weights[SIDE_COUNT],
                                   const double *const samples[SIDE_COUNT]);

/* What no part has: the whole less the sum of the parts' changes. */
struct attributed attribution_rest(const struct attribution *a, double sum_a, double sum_b);

#endif
