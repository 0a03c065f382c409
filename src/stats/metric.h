/* SPDX-License-Identifier: MIT */
/*
 * What is known of a metric besides its name and unit.  Whoever measures a metric says it once; it
 * is kept with the values and decides the words of every verdict.  Nothing is guessed later from
 * names or values.
 */
#ifndef ASSAY_STATS_METRIC_H
#define ASSAY_STATS_METRIC_H

#include <stdbool.h>

enum metric_better { METRIC_LOWER, METRIC_HIGHER, METRIC_NEITHER };

struct metric_facts {
    enum metric_better better;
    bool is_speed; /* a duration that one waits for, or a rate: "faster", "slower" */
    bool is_count; /* whole things that can be counted: "fewer", not "less" */
    bool is_total; /* its readings during a run only grow: shown by how fast they do */
};

#endif
