/* SPDX-License-Identifier: MIT */
/*
 * Plots: faults in an order that chance would need years for.  Each knows a promise that a replica
 * gives, waits until somebody depends on it, and then arranges crashes and broken links so that a
 * promise which was not kept shows in the history.  A plot looks at replicas and breaks links and
 * machines as chance might; it knows nothing of planted bugs, and a correct cluster lives through
 * all of them.  While one is under way no other fault happens.
 */
#include "sim_internal.h"

#define TICK_NS (300 * NS_PER_US)

static const struct vr_replica *core_of(const struct sim *s, uint8_t index)
{
    return s->replicas[index].core;
}

static bool member(const struct sim *s, uint8_t index)
{
    return s->model.group.members >> index & 1;
}

static uint8_t find_primary(const struct sim *s)
{
    uint8_t best = VR_NODES_MAX;
    for (uint8_t i = 0; i < s->node_count; i++)
        if (s->replicas[i].up && vr_is_primary(core_of(s, i)) &&
            (best == VR_NODES_MAX || core_of(s, i)->view > core_of(s, best)->view))
            best = i;
    return best;
}

/* Everybody is there, in one view, and not asleep. */
static bool all_well(const struct sim *s, uint8_t primary)
{
    if (primary == VR_NODES_MAX)
        return false;
    for (uint8_t i = 0; i < s->node_count; i++) {
        const struct sim_replica *r = &s->replicas[i];
        if (!r->up || r->paused_until_ns > s->now_ns || r->disk_fails_until_ns > s->now_ns)
            return false;
        if (member(s, i) &&
            (r->core->view != core_of(s, primary)->view || r->core->state != VR_NORMAL))
            return false;
    }
    return vr_epoch_of(core_of(s, primary)->view) == vr_epoch_of(s->model.group.first_view);
}

static void mend_all(struct sim *s)
{
    memset(s->cut, 0, sizeof(s->cut));
    s->cut_count++;
}

/* Links between the two sides are broken, all others whole. */
static void part(struct sim *s, uint32_t side)
{
    mend_all(s);
    for (uint8_t a = 0; a < s->node_count; a++)
        for (uint8_t b = 0; b < s->node_count; b++)
            s->cut[a][b] = (side >> a & 1) != (side >> b & 1);
    s->result->count[SIM_PARTITIONS]++;
    sim_trace(s, "plot: side %x is apart", side);
}

/* Clients reach these alone. */
static void serve_only(struct sim *s, uint32_t side)
{
    for (uint8_t i = 0; i < s->node_count; i++)
        s->cut[VR_NODES_MAX][i] = !(side >> i & 1);
}

static void next(struct sim *s, uint64_t limit_ns)
{
    s->plot.step++;
    s->plot.since_ns = s->now_ns;
    s->plot.limit_ns = s->now_ns + limit_ns;
}

static void finish(struct sim *s)
{
    mend_all(s);
    sim_trace(s, "plot: ends at step %u", s->plot.step);
    s->plot.step = 0;
    s->plot.wish = 0;
    s->plot.runs++;
    s->plot.since_ns = s->now_ns + sim_below(s, 500 * NS_PER_MS);
}

static bool waited(const struct sim *s, uint64_t wait_ns)
{
    return s->now_ns - s->plot.since_ns > wait_ns;
}

static uint8_t choose(struct sim *s, uint32_t among)
{
    uint64_t steps = sim_below(s, (uint64_t)__builtin_popcount(among));
    for (uint8_t i = 0; i < s->node_count; i++)
        if (among >> i & 1 && steps-- == 0)
            return i;
    return VR_NODES_MAX;
}

#define BIT(index) (1u << (index))

/* A primary has acknowledgements of entries that a later view drops.  It leads again, with fewer
 * around it than it takes, and with other entries under the same numbers. */
