/* SPDX-License-Identifier: MIT */
/* What is not fed: the head of vr-packet.c says why.  Part of vr-feed.h. */
#ifndef ASSAY_FUZZ_VR_FEED_LEFT_OUT_H
#define ASSAY_FUZZ_VR_FEED_LEFT_OUT_H

/* Whether these bytes are a state of this configuration, as any replica would make one. */
static inline bool feed_is_state(const struct feed *f, const unsigned char *bytes, size_t size)
{
    struct vr_sessions sessions;
    struct vr_group group;
    if (size < sizeof(group))
        return false;
    memcpy(&group, bytes, sizeof(group));
    bytes += sizeof(group);
    size -= sizeof(group);
    vr_sessions_init(&sessions, f->config.sessions);
    struct vr_service *service = vr_service_new(f->config.kv_capacity);
    size_t used = vr_sessions_load(&sessions, bytes, size);
    bool good = used && vr_service_load(service, bytes + used, size - used);
    vr_service_free(service);
    vr_sessions_done(&sessions);
    return good && (group.members & ((1u << VR_NODES_MAX) - 1));
}

/* The chunk that would complete a state whose sum is right and which is none. */
static inline bool feed_completes_no_state(const struct feed *f, const struct vr_header *h,
                                           const void *body)
{
    struct vr_state_head head;
    static unsigned char state[1 << 14];
    memcpy(&head, body, sizeof(head));
    size_t size = h->size - sizeof(head);
    if (head.size > f->r->snapshot_bytes_max || h->offset > head.size ||
        size != head.size - h->offset)
        return false;
    assert(head.size <= sizeof(state));
    memcpy(state, f->r->arriving.bytes, h->offset);
    memcpy(state + h->offset, (const char *)body + sizeof(head), size);
    return vr_hash(state, head.size) == head.checksum && !feed_is_state(f, state, head.size);
}

/* A reconfiguration that does not stand alone in its entry, or an entry behind one that has not
 * run: the primary's fence keeps both out of every log. */
static inline bool feed_breaks_fence(const struct feed *f, const struct vr_header *h,
                                     const void *body)
{
    struct vr_entry entry;
    memcpy(&entry, body, sizeof(entry));
    const unsigned char *at = (const unsigned char *)body + sizeof(entry);
    for (uint32_t i = 0; i < entry.count; i++) {
        struct vr_request request;
        memcpy(&request, at, sizeof(request));
        if (request.opcode == VR_OP_RECONFIGURE && entry.count > 1)
            return true;
        at += vr_request_bytes(request.size);
    }
    for (uint64_t op = f->r->commit + 1; op < h->op && op <= f->r->op; op++)
        if (vr_is_reconfiguration(f->r, op))
            return true;
    return false;
}

/* A log that wins a view and lacks what was committed. */
static inline bool feed_lacks_committed(const struct feed *f, const struct vr_header *h)
{
    const struct vr_replica *r = f->r;
    return h->op < (r->pending_there && r->pending_adopt ? r->pending.op : r->commit);
}

/* Another group of an epoch than the one that the replica has been told of. */
static inline bool feed_is_other_group(const struct feed *f, const struct vr_header *h,
                                       const void *body)
{
    const struct vr_group *own = &f->r->group;
    return vr_epoch_of(h->view) == vr_epoch_of(own->first_view) &&
           memcmp(body, own, sizeof(*own)) != 0;
}

static inline bool feed_left_out(const struct feed *f, const struct vr_header *h, const void *body)
{
    switch (h->type) {
    case VR_PREPARE:
        return feed_breaks_fence(f, h, body);
    case VR_DO_VIEW_CHANGE:
        return feed_lacks_committed(f, h);
    case VR_EPOCH:
        return feed_is_other_group(f, h, body);
    case VR_STATE_CHUNK:
        return feed_completes_no_state(f, h, body);
    default:
        return false;
    }
}

#endif
