/* SPDX-License-Identifier: MIT */
#include "vr/core/wire.h"
#include "vr/core/planted.h"

#include <string.h>

const char *const vr_drop_names[VR_DROP_COUNT] = {
    "none",     "short",  "magic", "version", "type",     "cluster",  "size",
    "checksum", "sender", "body",  "stale",   "fragment", "replayed", "permission"};

const char *const vr_type_names[VR_TYPE_END] = {
    "?",        "request", "reply",        "prepare",     "prepare_ok", "commit",      "svc",
    "dvc",      "sv",      "get_view",     "get_prepare", "get_state",  "state_chunk", "eviction",
    "fragment", "status",  "status_reply", "epoch",       "found",      "hello"};

uint64_t vr_entry_checksum(const struct vr_entry *entry)
{
    return vr_hash(entry, offsetof(struct vr_entry, checksum));
}

bool vr_entry_valid(const struct vr_entry *entry, const void *body)
{
    if (entry->op == 0 || entry->checksum != vr_entry_checksum(entry))
        return false;
    return !body || entry->body_checksum == vr_hash(body, entry->size);
}

static uint64_t header_checksum(const struct vr_header *header, const struct vr_key *key)
{
    struct vr_header copy = *header;
    copy.checksum = 0;
    return vr_hash_keyed(key, &copy, sizeof(copy));
}

static uint64_t body_sum(const struct vr_key *key, const void *first, size_t first_size,
                         const void *second, size_t second_size)
{
    struct vr_key own = vr_key_of_bodies(key);
    uint64_t sum = first_size ? vr_hash_keyed(&own, first, first_size) : 0;
    return second_size ? sum * 3 + vr_hash_keyed(&own, second, second_size) : sum;
}

void vr_seal(struct vr_header *header, const struct vr_key *key, const void *first,
             size_t first_size, const void *second, size_t second_size)
{
    header->magic = VR_MAGIC;
    header->version = VR_VERSION;
    header->size = (uint32_t)(first_size + second_size);
    header->body_checksum = body_sum(key, first, first_size, second, second_size);
    header->checksum = header_checksum(header, key);
}

/* The pieces of a body are summed apart, at a boundary that the type gives. */
static size_t first_piece(const struct vr_header *header)
{
    switch (header->type) {
    case VR_PREPARE:
        return sizeof(struct vr_entry);
    case VR_DO_VIEW_CHANGE:
    case VR_START_VIEW:
        return sizeof(struct vr_view_head);
    case VR_STATE_CHUNK:
        return sizeof(struct vr_state_head);
    case VR_REPLY:
        return sizeof(struct vr_reply);
    case VR_FRAGMENT:
        return 0;
    default:
        return header->size;
    }
}

static uint64_t body_checksum(const struct vr_header *header, const struct vr_key *key,
                              const unsigned char *body)
{
    size_t first = first_piece(header), size = header->size;
    if (first > size)
        first = size;
    return body_sum(key, body, first, body + first, size - first);
}

enum vr_drop vr_open_packet(const void *packet, size_t size, const struct vr_key *key,
                            uint32_t cluster, struct vr_header *ret_header)
{
    struct vr_header header;
    if (size < sizeof(header))
        return VR_DROP_SHORT;
    memcpy(&header, packet, sizeof(header));
    if (header.magic != VR_MAGIC)
        return VR_DROP_MAGIC;
    if (header.version != VR_VERSION)
        return VR_DROP_VERSION;
    if (header.type == 0 || header.type >= VR_TYPE_END)
        return VR_DROP_TYPE;
    if (header.cluster != cluster)
        return VR_DROP_CLUSTER;
    if (header.size != size - sizeof(header))
        return VR_DROP_SIZE;
    if (header.checksum != header_checksum(&header, key))
        return VR_DROP_CHECKSUM;
    const unsigned char *body = (const unsigned char *)packet + sizeof(header);
    if (header.body_checksum != body_checksum(&header, key, body) && !PLANTED(CHECKSUM_UNCHECKED))
        return VR_DROP_CHECKSUM;
    *ret_header = header;
    return VR_DROP_NONE;
}

