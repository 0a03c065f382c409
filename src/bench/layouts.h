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
#include "bench/relink.h"
#include "fits/layout_spread.h"

struct bench_layouts {
    struct bench_target *targets; /* of each layout, BENCH_SIDES_MAX */
    size_t count;
    struct relinked linked;
};

/* Links each program `count` times with its command: relink.h. */
int bench_layouts_link(struct bench_layouts *l, const struct bench_plan *plan,
                       const char *const *commands, size_t count, struct error *err);
void bench_layouts_done(struct bench_layouts *l);

/* What rounds, each with a layout of its own, say by themselves.  False for fewer than ten rounds
 * with both versions. */
bool bench_layout_spread(const struct bench_result *r, struct layout_spread *ret);

#endif
