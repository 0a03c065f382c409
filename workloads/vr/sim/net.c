/* SPDX-License-Identifier: MIT */
/* The simulated network. */
#include "base/memory.h"
#include "vr/sim/internal.h"

static void carry(struct sim *s, uint8_t from, uint8_t to, const void *bytes, size_t size)
{
    uint64_t delay_ns = 20 * NS_PER_US + sim_below(s, s->delay_ns);
    if (sim_chance(s, s->late)) {
        delay_ns += sim_below(s, 400 * NS_PER_MS);
        s->result->count[SIM_LATE]++;
    }
    struct sim_event event = {.at_ns = s->now_ns + delay_ns,
                              .kind = to == VR_TO_CLIENT ? SIM_CLIENT_PACKET : SIM_PACKET,
                              .to = to,
                              .from = from,
                              .size = (uint32_t)size,
                              .bytes = memory_alloc(size)};
    memcpy(event.bytes, bytes, size);
    if (sim_chance(s, s->corrupt)) {
        event.bytes[sim_below(s, size)] ^= (unsigned char)(1u << sim_below(s, 8));
        s->result->count[SIM_CORRUPTED]++;
    }
    sim_push(s, event);
}

static void forget(struct sim_old *old)
{
    for (unsigned i = 0; i < old->count; i++)
        free(old->bytes[i]);
    *old = (struct sim_old){0};
}

static void remember_piece(struct sim_old *old, const void *bytes, size_t size)
{
    if (old->count == SIM_OLD_PIECES)
        return;
    old->size[old->count] = (uint32_t)size;
    old->bytes[old->count] = memory_alloc(size);
    memcpy(old->bytes[old->count++], bytes, size);
}

/* The network remembers some of what moves views about, and says it again when it hurts. */
static void remember(struct sim *s, uint8_t from, uint8_t to, const void *bytes, size_t size)
{
    struct sim_replica *r = &s->replicas[to];
    struct vr_header h;
    memcpy(&h, bytes, sizeof(h));
    uint8_t type = h.type;
    if (type == VR_FRAGMENT && h.view >> 32) { /* not the first: with that, or not at all */
        struct sim_old *last = &r->old[(r->old_next + SIM_OLD_PACKETS - 1) % SIM_OLD_PACKETS];
        if (last->count && last->from == from && last->fragment == h.op)
            remember_piece(last, bytes, size);
        return;
    }
    if (type == VR_FRAGMENT) /* begins with the header of the whole */
        type = ((const unsigned char *)bytes)[sizeof(h) + offsetof(struct vr_header, type)];
    bool telling = type == VR_START_VIEW || type == VR_DO_VIEW_CHANGE || type == VR_EPOCH ||
                   type == VR_PREPARE_OK || type == VR_STATE_CHUNK;
    if (!telling || !s->replay ||
        !sim_chance(s, type == VR_PREPARE_OK   ? 20
                       : type == VR_START_VIEW ? 800
                                               : 300))
        return;
    struct sim_old *old = &r->old[r->old_next++ % SIM_OLD_PACKETS];
    forget(old);
    *old = (struct sim_old){.from = from, .type = type};
    old->fragment = h.type == VR_FRAGMENT ? h.op : 0;
    remember_piece(old, bytes, size);
}

void sim_replay(struct sim *s, uint8_t to)
{
    struct sim_replica *r = &s->replicas[to];
    /* Who has lost its log might believe an old word of its primary, when that one is gone. */
    bool lost = r->core->state == VR_RECOVERING && s->replay;
    if (s->healing || !sim_chance(s, lost ? 900 : s->replay))
        return;
    for (unsigned i = 0; i < SIM_OLD_PACKETS && lost; i++)
        if (r->old[i].type == VR_START_VIEW && sim_chance(s, 200))
            sim_source_lost(s, r->old[i].from);
    for (unsigned i = 0; i < SIM_OLD_PACKETS; i++) {
        const struct sim_old *old = &r->old[i];
        if (!old->count || !sim_chance(s, lost && old->type == VR_START_VIEW ? 1000 : 500))
            continue;
        s->result->count[SIM_REPLAYED]++;
        for (unsigned j = 0; j < old->count; j++)
            carry(s, old->from, to, old->bytes[j], old->size[j]);
    }
}

void sim_forget_packets(struct sim *s, uint8_t to)
{
    for (unsigned i = 0; i < SIM_OLD_PACKETS; i++)
        forget(&s->replicas[to].old[i]);
}

void sim_lose(struct sim *s, uint8_t from, uint8_t to)
{
    uint64_t some = to == VR_TO_CLIENT ? sim_random(s) : 1ULL << to;
    for (size_t i = 0; i < s->heap_count; i++) {
        struct sim_event *e = &s->heap[i];
        if (e->kind != SIM_PACKET || (from != VR_TO_CLIENT && e->from != from) ||
            !(some >> e->to & 1))
            continue;
        e->size = 0; /* too short to be a packet */
        s->result->count[SIM_LOST]++;
    }
}

void sim_send(struct sim *s, uint8_t from, uint8_t to, const void *bytes, size_t size)
{
    unsigned a = from == VR_TO_CLIENT ? VR_NODES_MAX : from;
    unsigned b = to == VR_TO_CLIENT ? VR_NODES_MAX : to;
    if (to != VR_TO_CLIENT && to >= s->node_count)
        return;
    s->result->count[SIM_PACKETS]++;
    if (from != VR_TO_CLIENT && to != VR_TO_CLIENT)
        remember(s, from, to, bytes, size);
    if (s->cut[a][b] || sim_chance(s, s->loss)) {
        s->result->count[SIM_LOST]++;
        return;
    }
    carry(s, from, to, bytes, size);
    if (sim_chance(s, s->duplicate)) {
        s->result->count[SIM_DOUBLED]++;
        carry(s, from, to, bytes, size);
    }
}
