/* SPDX-License-Identifier: MIT */
/* The nodes of a cluster in reports: what they are, and which of them is an outlier. */
#ifndef ASSAY_REPORT_TEXT_NODES_H
#define ASSAY_REPORT_TEXT_NODES_H

#include "analysis/compare.h"
#include "analysis/nodes.h"
#include "base/json.h"

/* Nothing where all ran on one machine. */
void report_nodes_text(struct strbuf *out, const struct dataset *d);
void report_nodes_json(struct json *j, const struct dataset *d);

/* A line for each node that is an outlier by the metric. */
void report_node_outliers(struct strbuf *out, const struct dataset *d, size_t metric);
size_t report_node_runs(const struct dataset *d, size_t node);

/* How a row's difference comes out on each node. */
void report_row_nodes(const struct compare *c, const struct compare_row *row,
                      struct nodes_view *ret);
/* How the headlines' differences come out on each node, and by what the nodes are. */
void report_compare_nodes_text(struct strbuf *out, const struct compare *c);
void report_compare_nodes_json(struct json *j, const struct compare *c);

#endif
