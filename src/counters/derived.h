/* SPDX-License-Identifier: MIT */
/* The figure beside a count: CPUs utilized, GHz, instructions per cycle, miss rates, rates. */
#ifndef ASSAY_COUNTERS_DERIVED_H
#define ASSAY_COUNTERS_DERIVED_H

#include "counters/event.h"

struct derived {
    double value;     /* as it is printed, with the factor of its unit taken off */
    const char *text; /* what it is, "" when there is nothing to say */
    bool is_percent;
};

/*
 * The figure for event `index` of the list.  values are scaled counts, NAN where an event was not
 * counted; wall_ns is the elapsed time.
 */
struct derived derived_figure(const struct event_list *list, const double *values, size_t index,
                              double wall_ns);

#endif
