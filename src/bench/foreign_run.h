/* SPDX-License-Identifier: MIT */
/* One run of a program of another harness: see foreign.h. */
#ifndef ASSAY_BENCH_FOREIGN_RUN_H
#define ASSAY_BENCH_FOREIGN_RUN_H

#include "bench/programs.h"
#include "bench/worker.h"

struct foreign_run {
    const char *path;
    const struct program_harness *harness;
    const char *name; /* of the only benchmark to run; NULL for all */
    const struct bench_start *how;
};

/* Runs it to its end and reads what it printed.  -EINTR when a signal came for assay. */
int foreign_run(const struct foreign_run *run, struct program_results *results, struct error *err);

#endif
