/* SPDX-License-Identifier: MIT */
/* Plots of views and groups: promises that are made by messages. */
#include "vr/sim/plots.h"

/* The others begin a view, all of them. */
static void acks_of_a_later_view(struct sim *s, uint32_t members)
{
    struct sim_plot *p = &s->plot;
    uint32_t there = 0;
    for (uint8_t i = 0; i < s->node_count; i++)
        there += plot_member(s, i) && s->replicas[i].up && plot_core(s, i)->state == VR_NORMAL &&
                 plot_core(s, i)->view > p->view;
    if (there + 2 < (uint32_t)__builtin_popcount(members))
        return;
    plot_mend_all(s);
    plot_serve_only(s, 0);
    plot_next(s, NS_PER_S);
}

/* Primaries are cut off until the first one leads again. */
static void acks_until_it_leads(struct sim *s, uint8_t leader, const struct vr_replica *first)
{
    struct sim_plot *p = &s->plot;
    if (leader == VR_NODES_MAX || !plot_waited(s, 10 * NS_PER_MS))
        return;
    if (leader != p->primary) {
        if (s->cut[leader][p->primary])
            return;
        plot_part(s, BIT(leader));
        plot_serve_only(s, 0);
        return;
    }
    if (first->op >= p->op) {
        plot_finish(s);
        return;
    }
    plot_part(s, BIT(p->primary) | BIT(p->third));
    plot_serve_only(s, BIT(p->primary));
    plot_next(s, NS_PER_S);
}

/* A primary has acknowledgements of entries that a later view drops.  It leads again, with fewer
 * around it than it takes, and with other entries under the same numbers. */
void plot_acks(struct sim *s)
{
    struct sim_plot *p = &s->plot;
    uint32_t members = s->model.group.members;
    uint8_t leader = plot_find_primary(s);
    const struct vr_replica *first = plot_core(s, p->primary);
    switch (p->step) {
    case 0:
        if (!plot_all_well(s, leader) || __builtin_popcount(members) < 5)
            return;
        p->primary = leader;
        p->second = plot_choose(s, members & ~BIT(leader));
        p->third = plot_choose(s, members & ~(BIT(leader) | BIT(p->second)));
        p->view = plot_core(s, leader)->view;
        plot_part(s, BIT(leader) | BIT(p->second));
        plot_serve_only(s, BIT(leader));
        plot_next(s, 200 * NS_PER_MS);
        return;
    case 1: /* one acknowledgement, too few to commit */
        if (!first || first->view != p->view || first->ok_op[p->second] <= first->commit_max)
            return;
        p->op = first->ok_op[p->second];
        plot_serve_only(s, 0);
        plot_next(s, NS_PER_S);
        return;
    case 2:
        acks_of_a_later_view(s, members);
        return;
    case 3: /* which drops what those two have */
        if (!plot_all_well(s, leader) || plot_core(s, leader)->view == p->view)
            return;
        if (first->op >= p->op) {
            plot_finish(s);
            return;
        }
        plot_next(s, 3 * NS_PER_S);
        return;
    case 4:
        acks_until_it_leads(s, leader, first);
        return;
    case 5: /* it has one beside it, which is not enough */
        if (!plot_waited(s, 90 * NS_PER_MS))
            return;
        plot_serve_only(s, members);
        plot_next(s, NS_PER_S);
        return;
    default:
        if (plot_waited(s, 400 * NS_PER_MS))
            plot_finish(s);
    }
}

/* The first and the third go on; then the first is gone. */
static void figure_without_the_second(struct sim *s, uint8_t leader, const struct vr_replica *first)
{
    struct sim_plot *p = &s->plot;
    if (leader == VR_NODES_MAX || leader == p->second || !first ||
        plot_core(s, leader)->commit < p->op)
        return;
    p->view = plot_core(s, leader)->view;
    plot_part(s, BIT(p->primary));
    plot_serve_only(s, 0);
    if (leader == p->third && s->config.in_memory) {
        plot_finish(s);
        return;
    }
    if (leader == p->third) /* as long as it leads, the second just follows it */
        plot_restart(s, p->third);
    plot_next(s, 2 * NS_PER_S);
}

/* Raft's figure 8.  The first has an entry that nobody else gets; the second begins a view that
 * only it knows, with another entry in that place; the first and the third go on, and commit the
 * first one's.  Then the first is gone, and the second has the newer entry, but the older log. */
