/* SPDX-License-Identifier: MIT */
/*
 * How noisy is this machine, told from the same program run against itself (A/A)?
 *
 * The rounds are cut into sittings; each sitting is judged by the very comparison that assay uses
 * for real ones, and whatever it calls different is a false alarm.  The smallest change that a
 * budget of measuring would find is read from windows of consecutive rounds as long as the budget,
 * so that noise which lasts over many rounds counts in full.
 */
#ifndef ASSAY_FITS_NOISE_H
#define ASSAY_FITS_NOISE_H

#include <stddef.h>

struct noise {
    size_t round_count, sitting_rounds, sitting_count, false_alarm_count;
    double false_alarm_rate, false_alarm_low, false_alarm_high; /* 95 %, Clopper-Pearson */
    double smallest_change; /* 0.012 = 1.2 %; found in 90 % of budgets, at 5 % false alarms */
};

/*
 * first[i] and second[i] are the two runs of round i, in the order of the rounds.  A round takes
 * round_seconds (both runs and what is between them).  With fewer than one sitting of rounds, the
 * rates are NaN; with fewer than 8 rounds or values that are not finite and positive, so is
 * smallest_change.
 */
void stats_noise(const double *first, const double *second, size_t round_count,
                 double round_seconds, double budget_seconds, struct noise *ret_noise);

#endif
