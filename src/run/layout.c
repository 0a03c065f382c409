/* SPDX-License-Identifier: MIT */
/* See layout.h. */
#include "run/layout.h"
#include "base/memory.h"

#include <sys/personality.h>

#define ADDRESSES_ASK 0xffffffff /* tells what is set, and sets nothing */

void layout_turns_init(struct layout_turns *t, const struct rounds_spec *spec, struct rng *rng)
{
    *t = (struct layout_turns){.spec = spec};
    t->order = memory_zalloc(spec->layout_count + 1, sizeof(*t->order));
    t->paddings = memory_zalloc(spec->layout_count + 1, sizeof(*t->paddings));
    for (size_t i = 0; i < spec->layout_count; i++) {
        t->order[i] = i;
        t->paddings[i] = (size_t)rng_below(rng, RUN_PADDING_MAX);
    }
}

void layout_turns_done(struct layout_turns *t)
{
    free(t->order);
    free(t->paddings);
}

bool layout_has_still_rounds(const struct rounds_spec *spec)
{
    return spec->layout_count && !spec->layout_programs;
}

void layout_turns_choose(struct layout_turns *t, struct rng *rng, size_t number,
                         struct round *round)
{
    const struct rounds_spec *spec = t->spec;
    uint64_t padding = rng_below(rng, RUN_PADDING_MAX);
    round->padding_bytes = spec->no_padding ? 0 : padding;
    if (layout_has_still_rounds(spec)) {
        if (number % 2 == 0)
            t->still_first = rng_below(rng, 2);
        round->is_still = t->still_first == (number % 2 == 0);
        round->layout = number / 2;
        if (round->is_still)
            round->padding_bytes = t->paddings[0];
    } else if (spec->layout_count) {
        size_t turn = number % spec->layout_count;
        if (turn == 0) /* every pass has an order of its own */
            rng_shuffle(rng, t->order, spec->layout_count);
        round->layout = t->order[turn];
        round->padding_bytes = t->paddings[round->layout];
    }
}

int layout_run(struct runner *runner, const struct run_spec *spec, bool still,
               struct run_result *result, bool *ret_moved, struct error *err)
{
    int before = still ? personality(ADDRESSES_ASK) : -1;
    if (still && (before < 0 || personality((unsigned)before | ADDR_NO_RANDOMIZE) < 0))
        *ret_moved = true;
    int r = runner_run(runner, spec, result, err);
    if (before >= 0)
        personality((unsigned)before);
    return r;
}
