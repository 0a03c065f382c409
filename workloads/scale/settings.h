/* SPDX-License-Identifier: MIT */
/* The command line of assay-scale, checked against the machine. */
#ifndef SCALE_SETTINGS_H
#define SCALE_SETTINGS_H

#include "base/options.h"
#include "counts.h"
#include "cpus.h"
#include "scale.h"

#include <stdbool.h>

struct settings {
    /* As given. */
    const char *tasks, *folder, *json, *completion;
    bool threads, processes, list, calls, oversubscribe;
    uint64_t duration_ns, warmup_ns, interval_ns, ops, mappings;
    /* As understood. */
    bool has_ops;
    struct cpus cpus;
    struct counts counts;
    const struct scale_test **tests;
    size_t test_count;
    bool modes[2]; /* whether as processes, as threads */
};

extern const struct verb scale_verb; /* for --help */

/* 1: help was asked for; 0: go on.  Errors are those of the command line. */
int settings_parse(struct settings *s, int argc, char **argv, struct error *err);
void settings_done(struct settings *s);

#endif
