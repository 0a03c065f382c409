/* SPDX-License-Identifier: MIT */
/* The same question with a real program on this machine instead of a simulated one. */
#ifndef ASSAY_BENCH_STATS_COVERAGE_REAL_H
#define ASSAY_BENCH_STATS_COVERAGE_REAL_H

#include "base/error.h"

#include <stddef.h>

/* Runs the command against itself in interleaved rounds, cuts them into sittings of 10, 20, 50 and
 * 100 rounds and prints, per rule, how many sittings are called different and how wide the
 * intervals are. */
int real_print(char *const *argv, size_t rounds, struct error *err);

#endif
