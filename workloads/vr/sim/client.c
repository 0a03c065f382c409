/* SPDX-License-Identifier: MIT */
/* Simulated clients: one request at a time each, sent again until it is answered. */
#include "vr/sim/internal.h"

#include <stdio.h>

static void send_request(struct sim *s, struct sim_client *c, bool everywhere)
{
    struct vr_request request;
    memcpy(&request, c->request, sizeof(request));
    struct vr_header h = {.type = VR_REQUEST,
                          .replica = VR_TO_CLIENT,
                          .cluster = s->config.cluster,
                          .op = c->session,
                          .number = request.number,
                          .client = c->id};
    unsigned char packet[sizeof(h) + sizeof(c->request)];
    vr_seal(&h, &s->key, c->request, c->size, NULL, 0);
    memcpy(packet, &h, sizeof(h));
    memcpy(packet + sizeof(h), c->request, c->size);
    for (uint8_t to = 0; to < s->node_count; to++)
        if (to == c->primary || (everywhere && sim_chance(s, 500)))
            sim_send(s, VR_TO_CLIENT, to, packet, sizeof(h) + c->size);
    c->sent_ns = s->now_ns;
}

static void make_request(struct sim_client *c, uint32_t opcode, const void *data, uint32_t size)
{
    struct vr_request request = {c->id, c->session, c->number, opcode, size};
    c->size = (uint32_t)vr_request_bytes(size);
    memset(c->request + c->size - 8, 0, 8); /* the padding */
    memcpy(c->request, &request, sizeof(request));
    if (size)
        memcpy(c->request + sizeof(request), data, size);
    c->oversized = false;
}

static void begin_session(struct sim *s, struct sim_client *c)
{
    /* Mostly somebody else; sometimes the same client, whose old requests may still be about. */
    c->last_session = c->session;
    if (!c->id || sim_chance(s, 500)) {
        c->id = ++s->next_client_id;
        c->last_session = 0;
    }
    c->session = c->number = 0;
    c->registered = false;
    make_request(c, VR_OP_REGISTER, NULL, 0);
}

/* No entry can hold it: everybody must say so, and nobody may execute it. */
static void make_oversized(struct sim *s, struct sim_client *c)
{
    static const unsigned char data[sizeof(c->request)];
    uint32_t size = s->config.batch_bytes - (uint32_t)sizeof(struct vr_request) + 1;
    c->number++;
    make_request(c, VR_OP_NULL, data, size + (uint32_t)sim_below(s, 128));
    c->oversized = true;
}

static void next_operation(struct sim *s, struct sim_client *c)
{
    static const uint32_t opcodes[] = {VR_OP_GET, VR_OP_GET, VR_OP_PUT,    VR_OP_PUT,
                                       VR_OP_CAS, VR_OP_CAS, VR_OP_DELETE, VR_OP_SCAN};
    uint32_t opcode = opcodes[sim_below(s, 8)];
    struct vr_reconfiguration wish;
    if ((s->reconfigures || s->loses_disks || sim_lost_members(s)) &&
        sim_chance(s, s->plot.wish ? 300 : 15) && sim_next_group(s, &wish)) {
        c->number++;
        make_request(c, VR_OP_RECONFIGURE, &wish, sizeof(wish));
        sim_trace(s, "client %lu: wants group %x in epoch %u", c->id, wish.members, wish.epoch + 1);
        return;
    }
    if (sim_chance(s, 3)) {
        make_oversized(s, c);
        return;
    }
    unsigned char key = (unsigned char)('a' + sim_below(s, SIM_KEYS));
    char value[64] = "", expect[64] = "";
    unsigned char data[192];
    if (opcode == VR_OP_PUT || opcode == VR_OP_CAS) {
        int width = 1 + (int)sim_below(s, 60);
        /* In every other seed half of them have one size: then a value often takes the place of
         * another in a page, and only its bytes are kept. */
        width = s->same_sizes && width > 30 ? 45 : width;
        snprintf(value, sizeof(value), "%0*lu", width, s->value_counter++);
    }
    /* A guess that is sometimes right: the model's newest value. */
    if (opcode == VR_OP_CAS && s->model.keys[key - 'a'].there && !sim_chance(s, 200))
        snprintf(expect, sizeof(expect), "%.*s", (int)s->model.keys[key - 'a'].size,
                 s->model.keys[key - 'a'].value);
    c->number++;
    make_request(c, opcode, data,
                 vr_kv_encode(data, &key, 1, expect, strlen(expect), value, strlen(value)));
}

static void arm(struct sim *s, uint8_t index, uint64_t wait_ns)
{
    struct sim_client *c = &s->clients[index];
    c->due_ns = s->now_ns + wait_ns;
    sim_push(s, (struct sim_event){.at_ns = c->due_ns, .kind = SIM_CLIENT, .to = index});
}

void sim_clients_start(struct sim *s)
{
    for (uint8_t i = 0; i < s->client_count; i++) {
        begin_session(s, &s->clients[i]);
        s->clients[i].waiting = true;
        arm(s, i, sim_below(s, 10 * NS_PER_MS));
    }
}

static uint64_t patience(struct sim *s)
{
    return 30 * NS_PER_MS + sim_below(s, 60 * NS_PER_MS);
}

void sim_client_timer(struct sim *s, uint8_t index)
{
    struct sim_client *c = &s->clients[index];
    if (s->now_ns < c->due_ns)
        return; /* an older timer */
    bool again = c->waiting && c->sent_ns;
    if (!c->waiting) {
        if (s->stopped)
            return;
        next_operation(s, c);
        c->waiting = true;
        c->invoked_place = s->completed_place;
    }
    send_request(s, c, again);
    arm(s, index, patience(s));
}

static void answered(struct sim *s, uint8_t index, const struct vr_header *h, const void *body)
{
    struct sim_client *c = &s->clients[index];
    sim_oracle_answered(s, c, h, body);
    if (!c->registered) {
        memcpy(&c->session, (const char *)body + sizeof(struct vr_reply), sizeof(c->session));
        c->registered = true;
    } else {
        s->result->count[SIM_OPERATIONS]++;
        sim_press(s);
    }
    c->primary = h->replica;
    c->waiting = false;
    c->sent_ns = 0;
    arm(s, index, sim_chance(s, 800) ? 1 : sim_below(s, 20 * NS_PER_MS));
}

void sim_client_packet(struct sim *s, const void *bytes, size_t size)
{
    struct vr_header h;
    const char *body = (const char *)bytes + sizeof(h);
    if (vr_open_packet(bytes, size, &s->key, s->config.cluster, &h) != VR_DROP_NONE ||
        !vr_body_valid(&h, body))
        return;
    for (uint8_t i = 0; i < s->client_count; i++) {
        struct sim_client *c = &s->clients[i];
        if (c->id != h.client || !c->waiting)
            continue;
        struct vr_reply reply = {0};
        if (h.type == VR_REPLY)
            memcpy(&reply, body, sizeof(reply));
        if (h.type == VR_REPLY && h.number == c->number &&
            (c->registered ? reply.session == c->session : reply.session > c->last_session))
            answered(s, i, &h, body);
        /* Its operation may or may not have been executed: nobody will ever say. */
        else if (h.type == VR_EVICTION && c->registered && h.op == c->session) {
            s->result->count[SIM_EVICTIONS]++;
            begin_session(s, c);
            arm(s, i, sim_below(s, 5 * NS_PER_MS));
            c->sent_ns = 0;
        }
    }
}
