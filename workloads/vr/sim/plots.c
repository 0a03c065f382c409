/* SPDX-License-Identifier: MIT */
/* How plots proceed, and what they are made of; plots.h says what they are. */
#include "vr/sim/plots.h"

#define TICK_NS (300 * NS_PER_US)

uint8_t plot_find_primary(const struct sim *s)
{
    uint8_t best = VR_NODES_MAX;
    for (uint8_t i = 0; i < s->node_count; i++)
        if (s->replicas[i].up && vr_is_primary(plot_core(s, i)) &&
            (best == VR_NODES_MAX || plot_core(s, i)->view > plot_core(s, best)->view))
            best = i;
    return best;
}

bool plot_all_well(const struct sim *s, uint8_t primary)
{
    if (primary == VR_NODES_MAX)
        return false;
    for (uint8_t i = 0; i < s->node_count; i++) {
        const struct sim_replica *r = &s->replicas[i];
        if (!r->up || r->paused_until_ns > s->now_ns || r->disk_fails_until_ns > s->now_ns)
            return false;
        if (plot_member(s, i) &&
            (r->core->view != plot_core(s, primary)->view || r->core->state != VR_NORMAL))
            return false;
    }
    return vr_epoch_of(plot_core(s, primary)->view) == vr_epoch_of(s->model.group.first_view);
}

void plot_mend_all(struct sim *s)
{
    memset(s->cut, 0, sizeof(s->cut));
    s->cut_count++;
}

void plot_part(struct sim *s, uint32_t side)
{
    plot_mend_all(s);
    for (uint8_t a = 0; a < s->node_count; a++)
        for (uint8_t b = 0; b < s->node_count; b++)
            s->cut[a][b] = (side >> a & 1) != (side >> b & 1);
    s->result->count[SIM_PARTITIONS]++;
    sim_trace(s, "plot: side %x is apart", side);
}

void plot_serve_only(struct sim *s, uint32_t side)
{
    for (uint8_t i = 0; i < s->node_count; i++)
        s->cut[VR_NODES_MAX][i] = !(side >> i & 1);
}

void plot_next(struct sim *s, uint64_t limit_ns)
{
    s->plot.step++;
    s->plot.since_ns = s->now_ns;
    s->plot.limit_ns = s->now_ns + limit_ns;
}

void plot_finish(struct sim *s)
{
    plot_mend_all(s);
    for (uint8_t i = 0; i < s->node_count; i++)
        memset(s->replicas[i].slow_ns, 0, sizeof(s->replicas[i].slow_ns));
    sim_trace(s, "plot: %u ends at step %u", s->plot.kind, s->plot.step);
    s->plot.step = 0;
    s->plot.wish = 0;
    s->plot.runs++;
    s->plot.since_ns = s->now_ns + sim_below(s, 500 * NS_PER_MS);
}

uint8_t plot_choose(struct sim *s, uint32_t among)
{
    uint64_t steps = sim_below(s, (uint64_t)__builtin_popcount(among));
    for (uint8_t i = 0; i < s->node_count; i++)
        if (among >> i & 1 && steps-- == 0)
            return i;
    return VR_NODES_MAX;
}

void plot_restart(struct sim *s, uint8_t index)
{
    sim_trace(s, "plot: %u crashes and is back", index);
    sim_replica_crash(s, index);
    s->result->count[SIM_CRASHES]++;
    sim_replica_start(s, index);
}

/* What each takes: so many members at the beginning, a log on disk, changes of the group. */
static const struct {
    void (*play)(struct sim *s);
    uint8_t least, most;
    bool disk, groups;
} plots[SIM_PLOT_KINDS] = {
    [SIM_PLOT_ACKS] = {plot_acks, 5, 7, false, false},
    [SIM_PLOT_LONG] = {plot_long, 3, 3, false, false},
    [SIM_PLOT_PROMISE] = {plot_promise, 3, 3, true, false},
    [SIM_PLOT_REJOIN] = {plot_rejoin, 3, 7, false, true},
    [SIM_PLOT_JOIN] = {plot_join, 3, 7, true, true},
    [SIM_PLOT_DOUBT] = {plot_doubt, 3, 3, true, false},
    [SIM_PLOT_REUSE] = {plot_reuse, 3, 7, true, false},
    [SIM_PLOT_STATE] = {plot_state, 3, 3, true, false},
    [SIM_PLOT_SUPERBLOCK] = {plot_superblock, 3, 3, true, false},
    [SIM_PLOT_HALF] = {plot_half, 3, 3, true, false},
};

static bool is_possible(const struct sim *s, enum sim_plot_kind kind)
{
    uint8_t count = s->config.replica_count;
    return count >= plots[kind].least && count <= plots[kind].most &&
           !(plots[kind].disk && s->config.in_memory) && !(plots[kind].groups && !s->reconfigures);
}

void sim_plot_begin(struct sim *s)
{
    enum sim_plot_kind kind = SIM_PLOT_NONE;
    /* Two seeds of three have one, if the first or the second that comes to mind is possible. */
    for (unsigned i = 0; i < 2 && !kind && sim_chance(s, 666); i++) {
        kind = (enum sim_plot_kind)(1 + sim_below(s, SIM_PLOT_DRAWN_END - 1));
        if (!is_possible(s, kind))
            kind = SIM_PLOT_NONE;
    }
    /* Not drawn, so that the seeds which once failed remain what they were. */
    if (s->options.seed % 16 == 5 && is_possible(s, SIM_PLOT_HALF))
        kind = SIM_PLOT_HALF;
    s->plot = (struct sim_plot){.kind = kind, .since_ns = sim_below(s, 200 * NS_PER_MS)};
    if (kind != SIM_PLOT_NONE)
        sim_push(s, (struct sim_event){.at_ns = s->plot.since_ns, .kind = SIM_PLOT});
}

void sim_plot(struct sim *s)
{
    struct sim_plot *p = &s->plot;
    if (s->healing || p->runs == 3)
        return;
    unsigned before = p->step;
    if (p->step && s->now_ns > p->limit_ns)
        plot_finish(s);
    else if (p->step || s->now_ns >= p->since_ns)
        plots[p->kind].play(s);
    s->result->count[SIM_PLOTS] += before == 0 && p->step != 0;
    sim_push(s, (struct sim_event){.at_ns = s->now_ns + (p->step ? TICK_NS : 10 * TICK_NS),
                                   .kind = SIM_PLOT});
}