static void plot_figure(struct sim *s)
{
    struct sim_plot *p = &s->plot;
    uint32_t members = s->model.group.members;
    uint8_t leader = plot_find_primary(s);
    const struct vr_replica *first = plot_core(s, p->primary), *second = plot_core(s, p->second);
    switch (p->step) {
    case 0:
        if (!plot_all_well(s, leader))
            return;
        p->primary = p->second = leader;
        p->view = plot_core(s, leader)->view;
        plot_part(s, BIT(leader));
        plot_serve_only(s, BIT(leader));
        plot_next(s, 60 * NS_PER_MS);
        return;
    case 1:
        if (!first || first->op <= first->commit_max)
            return;
        p->op = first->commit_max + 1;
        plot_serve_only(s, 0);
        plot_next(s, NS_PER_S);
        return;
    case 2: /* a view has just begun: nobody else is to hear of it */
        if (leader == VR_NODES_MAX || leader == p->primary)
            return;
        p->second = leader;
        p->third = plot_choose(s, members & ~(BIT(p->primary) | BIT(leader)));
        sim_lose(s, leader, p->third);
        plot_part(s, BIT(leader));
        plot_serve_only(s, BIT(leader));
        plot_next(s, 100 * NS_PER_MS);
        return;
    case 3:
        if (!second || second->op < p->op)
            return;
        plot_serve_only(s, 0);
        plot_next(s, 2 * NS_PER_S);
        return;
    case 4:
        figure_without_the_second(s, leader, first);
        return;
    case 5: /* the second and the third choose between their logs */
        if (leader == VR_NODES_MAX || leader == p->primary || plot_core(s, leader)->view <= p->view)
            return;
        plot_serve_only(s, members);
        plot_next(s, NS_PER_S);
        return;
    default:
        if (plot_waited(s, 100 * NS_PER_MS))
            plot_finish(s);
    }
}

/* A primary alone makes entries that nobody else gets; the others begin a view and commit fewer.
 * Then one of those is left with the first, whose log is longer, and older. */
void plot_long(struct sim *s)
{
    struct sim_plot *p = &s->plot;
    if (p->runs % 2) { /* the other one of two that are much alike */
        plot_figure(s);
        return;
    }
    uint32_t members = s->model.group.members;
    uint8_t leader = plot_find_primary(s);
    const struct vr_replica *first = plot_core(s, p->primary);
    switch (p->step) {
    case 0:
        if (!plot_all_well(s, leader))
            return;
        p->primary = leader;
        p->view = plot_core(s, leader)->view;
        plot_part(s, BIT(leader));
        plot_serve_only(s, BIT(leader));
        plot_next(s, 60 * NS_PER_MS);
        return;
    case 1:
        if (!first || first->op < first->commit_max + (s->config.pipeline > 1 ? 2 : 1))
            return;
        plot_serve_only(s, 0);
        plot_next(s, NS_PER_S);
        return;
    case 2: /* the others begin a view, and one operation is enough */
        if (leader == VR_NODES_MAX || leader == p->primary)
            return;
        p->second = leader;
        p->third = plot_choose(s, members & ~(BIT(p->primary) | BIT(leader)));
        p->op = plot_core(s, leader)->commit;
        plot_serve_only(s, BIT(leader));
        plot_next(s, 200 * NS_PER_MS);
        return;
    case 3:
        if (plot_core(s, p->second)->commit == p->op)
            return;
        plot_part(s, BIT(p->second));
        plot_serve_only(s, 0);
        plot_next(s, NS_PER_S);
        return;
    default: /* now those two are on their own */
        if (p->step == 4 && leader != VR_NODES_MAX && leader != p->second) {
            plot_serve_only(s, members);
            plot_next(s, NS_PER_S);
        }
        if (p->step == 5 && plot_waited(s, 100 * NS_PER_MS))
            plot_finish(s);
    }
}

/* A replica says that it leaves its view, crashes before that is on its disk, and then hears only
 * the old primary, who knows nothing of it. */
