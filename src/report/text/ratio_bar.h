/* SPDX-License-Identifier: MIT */
/* "┊  ──●──" for a table on a terminal: a ratio with its interval, and where it is 1. */
#ifndef ASSAY_REPORT_TEXT_RATIO_BAR_H
#define ASSAY_REPORT_TEXT_RATIO_BAR_H

#include "base/strings.h"
#include "stats/comparison.h"

enum { RATIO_BAR_HALF = 9, RATIO_BAR = 2 * RATIO_BAR_HALF + 1 }; /* columns */

/* All bars of a table have one scale, logarithmic: as far as the farthest reaches. */
struct ratio_scale {
    double reach; /* the logarithm of the ratio at an end; 0: there is no ratio */
};
void ratio_scale_take(struct ratio_scale *s, const struct comparison *c);
/* A bar; blanks with a mark at 1 where there is no ratio, or c is NULL.  What lies beyond the scale
 * is an arrow at its end. */
void strbuf_put_ratio_bar(struct strbuf *out, const struct ratio_scale *s,
                          const struct comparison *c);

#endif
