/* SPDX-License-Identifier: MIT */
/*
 * The nodes of a cluster as a factor of the analysis: how much of a metric each node shows, how a
 * difference comes out on each of them, and whether one of them is an outlier.
 *
 * Values are divided by their cell's median over all nodes, so that all cells tell of a node.  The
 * node that is furthest from the others is tested against them (rank sum, corrected for the number
 * of nodes); when it is an outlier it is set aside, and the next one looked at.
 */
#ifndef ASSAY_ANALYSIS_NODES_H
#define ASSAY_ANALYSIS_NODES_H

#include "analysis/judge.h"

#define NODES_CHANCE 0.01 /* of calling any node an outlier when none is */
#define NODES_LEAST 0.02  /* a deviation below that is not worth a word */

struct node_share {
    size_t node;
    size_t count; /* of values, or of pairs */
    double ratio; /* its values to those of the other nodes (outliers left out); NAN: not known */
    double p;
    double change; /* of a difference: the median of new / base there; NAN else */
    bool is_outlier;
};

struct nodes_view {
    struct node_share *shares; /* one per node of the dataset */
    size_t count, outlier_count;
};

/* How high the metric is on each node, all cells together. */
void nodes_of_metric(const struct dataset *d, size_t metric, struct nodes_view *ret);
/* How new compares with base on each node (of base): within the rounds of one experiment; between
 * two experiments as nodes_pair has it. */
void nodes_of_difference(const struct judge_sides *sides, struct nodes_view *ret);
/*
 * Two experiments that ran on a cluster: the runs that a node made for the one are set against
 * those that it made for the other, in their order, so that what nodes differ in cancels.  Room for
 * as many as a has; nodes (of base) may be NULL.  Returns how many pairs there are.
 */
size_t nodes_pair(const struct dataset *base, const struct dataset_column *a,
                  const struct dataset *new, const struct dataset_column *b, double *first,
                  double *second, uint32_t *nodes);
void nodes_view_done(struct nodes_view *v);

/* Properties of nodes by which they can be told apart: "cpu", "kernel", …; NULL ends the list. */
extern const char *const node_properties[];
/* The node's value of the property, "" when not known; the caller frees it. */
char *nodes_property(const struct dataset *d, size_t node, const char *property);

#endif
