/* SPDX-License-Identifier: MIT */
#include "vr/core/copy.h"
#include "base/memory.h"
#include "vr/core/core_internal.h"

/* A replica in memory that is given nothing but pieces of a state. */
struct vr_copy {
    struct vr_replica *r;
    struct vr_update *update;
    struct vr_state_wish wish;
};

struct vr_copy *vr_copy_new(const struct vr_config *config)
{
    struct vr_copy *c = memory_zalloc(1, sizeof(*c));
    struct vr_config own = *config;
    struct vr_image image = {.durable.group = vr_group_first(config)};
    own.index = 0;
    own.in_memory = true;
    c->r = vr_replica_new(&own, &image, 1, 0);
    c->update = memory_zalloc(1, sizeof(*c->update));
    return c;
}

void vr_copy_free(struct vr_copy *c)
{
    if (!c)
        return;
    vr_replica_free(c->r);
    free(c->update);
    free(c);
}

/* In memory a checkpoint is finished by its turns alone. */
static void finish(struct vr_copy *c)
{
    do
        vr_checkpoint_turn(c->r, c->update);
    while (c->r->pending_there);
}

bool vr_copy_ask(struct vr_copy *c, struct vr_message *ret_message)
{
    struct vr_replica *r = c->r;
    if (r->newest.size)
        return false;
    c->wish = (struct vr_state_wish){.kind = VR_STATE_GROUPS, .count = 1};
    if (r->arriving_active && !vr_arriving_wish(r, &c->wish)) {
        finish(c);
        if (r->newest.size)
            return false;
        /* It was no state: again from the beginning. */
        c->wish = (struct vr_state_wish){.kind = VR_STATE_GROUPS, .count = 1};
    }
    *ret_message =
        (struct vr_message){.header = {.type = VR_GET_STATE,
                                       .replica = VR_TO_CLIENT,
                                       .cluster = r->config.cluster,
                                       .op = r->arriving_active ? r->arriving.state.op : 0},
                            .first = &c->wish,
                            .first_size = sizeof(c->wish)};
    return true;
}

bool vr_copy_take(struct vr_copy *c, const struct vr_header *header, const void *body)
{
    struct vr_replica *r = c->r;
    uint64_t before = r->arriving_active ? r->arriving.state.op : 0;
    if (r->newest.size || header->op == 0)
        return false;
    vr_arriving_take(r, header, body);
    return r->arriving_active && (!r->arriving.missing || r->arriving.state.op != before);
}

uint64_t vr_copy_refused(const struct vr_copy *c)
{
    return c->r->counters.dropped[VR_DROP_BODY];
}

uint64_t vr_copy_op(const struct vr_copy *c)
{
    return c->r->newest.op;
}

uint32_t vr_copy_keys(const struct vr_copy *c)
{
    return vr_service_count(c->r->service);
}

void vr_copy_each(const struct vr_copy *c,
                  bool (*pair)(void *context, struct vr_bytes key, struct vr_bytes value),
                  void *context)
{
    vr_service_each(c->r->service, pair, context);
}
