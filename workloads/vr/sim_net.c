/* SPDX-License-Identifier: MIT */
/* The simulated network. */
#include "base/memory.h"
#include "sim_internal.h"

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

void sim_send(struct sim *s, uint8_t from, uint8_t to, const void *bytes, size_t size)
{
    unsigned a = from == VR_TO_CLIENT ? VR_NODES_MAX : from;
    unsigned b = to == VR_TO_CLIENT ? VR_NODES_MAX : to;
    if (to != VR_TO_CLIENT && to >= s->node_count)
        return;
    s->result->count[SIM_PACKETS]++;
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
