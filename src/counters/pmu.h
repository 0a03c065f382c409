/* SPDX-License-Identifier: MIT */
/*
 * PMUs as sysfs describes them: /sys/bus/event_source/devices/PMU/{type,format,events}.
 * "pmu/event=0x3c,umask=1/" is put together by the bit ranges in format/; "pmu/name/" takes its
 * terms from events/name, with a scale and a unit where events/name.scale and .unit are there.
 */
#ifndef ASSAY_COUNTERS_PMU_H
#define ASSAY_COUNTERS_PMU_H

#include "base/error.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pmu_terms {
    double scale;  /* 1 unless the event says otherwise */
    char unit[32]; /* "" unless the event says otherwise */
    char name[64]; /* from name=…, else "" */
};

#define PMU_FOLDER "/sys/bus/event_source/devices"

/* The PMU's number for perf_event_attr.type; -ENOENT when there is no such PMU. */
int pmu_type(const char *pmu, uint32_t *ret_type, struct error *err);

/* Fills type and configs of attr from the text between the slashes. */
int pmu_parse(const char *pmu, const char *terms, struct perf_event_attr *attr,
              struct pmu_terms *ret_terms, struct error *err);

/* Spreads value over the bits that a format text such as "config1:0-7,32-35" names. */
int pmu_format_apply(const char *format, uint64_t value, struct perf_event_attr *attr,
                     struct error *err);

/* Calls visit for each PMU's name, or for each event of one, in alphabetical order. */
void pmu_each(void (*visit)(const char *pmu, void *context), void *context);
void pmu_each_event(const char *pmu,
                    void (*visit)(const char *pmu, const char *event, void *context),
                    void *context);

/* Whether the PMU counts whole CPUs only (it has a cpumask), as uncore and power PMUs do. */
bool pmu_is_systemwide(const char *pmu);

#endif
