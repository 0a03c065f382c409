/* SPDX-License-Identifier: MIT */
/*
 * Plots: faults in an order that chance would need years for.  Each knows a promise that a replica
 * gives, waits until somebody depends on it, and then arranges crashes and broken links so that a
 * promise which was not kept shows in the history.  A plot looks at replicas and breaks links and
 * machines as chance might; it knows nothing of planted bugs, and a correct cluster lives through
 * all of them.  While one is under way no other fault happens.
 */
#ifndef ASSAY_VR_SIM_PLOTS_H
#define ASSAY_VR_SIM_PLOTS_H

#include "vr/sim/internal.h"

#define BIT(index) (1u << (index))

static inline const struct vr_replica *plot_core(const struct sim *s, uint8_t index)
{
    return s->replicas[index].core;
}

static inline bool plot_member(const struct sim *s, uint8_t index)
{
    return s->model.group.members >> index & 1;
}

/* Since this step began. */
static inline bool plot_waited(const struct sim *s, uint64_t wait_ns)
{
    return s->now_ns - s->plot.since_ns > wait_ns;
}

/* Who leads the newest view; VR_NODES_MAX: nobody. */
uint8_t plot_find_primary(const struct sim *s);
/* Everybody is there, in one view, and not asleep. */
bool plot_all_well(const struct sim *s, uint8_t primary);
void plot_mend_all(struct sim *s);
/* Links between the two sides are broken, all others whole. */
void plot_part(struct sim *s, uint32_t side);
/* Clients reach these alone. */
void plot_serve_only(struct sim *s, uint32_t side);
void plot_next(struct sim *s, uint64_t limit_ns);
void plot_finish(struct sim *s);
uint8_t plot_choose(struct sim *s, uint32_t among);
/* Crashes and is back at once. */
void plot_restart(struct sim *s, uint8_t index);

/* Of views. */
void plot_acks(struct sim *s);
void plot_long(struct sim *s);
void plot_promise(struct sim *s);
/* Of groups. */
void plot_rejoin(struct sim *s);
void plot_join(struct sim *s);
/* Of disks. */
void plot_doubt(struct sim *s);
void plot_reuse(struct sim *s);
void plot_state(struct sim *s);
void plot_superblock(struct sim *s);
void plot_half(struct sim *s);

#endif