void plot_promise(struct sim *s)
{
    struct sim_plot *p = &s->plot;
    uint32_t members = s->model.group.members;
    uint8_t leader = plot_find_primary(s);
    struct sim_replica *second = &s->replicas[p->second];
    switch (p->step) {
    case 0:
        if (!plot_all_well(s, leader) || __builtin_popcount(members) != 3)
            return;
        p->primary = leader;
        p->third = vr_primary(plot_core(s, leader), plot_core(s, leader)->view + 1);
        p->second = plot_choose(s, members & ~(BIT(leader) | BIT(p->third)));
        s->replicas[p->second].slow_ns[SIM_LANE_SUPERBLOCK] = 30 * NS_PER_MS;
        plot_part(s, BIT(leader));
        plot_serve_only(s, BIT(leader));
        plot_next(s, 300 * NS_PER_MS);
        return;
    case 1:
        if (second->up && second->core->view > second->core->durable.view)
            plot_next(s, 100 * NS_PER_MS);
        return;
    case 2:
        if (!plot_waited(s, 2 * NS_PER_MS + s->delay_ns))
            return;
        second->slow_ns[SIM_LANE_SUPERBLOCK] = 0;
        plot_restart(s, p->second);
        plot_part(s, BIT(p->third));
        plot_serve_only(s, members);
        s->result->count[SIM_PROMISES_TESTED]++;
        plot_next(s, NS_PER_S);
        return;
    case 3:
        if (plot_waited(s, 60 * NS_PER_MS)) {
            plot_mend_all(s);
            plot_next(s, NS_PER_S);
        }
        return;
    default:
        if (plot_waited(s, 300 * NS_PER_MS))
            plot_finish(s);
    }
}

/* A replica leaves the group, is given an empty disk, and meets one who has not heard of it. */
void plot_rejoin(struct sim *s)
{
    struct sim_plot *p = &s->plot;
    uint32_t members = s->model.group.members, spare = 0;
    uint8_t leader = plot_find_primary(s);
    struct sim_replica *second = &s->replicas[p->second];
    switch (p->step) {
    case 0:
        for (uint8_t i = 0; i < s->node_count; i++)
            spare |= !plot_member(s, i) && !s->replicas[i].bad_disk ? BIT(i) : 0;
        if (!plot_all_well(s, leader) || __builtin_popcount(members) != 3 || !spare ||
            s->replicas[leader].bad_disk || vr_epoch_of(s->model.group.first_view) == 0)
            return;
        p->primary = leader;
        p->second = plot_choose(s, members & ~BIT(leader));
        p->third = plot_choose(s, members & ~(BIT(leader) | BIT(p->second)));
        while (__builtin_popcount(spare) > 4)
            spare &= ~BIT(plot_choose(s, spare));
        p->wish = BIT(leader) | spare;
        plot_part(s, BIT(p->third));
        plot_next(s, NS_PER_S);
        return;
    case 1:
        if (!second->up || second->core->state != VR_RETIRED || !vr_may_leave(second->core))
            return;
        p->wish = 0;
        sim_replica_renew(s, p->second);
        plot_part(s, BIT(p->second) | BIT(p->third));
        plot_next(s, 2 * NS_PER_S);
        return;
    default:
        if (plot_waited(s, 800 * NS_PER_MS))
            plot_finish(s);
    }
}

/* Two replicas come into the group, and all who have its log are out of reach before they have it.
 */
void plot_join(struct sim *s)
{
    struct sim_plot *p = &s->plot;
    uint32_t members = s->model.group.members, spare = 0;
    uint8_t leader = plot_find_primary(s);
    switch (p->step) {
    case 0:
        for (uint8_t i = 0; i < s->node_count; i++)
            spare |= !plot_member(s, i) && !s->replicas[i].bad_disk ? BIT(i) : 0;
        if (!plot_all_well(s, leader) || __builtin_popcount(spare) < 2 ||
            s->replicas[leader].bad_disk)
            return;
        p->primary = leader;
        p->second = plot_choose(s, spare);
        p->third = plot_choose(s, spare & ~BIT(p->second));
        p->view = s->model.group.first_view;
        p->wish = BIT(leader) | BIT(p->second) | BIT(p->third);
        plot_next(s, NS_PER_S);
        return;
    case 1: {
        if (members != p->wish)
            return;
        p->wish = 0;
        const struct vr_replica *a = plot_core(s, p->second), *b = plot_core(s, p->third);
        if (!a || !b || !a->install.active || !b->install.active ||
            vr_epoch_of(a->log_view) == vr_epoch_of(a->view) ||
            vr_epoch_of(b->log_view) == vr_epoch_of(b->view)) {
            p->wish = members; /* asked again, it changes nothing */
            return;
        }
        plot_part(s, BIT(p->second) | BIT(p->third));
        sim_lose(s, VR_TO_CLIENT, p->second);
        sim_lose(s, VR_TO_CLIENT, p->third);
        plot_next(s, NS_PER_S);
        return;
    }
    default:
        if (plot_waited(s, 500 * NS_PER_MS))
            plot_finish(s);
    }
}
