/* SPDX-License-Identifier: MIT */
/* assay as the process that loads a shared object with benchmarks and serves them: it is started
 * again by itself, under another name and with a variable that says so. */
#ifndef ASSAY_BENCH_RUNNER_H
#define ASSAY_BENCH_RUNNER_H

#include <stdbool.h>

#define BENCH_RUNNER_NAME "assay-bench-runner"
#define BENCH_RUNNER_VARIABLE "ASSAY_BENCH_RUNNER"

/* Whether this process is one. */
bool bench_runner_is(int argc, char *const *argv);
/* Serves the shared object that argv[1] names, and beside it that of argv[2], if there is one;
 * returns the exit code. */
int bench_runner_serve(char *const *argv);
/* The path of this assay, for programs that cannot be given /proc/self/exe. */
const char *bench_runner_path(void);

#endif
