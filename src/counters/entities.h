/* SPDX-License-Identifier: MIT */
/* Counts of the threads, CPUs or cores of a target, told apart: entries of measurement.threads. */
#ifndef ASSAY_COUNTERS_ENTITIES_H
#define ASSAY_COUNTERS_ENTITIES_H

#include "counters/measure.h"

/* Reads the names of threads at the start: a thread that ended has none. */
void entities_name_threads(struct measurement *m, const pid_t *tasks, size_t count);
/* "CPU3", or with by_core "S0-C1": socket and core.  Returns the number that each CPU counts for:
 * its own, or that of its core's first CPU; the caller frees it. */
int *entities_name_cpus(struct measurement *m, const int *cpus, size_t count, bool by_core);
/* Adds what each entity counted to the entry of its number: a tid, or as above. */
int entities_keep(struct measurement *m, const struct counters *c, const int *numbers,
                  struct error *err);

#endif
