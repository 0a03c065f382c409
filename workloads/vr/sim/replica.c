/* SPDX-License-Identifier: MIT */
/* A simulated host: its clock, its life and death, and what its core asks for. */
#include "base/memory.h"
#include "vr/sim/internal.h"

#include <stdio.h>

uint64_t sim_local_ns(const struct sim *s, const struct sim_replica *r)
{
    return r->clock_offset_ns + (uint64_t)((double)s->now_ns * r->clock_rate);
}

struct outgoing {
    struct sim *s;
    uint8_t from;
};

static void send_datagram(void *context, uint8_t to, uint64_t client, const void *bytes,
                          size_t size)
{
    struct outgoing *out = context;
    (void)client;
    sim_send(out->s, out->from, to, bytes, size);
}

static void trace_message(struct sim *s, uint8_t index, const struct vr_message *m)
{
    const struct vr_header *h = &m->header;
    char to[24];
    if (m->to == VR_TO_CLIENT)
        snprintf(to, sizeof(to), "client %lu", h->client);
    else
        snprintf(to, sizeof(to), "%u", m->to);
    sim_trace(s, "%u: %s to %s, view %lu.%lu op %lu commit %lu%s", index, vr_type_names[h->type],
              to, vr_epoch_of(h->view), vr_number_of(h->view), h->op, h->commit,
              h->flags ? " *" : "");
}

void sim_replica_turn_soon(struct sim *s, uint8_t index)
{
    struct sim_replica *r = &s->replicas[index];
    uint64_t local = sim_local_ns(s, r), due = vr_deadline_ns(r->core);
    uint64_t wait = due > local ? (uint64_t)((double)(due - local) / r->clock_rate) + 1 : 0;
    uint64_t at = s->now_ns + (wait < NS_PER_US ? NS_PER_US : wait);
    if (r->turn_at_ns > s->now_ns && r->turn_at_ns <= at)
        return;
    r->turn_at_ns = at;
    r->turn_order = s->order;
    sim_push(s, (struct sim_event){.at_ns = at, .kind = SIM_TURN, .to = index, .life = r->life});
}

static void act(struct sim *s, uint8_t index)
{
    struct sim_replica *r = &s->replicas[index];
    struct vr_update *u = &s->update;
    for (uint32_t i = 0; i < u->message_count; i++) {
        struct outgoing out = {s, index};
        if (s->lines)
            trace_message(s, index, &u->messages[i]);
        vr_packets_send(&r->packets, &u->messages[i], (struct vr_seal_choice){0}, send_datagram,
                        &out);
    }
    for (uint32_t i = 0; i < u->write_count; i++)
        sim_disk_submit(s, index, &u->writes[i]);
    u->message_count = u->write_count = 0;
    u->scratch_used = 0;
}

/* The moments after a change of state are the most dangerous ones to crash in. */
static void changed(struct sim *s, uint8_t index)
{
    static const char *const names[] = {"normal", "view change", "recovering", "retired"};
    struct sim_replica *r = &s->replicas[index];
    sim_trace(s, "%u: view %lu.%lu, %s (op %lu, commit %lu, group %x)", index,
              vr_epoch_of(r->core->view), vr_number_of(r->core->view), names[r->core->state],
              r->core->op, r->core->commit, r->core->group.members);
    const struct vr_replica *core = r->core;
    if (vr_is_primary(core) && core->view > s->newest_view) {
        s->newest_view = core->view;
        /* An epoch begins without votes: that is no view change. */
        s->result->count[SIM_VIEWS] += core->view != core->group.first_view;
    }
    if (!s->healing && !s->plot.step && sim_chance(s, s->danger))
        sim_danger(s, index);
}

/* An old copy of a disk must know that it is one before it has a voice, and nobody else may. */
static void check_identity(struct sim *s, uint8_t index)
{
    struct sim_replica *r = &s->replicas[index];
    if (r->core->incarnation != r->incarnation) {
        sim_trace(s, "%u: knows that it is an old copy", index);
        s->result->count[SIM_COPIES_NOTICED]++;
        if (!r->restored && !r->lost_tail)
            sim_fail(s, "replica %u takes its disk for an old copy, but it is not one", index);
        r->incarnation = r->core->incarnation;
    }
    if (!r->restored)
        return;
    if (r->core->durable.incarnation != r->copy.incarnation)
        r->restored = false;
    /* In an epoch that began later it has promised nothing. */
    else if (r->core->hello.phase == VR_HELLO_DONE &&
             vr_epoch_of(r->core->view) <= r->restored_epoch)
        sim_fail(s, "replica %u has a vote, although its disk is an old copy", index);
}

