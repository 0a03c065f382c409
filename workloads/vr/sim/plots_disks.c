/* SPDX-License-Identifier: MIT */
/* Plots of disks: promises that rest on what was written. */
#include "vr/sim/plots.h"

/* Three members, all of them well: the primary, one with a disk that may fail, and the third. */
static bool cast_bad_disk(struct sim *s)
{
    struct sim_plot *p = &s->plot;
    uint32_t members = s->model.group.members, bad = 0;
    uint8_t leader = plot_find_primary(s);
    for (uint8_t i = 0; i < s->node_count; i++)
        bad |= s->replicas[i].bad_disk && i != leader ? BIT(i) : 0;
    if (!plot_all_well(s, leader) || __builtin_popcount(members) != 3 || !(bad & members))
        return false;
    p->primary = leader;
    p->second = plot_choose(s, bad & members);
    p->third = plot_choose(s, members & ~(BIT(leader) | BIT(p->second)));
    return true;
}

/* A disk loses the end of the log.  Half of it has come back when the replica crashes once more,
 * and then it meets only one who never had the rest. */
void plot_doubt(struct sim *s)
{
    struct sim_plot *p = &s->plot;
    struct sim_replica *second = &s->replicas[p->second];
    const struct vr_replica *r = second->core;
    switch (p->step) {
    case 0:
        if (!cast_bad_disk(s))
            return;
        plot_part(s, BIT(p->third));
        plot_next(s, 300 * NS_PER_MS);
        return;
    case 1: { /* much is committed that the third does not know */
        uint64_t known = plot_core(s, p->third)->op;
        uint64_t least = known > r->view_op ? known : r->view_op;
        least = least > r->durable.checkpoint_op ? least : r->durable.checkpoint_op;
        if (r->state != VR_NORMAL || r->commit < least + 4 || r->durable.view != r->view)
            return;
        p->op = least + 1 + sim_below(s, r->commit - least - 2);
        uint64_t last = r->op;
        sim_trace(s, "plot: %u loses its log from op %lu on", p->second, p->op);
        sim_replica_crash(s, p->second);
        sim_disk_lose_tail(s, p->second, p->op, last);
        s->result->count[SIM_CRASHES]++;
        sim_replica_start(s, p->second);
        plot_next(s, 300 * NS_PER_MS);
        return;
    }
    case 2: /* some of it is back, not all */
        if (!r || r->state == VR_NORMAL || !r->install.active)
            return;
        if (r->install.matched < p->op || r->install.matched >= r->install.end.op)
            return;
        sim_lose(s, VR_TO_CLIENT, p->second);
        plot_part(s, BIT(p->primary));
        plot_next(s, 50 * NS_PER_MS);
        return;
    case 3: /* and on disk */
        if (r && r->durable_op < p->op)
            return;
        plot_restart(s, p->second);
        plot_next(s, NS_PER_S);
        return;
    default:
        if (plot_waited(s, 500 * NS_PER_MS))
            plot_finish(s);
    }
}

/* The log is as long as it can be while a checkpoint takes its time, and then everybody crashes. */
void plot_reuse(struct sim *s)
{
    struct sim_plot *p = &s->plot;
    uint8_t leader = plot_find_primary(s);
    switch (p->step) {
    case 0:
        if (!plot_all_well(s, leader))
            return;
        p->primary = leader;
        for (uint8_t i = 0; i < s->node_count; i++)
            s->replicas[i].slow_ns[SIM_LANE_PAGES] = 400 * NS_PER_MS;
        plot_next(s, 600 * NS_PER_MS);
        return;
    case 1: {
        const struct vr_replica *r = plot_core(s, p->primary);
        if (!r || r->op < r->durable.checkpoint_op + s->config.slots - s->config.pipeline)
            return;
        plot_next(s, 100 * NS_PER_MS);
        return;
    }
    case 2:
        if (!plot_waited(s, 20 * NS_PER_MS))
            return;
        s->result->count[SIM_CRASHES_OF_ALL]++;
        sim_trace(s, "plot: all crash");
        for (uint8_t i = 0; i < s->node_count; i++)
            if (s->replicas[i].up) {
                sim_replica_crash(s, i);
                s->result->count[SIM_CRASHES]++;
            }
        for (uint8_t i = 0; i < s->node_count; i++)
            sim_replica_start(s, i);
        plot_next(s, 100 * NS_PER_MS);
        return;
    default:
        plot_finish(s);
    }
}

/* Of a log that is as long as it can be, because a checkpoint takes its time, the first entry rots.
 * The primary has no longer that entry, and sends its state; when the first piece has come it is
 * out of reach, and what that replica acknowledged behind that state only it has. */
