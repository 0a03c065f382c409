/* SPDX-License-Identifier: MIT */
/*
 * Metrics that are kept only where something was seen: the samples of a function, the calls of a
 * system call.  Where the monitor watched a run and did not see it, the value is zero, which the
 * store leaves out; analysis puts it back, so that what one side never did can be compared.  Means
 * and maxima of nothing are not zero but unknown, and stay absent.
 */
#ifndef ASSAY_ANALYSIS_SPARSE_H
#define ASSAY_ANALYSIS_SPARSE_H

#include "analysis/dataset.h"

/* The metric that every run has which was watched for this one; NULL when absence says nothing. */
const char *sparse_marker(const char *name);

/* Gives each dataset the other's sparse metrics, as zeros in the runs that were watched. */
void sparse_join(struct dataset *a, struct dataset *b);

#endif