static void plot_acks(struct sim *s)
{
    struct sim_plot *p = &s->plot;
    uint32_t members = s->model.group.members;
    uint8_t leader = find_primary(s);
    const struct vr_replica *first = core_of(s, p->primary);
    switch (p->step) {
    case 0:
        if (!all_well(s, leader) || __builtin_popcount(members) < 5)
            return;
        p->primary = leader;
        p->second = choose(s, members & ~BIT(leader));
        p->third = choose(s, members & ~(BIT(leader) | BIT(p->second)));
        p->view = core_of(s, leader)->view;
        part(s, BIT(leader) | BIT(p->second));
        serve_only(s, BIT(leader));
        next(s, 200 * NS_PER_MS);
        return;
    case 1: /* one acknowledgement, too few to commit */
        if (!first || first->view != p->view || first->ok_op[p->second] <= first->commit_max)
            return;
        p->op = first->ok_op[p->second];
        serve_only(s, 0);
        next(s, NS_PER_S);
        return;
    case 2: { /* the others begin a view, all of them */
        uint32_t there = 0;
        for (uint8_t i = 0; i < s->node_count; i++)
            there += member(s, i) && s->replicas[i].up && core_of(s, i)->state == VR_NORMAL &&
                     core_of(s, i)->view > p->view;
        if (there + 2 < (uint32_t)__builtin_popcount(members))
            return;
        mend_all(s);
        serve_only(s, 0);
        next(s, NS_PER_S);
        return;
    }
    case 3: /* which drops what those two have */
        if (!all_well(s, leader) || core_of(s, leader)->view == p->view)
            return;
        if (first->op >= p->op) {
            finish(s);
            return;
        }
        next(s, 3 * NS_PER_S);
        return;
    case 4: /* until the first one leads again */
        if (leader == VR_NODES_MAX || !waited(s, 10 * NS_PER_MS))
            return;
        if (leader != p->primary) {
            if (s->cut[leader][p->primary])
                return;
            part(s, BIT(leader));
            serve_only(s, 0);
            return;
        }
        if (first->op >= p->op) {
            finish(s);
            return;
        }
        part(s, BIT(p->primary) | BIT(p->third));
        serve_only(s, BIT(p->primary));
        next(s, NS_PER_S);
        return;
    case 5: /* it has one beside it, which is not enough */
        if (!waited(s, 90 * NS_PER_MS))
            return;
        serve_only(s, members);
        next(s, NS_PER_S);
        return;
    default:
        if (waited(s, 400 * NS_PER_MS))
            finish(s);
    }
}

/* A disk loses the end of the log.  Half of it has come back when the replica crashes once more,
 * and then it meets only one who never had the rest. */
static void plot_doubt(struct sim *s)
{
    struct sim_plot *p = &s->plot;
    uint32_t members = s->model.group.members, bad = 0;
    uint8_t leader = find_primary(s);
    struct sim_replica *second = &s->replicas[p->second];
    const struct vr_replica *r = second->core;
    switch (p->step) {
    case 0:
        for (uint8_t i = 0; i < s->node_count; i++)
            bad |= s->replicas[i].bad_disk && i != leader ? BIT(i) : 0;
        if (!all_well(s, leader) || __builtin_popcount(members) != 3 || !(bad & members))
            return;
        p->primary = leader;
        p->second = choose(s, bad & members);
        p->third = choose(s, members & ~(BIT(leader) | BIT(p->second)));
        part(s, BIT(p->third));
        next(s, 300 * NS_PER_MS);
        return;
    case 1: { /* much is committed that the third does not know */
        uint64_t known = core_of(s, p->third)->op;
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
        next(s, 300 * NS_PER_MS);
        return;
    }
    case 2: /* some of it is back, not all */
        if (!r || r->state == VR_NORMAL || !r->install.active)
            return;
        if (r->install.matched < p->op || r->install.matched >= r->install.end.op)
            return;
        sim_lose(s, VR_TO_CLIENT, p->second);
        part(s, BIT(p->primary));
        next(s, 50 * NS_PER_MS);
        return;
    case 3: /* and on disk */
        if (r && r->durable_op < p->op)
            return;
        sim_trace(s, "plot: %u crashes and is back", p->second);
        sim_replica_crash(s, p->second);
        s->result->count[SIM_CRASHES]++;
        sim_replica_start(s, p->second);
        next(s, NS_PER_S);
        return;
    default:
        if (waited(s, 500 * NS_PER_MS))
            finish(s);
    }
}

