/* SPDX-License-Identifier: MIT */
/* What goes wrong, and when. */
#include "vr/sim/internal.h"

static uint32_t faulty_limit(const struct sim *s)
{
    return ((uint32_t)__builtin_popcount(s->model.group.members) - 1) / 2;
}

void sim_faults_begin(struct sim *s)
{
    unsigned nature = (unsigned)sim_below(s, 4);
    s->loss = nature == 0 ? 0 : (unsigned)sim_below(s, nature == 3 ? 300 : 80);
    s->duplicate = (unsigned)sim_below(s, 200);
    s->late = (unsigned)sim_below(s, 30);
    s->delay_ns = 100 * NS_PER_US + sim_below(s, 2 * NS_PER_MS);
    s->danger = sim_chance(s, 700) ? (unsigned)sim_below(s, 200) : 0;
    s->crash_in_write = sim_chance(s, 300) ? (unsigned)sim_below(s, 6) : 0;
    s->replay = (unsigned)sim_below(s, 700);
    static const uint64_t calm[] = {1, 2, 4, 6};
    s->calm = calm[sim_below(s, 4)];
    bool slow = sim_chance(s, 250);
    for (uint8_t i = 0; i < s->node_count; i++)
        s->replicas[i].disk_slow_ns = slow ? sim_below(s, 8 * NS_PER_MS) : 0;
    uint32_t bad = sim_chance(s, 600) ? faulty_limit(s) : 0;
    while (bad > 0) {
        struct sim_replica *r = &s->replicas[sim_below(s, s->config.replica_count)];
        bad -= !r->bad_disk;
        r->bad_disk = true;
    }
    sim_push(s, (struct sim_event){.at_ns = s->now_ns + 5 * NS_PER_MS, .kind = SIM_FAULT});
}

static void heal_links(struct sim *s)
{
    memset(s->cut, 0, sizeof(s->cut));
    s->cut_count++;
}

void sim_mend(struct sim *s, uint32_t cut)
{
    if (s->healing || s->cut_count != cut)
        return;
    sim_trace(s, "network: all links are whole");
    heal_links(s);
}

/* Mostly just long enough for the others to go on without who is cut off: a longer time without
 * service shows nothing new. */
static void mend_later(struct sim *s)
{
    static const uint64_t longest_ns[] = {60 * NS_PER_MS, 250 * NS_PER_MS, 250 * NS_PER_MS,
                                          500 * NS_PER_MS, 2 * NS_PER_S};
    uint64_t wait_ns = sim_below(s, longest_ns[sim_below(s, 5)]);
    sim_push(s, (struct sim_event){
                    .at_ns = s->now_ns + wait_ns, .kind = SIM_MEND, .life = ++s->cut_count});
}

static void cut_links(struct sim *s)
{
    heal_links(s);
    uint8_t count = s->node_count;
    uint64_t side = sim_below(s, 1u << count);
    bool both = sim_chance(s, 500);
    for (unsigned a = 0; a < count; a++)
        for (unsigned b = 0; b < count; b++)
            if ((side >> a & 1) && !(side >> b & 1)) {
                s->cut[a][b] = true;
                s->cut[b][a] = both;
            }
    if (sim_chance(s, 200))
        s->cut[VR_NODES_MAX][sim_below(s, count)] = true;
    mend_later(s);
    s->result->count[both ? SIM_PARTITIONS : SIM_PARTITIONS_ONE_WAY]++;
    sim_trace(s, "network: side %lx is cut off%s", side, both ? "" : " in one direction");
}

/* In memory, what a crash takes is gone: more than f at a time would take the state with them. */
static bool may_crash(const struct sim *s)
{
    if (!s->config.in_memory)
        return true;
    uint32_t without = 0;
    for (uint8_t i = 0; i < s->node_count; i++) {
        const struct vr_replica *r = s->replicas[i].core;
        if (!(s->model.group.members >> i & 1))
            continue;
        /* Between two groups nobody can say what is left of either. */
        if (r && vr_epoch_of(r->durable.log_view) != vr_epoch_of(s->model.group.first_view))
            return false;
        without += !r || r->log_view != r->durable.log_view || r->state == VR_RECOVERING ||
                   r->state == VR_NEW || r->state == VR_RETIRED ||
                   (r->state == VR_VIEW_CHANGE && r->install.active);
    }
    return without < faulty_limit(s);
}

