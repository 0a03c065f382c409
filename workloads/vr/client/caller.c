/* SPDX-License-Identifier: MIT */
#include "vr/client/caller.h"
#include "vr/core/planted.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

void vr_caller_init(struct vr_caller *c, uint32_t cluster, uint64_t id)
{
    assert(id != 0);
    *c = (struct vr_caller){.id = id};
    c->message.header = (struct vr_header){
        .type = VR_REQUEST, .replica = VR_TO_CLIENT, .cluster = cluster, .client = id};
    c->message.first = c->body;
}

int vr_caller_check_size(const struct vr_config *config, uint64_t size, struct error *err)
{
    uint64_t most = config->batch_bytes - sizeof(struct vr_request);
    if (most > VR_CALLER_DATA_MAX)
        most = VR_CALLER_DATA_MAX;
    if (size > most)
        return error_set(err, -E2BIG, "a request of %lu bytes; the maximum is %lu%s",
                         (unsigned long)size, (unsigned long)most,
                         most < VR_CALLER_DATA_MAX ? ", the size of a log entry (batch-bytes)"
                                                   : "");
    return 0;
}

static void make(struct vr_caller *c, uint32_t opcode, const void *data, uint32_t size)
{
    assert(size <= VR_CALLER_DATA_MAX);
    struct vr_request request = {c->id, c->session, c->number, opcode, size};
    size_t bytes = vr_request_bytes(size);
    c->body[bytes / 8 - 1] = 0; /* the padding */
    memcpy(c->body, &request, sizeof(request));
    if (size)
        memcpy((unsigned char *)c->body + sizeof(request), data, size);
    c->message.first_size = (uint32_t)bytes;
    c->message.header.number = c->number;
    c->message.header.op = c->session;
    c->waiting = true;
}

void vr_caller_register(struct vr_caller *c)
{
    c->registered = false;
    c->session = c->number = 0;
    make(c, VR_OP_REGISTER, NULL, 0);
}

void vr_caller_request(struct vr_caller *c, uint32_t opcode, const void *data, uint32_t size)
{
    assert(c->registered && !c->waiting);
    c->number++;
    make(c, opcode, data, size);
}

enum vr_answer vr_caller_receive(struct vr_caller *c, const struct vr_header *header,
                                 const void *body, struct vr_reply *ret_reply,
                                 const void **ret_data)
{
    bool any = PLANTED(ANY_REPLY);
    if ((header->client != c->id && !any) || !c->waiting)
        return VR_ANSWER_NONE;
    if (header->type == VR_EVICTION && c->registered && header->op == c->session) {
        c->waiting = c->registered = false;
        return VR_ANSWER_EVICTED;
    }
    if (header->type != VR_REPLY || (header->number != c->number && !any))
        return VR_ANSWER_NONE;
    memcpy(ret_reply, body, sizeof(*ret_reply));
    *ret_data = (const unsigned char *)body + sizeof(*ret_reply);
    /* A late answer to an earlier session of the same client is none. */
    if (c->registered ? ret_reply->session != c->session && !any
                      : ret_reply->size != sizeof(c->session))
        return VR_ANSWER_NONE;
    c->primary = header->replica;
    c->answer_op = header->op;
    c->waiting = false;
    if (c->registered)
        return VR_ANSWER_REPLY;
    memcpy(&c->session, *ret_data, sizeof(c->session));
    c->registered = true;
    return VR_ANSWER_REGISTERED;
}
