/* SPDX-License-Identifier: MIT */
#include "vr/core/packet.h"
#include "base/memory.h"

#include <string.h>

size_t vr_message_bytes_max(const struct vr_config *config)
{
    size_t heads = sizeof(struct vr_view_head) + VR_HEADS_MAX * sizeof(struct vr_entry);
    size_t prepare = sizeof(struct vr_entry) + config->batch_bytes;
    size_t chunk = sizeof(struct vr_state_head) + 4096;
    size_t most = heads > prepare ? heads : prepare;
    return sizeof(struct vr_header) + (most > chunk ? most : chunk);
}

void vr_packets_init(struct vr_packets *p, const struct vr_config *config,
                     const struct vr_keys *keys, size_t datagram_bytes, uint64_t first_fragment)
{
    *p = (struct vr_packets){.keys = {*keys},
                             .key_sets = 1,
                             .cluster = config->cluster,
                             .replica = config->index,
                             .datagram_bytes = datagram_bytes,
                             .next_fragment = first_fragment};
    p->message_bytes = vr_message_bytes_max(config);
    vr_reassembly_init(&p->reassembly, p->message_bytes, datagram_bytes - sizeof(struct vr_header));
    p->whole = memory_alloc(p->message_bytes);
    p->piece = memory_alloc(datagram_bytes);
}

void vr_packets_accept(struct vr_packets *p, const struct vr_keys *keys)
{
    p->keys[1] = *keys;
    p->key_sets = 2;
}

void vr_packets_encrypt(struct vr_packets *p, const struct vr_cipher *cipher)
{
    p->cipher = cipher;
    p->hidden = memory_alloc(p->datagram_bytes);
    p->opened = memory_alloc(p->datagram_bytes);
    p->datagram_bytes -= VR_CIPHER_BYTES;
    vr_reassembly_done(&p->reassembly);
    vr_reassembly_init(&p->reassembly, p->message_bytes,
                       p->datagram_bytes - sizeof(struct vr_header));
}

void vr_packets_done(struct vr_packets *p)
{
    free(p->hidden);
    free(p->opened);
    vr_reassembly_done(&p->reassembly);
    free(p->whole);
    free(p->piece);
}

static bool is_client(const struct vr_packets *p)
{
    return p->replica == VR_TO_CLIENT;
}

/* Whether a packet that a replica receives is a client's. */
static bool of_client(const struct vr_header *h)
{
    switch (h->type) {
    case VR_REQUEST:
    case VR_STATUS:
        return true;
    case VR_GET_STATE:
    case VR_FRAGMENT:
        return h->replica == VR_TO_CLIENT;
    default:
        return false;
    }
}

bool vr_role_allows(enum vr_role role, enum vr_type type, uint32_t opcode)
{
    if (type == VR_STATUS)
        return true;
    if (type == VR_GET_STATE)
        return role == VR_ROLE_ADMIN;
    switch (opcode) {
    case VR_OP_NULL:
    case VR_OP_REGISTER:
    case VR_OP_GET:
    case VR_OP_SCAN:
        return true;
    case VR_OP_RECONFIGURE:
        return role == VR_ROLE_ADMIN;
    default:
        return role <= VR_ROLE_WRITE;
    }
}

static bool is_allowed(const struct vr_header *h, const void *body)
{
    struct vr_request request = {0};
    if (h->type == VR_REQUEST)
        memcpy(&request, body, sizeof(request));
    return vr_role_allows(h->flags, h->type, request.opcode);
}

static void seal(const struct vr_packets *p, struct vr_seal_choice choice, bool with_client,
                 struct vr_header *h, const void *first, size_t first_size, const void *second,
                 size_t second_size)
{
    const struct vr_keys *keys = &p->keys[choice.set];
    if (with_client)
        h->flags = choice.role;
    vr_seal(h, with_client ? &keys->clients[choice.role] : &keys->replica, first, first_size,
            second, second_size);
}

static void send_sealed(struct vr_packets *p, const struct vr_message *m,
                        struct vr_seal_choice choice, bool with_client, const void *bytes,
                        size_t size, vr_send_datagram send, void *context)
{
    if (p->cipher) {
        unsigned slot = with_client ? choice.role : VR_ROLES;
        size = p->cipher->encrypt(p->cipher, choice.set, slot, bytes, size, p->hidden);
        bytes = p->hidden;
    }
    if (size)
        send(context, m->to, m->header.client, bytes, size);
}