static void crash_one(struct sim *s, uint8_t index)
{
    struct sim_replica *r = &s->replicas[index];
    if (!r->up || !may_crash(s))
        return;
    sim_trace(s, "%u: crashes (view %lu op %lu commit %lu)", index, r->core->view, r->core->op,
              r->core->commit);
    sim_replica_crash(s, index);
    s->result->count[SIM_CRASHES]++;
    static const uint64_t longest_ns[] = {2 * NS_PER_MS, 50 * NS_PER_MS, 200 * NS_PER_MS, NS_PER_S};
    r->down_until_ns =
        s->now_ns + sim_below(s, r->back_at_once ? NS_PER_MS : longest_ns[sim_below(s, 4)]);
    sim_push(s, (struct sim_event){
                    .at_ns = r->down_until_ns, .kind = SIM_RESTART, .to = index, .life = r->life});
    if (!r->back_at_once && sim_chance(s, 300))
        sim_lose(s, index, VR_TO_CLIENT);
    r->back_at_once = false;
    while (r->bad_disk && sim_chance(s, 500))
        sim_disk_rot(s, index);
}

void sim_crash_planned(struct sim *s, uint8_t index)
{
    if (!s->healing && !s->plot.step)
        crash_one(s, index);
}

void sim_restart_planned(struct sim *s, uint8_t index)
{
    if (!s->replicas[index].up)
        sim_replica_start(s, index);
}

static void pause_one(struct sim *s, uint8_t index, uint64_t longest_ns)
{
    s->replicas[index].paused_until_ns = s->now_ns + sim_below(s, longest_ns);
    s->result->count[SIM_PAUSES]++;
    sim_trace(s, "%u: pauses", index);
}

static void isolate(struct sim *s, uint8_t index)
{
    uint64_t side = sim_chance(s, 500) ? UINT64_MAX : sim_random(s);
    bool to = sim_chance(s, 700), from = !to || sim_chance(s, 700);
    for (uint8_t i = 0; i < s->node_count; i++) {
        s->cut[i][index] = to && (side >> i & 1);
        s->cut[index][i] = from && (side >> i & 1);
    }
    mend_later(s);
    s->result->count[to && from ? SIM_PARTITIONS : SIM_PARTITIONS_ONE_WAY]++;
    sim_trace(s, "network: %u is cut off%s", index, to && from ? "" : " in one direction");
}

static void plan_crash(struct sim *s, uint8_t index)
{
    sim_push(s, (struct sim_event){.at_ns = s->now_ns + sim_below(s, 2 * NS_PER_MS),
                                   .kind = SIM_CRASH,
                                   .to = index,
                                   .life = s->replicas[index].life});
}

/* A replica that has just promised to leave its view forgets it if it can: it crashes at once, is
 * back at once, and hears only the old primary, who has heard nothing. */
static void test_promise(struct sim *s, uint8_t index)
{
    struct sim_replica *r = &s->replicas[index];
    uint8_t old = vr_primary(r->core, r->core->durable.view);
    uint8_t next = vr_primary(r->core, r->core->view);
    if (r->core->state != VR_VIEW_CHANGE || old >= s->node_count || old == next || index == old ||
        index == next)
        return;
    for (uint8_t i = 0; i < s->node_count; i++)
        s->cut[i][old] = s->cut[old][i] = i != index;
    s->cut[next][index] = true;
    s->cut[index][next] = s->cut[index][old] = s->cut[old][index] = false;
    s->replicas[old].paused_until_ns = 0;
    r->back_at_once = true;
    mend_later(s);
    s->result->count[SIM_PROMISES_TESTED]++;
    sim_lose(s, VR_TO_CLIENT, old);
    sim_trace(s, "network: %u hears only %u, and crashes", index, old);
    sim_push(s, (struct sim_event){.at_ns = s->now_ns + sim_below(s, 300 * NS_PER_US),
                                   .kind = SIM_CRASH,
                                   .to = index,
                                   .life = r->life});
}

