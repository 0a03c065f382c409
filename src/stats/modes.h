/* SPDX-License-Identifier: MIT */
/*
 * Few rounds that agree have hardly shown their noise.  Of two equal programs that are now fast and
 * now slow, each shows the same mode in all of three rounds in 3 cases of 100, in all of five in 1
 * of 500, and a clock that ticks does as much: Student's t takes such rounds for very sure.  So two
 * rounds, and a few more where many rows ask for more than 95 %, have to differ by more than such
 * modes are apart.
 */
#ifndef ASSAY_STATS_MODES_H
#define ASSAY_STATS_MODES_H

#include <stddef.h>

/* Below this error, rounds of that number are not taken at their word. */
double modes_strict_alpha(size_t rounds);
/* By how much the ends of an interval of that error move, on the scale of logs. */
double modes_reserve(size_t rounds, double alpha);
/* The p that goes with it, from the p of a distance and that of the distance less the reserve. */
double modes_p(size_t rounds, double plain_p, double reserved_p);
/* The whole reserve, as a distance of logs. */
double modes_distance(size_t rounds);
/* The same for counts of an emulator: what depends on chance there is some tenths of a percent. */
double modes_distance_emulated(void);

#endif
