/* SPDX-License-Identifier: MIT */
/* See model.h. */
#include "exact/model.h"

uint64_t exact_model_cycles(const struct exact_modelled *m)
{
    return m->instructions + EXACT_MODEL_BRANCH_MISS * m->branch_misses +
           EXACT_MODEL_L1_MISS * m->l1_misses + EXACT_MODEL_LLC_MISS * m->llc_misses;
}
