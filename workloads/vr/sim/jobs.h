/* SPDX-License-Identifier: MIT */
/* Many seeds by several processes, summed up in the order of the seeds. */
#ifndef ASSAY_VR_SIM_JOBS_H
#define ASSAY_VR_SIM_JOBS_H

#include "base/error.h"
#include "vr/sim/sim.h"

struct sim_sum {
    uint64_t first, next; /* all seeds from first to next - 1 have run */
    uint64_t count[SIM_COUNTS], digest;
    bool failed;
    uint64_t failed_seed;
    char reason[512];
};

struct sim_jobs {
    struct sim_options one;
    unsigned jobs;
    uint64_t end;       /* the first seed that is not to be run */
    uint64_t until_ns;  /* no seed begins after it; 0: no limit */
    const char *resume; /* file that keeps the sum, or NULL */
    struct sim_sum sum; /* first is the caller's */
};

/* A failing seed is no error of this function: its trace goes to standard error, and the sum says
 * so.  Errors: a resume file of another build or other settings, no processes. */
int sim_jobs_run(struct sim_jobs *jobs, struct error *err);

#endif
