/* SPDX-License-Identifier: MIT */
/* The CPUs that may be used, core by core, and how busy they were. */
#ifndef SCALE_CPUS_H
#define SCALE_CPUS_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpus {
    int *numbers; /* one thread of every core first, then the second threads, and so on */
    size_t count;
};

int cpus_init(struct cpus *c, struct error *err);
void cpus_done(struct cpus *c);

/* Ticks of a set of CPUs since the machine started, from /proc/stat. */
struct cpu_ticks {
    uint64_t all, idle, steal;
};

/* Sums over the CPUs; false where /proc/stat cannot be read. */
bool cpu_ticks_read(const int *numbers, size_t count, struct cpu_ticks *ret_ticks);
/* The same from a text like /proc/stat's. */
void cpu_ticks_parse(const char *text, const int *numbers, size_t count,
                     struct cpu_ticks *ret_ticks);

#endif