void sim_replica_step(struct sim *s, uint8_t index, const struct vr_event *event)
{
    struct sim_replica *r = &s->replicas[index];
    struct vr_event now = *event, turn = {.kind = VR_EVENT_TURN};
    enum vr_state before = r->core->state;
    bool arriving = r->core->arriving_active;
    uint64_t view = r->core->view;
    now.now_ns = turn.now_ns = sim_local_ns(s, r);
    vr_step(r->core, &now, &s->update);
    act(s, index);
    /* A host looks at its queue again before it waits: sometimes there is more, sometimes not. */
    if (event->kind != VR_EVENT_TURN && sim_chance(s, s->turn)) {
        vr_step(r->core, &turn, &s->update);
        act(s, index);
    }
    check_identity(s, index);
    if (r->core->state != before || r->core->view != view)
        changed(s, index);
    if (!arriving && r->core->arriving_active && sim_chance(s, 3 * s->danger))
        sim_source_lost(s, r->core->arriving_from);
    sim_oracle_checkpoint(s, index);
    sim_replica_turn_soon(s, index);
}

static int read_disk(void *context, uint64_t offset, void *bytes, size_t size)
{
    struct sim_replica *r = context;
    if (offset + size > r->store.total_bytes)
        return -1;
    memcpy(bytes, r->disk + offset, size);
    return 0;
}

struct observer {
    struct sim *s;
    uint8_t index;
};

static void observe(void *context, const struct vr_entry *entry, const void *requests)
{
    struct observer *o = context;
    sim_oracle_executed(o->s, o->index, entry, requests);
}

void sim_replica_start(struct sim *s, uint8_t index)
{
    struct sim_replica *r = &s->replicas[index];
    struct vr_loaded loaded;
    struct error err = {0};
    if (vr_store_load(&r->store, read_disk, r, &loaded, &err)) {
        sim_fail(s, "replica %u cannot start: %s", index, err.message);
        return;
    }
    if (loaded.heads_stale)
        sim_disk_repair_heads(s, index);
    struct vr_config config = s->config;
    config.index = index;
    config.joins = r->joins;
    r->core = vr_replica_new(&config, &loaded.image, sim_random(s), sim_local_ns(s, r));
    r->incarnation = r->core->incarnation;
    struct observer *observer = memory_alloc(sizeof(*observer));
    *observer = (struct observer){s, index};
    r->core->observer = (struct vr_observer){observe, observer};
    sim_trace(s, "%u: starts, view %lu, log view %lu, op %lu (%u holes), checkpoint %lu%s", index,
              r->core->view, r->core->log_view, r->core->op, r->core->holes, r->core->newest.op,
              r->core->state == VR_RECOVERING ? ", uncertain" : "");
    s->result->count[SIM_RESTARTS] += r->life > 0;
    s->result->count[SIM_UNCERTAIN_STARTS] += r->core->state == VR_RECOVERING;
    vr_loaded_done(&loaded);
    struct vr_keys keys = vr_keys_same(s->key);
    vr_packets_init(&r->packets, &config, &keys, 1400, sim_random(s));
    r->up = true;
    sim_replay(s, index);
    r->turn_at_ns = 0;
    r->checkpoint_seen = 0;
    sim_replica_step(s, index, &(struct vr_event){.kind = VR_EVENT_TURN});
}

void sim_replica_renew(struct sim *s, uint8_t index)
{
    struct sim_replica *r = &s->replicas[index];
    s->result->count[SIM_WIPED]++;
    sim_trace(s, "%u: has left; its disk is wiped", index);
    sim_replica_crash(s, index);
    sim_disk_done_with(s, index);
    r->joins = true;
    sim_disk_format(s, index);
    sim_replica_start(s, index);
}

void sim_replica_lose_disk(struct sim *s, uint8_t index)
{
    struct sim_replica *r = &s->replicas[index];
    s->result->count[SIM_DISKS_LOST]++;
    sim_trace(s, "%u: its disk is lost, and another is formatted", index);
    sim_replica_crash(s, index);
    sim_disk_done_with(s, index);
    r->joins = index >= s->config.replica_count;
    sim_disk_format(s, index);
    sim_replica_start(s, index);
}

uint32_t sim_lost_members(const struct sim *s)
{
    uint32_t lost = 0;
    for (uint8_t i = 0; i < s->node_count; i++)
        if (s->model.group.members >> i & 1 &&
            s->model.group.incarnations[i] != s->replicas[i].incarnation)
            lost |= 1u << i;
    return lost;
}

void sim_replica_crash(struct sim *s, uint8_t index)
{
    struct sim_replica *r = &s->replicas[index];
    if (!r->up)
        return;
    s->result->count[SIM_STATES_TRANSFERRED] += r->core->counters.state_transfers;
    s->result->count[SIM_ENTRIES_REPAIRED] += r->core->counters.entries_repaired;
    free(r->core->observer.context);
    vr_replica_free(r->core);
    r->core = NULL;
    vr_packets_done(&r->packets);
    r->up = false;
    r->life++;
    sim_disk_crash(s, index);
}
