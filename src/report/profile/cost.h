/* SPDX-License-Identifier: MIT */
/* What a unit of work costs, in words: "3.1 ns/op", "+12.4 ms", all of a table in one unit. */
#ifndef ASSAY_REPORT_PROFILE_COST_H
#define ASSAY_REPORT_PROFILE_COST_H

#include "base/strings.h"
#include "fits/attribution.h"

struct cost_unit {
    double divisor;
    int decimals;
    char text[64]; /* "ns/op", "ms", "G events" */
};

/* For a table whose largest value is this; work is "op" or the like, NULL when it is a run. */
void cost_unit_choose(struct cost_unit *unit, double largest, bool is_time, const char *work);

/* The number alone; with its sign when it is a change. */
void strbuf_put_cost(struct strbuf *out, const struct cost_unit *unit, double value);
void strbuf_put_cost_change(struct strbuf *out, const struct cost_unit *unit, double value);
/* "+3.1 ±0.8 ns/op"; no ± without an interval. */
void strbuf_put_attributed(struct strbuf *out, const struct cost_unit *unit,
                           const struct attributed *a);
/* "72 %"; "-" where there is no whole change. */
void strbuf_put_share(struct strbuf *out, double share);

#endif
