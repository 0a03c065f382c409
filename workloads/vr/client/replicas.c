/* SPDX-License-Identifier: MIT */
/* What a client asks of single replicas: how they are, and a copy of their state. */
#include "base/clock.h"
#include "base/memory.h"
#include "vr/client/client_internal.h"

#include <errno.h>

int vr_client_status(struct vr_client *c, uint64_t timeout_ns, struct vr_status *statuses,
                     bool *there, struct error *err)
{
    uint8_t count = c->cluster->node_count, answered = 0;
    uint64_t deadline_ns = clock_now_ns() + timeout_ns, again_ns = 0;
    struct vr_message m = {.header = {.type = VR_STATUS,
                                      .replica = VR_TO_CLIENT,
                                      .cluster = c->cluster->config.cluster,
                                      .client = vr_client_id()}};
    memset(there, 0, count * sizeof(*there));
    while (answered < count && clock_now_ns() < deadline_ns) {
        for (uint8_t i = 0; i < count; i++)
            if (!there[i])
                vr_client_send(c, &m, i);
        again_ns = clock_now_ns() + PATIENCE_NS;
        struct vr_header header;
        const void *body;
        while (answered < count &&
               vr_client_next(c, again_ns < deadline_ns ? again_ns : deadline_ns, &header, &body)) {
            if (header.type != VR_STATUS_REPLY || header.client != m.header.client ||
                header.replica >= count || there[header.replica])
                continue;
            memcpy(&statuses[header.replica], body, sizeof(statuses[0]));
            there[header.replica] = true;
            answered++;
        }
    }
    return answered ? 0 : vr_client_no_answer(c, err);
}

/* ---- a copy of the state */

/* How often an operation that does nothing is written for each look at the replicas. */
#define NULLS_AT_ONCE 16u
#define COPY_PATIENCE_NS (10 * NS_PER_MS)
#define TRIES_OF_ONE 50u /* until another replica is asked */

/* Who has a checkpoint that holds this op: a backup rather than the leader.  VR_NODES_MAX: nobody.
 */
static uint8_t find_checkpoint(struct vr_client *c, uint64_t op)
{
    struct vr_status statuses[VR_NODES_MAX];
    bool there[VR_NODES_MAX];
    struct error ignored = {0};
    uint8_t found = VR_NODES_MAX;
    if (vr_client_status(c, PATIENCE_NS, statuses, there, &ignored))
        return found;
    for (uint8_t i = 0; i < c->cluster->node_count; i++) {
        const struct vr_status *s = &statuses[i];
        if (!there[i] || s->checkpoint_op < op || s->state > VR_VIEW_CHANGE)
            continue;
        if (found == VR_NODES_MAX || vr_status_primary(&statuses[found]) == found)
            found = i;
    }
    return found;
}

/* Moves the log on until a checkpoint holds all that was acknowledged before. */
static int await_checkpoint(struct vr_client *c, uint64_t *ret_op, uint8_t *ret_source,
                            struct error *err)
{
    enum vr_result outcome;
    uint32_t nulls = 0, most = 2 * c->cluster->config.slots;
    int result = vr_client_call(c, VR_OP_NULL, NULL, 0, &outcome, NULL, NULL, err);
    *ret_op = c->answer_op;
    uint64_t deadline_ns = clock_now_ns() + c->timeout_ns;
    while (!result && (*ret_source = find_checkpoint(c, *ret_op)) == VR_NODES_MAX) {
        for (uint32_t i = 0; i < NULLS_AT_ONCE && nulls < most && !result; i++, nulls++)
            result = vr_client_call(c, VR_OP_NULL, NULL, 0, &outcome, NULL, NULL, err);
        if (nulls < most)
            deadline_ns = clock_now_ns() + c->timeout_ns;
        if (clock_now_ns() >= deadline_ns)
            return error_set(err, -ETIMEDOUT,
                             "no replica has finished a checkpoint; look at "
                             "'assay-vr status'");
    }
    return result;
}

/* Asks one replica once and takes what comes; true: something came that fits. */
static bool copy_some(struct vr_client *c, struct vr_copy *copy, struct vr_message *m,
                      uint64_t least_op, uint8_t source)
{
    struct vr_header header;
    const void *body;
    bool came = false;
    vr_client_send(c, m, source);
    uint64_t deadline_ns = clock_now_ns() + COPY_PATIENCE_NS;
    while (vr_client_next(c, deadline_ns, &header, &body)) {
        if (header.type != VR_STATE_CHUNK || header.client != m->header.client ||
            header.op < least_op)
            continue;
        came = true;
        if (vr_copy_take(copy, &header, body))
            break;
    }
    return came;
}

static int fetch_copy(struct vr_client *c, struct vr_copy *copy, uint64_t least_op, uint8_t source,
                      struct error *err)
{
    uint64_t id = vr_client_id(), number = 0, heard_ns = clock_now_ns();
    uint32_t tries = 0;
    struct vr_message m;
    while (vr_copy_ask(copy, &m)) {
        m.header.client = id;
        m.header.number = ++number; /* the newest place of this client counts */
        if (copy_some(c, copy, &m, least_op, source)) {
            heard_ns = clock_now_ns();
            tries = 0;
        } else if (++tries % TRIES_OF_ONE == 0) {
            uint8_t other = find_checkpoint(c, least_op);
            source =
                (uint8_t)(other == VR_NODES_MAX ? (source + 1) % c->cluster->node_count : other);
        }
        if (vr_copy_refused(copy))
            return error_set(err, -EPROTO,
                             "the replicas' state does not fit this configuration; use the "
                             "replicas' own cluster file (keys and sessions must be equal)");
        if (clock_now_ns() - heard_ns > c->timeout_ns)
            return vr_client_no_answer(c, err);
    }
    return 0;
}

int vr_client_copy(struct vr_client *c, struct vr_copy **ret_copy, struct error *err)
{
    uint64_t op;
    uint8_t source;
    int result = vr_client_check_role(c, VR_GET_STATE, 0, err);
    if (!result)
        result = await_checkpoint(c, &op, &source, err);
    if (result)
        return result;
    struct vr_copy *copy = vr_copy_new(&c->cluster->config);
    result = fetch_copy(c, copy, op, source, err);
    if (result)
        vr_copy_free(copy);
    else
        *ret_copy = copy;
    return result;
}

uint8_t vr_status_primary(const struct vr_status *status)
{
    uint32_t members = status->members & ((1u << VR_NODES_MAX) - 1);
    if (!members)
        return VR_NODES_MAX;
    uint64_t steps = vr_number_of(status->view) % (uint64_t)__builtin_popcount(members);
    for (uint8_t i = 0; i < VR_NODES_MAX; i++)
        if (members >> i & 1 && steps-- == 0)
            return i;
    return VR_NODES_MAX;
}

int vr_client_reconfigure(struct vr_client *c, const struct vr_reconfiguration *wish,
                          enum vr_result *ret_result, struct vr_reconfiguration *ret_now,
                          struct error *err)
{
    unsigned char out[VR_RESULT_BYTES_MAX];
    uint32_t size = 0;
    int result =
        vr_client_call(c, VR_OP_RECONFIGURE, wish, sizeof(*wish), ret_result, out, &size, err);
    *ret_now = (struct vr_reconfiguration){0};
    if (!result && size == sizeof(*ret_now))
        memcpy(ret_now, out, sizeof(*ret_now));
    return result;
}
