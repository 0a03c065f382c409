/* SPDX-License-Identifier: MIT */
/*
 * The events that have names of their own: software, hardware and cache events, as perf names
 * them.  Events of other PMUs, tracepoints and probes are described by the machine itself: see
 * pmu.h and event.h.
 */
#ifndef ASSAY_COUNTERS_CATALOGUE_H
#define ASSAY_COUNTERS_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct catalogue_entry {
    const char *name;
    const char *alias; /* or NULL */
    uint32_t type;     /* of perf_event_attr */
    uint64_t config;
    const char *help;
    bool in_ns; /* the value is a time in nanoseconds */
};

/* All entries; the array lives as long as the program. */
const struct catalogue_entry *catalogue(size_t *ret_count);
/* By name or alias; NULL when there is none. */
const struct catalogue_entry *catalogue_find(const char *name);

/* The config of a cache event. */
static inline uint64_t catalogue_cache_config(uint64_t cache, uint64_t op, uint64_t result)
{
    return cache | op << 8 | result << 16;
}

#endif
