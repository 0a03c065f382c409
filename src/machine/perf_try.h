/* SPDX-License-Identifier: MIT */
/* Inside src/machine: small trials with perf_event_open on the calling thread. */
#ifndef ASSAY_MACHINE_PERF_TRY_H
#define ASSAY_MACHINE_PERF_TRY_H

#include "machine/machine.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

/* An attribute that counts the calling thread's user side, stopped, with times. */
struct perf_event_attr perf_try_attr(uint32_t type, uint64_t config);
/* Opens on the calling thread, on any processor: a descriptor or a negative errno. */
int perf_try_open(struct perf_event_attr *attr, int group_fd);
/* The same on a whole processor. */
int perf_try_open_cpu(struct perf_event_attr *attr, int cpu);

struct perf_reading {
    uint64_t value, enabled_ns, running_ns;
};
bool perf_try_read(int fd, struct perf_reading *ret_reading);

/* Opens the event, does the work while it counts, and reads it.  Returns 0, or a negative errno
 * from opening. */
typedef void perf_work_fn(void *context);
int perf_try_count(struct perf_event_attr *attr, perf_work_fn *work, void *context,
                   struct perf_reading *ret_reading);

/* The kernel's number of a PMU in /sys/bus/event_source/devices, negative when it is not there. */
int perf_pmu_type(const char *name);

/* Work for a counter: some hundred microseconds of arithmetic. */
void perf_work_spin(void *context);

/* What a sampling event delivered into its ring while the work ran. */
struct perf_samples {
    size_t count;
    size_t exact_count;  /* whose address is that of the instruction itself */
    size_t branch_count; /* entries of branch stacks, when asked for */
};
int perf_try_sample(struct perf_event_attr *attr, perf_work_fn *work, void *context,
                    struct perf_samples *ret_samples);

/* Why perf_event_open refused this user, and what to change; "" when the errno is not about
 * permission. */
const char *perf_refusal_remedy(struct machine *m, int code);

#endif