void plot_state(struct sim *s)
{
    struct sim_plot *p = &s->plot;
    struct sim_replica *second = &s->replicas[p->second];
    switch (p->step) {
    case 0:
        if (!cast_bad_disk(s))
            return;
        s->replicas[p->second].slow_ns[SIM_LANE_PAGES] = 600 * NS_PER_MS;
        plot_part(s, BIT(p->third));
        plot_next(s, 500 * NS_PER_MS);
        return;
    case 1: {
        const struct vr_replica *first = plot_core(s, p->primary), *r = second->core;
        uint64_t lost = r ? r->durable.checkpoint_op + 1 : 0;
        if (!r || !first || r->state != VR_NORMAL || first->newest.op < lost ||
            first->op < lost + s->config.slots || r->durable_op < first->newest.op + 1 ||
            r->durable_op <= plot_core(s, p->third)->op)
            return;
        sim_replica_crash(s, p->second);
        sim_disk_rot_entry(s, p->second, lost);
        s->result->count[SIM_CRASHES]++;
        sim_replica_start(s, p->second);
        plot_next(s, 100 * NS_PER_MS);
        return;
    }
    case 2:
        if (!second->core || !second->core->arriving_active)
            return;
        plot_part(s, BIT(p->primary));
        plot_next(s, NS_PER_S);
        return;
    default:
        if (plot_waited(s, 400 * NS_PER_MS))
            plot_finish(s);
    }
}

/* A replica gets a state from the primary, and entries behind it; the superblock that is to name
 * that state takes longer than those, and before it is there the replica crashes. */
void plot_superblock(struct sim *s)
{
    struct sim_plot *p = &s->plot;
    uint32_t members = s->model.group.members;
    uint8_t leader = plot_find_primary(s);
    const struct vr_replica *first = plot_core(s, p->primary), *r = plot_core(s, p->second);
    switch (p->step) {
    case 0:
        if (!plot_all_well(s, leader) || __builtin_popcount(members) != 3)
            return;
        p->primary = leader;
        p->second = plot_choose(s, members & ~BIT(leader));
        p->third = plot_choose(s, members & ~(BIT(leader) | BIT(p->second)));
        plot_part(s, BIT(p->second));
        s->replicas[leader].slow_ns[SIM_LANE_PAGES] = 10 * NS_PER_MS;
        plot_next(s, 500 * NS_PER_MS);
        return;
    case 1: /* far behind, but not so far that its log has no room behind the state */
        if (!first || !r || first->newest.op <= r->op || first->op < r->op + s->config.slots + 1)
            return;
        if (first->newest.op + 2 > r->durable.checkpoint_op + s->config.slots) {
            plot_finish(s);
            return;
        }
        s->replicas[p->primary].slow_ns[SIM_LANE_PAGES] = 400 * NS_PER_MS;
        s->replicas[p->second].slow_ns[SIM_LANE_SUPERBLOCK] = 200 * NS_PER_MS;
        plot_part(s, BIT(p->third));
        plot_next(s, 300 * NS_PER_MS);
        return;
    case 2: /* the state is there */
        if (!first || !r || r->newest.op <= r->durable.checkpoint_op || r->op <= r->newest.op ||
            r->durable_writing == false)
            return;
        plot_next(s, 150 * NS_PER_MS);
        return;
    case 3: /* give it time to acknowledge what it must not */
        if (!plot_waited(s, 20 * NS_PER_MS) || !r)
            return;
        s->replicas[p->second].slow_ns[SIM_LANE_SUPERBLOCK] = 0;
        plot_restart(s, p->second);
        plot_part(s, BIT(p->primary));
        plot_next(s, NS_PER_S);
        return;
    default:
        if (plot_waited(s, 400 * NS_PER_MS))
            plot_finish(s);
    }
}

/* Whether this replica has an entry on its disk whose second copy is on its way; and which. */
static bool is_half_written(const struct sim_replica *r, uint64_t *ret_op)
{
    if (!r->core || r->core->state != VR_NORMAL || !r->group_count || r->phase != 1)
        return false;
    *ret_op = r->group[r->group_count - 1].write.entry.op;
    return *ret_op == r->core->op;
}

/* A replica crashes when its newest entry is on disk and the second copy of its head is not.  After
 * its start it acknowledges that entry, and the entry rots; then it meets only one who never had
 * it.
 */
void plot_half(struct sim *s)
{
    struct sim_plot *p = &s->plot;
    struct sim_replica *second = &s->replicas[p->second];
    const struct vr_replica *first = plot_core(s, p->primary);
    switch (p->step) {
    case 0:
        if (!cast_bad_disk(s))
            return;
        plot_part(s, BIT(p->third));
        plot_next(s, 300 * NS_PER_MS);
        return;
    case 1: /* an entry that the third will never get */
        if (!is_half_written(second, &p->op) || p->op <= plot_core(s, p->third)->op)
            return;
        plot_serve_only(s, 0);
        plot_restart(s, p->second);
        plot_next(s, 300 * NS_PER_MS);
        return;
    case 2: /* it was acknowledged, and is committed */
        if (!first || !second->core || first->commit < p->op)
            return;
        sim_replica_crash(s, p->second);
        sim_disk_rot_entry(s, p->second, p->op);
        s->result->count[SIM_CRASHES]++;
        sim_replica_start(s, p->second);
        plot_part(s, BIT(p->primary));
        plot_next(s, NS_PER_S);
        return;
    default:
        if (plot_waited(s, 500 * NS_PER_MS))
            plot_finish(s);
    }
}
