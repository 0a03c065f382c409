/* SPDX-License-Identifier: MIT */
/*
 * Modelled cycles: instructions, and what simulated caches and a simulated branch predictor say,
 * with the weights of KCachegrind's "cycle estimation", on every machine the same.
 *
 * Instructions alone mislead, because a miss costs as much as a hundred of them.  Nothing here
 * knows of prefetching, of TLBs, of which instruction waits for which, or how many run side by
 * side.  How far such cycles are from CPU time is of bench/exact/model, which measures and counts a
 * set of reference programs; a test holds the numbers below against its data.  (Weights that are
 * fitted to these programs are nearer to them, but further from those that are left out.)
 */
#ifndef ASSAY_EXACT_MODEL_H
#define ASSAY_EXACT_MODEL_H

#include <stdint.h>

#define EXACT_MODEL_CYCLES "sim:modelled-cycles"

#define EXACT_MODEL_BRANCH_MISS 10
#define EXACT_MODEL_L1_MISS 10
#define EXACT_MODEL_LLC_MISS 100
/* The reference: modelled cycles for each nanosecond of CPU time there, the programs' geometric
 * mean, and the factor within which half and nine of ten programs are by the mean of the others. */
#define EXACT_MODEL_MACHINE "a virtual AMD EPYC (Zen 5)"
#define EXACT_MODEL_PROGRAMS "24"
#define EXACT_MODEL_PER_NS 12.0
#define EXACT_MODEL_FACTOR_HALF "2.1"
#define EXACT_MODEL_FACTOR "4"

#define EXACT_MODEL_WORDS                                      \
    "modelled cycles are not a time: of " EXACT_MODEL_PROGRAMS \
    " reference programs on " EXACT_MODEL_MACHINE              \
    ", half are within a factor of " EXACT_MODEL_FACTOR_HALF   \
    " of their CPU time, nine of ten within " EXACT_MODEL_FACTOR

struct exact_modelled {
    uint64_t instructions, branch_misses, l1_misses, llc_misses;
};

uint64_t exact_model_cycles(const struct exact_modelled *m);

#endif