void sim_source_lost(struct sim *s, uint8_t index)
{
    if (s->healing || s->plot.step)
        return;
    sim_lose(s, index, VR_TO_CLIENT);
    if (sim_chance(s, 500))
        plan_crash(s, index);
    else
        isolate(s, index);
}

void sim_danger(struct sim *s, uint8_t index)
{
    const struct vr_replica *r = s->replicas[index].core;
    uint8_t primary = vr_primary(r, r->view);
    if (primary >= s->node_count)
        primary = index;
    uint64_t what = sim_below(s, 13);
    if (what >= 10) {
        test_promise(s, index);
    } else if (what < 3) {
        plan_crash(s, index);
    } else if (what < 5) {
        plan_crash(s, primary);
    } else if (what < 7) {
        isolate(s, sim_chance(s, 500) ? primary : (uint8_t)sim_below(s, s->node_count));
    } else if (what < 9) {
        pause_one(s, primary, 300 * NS_PER_MS);
    } else {
        sim_lose(s, index, VR_TO_CLIENT);
    }
}

static uint8_t victim(struct sim *s)
{
    if (sim_chance(s, 400))
        for (uint8_t i = 0; i < s->node_count; i++)
            if (s->replicas[i].up && vr_is_primary(s->replicas[i].core))
                return i;
    return (uint8_t)sim_below(s, s->node_count);
}

/* How many of a group may not be trusted to keep what they were given: bad disks, and old copies
 * that have not noticed yet what they are, and will have no vote then. */
static uint32_t unsafe(const struct sim *s, uint32_t members)
{
    uint32_t count = 0;
    for (uint8_t i = 0; i < s->node_count; i++)
        count += (members >> i & 1) && (s->replicas[i].bad_disk || s->replicas[i].restored);
    return count;
}

/* The wish for these members, by the disks that they have now. */
static struct vr_reconfiguration wish_for(const struct sim *s, uint32_t members)
{
    struct vr_reconfiguration wish = {.members = members,
                                      .epoch = (uint32_t)vr_epoch_of(s->model.group.first_view)};
    for (uint8_t i = 0; i < s->node_count; i++)
        if (members >> i & 1)
            wish.incarnations[i] = s->replicas[i].incarnation;
    return wish;
}

bool sim_next_group(struct sim *s, struct vr_reconfiguration *ret_wish)
{
    uint32_t members = s->model.group.members;
    if (sim_lost_members(s) && (s->healing || !s->reconfigures || sim_chance(s, 700))) {
        *ret_wish = wish_for(s, members);
        return s->healing || sim_chance(s, 300);
    }
    if (s->healing || !s->reconfigures)
        return false;
    if (s->plot.step) {
        *ret_wish = wish_for(s, s->plot.wish);
        return s->plot.wish != 0;
    }
    uint64_t changes = sim_chance(s, 200) ? 1 + sim_below(s, s->node_count) : 1 + sim_below(s, 2);
    for (uint64_t i = 0; i < changes; i++)
        members ^= 1u << sim_below(s, s->node_count);
    *ret_wish = wish_for(s, members);
    ret_wish->renew = sim_chance(s, 100);
    uint32_t count = (uint32_t)__builtin_popcount(members);
    if (s->config.in_memory && !may_crash(s))
        return false;
    return count >= (s->config.in_memory ? 3 : 1 + (sim_chance(s, 900) ? 1 : 0)) &&
           count <= VR_REPLICAS_MAX && unsafe(s, members) <= (count - 1) / 2;
}

/* In memory: of three, one is behind, and the one that is not loses all it had while the primary is
 * out of reach.  What those two know together is not enough to go on with. */
