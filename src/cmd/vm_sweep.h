/* SPDX-License-Identifier: MIT */
/* `assay vm sweep`: one command under many kernels. */
#ifndef ASSAY_CMD_VM_SWEEP_H
#define ASSAY_CMD_VM_SWEEP_H

#include "base/options.h"
#include "vm/fetch.h"

struct vm_sweep_options {
    const struct option_list *kernels; /* packages, patterns or paths, separated by commas */
    const struct vm_fetch *fetch;
    const char *json;
    uint64_t run_count;
    double threshold; /* a share */
    bool cached;      /* nothing is fetched */
};

/* Returns the exit code. */
int vm_sweep(const struct vm_sweep_options *o, char **argv, struct error *err);

#endif
