/* SPDX-License-Identifier: MIT */
/*
 * Two profiles, or two sets of profiled runs, function by function: what each costs in A and in B,
 * how the change is spread over them, and which of it can be told from the luck of sampling.
 *
 *   struct diff_run a[] = {{.profile = p, .event = e, .work = 1}}, b[] = …;
 *   struct diff_options o = {.sides = {{.runs = a, .run_count = 1}, {.runs = b, .run_count = 1}}};
 *   struct diff d;
 *   if (diff_build(&d, &o, &err) < 0) …
 *   … d.rows[i].self.change, d.unattributed, d.whole …
 *   diff_done(&d);
 *
 * A sample counts for the innermost function, inlined or not (load with SYMBOLS_INLINES), so that a
 * helper that only one side's compiler inlined stands in one row.  The rows' self changes and the
 * unattributed one add up to the whole change.
 */
#ifndef ASSAY_PROFILE_DIFF_H
#define ASSAY_PROFILE_DIFF_H

#include "fits/attribution.h"
#include "profile/match.h"

/* One profiled run.  The profile is symbolized and outlives the diff. */
struct diff_run {
    const struct profile *profile;
    uint32_t event; /* number in profile->events */
    double work;    /* units of work it did; 1 to count by runs */
};

struct diff_input {
    const struct diff_run *runs;
    size_t run_count;
    /* What a unit of work costs in runs without sampling, in nanoseconds of CPU time; with none on
     * a side, costs are those of the profiled runs. */
    const double *measured;
    size_t measured_count;
};

struct diff_options {
    struct diff_input sides[SIDE_COUNT]; /* A and B */
    bool paired;                         /* measured[i] of both sides is of the same round */
    const char *work; /* what a unit of work is called: "op"; NULL when it is a run */
};

struct diff_row {
    const char *name;
    struct matched match;         /* how A's and B's functions were found to be one */
    bool is_inlined[SIDE_COUNT];  /* all of its samples are in code that was inlined elsewhere */
    uint64_t samples[SIDE_COUNT]; /* with the function itself running */
    struct attributed self;       /* it runs itself: adds up */
    struct attributed total;      /* it or what it calls runs */
};

struct diff {
    struct diff_row *rows; /* the largest change of self first */
    size_t row_count;
    struct attributed whole;        /* the measured change, or the sampled one */
    struct attributed unattributed; /* whole less all rows: samples without a name */
    double sampled[SIDE_COUNT];     /* cost of a unit of work in the profiled runs */
    uint64_t samples[SIDE_COUNT];
    bool is_scaled;    /* rows are shares of the samples times measured costs */
    bool has_interval; /* else half widths are NAN, and: */
    const char *why_no_interval;
    bool is_time;                 /* costs are nanoseconds; else events */
    bool has_totals;              /* the profiles have call chains */
    bool lacks_debug[SIDE_COUNT]; /* no user function says where it is declared */
    bool user_only;               /* of one side at least the kernel was not sampled */
    const char *event;
    const char *work; /* what a unit of work is called: "op"; NULL when it is a run */
    size_t run_counts[SIDE_COUNT], measured_counts[SIDE_COUNT];
    struct match match;
    uint32_t *row_of_item; /* [number in match.items], MATCH_NONE where it has no samples */
};

int diff_build(struct diff *d, const struct diff_options *options, struct error *err);
void diff_done(struct diff *d);

/* The row of a symbol of one of the profiles (calls.symbols); MATCH_NONE when it has none. */
uint32_t diff_row_of(const struct diff *d, unsigned side, size_t run, uint32_t symbol);

/*
 * Sets the event of every run of both sides to one that all of them have: the one named, else time
 * on the CPU, else the one with most samples.  Clocks of different names are one event; others are
 * not. -ENOENT when there is none that all have.
 */
int diff_choose_events(struct diff_run *const runs[SIDE_COUNT], const size_t counts[SIDE_COUNT],
                       const char *name, struct error *err);

#endif
