/* SPDX-License-Identifier: MIT */
/*
 * An experiment as OpenMetrics text (version 1.0.0 of the format), for Prometheus and what else
 * reads it.  A metric is a family of gauges named after it and its unit, in the format's base units
 * (seconds, bytes), with a sample for each cell and statistic.
 */
#ifndef ASSAY_REPORT_METRICS_OPENMETRICS_H
#define ASSAY_REPORT_METRICS_OPENMETRICS_H

#include "analysis/dataset.h"
#include "base/strings.h"

void report_openmetrics(struct strbuf *out, const struct dataset *d);

#endif
