/* SPDX-License-Identifier: MIT */
/*
 * Figures that a measured program reports itself, as lines on the descriptor that the environment
 * variable ASSAY_METRICS_FD names:
 *
 *   assay.metric NAME VALUE [UNIT]
 *   assay.kernel RELEASE
 *
 * The second one says under which kernel of an emulated machine that was counted.
 * NAME is made of letters, digits and _ - . : / % + (at most 63), VALUE is a finite number, UNIT at
 * most 15 printable bytes without blanks.  When a name comes twice in one run the last value
 * counts.  Lines of another kind are not an error of the run: they are counted, and each of the
 * first few different ones is kept for a word to the user.  What the program writes is foreign
 * input: it is bounded, and nothing of it reaches a terminal unchecked.
 */
#ifndef ASSAY_RUN_METRICS_H
#define ASSAY_RUN_METRICS_H

#include "stats/metric.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    METRIC_NAME_MAX = 64, /* with the terminating zero */
    METRIC_UNIT_MAX = 16,
    METRIC_KERNEL_MAX = 128,
    METRICS_MAX = 256,           /* different names in one run */
    METRICS_BYTES_MAX = 1 << 20, /* of one run's lines; what comes behind is lost, and said so */
};

/* What 'assay vm run' counts in an emulated machine begins with this: counts of instructions and
 * the like, which nothing that the host does to a run can change. */
#define METRICS_OF_MACHINE "vm:"

struct metric {
    char name[METRIC_NAME_MAX];
    char unit[METRIC_UNIT_MAX]; /* "" for none */
    double value;
};

/* Lines that are none of the above. */
struct metric_refusals {
    struct metric_refusal {
        char line[96];   /* made safe to print */
        size_t key;      /* bytes of it up to the end of the name: what makes it another one */
        const char *why; /* what is wrong with it */
    } items[8];
    size_t count;
    size_t line_count; /* of all */
};

struct metric_list {
    struct metric *items;
    size_t count, capacity;
    char kernel[METRIC_KERNEL_MAX]; /* "": the one that runs here */
    struct metric_refusals refused;
    bool truncated; /* more was written than is kept */
};

/* Adds the metrics of a text of any bytes. */
void metrics_parse(struct metric_list *list, const char *text, size_t length);
/* Sets one; false when there are METRICS_MAX others already or the name or unit is not allowed. */
bool metrics_set(struct metric_list *list, const char *name, double value, const char *unit);
const struct metric *metrics_find(const struct metric_list *list, const char *name);
void metrics_clear(struct metric_list *list);
void metrics_done(struct metric_list *list);

/* Adds what one run had to those of others; returns how many are new. */
size_t metric_refusals_add(struct metric_refusals *all, const struct metric_refusals *more);

/* What a program's own figure is, told by the name and unit that the program gave it: a rate is
 * better when it is higher, a time and an amount of memory when lower; nothing is known of others.
 */
struct metric_facts metric_facts_of(const char *name, const char *unit);
/* How many nanoseconds the unit of time has, 0 when it is not one. */
double metric_unit_ns(const char *unit);

#endif