/* A replica leaves the group, is given an empty disk, and meets one who has not heard of it. */
static void plot_rejoin(struct sim *s)
{
    struct sim_plot *p = &s->plot;
    uint32_t members = s->model.group.members, spare = 0;
    uint8_t leader = find_primary(s);
    struct sim_replica *second = &s->replicas[p->second];
    switch (p->step) {
    case 0:
        for (uint8_t i = 0; i < s->node_count; i++)
            spare |= !member(s, i) && !s->replicas[i].bad_disk ? BIT(i) : 0;
        if (!all_well(s, leader) || __builtin_popcount(members) != 3 || !spare ||
            s->replicas[leader].bad_disk || vr_epoch_of(s->model.group.first_view) == 0)
            return;
        p->primary = leader;
        p->second = choose(s, members & ~BIT(leader));
        p->third = choose(s, members & ~(BIT(leader) | BIT(p->second)));
        p->wish = BIT(leader) | spare;
        part(s, BIT(p->third));
        next(s, NS_PER_S);
        return;
    case 1:
        if (!second->up || second->core->state != VR_RETIRED || !vr_may_leave(second->core))
            return;
        p->wish = 0;
        sim_replica_renew(s, p->second);
        part(s, BIT(p->second) | BIT(p->third));
        next(s, 2 * NS_PER_S);
        return;
    default:
        if (waited(s, 800 * NS_PER_MS))
            finish(s);
    }
}

/* The log is as long as it can be while a checkpoint takes its time, and then everybody crashes. */
static void plot_reuse(struct sim *s)
{
    struct sim_plot *p = &s->plot;
    uint8_t leader = find_primary(s);
    switch (p->step) {
    case 0:
        if (!all_well(s, leader))
            return;
        p->primary = leader;
        s->slow_checkpoints_ns = 400 * NS_PER_MS;
        next(s, 600 * NS_PER_MS);
        return;
    case 1: {
        const struct vr_replica *r = core_of(s, p->primary);
        if (!r || r->op < r->durable.checkpoint_op + s->config.slots - s->config.pipeline)
            return;
        next(s, 100 * NS_PER_MS);
        return;
    }
    case 2:
        if (!waited(s, 20 * NS_PER_MS))
            return;
        s->slow_checkpoints_ns = 0;
        s->result->count[SIM_CRASHES_OF_ALL]++;
        sim_trace(s, "plot: all crash");
        for (uint8_t i = 0; i < s->node_count; i++)
            if (s->replicas[i].up) {
                sim_replica_crash(s, i);
                s->result->count[SIM_CRASHES]++;
            }
        for (uint8_t i = 0; i < s->node_count; i++)
            sim_replica_start(s, i);
        next(s, 100 * NS_PER_MS);
        return;
    default:
        finish(s);
    }
}

static void (*const plots[])(struct sim *s) = {NULL, plot_acks, plot_doubt, plot_rejoin,
                                               plot_reuse};

void sim_plot_begin(struct sim *s)
{
    enum sim_plot_kind kind = (enum sim_plot_kind)sim_below(s, 2 * SIM_PLOT_KINDS);
    bool three = s->config.replica_count == 3, disk = !s->config.in_memory;
    if (kind >= SIM_PLOT_KINDS || (kind == SIM_PLOT_ACKS && (three || s->reconfigures)) ||
        (kind == SIM_PLOT_DOUBT && !(three && disk)) ||
        (kind == SIM_PLOT_REJOIN && !s->reconfigures) || (kind == SIM_PLOT_REUSE && !disk))
        kind = SIM_PLOT_NONE;
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
        finish(s);
    else if (p->step || s->now_ns >= p->since_ns)
        plots[p->kind](s);
    s->result->count[SIM_PLOTS] += before == 0 && p->step != 0;
    sim_push(s, (struct sim_event){.at_ns = s->now_ns + (p->step ? TICK_NS : 10 * TICK_NS),
                                   .kind = SIM_PLOT});
}
