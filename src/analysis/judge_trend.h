/* SPDX-License-Identifier: MIT */
/*
 * A program that gets slower and slower relative to the other has no single ratio, and the interval
 * for one includes "no difference" long after every round has said "slower".  Where there is such a
 * movement, and all rounds agree, the two are compared with the movement taken out.
 */
#ifndef ASSAY_ANALYSIS_JUDGE_TREND_H
#define ASSAY_ANALYSIS_JUDGE_TREND_H

#include "analysis/judge.h"

/* Replaces a comparison of these values, if there is such a movement and it explains why the
 * comparison shows no difference. */
void judge_trend(const struct judge_values *values, double level, struct comparison *comparison);

#endif