static void send_fragments(struct vr_packets *p, const struct vr_message *m, size_t size,
                           struct vr_seal_choice choice, bool with_client, vr_send_datagram send,
                           void *context)
{
    size_t piece_bytes = p->datagram_bytes - sizeof(struct vr_header);
    uint64_t id = p->next_fragment++;
    uint32_t count = vr_fragment_count(size, piece_bytes);
    for (uint32_t i = 0; i < count; i++) {
        size_t offset, length;
        struct vr_header h = vr_fragment_header(id, size, piece_bytes, i, &offset, &length);
        h.cluster = p->cluster;
        h.replica = p->replica;
        seal(p, choice, with_client, &h, NULL, 0, p->whole + offset, length);
        memcpy(p->piece, &h, sizeof(h));
        memcpy(p->piece + sizeof(h), p->whole + offset, length);
        send_sealed(p, m, choice, with_client, p->piece, sizeof(h) + length, send, context);
    }
}

void vr_packets_send(struct vr_packets *p, const struct vr_message *m, struct vr_seal_choice to,
                     vr_send_datagram send, void *context)
{
    struct vr_header h = m->header;
    size_t size = sizeof(h) + m->first_size + m->second_size;
    bool with_client = is_client(p) || m->to == VR_TO_CLIENT;
    struct vr_seal_choice choice = is_client(p)  ? p->own
                                   : with_client ? to
                                                 : (struct vr_seal_choice){0};
    seal(p, choice, with_client, &h, m->first, m->first_size, m->second, m->second_size);
    memcpy(p->whole, &h, sizeof(h));
    if (m->first_size)
        memcpy(p->whole + sizeof(h), m->first, m->first_size);
    if (m->second_size)
        memcpy(p->whole + sizeof(h) + m->first_size, m->second, m->second_size);
    if (size <= p->datagram_bytes)
        send_sealed(p, m, choice, with_client, p->whole, size, send, context);
    else
        send_fragments(p, m, size, choice, with_client, send, context);
}

/* Opens a packet with the key that its header names; from tells which set it was. */
static enum vr_drop open_packet(struct vr_packets *p, const void *bytes, size_t size,
                                struct vr_header *ret_header)
{
    struct vr_header h = {0};
    enum vr_drop drop = VR_DROP_CHECKSUM;
    if (size >= sizeof(h))
        memcpy(&h, bytes, sizeof(h));
    bool with_client = is_client(p) || of_client(&h);
    uint8_t role = is_client(p) ? p->own.role : h.flags < VR_ROLES ? h.flags : 0;
    for (uint8_t set = 0; set < p->key_sets && drop == VR_DROP_CHECKSUM; set++) {
        const struct vr_keys *keys = &p->keys[set];
        drop = vr_open_packet(bytes, size, with_client ? &keys->clients[role] : &keys->replica,
                              p->cluster, ret_header);
        p->from = (struct vr_seal_choice){set, role};
    }
    if (drop == VR_DROP_NONE && with_client && h.flags != role)
        drop = VR_DROP_PERMISSION;
    return drop;
}

bool vr_packets_receive(struct vr_packets *p, const void *bytes, size_t size,
                        struct vr_header *ret_header, const void **ret_body)
{
    if (p->cipher) {
        size = size <= p->datagram_bytes + VR_CIPHER_BYTES
                   ? p->cipher->decrypt(p->cipher, bytes, size, p->opened)
                   : 0;
        bytes = p->opened;
        if (!size) {
            p->dropped[VR_DROP_CHECKSUM]++;
            return false;
        }
    }
    enum vr_drop drop = open_packet(p, bytes, size, ret_header);
    if (drop == VR_DROP_NONE && ret_header->type == VR_FRAGMENT) {
        const char *body = (const char *)bytes + sizeof(*ret_header);
        bytes = vr_reassembly_add(&p->reassembly, ret_header, body, &size, &drop);
        if (bytes)
            drop = open_packet(p, bytes, size, ret_header);
        if (!bytes && drop == VR_DROP_NONE)
            return false;
    }
    if (drop == VR_DROP_NONE) {
        *ret_body = (const char *)bytes + sizeof(*ret_header);
        if (ret_header->type == VR_FRAGMENT || !vr_body_valid(ret_header, *ret_body))
            drop = VR_DROP_BODY;
        else if (!is_client(p) && of_client(ret_header) && !is_allowed(ret_header, *ret_body))
            drop = VR_DROP_PERMISSION;
    }
    p->dropped[drop]++;
    return drop == VR_DROP_NONE;
}
