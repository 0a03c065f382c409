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

void vr_packets_init(struct vr_packets *p, const struct vr_config *config, struct vr_key key,
                     size_t datagram_bytes, uint64_t first_fragment)
{
    *p = (struct vr_packets){.key = key,
                             .cluster = config->cluster,
                             .replica = config->index,
                             .datagram_bytes = datagram_bytes,
                             .next_fragment = first_fragment};
    size_t most = vr_message_bytes_max(config);
    vr_reassembly_init(&p->reassembly, most, datagram_bytes - sizeof(struct vr_header));
    p->whole = memory_alloc(most);
    p->piece = memory_alloc(datagram_bytes);
}

void vr_packets_done(struct vr_packets *p)
{
    vr_reassembly_done(&p->reassembly);
    free(p->whole);
    free(p->piece);
}

static void send_fragments(struct vr_packets *p, const struct vr_message *m, size_t size,
                           vr_send_datagram send, void *context)
{
    size_t piece_bytes = p->datagram_bytes - sizeof(struct vr_header);
    uint64_t id = p->next_fragment++;
    uint32_t count = vr_fragment_count(size, piece_bytes);
    for (uint32_t i = 0; i < count; i++) {
        size_t offset, length;
        struct vr_header h = vr_fragment_header(id, size, piece_bytes, i, &offset, &length);
        h.cluster = p->cluster;
        h.replica = p->replica;
        vr_seal(&h, &p->key, NULL, 0, p->whole + offset, length);
        memcpy(p->piece, &h, sizeof(h));
        memcpy(p->piece + sizeof(h), p->whole + offset, length);
        send(context, m->to, m->header.client, p->piece, sizeof(h) + length);
    }
}

void vr_packets_send(struct vr_packets *p, const struct vr_message *m, vr_send_datagram send,
                     void *context)
{
    struct vr_header h = m->header;
    size_t size = sizeof(h) + m->first_size + m->second_size;
    vr_seal(&h, &p->key, m->first, m->first_size, m->second, m->second_size);
    memcpy(p->whole, &h, sizeof(h));
    if (m->first_size)
        memcpy(p->whole + sizeof(h), m->first, m->first_size);
    if (m->second_size)
        memcpy(p->whole + sizeof(h) + m->first_size, m->second, m->second_size);
    if (size <= p->datagram_bytes)
        send(context, m->to, m->header.client, p->whole, size);
    else
        send_fragments(p, m, size, send, context);
}

bool vr_packets_receive(struct vr_packets *p, const void *bytes, size_t size,
                        struct vr_header *ret_header, const void **ret_body)
{
    enum vr_drop drop = vr_open_packet(bytes, size, &p->key, p->cluster, ret_header);
    if (drop == VR_DROP_NONE && ret_header->type == VR_FRAGMENT) {
        const char *body = (const char *)bytes + sizeof(*ret_header);
        bytes = vr_reassembly_add(&p->reassembly, ret_header, body, &size, &drop);
        if (bytes)
            drop = vr_open_packet(bytes, size, &p->key, p->cluster, ret_header);
        if (!bytes && drop == VR_DROP_NONE)
            return false;
    }
    if (drop == VR_DROP_NONE) {
        *ret_body = (const char *)bytes + sizeof(*ret_header);
        if (ret_header->type == VR_FRAGMENT || !vr_body_valid(ret_header, *ret_body))
            drop = VR_DROP_BODY;
    }
    p->dropped[drop]++;
    return drop == VR_DROP_NONE;
}
