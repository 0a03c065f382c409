/* SPDX-License-Identifier: MIT */
/* What it costs to start a program before its own code runs: exec, and the dynamic loader that
 * maps and relocates its libraries.  A run that takes hardly longer has measured that. */
#ifndef ASSAY_COUNTERS_STARTUP_H
#define ASSAY_COUNTERS_STARTUP_H

#include <stdint.h>

/*
 * The CPU time of loading the program, found by letting its own dynamic loader load and relocate
 * it without running it (as ldd does); the smallest of a few trials.  0 when the program is
 * static, a script, or cannot be tried.
 */
uint64_t startup_cpu_ns(const char *program);

#endif