static bool test_memory(struct sim *s)
{
    uint8_t primary = VR_NODES_MAX, ahead = VR_NODES_MAX, behind = VR_NODES_MAX;
    for (uint8_t i = 0; i < s->node_count; i++)
        if (s->replicas[i].up && vr_is_primary(s->replicas[i].core))
            primary = i;
    if (primary == VR_NODES_MAX || s->replicas[primary].core->member_count != 3)
        return false;
    const struct vr_replica *p = s->replicas[primary].core;
    for (uint8_t i = 0; i < s->node_count; i++) {
        const struct vr_replica *r = s->replicas[i].core;
        if (!(p->group.members >> i & 1) || i == primary || !r || r->view != p->view)
            continue;
        if (r->op < p->commit)
            behind = i;
        else if (r->state == VR_NORMAL)
            ahead = i;
    }
    if (ahead == VR_NODES_MAX || behind == VR_NODES_MAX)
        return false;
    heal_links(s);
    for (uint8_t i = 0; i < s->node_count; i++)
        s->cut[i][primary] = s->cut[primary][i] = true;
    s->replicas[behind].paused_until_ns = 0;
    s->replicas[ahead].back_at_once = true;
    sim_lose(s, VR_TO_CLIENT, behind);
    mend_later(s);
    s->result->count[SIM_MEMORIES_TESTED]++;
    sim_trace(s, "network: %u is cut off, %u is behind, and %u crashes", primary, behind, ahead);
    crash_one(s, ahead);
    return true;
}

static void misfortune(struct sim *s)
{
    if (s->config.in_memory && sim_chance(s, 300) && test_memory(s))
        return;
    uint64_t what = sim_below(s, 100);
    uint8_t index = victim(s);
    struct sim_replica *r = &s->replicas[index];
    if (what < 30) {
        crash_one(s, index);
    } else if (what < 34) {
        s->result->count[SIM_CRASHES_OF_ALL]++;
        for (uint8_t i = 0; i < s->node_count; i++)
            crash_one(s, i);
    } else if (what < 54) {
        cut_links(s);
    } else if (what < 74) {
        heal_links(s);
    } else if (what < 88) {
        pause_one(s, index, 500 * NS_PER_MS);
    } else if (what < 94) {
        r->disk_fails_until_ns = s->now_ns + sim_below(s, 300 * NS_PER_MS);
        s->result->count[SIM_FULL_DISKS]++;
        sim_trace(s, "%u: the disk is full", index);
    } else if (r->bad_disk) {
        sim_disk_rot(s, index);
    }
}

void sim_press(struct sim *s)
{
    uint64_t done = s->result->count[SIM_OPERATIONS] * (s->options.view_changes + 1);
    if (s->healing || s->plot.step || s->now_ns < s->press_ns ||
        done <= (s->result->count[SIM_VIEWS] + 1) * s->options.operations)
        return;
    s->press_ns = s->now_ns + 200 * NS_PER_MS;
    for (uint8_t i = 0; i < s->node_count; i++) {
        struct sim_replica *r = &s->replicas[i];
        if (!r->up || !vr_is_primary(r->core))
            continue;
        uint64_t what = sim_below(s, 3);
        if (what == 0)
            crash_one(s, i);
        else if (what == 1)
            isolate(s, i);
        else
            pause_one(s, i, 400 * NS_PER_MS);
    }
}

/* Whether a request for another group is under way: then nobody may become somebody else, or the
 * group would name a disk that nobody has. */
static bool group_wished(const struct sim *s)
{
    for (uint32_t i = 0; i < s->client_count; i++) {
        struct vr_request request;
        memcpy(&request, s->clients[i].request, sizeof(request));
        if (s->clients[i].waiting && request.opcode == VR_OP_RECONFIGURE)
            return true;
    }
    return false;
}

