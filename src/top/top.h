/* SPDX-License-Identifier: MIT */
/*
 * `assay top` without its screen: samples and states of what runs now, an interval at a time.
 *
 *   struct top *t;
 *   if (top_open(&t, &spec, &err) < 0) …
 *   while (top_wait(t, -1) == TOP_TURNED)
 *       … view_build(&rows, top_window(t), &options) …
 *   top_free(t);
 */
#ifndef ASSAY_TOP_TOP_H
#define ASSAY_TOP_TOP_H

#include "top/window.h"

#include <sys/types.h>

struct top_spec {
    const pid_t *pids; /* these processes and what they start */
    size_t pid_count;
    const char *cgroup; /* or what runs in this one; neither: the machine, as far as permitted */
    uint64_t frequency_hz;
    uint64_t interval_ns;
    size_t interval_count; /* that a view adds up */
};

struct top;

int top_open(struct top **ret_top, const struct top_spec *spec, struct error *err);
void top_free(struct top *top);

enum top_event {
    TOP_TURNED, /* an interval is full: there is something new to show */
    TOP_INPUT,  /* the descriptor has something to read */
    TOP_SIGNAL, /* a signal came for assay */
    TOP_ENDED,  /* all that was to be seen has ended */
};

/* Goes on until one of these; input_fd may be -1. */
enum top_event top_wait(struct top *top, int input_fd);
struct recent *top_window(struct top *top);
/* While frozen, the window stays as it is; samples are still kept for top_save. */
void top_freeze(struct top *top, bool frozen);

/* "machine", "2 processes", "cgroup x", "your processes". */
const char *top_target(const struct top *top);
size_t top_cpu_count(const struct top *top);
uint64_t top_frequency_hz(const struct top *top);
/* Processor time of assay itself in the last interval, as a share of one CPU. */
double top_own_share(const struct top *top);
/* Lines for the user: what may not be seen, and why. */
const char *top_notes(const struct top *top);
/* What was sampled so far, as a recording. */
int top_save(struct top *top, const char *path, char *const *command_line, uint64_t *ret_samples,
             bool *ret_is_cut, struct error *err);

#endif