bool vr_batch_valid(const void *body, uint32_t size, uint32_t count)
{
    size_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct vr_request request;
        if (size - at < sizeof(request))
            return false;
        memcpy(&request, (const char *)body + at, sizeof(request));
        if (request.size > size || vr_request_bytes(request.size) > size - at)
            return false;
        at += vr_request_bytes(request.size);
    }
    return at == size;
}

static bool prepare_valid(const struct vr_header *header, const void *body)
{
    struct vr_entry entry;
    if (header->size < sizeof(entry))
        return false;
    memcpy(&entry, body, sizeof(entry));
    const char *requests = (const char *)body + sizeof(entry);
    return entry.op == header->op && entry.size == header->size - sizeof(entry) &&
           entry.view <= header->view && vr_entry_valid(&entry, requests) &&
           vr_batch_valid(requests, entry.size, entry.count);
}

static bool heads_valid(const struct vr_header *header, const void *body)
{
    struct vr_view_head head;
    if (header->size < sizeof(head))
        return false;
    memcpy(&head, body, sizeof(head));
    if (header->size - sizeof(head) != (uint64_t)head.count * sizeof(struct vr_entry) ||
        head.log_view > header->view || head.count > header->op)
        return false;
    for (uint32_t i = 0; i < head.count; i++) {
        struct vr_entry entry;
        memcpy(&entry, (const char *)body + sizeof(head) + i * sizeof(entry), sizeof(entry));
        if (entry.op != header->op - head.count + 1 + i)
            return false;
    }
    return true;
}

static bool epoch_valid(const struct vr_header *header, const void *body)
{
    struct vr_group group;
    if (header->size != sizeof(group))
        return false;
    memcpy(&group, body, sizeof(group));
    return group.op <= VR_OP_MAX;
}

/* Numbers of operations are added to: none is so large that it comes round.  And nobody has
 * committed more than there is: who believed that would run what is not committed, or wait for it
 * for ever. */
static bool op_valid(const struct vr_header *header)
{
    switch (header->type) {
    case VR_COMMIT:
    case VR_DO_VIEW_CHANGE:
    case VR_START_VIEW:
        return header->op <= VR_OP_MAX && header->commit <= header->op;
    case VR_PREPARE: /* one that is sent again is older than what is committed */
        return header->op <= VR_OP_MAX && header->commit <= VR_OP_MAX;
    case VR_PREPARE_OK:
    case VR_GET_PREPARE:
    case VR_GET_STATE:
    case VR_STATE_CHUNK:
    case VR_EPOCH:
        return header->op <= VR_OP_MAX;
    default:
        return true;
    }
}

bool vr_body_valid(const struct vr_header *header, const void *body)
{
    struct vr_request request;
    struct vr_reply reply;
    if (!op_valid(header))
        return false;
    switch (header->type) {
    case VR_REQUEST:
        if (header->size < sizeof(request))
            return false;
        memcpy(&request, body, sizeof(request));
        return request.client == header->client && request.number == header->number &&
               vr_batch_valid(body, header->size, 1);
    case VR_REPLY:
        if (header->size < sizeof(reply))
            return false;
        memcpy(&reply, body, sizeof(reply));
        return reply.size == header->size - sizeof(reply);
    case VR_PREPARE:
        return prepare_valid(header, body);
    case VR_DO_VIEW_CHANGE:
    case VR_START_VIEW:
        return heads_valid(header, body);
    case VR_STATE_CHUNK:
        return header->size >= sizeof(struct vr_state_head);
    case VR_GET_STATE:
        return header->size == sizeof(struct vr_state_wish);
    case VR_EPOCH:
        return epoch_valid(header, body);
    case VR_FOUND:
        return header->size == sizeof(struct vr_founding);
    case VR_HELLO:
        return header->size == sizeof(struct vr_hello);
    case VR_STATUS_REPLY:
        return header->size == sizeof(struct vr_status);
    case VR_FRAGMENT:
        return header->size > 0;
    default:
        return header->size == 0;
    }
}