/* Who has left the group may be thrown away when it says so. */
static void renew_one(struct sim *s)
{
    uint8_t index = (uint8_t)sim_below(s, s->node_count);
    struct sim_replica *r = &s->replicas[index];
    if (r->up && vr_may_leave(r->core) && !(s->model.group.members >> index & 1) &&
        !group_wished(s))
        sim_replica_renew(s, index);
}

/* Whether the others can do without a member's disk: those that have not the log of this group yet,
 * or whose disks are bad, are none that they could rely on. */
static bool can_do_without(const struct sim *s, uint8_t index)
{
    uint64_t epoch = vr_epoch_of(s->model.group.first_view);
    uint32_t without = 1u << index | sim_lost_members(s);
    if (!(s->model.group.members >> index & 1) || !s->replicas[index].up || !s->model.entry_count ||
        group_wished(s) || (s->config.in_memory && !may_crash(s)))
        return false;
    for (uint8_t i = 0; i < s->node_count; i++) {
        const struct vr_replica *r = s->replicas[i].core;
        if (s->model.group.members >> i & 1 &&
            (!r || s->replicas[i].bad_disk || s->replicas[i].restored ||
             vr_epoch_of(r->durable.log_view) != epoch || r->durable.fresh || r->durable.uncertain))
            without |= 1u << i;
    }
    return (uint32_t)__builtin_popcount(without) <= faulty_limit(s);
}

/* Whether every other member has on its disk that this one was started since the copy was made. */
static bool others_know_better(const struct sim *s, uint8_t index)
{
    const struct sim_replica *r = &s->replicas[index];
    if (!r->copy.disk || r->copy.incarnation != s->model.group.incarnations[index])
        return false;
    for (uint8_t i = 0; i < s->node_count; i++)
        if (s->model.group.members >> i & 1 && i != index &&
            (!s->replicas[i].up ||
             s->replicas[i].core->durable.group.incarnations[index] != r->copy.incarnation ||
             s->replicas[i].core->durable.known_starts[index] <= r->copy.start_count))
            return false;
    return true;
}

/* A member's disk is lost and another formatted, or an old copy of it is brought back. */
static void lose_one(struct sim *s)
{
    uint8_t index = (uint8_t)sim_below(s, s->node_count);
    struct sim_replica *r = &s->replicas[index];
    if (r->up && r->core->durable.starts && sim_chance(s, 300)) {
        sim_disk_copy(s, index);
        return;
    }
    if (!can_do_without(s, index))
        return;
    if (sim_chance(s, 500)) {
        sim_replica_lose_disk(s, index);
    } else if (others_know_better(s, index)) {
        sim_trace(s, "%u: an old copy of its disk is restored", index);
        sim_replica_crash(s, index);
        sim_disk_restore(s, index);
        sim_replica_start(s, index);
    }
}

void sim_fault(struct sim *s)
{
    if (s->healing)
        return;
    if (s->reconfigures && !s->plot.step)
        renew_one(s);
    if (s->loses_disks && !s->plot.step && sim_chance(s, 200))
        lose_one(s);
    if (!s->plot.step && !sim_chance(s, 400))
        misfortune(s);
    uint64_t wait_ns = sim_chance(s, 150) ? 800 * NS_PER_MS : s->calm * 60 * NS_PER_MS;
    sim_push(s, (struct sim_event){.at_ns = s->now_ns + 2 * NS_PER_MS + sim_below(s, wait_ns),
                                   .kind = SIM_FAULT});
}

void sim_heal(struct sim *s)
{
    sim_trace(s, "all faults end");
    s->healing = true;
    s->loss = s->duplicate = s->corrupt = s->late = 0;
    s->plot.step = 0;
    heal_links(s);
    for (uint8_t i = 0; i < s->node_count; i++) {
        s->replicas[i].paused_until_ns = 0;
        s->replicas[i].disk_fails_until_ns = 0;
        memset(s->replicas[i].slow_ns, 0, sizeof(s->replicas[i].slow_ns));
        if (!s->replicas[i].up)
            sim_replica_start(s, i);
    }
}
