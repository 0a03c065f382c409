/* SPDX-License-Identifier: MIT */
/* The rows of perf-profile, made from a recording: see perf_profile.c. */
#ifndef ASSAY_MONITORS_PERF_PROFILE_H
#define ASSAY_MONITORS_PERF_PROFILE_H

#include "base/error.h"

#include <stdint.h>

struct profile;

typedef void profile_row_fn(void *context, const char *name, double value, const char *unit);

/* Reads the recording and gives each row once. */
int perf_profile_rows(const char *path, profile_row_fn *f, void *context, struct error *err);
/* The same of a profile that was read and symbolized. */
void perf_profile_give(const struct profile *profile, profile_row_fn *f, void *context);

#endif
