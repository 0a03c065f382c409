/* SPDX-License-Identifier: MIT */
/* The metrics that a spec asks for, found in what a run printed or left in a file. */
#ifndef ASSAY_SESSION_EXTRACT_H
#define ASSAY_SESSION_EXTRACT_H

#include "run/metrics.h"
#include "spec/holes.h"

/*
 * The value of one metric of the spec.  `printed` is what the program reported itself, `output` its
 * standard output (terminated).  -ENOENT when it is not there, -EINVAL when it is no number; the
 * words name the metric and where it was looked for.
 */
int extract_metric(const struct spec_metric *metric, const struct metric_list *printed,
                   const char *output, const struct hole_values *values, double *ret_value,
                   struct error *err);

/* The number that a regular expression's first brackets hold, in its last match. */
int extract_regex(const regex_t *regex, const char *text, double *ret_value, struct error *err);
/* The number at a path such as "results.0.mean" or "results[0].mean" of a JSON text. */
int extract_json(const char *text, const char *path, double *ret_value, struct error *err);

#endif
