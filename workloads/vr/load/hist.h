/* SPDX-License-Identifier: MIT */
/*
 * A histogram of times as HdrHistogram's: buckets that grow with the value, within 0.8 % of it,
 * from a nanosecond to half an hour; all memory at the start, one addition for each record.
 */
#ifndef ASSAY_VR_HIST_H
#define ASSAY_VR_HIST_H

#include <stdint.h>

#define VR_HIST_SUB 128u
#define VR_HIST_DOUBLINGS 34u
#define VR_HIST_BUCKETS (VR_HIST_SUB * (VR_HIST_DOUBLINGS + 1))

struct vr_hist {
    uint64_t total, max;
    double sum;
    uint64_t counts[VR_HIST_BUCKETS];
};

void vr_hist_add(struct vr_hist *h, uint64_t value, uint64_t count);
/* The value at or below which this share of the records lies; 0 of an empty one. */
uint64_t vr_hist_at(const struct vr_hist *h, double share);
double vr_hist_mean(const struct vr_hist *h);
/* What records would have been made if somebody had asked every interval and not waited for the
 * slow ones (Gil Tene's correction for coordinated omission). */
void vr_hist_correct(const struct vr_hist *from, uint64_t interval, struct vr_hist *to);

#endif
