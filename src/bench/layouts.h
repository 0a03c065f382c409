/* SPDX-License-Identifier: MIT */
/*
 * How much of a difference is the layout's?  Where functions lie decides about cache sets, branch
 * predictors and page boundaries, and any change of a program moves them.  With --layouts each
 * round has a layout of its own: a process with other addresses of stack, heap and pages, and,
 * where a link command is given, a program in which the functions stand in another order.
 */
#ifndef ASSAY_BENCH_LAYOUTS_H
#define ASSAY_BENCH_LAYOUTS_H

#include "bench/measure.h"

enum { BENCH_LAYOUTS_MAX = 1000 };

struct bench_layouts {
    struct bench_target *targets; /* of each layout, BENCH_SIDES_MAX */
    size_t count;
    char *folder; /* where they lie; removed in the end */
};

/* Links each program `count` times with its command, which a shell runs with these variables:
 *   ASSAY_OUT       the file to make
 *   ASSAY_SECTIONS  a file with the sections of its functions (.text.NAME), a line each, shuffled:
 *                   for gold's --section-ordering-file
 *   ASSAY_SYMBOLS   the same as symbols: for lld's --symbol-ordering-file
 *   ASSAY_LAYOUT    the number of the layout, from 1 on */
int bench_layouts_link(struct bench_layouts *l, const struct bench_plan *plan,
                       const char *const *commands, size_t count, struct error *err);
void bench_layouts_done(struct bench_layouts *l);

/* What rounds, each with a layout of its own, say by themselves. */
struct bench_layout_spread {
    size_t count;
    double low, high; /* 95 % of the layouts lie between: ratios of new to base */
    double share;     /* of the variation between rounds that is not noise within them, 0 to 1 */
};

/* False for fewer than ten rounds with both versions. */
bool bench_layout_spread(const struct bench_result *r, struct bench_layout_spread *ret);

#endif
