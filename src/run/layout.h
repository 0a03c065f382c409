/* SPDX-License-Identifier: MIT */
/* Which memory layout each round has: see layout_count of rounds.h. */
#ifndef ASSAY_RUN_LAYOUT_H
#define ASSAY_RUN_LAYOUT_H

#include "numbers/random.h"
#include "run/rounds.h"

struct layout_turns {
    const struct rounds_spec *spec;
    size_t *order, *paddings; /* of the layouts that take turns, and what each adds */
    bool still_first;         /* of the two rounds under way */
};

void layout_turns_init(struct layout_turns *t, const struct rounds_spec *spec, struct rng *rng);
void layout_turns_done(struct layout_turns *t);
/* The layout of the round of that number; the rounds come in order. */
void layout_turns_choose(struct layout_turns *t, struct rng *rng, size_t number,
                         struct round *round);
/* Whether every second round is still. */
bool layout_has_still_rounds(const struct rounds_spec *spec);
/* As runner_run; a still run has addresses that the kernel does not draw.  *ret_moved is set when
 * that is not possible here. */
int layout_run(struct runner *runner, const struct run_spec *spec, bool still,
               struct run_result *result, bool *ret_moved, struct error *err);

#endif
