/* SPDX-License-Identifier: MIT */
/* See layouts.h. */
#include "bench/layouts.h"
#include "base/memory.h"

#include <math.h>

int bench_layouts_link(struct bench_layouts *l, const struct bench_plan *plan,
                       const char *const *commands, size_t count, struct error *err)
{
    const char *programs[BENCH_SIDES_MAX];
    for (size_t side = 0; side < plan->side_count; side++)
        programs[side] = plan->targets[side]->path;
    const struct relink_plan links = {.programs = programs,
                                      .commands = commands,
                                      .program_count = plan->side_count,
                                      .layout_count = count,
                                      .seed = plan->seed,
                                      .on_progress = plan->on_progress,
                                      .context = plan->context};
    *l = (struct bench_layouts){
        .targets = memory_zalloc(count * BENCH_SIDES_MAX + 1, sizeof(*l->targets)), .count = count};
    int r = relink(&l->linked, &links, err);
    for (size_t i = 0; i < count * plan->side_count && r == 0; i++) {
        size_t layout = i / plan->side_count, side = i % plan->side_count;
        r = bench_target_open(&l->targets[layout * BENCH_SIDES_MAX + side],
                              relinked_path(&l->linked, layout, side), err);
    }
    return r;
}

void bench_layouts_done(struct bench_layouts *l)
{
    for (size_t i = 0; i < l->count * BENCH_SIDES_MAX; i++)
        bench_target_done(&l->targets[i]);
    relinked_done(&l->linked);
    free(l->targets);
    *l = (struct bench_layouts){0};
}

bool bench_layout_spread(const struct bench_result *r, struct layout_spread *ret)
{
    CLEANUP(memory_freep) double *ratios = memory_zalloc(2 * r->round_count + 1, sizeof(*ratios));
    double *halves = ratios + r->round_count;
    size_t count = 0;
    for (size_t i = 0; i < r->sample_count && count < r->round_count; i++) {
        uint32_t round = r->samples[i].round;
        if (i && r->samples[i - 1].round == round)
            continue;
        ratios[count] = bench_round_ratio(r, round, -1);
        halves[count] = bench_round_ratio(r, round, 0) - bench_round_ratio(r, round, 1);
        count++;
    }
    return layout_spread(ratios, halves, count, ret);
}
