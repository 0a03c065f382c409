/* SPDX-License-Identifier: MIT */
#include "vr/client/client.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "vr/client/caller.h"
#include "vr/core/planted.h"

#include <errno.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#define PATIENCE_NS (100 * NS_PER_MS)

struct vr_client {
    struct vr_cluster own; /* when it was opened by a path */
    const struct vr_cluster *cluster;
    int socket;
    uint64_t timeout_ns;
    struct vr_packets packets;
    struct vr_caller caller;
    unsigned char *datagram;
};

uint64_t vr_client_id(void)
{
    uint64_t id = 0;
    while (id == 0)
        if (getrandom(&id, sizeof(id), 0) != sizeof(id))
            id = 0;
    return id;
}

int vr_client_socket(const struct vr_cluster *cluster, struct error *err)
{
    bool local = true;
    for (uint8_t i = 0; i < cluster->node_count; i++)
        local = local && vr_address_is_loopback(&cluster->addresses[i]);
    struct sockaddr_in any = {.sin_family = AF_INET,
                              .sin_addr.s_addr = htonl(local ? INADDR_LOOPBACK : INADDR_ANY)};
    return vr_socket_open(&any, err);
}

int vr_client_open_cluster(struct vr_client **ret_client, const struct vr_cluster *cluster,
                           struct error *err)
{
    int fd = vr_client_socket(cluster, err);
    if (fd < 0)
        return fd;
    struct vr_client *c = memory_zalloc(1, sizeof(*c));
    c->cluster = cluster;
    c->socket = fd;
    c->timeout_ns = 5 * NS_PER_S;
    struct vr_config config = cluster->config;
    config.index = VR_TO_CLIENT;
    vr_packets_init(&c->packets, &config, &cluster->key.keys, cluster->datagram_bytes,
                    vr_client_id());
    vr_cluster_use_keys(cluster, &c->packets);
    vr_caller_init(&c->caller, config.cluster, vr_client_id());
    c->datagram = memory_alloc(cluster->datagram_bytes);
    *ret_client = c;
    return 0;
}

int vr_client_open(struct vr_client **ret_client, const char *config_path, struct error *err)
{
    struct vr_cluster cluster;
    int result = vr_cluster_read(&cluster, config_path, err);
    if (result)
        return result;
    struct vr_client *c;
    result = vr_client_open_cluster(&c, &cluster, err);
    if (result) {
        vr_cluster_done(&cluster);
        return result;
    }
    c->own = cluster;
    c->cluster = &c->own;
    *ret_client = c;
    return 0;
}

void vr_client_close(struct vr_client *c)
{
    if (!c)
        return;
    close(c->socket);
    vr_packets_done(&c->packets);
    vr_cluster_done(&c->own);
    free(c->datagram);
    free(c);
}

void vr_client_set_timeout(struct vr_client *c, uint64_t timeout_ns)
{
    c->timeout_ns = timeout_ns;
}

static void send_datagram(void *context, uint8_t to, uint64_t client, const void *bytes,
                          size_t size)
{
    struct vr_client *c = context;
    const struct sockaddr_in *address = &c->cluster->addresses[to];
    (void)client;
    /* What is not sent counts as lost: it is sent again. */
    if (sendto(c->socket, bytes, size, 0, (const struct sockaddr *)address, sizeof(*address)) < 0)
        return;
}

static void send_to(struct vr_client *c, struct vr_message *m, uint8_t to)
{
    m->to = to;
    vr_packets_send(&c->packets, m, c->packets.own, send_datagram, c);
}

/* The next message until the deadline; false when there is none. */
static bool next_message(struct vr_client *c, uint64_t deadline_ns, struct vr_header *ret_header,
                         const void **ret_body)
{
    for (;;) {
        ssize_t size = recv(c->socket, c->datagram, c->cluster->datagram_bytes, 0);
        if (size > 0 &&
            vr_packets_receive(&c->packets, c->datagram, (size_t)size, ret_header, ret_body))
            return true;
        if (size > 0)
            continue;
        uint64_t now_ns = clock_now_ns();
        if (now_ns >= deadline_ns)
            return false;
        struct pollfd ready = {c->socket, POLLIN, 0};
        poll(&ready, 1, (int)((deadline_ns - now_ns) / NS_PER_MS) + 1);
    }
}

/* Sends the caller's request until it is answered. */
static enum vr_answer ask(struct vr_client *c, uint64_t deadline_ns, struct vr_reply *ret_reply,
                          const void **ret_data)
{
    uint8_t count = c->cluster->node_count;
    bool everybody = !c->caller.registered;
    while (clock_now_ns() < deadline_ns) {
        for (uint8_t i = 0; i < count; i++)
            if (everybody || i == c->caller.primary)
                send_to(c, &c->caller.message, i);
        if (PLANTED(RENUMBERED) && c->caller.registered)
            c->caller.message.header.number = c->caller.body[2] = ++c->caller.number;
        uint64_t patience_ns = clock_now_ns() + PATIENCE_NS;
        struct vr_header header;
        const void *body;
        while (next_message(c, patience_ns < deadline_ns ? patience_ns : deadline_ns, &header,
                            &body)) {
            enum vr_answer answer =
                vr_caller_receive(&c->caller, &header, body, ret_reply, ret_data);
            if (answer != VR_ANSWER_NONE)
                return answer;
        }
        everybody = true;
    }
    c->caller.waiting = false;
    return VR_ANSWER_NONE;
}

static int no_answer(const struct vr_client *c, struct error *err)
{
    char text[32];
    return error_set(
        err, -ETIMEDOUT,
        "no answer from the cluster in %s; 'assay-vr status' shows which replicas are up",
        format_duration((double)c->timeout_ns, text, sizeof(text)));
}

/* Replicas drop in silence what a key does not allow: say it here. */
static int check_role(const struct vr_client *c, enum vr_type type, uint32_t opcode,
                      struct error *err)
{
    enum vr_role role = c->cluster->key.role;
    if (vr_role_allows(role, type, opcode))
        return 0;
    return error_set(err, -EACCES, "%s is a key of role '%s', which does not allow this",
                     c->cluster->key_path, vr_role_names[role]);
}

int vr_client_call(struct vr_client *c, uint32_t opcode, const void *data, uint32_t size,
                   enum vr_result *ret_result, void *out, uint32_t *ret_size, struct error *err)
{
    uint64_t deadline_ns = clock_now_ns() + c->timeout_ns;
    struct vr_reply reply;
    const void *answer;
    int result = vr_caller_check_size(&c->cluster->config, size, err);
    if (!result)
        result = check_role(c, VR_REQUEST, opcode, err);
    if (result)
        return result;
    if (!c->caller.registered) {
        vr_caller_init(&c->caller, c->cluster->config.cluster, vr_client_id());
        vr_caller_register(&c->caller);
        if (ask(c, deadline_ns, &reply, &answer) != VR_ANSWER_REGISTERED)
            return no_answer(c, err);
    }
    vr_caller_request(&c->caller, opcode, data, size);
    switch (ask(c, deadline_ns, &reply, &answer)) {
    case VR_ANSWER_REPLY:
        break;
    case VR_ANSWER_EVICTED:
        return error_set(err, -ESTALE,
                         "the session was evicted: there are more clients than sessions; it is not "
                         "known whether the operation was executed");
    default:
        c->caller.registered = false; /* the number is spent */
        return no_answer(c, err);
    }
    if (reply.size > VR_RESULT_BYTES_MAX)
        return error_set(err, -EBADMSG, "an answer of %u bytes", reply.size);
    *ret_result = (enum vr_result)reply.status;
    if (ret_size)
        *ret_size = reply.size;
    if (out)
        memcpy(out, answer, reply.size);
    return 0;
}

static int kv(struct vr_client *c, uint32_t opcode, const struct iovec *parts,
              enum vr_result *ret_result, void *out, uint32_t *ret_size, struct error *err)
{
    unsigned char data[sizeof(struct vr_kv_args) + VR_KEY_BYTES_MAX + 2 * VR_VALUE_BYTES_MAX];
    if (parts[0].iov_len > VR_KEY_BYTES_MAX)
        return error_set(err, -E2BIG, "a key of %zu bytes; the maximum is %u", parts[0].iov_len,
                         VR_KEY_BYTES_MAX);
    for (unsigned i = 1; i < 3; i++)
        if (parts[i].iov_len > VR_VALUE_BYTES_MAX)
            return error_set(err, -E2BIG, "a value of %zu bytes; the maximum is %u",
                             parts[i].iov_len, VR_VALUE_BYTES_MAX);
    uint32_t size = vr_kv_encode(data, parts[0].iov_base, parts[0].iov_len, parts[1].iov_base,
                                 parts[1].iov_len, parts[2].iov_base, parts[2].iov_len);
    return vr_client_call(c, opcode, data, size, ret_result, out, ret_size, err);
}

static struct iovec part(const void *bytes, size_t size)
{
    return (struct iovec){(void *)(uintptr_t)bytes, size};
}

int vr_client_get(struct vr_client *c, const void *key, size_t key_size, enum vr_result *ret_result,
                  void *value, uint32_t *ret_size, struct error *err)
{
    struct iovec parts[3] = {part(key, key_size)};
    return kv(c, VR_OP_GET, parts, ret_result, value, ret_size, err);
}

int vr_client_put(struct vr_client *c, const void *key, size_t key_size, const void *value,
                  size_t value_size, enum vr_result *ret_result, struct error *err)
{
    struct iovec parts[3] = {part(key, key_size), {0}, part(value, value_size)};
    return kv(c, VR_OP_PUT, parts, ret_result, NULL, NULL, err);
}

int vr_client_cas(struct vr_client *c, const void *key, size_t key_size, const void *expect,
                  size_t expect_size, const void *value, size_t value_size,
                  enum vr_result *ret_result, void *found, uint32_t *ret_size, struct error *err)
{
    struct iovec parts[3] = {part(key, key_size), part(expect, expect_size),
                             part(value, value_size)};
    return kv(c, VR_OP_CAS, parts, ret_result, found, ret_size, err);
}

int vr_client_delete(struct vr_client *c, const void *key, size_t key_size,
                     enum vr_result *ret_result, struct error *err)
{
    struct iovec parts[3] = {part(key, key_size)};
    return kv(c, VR_OP_DELETE, parts, ret_result, NULL, NULL, err);
}

int vr_client_scan(struct vr_client *c, const void *key, size_t key_size,
                   void (*pair)(void *context, const void *key, size_t key_size, const void *value,
                                size_t value_size),
                   void *context, uint32_t *ret_count, struct error *err)
{
    unsigned char out[VR_RESULT_BYTES_MAX];
    uint32_t size = 0, count = 0;
    enum vr_result outcome;
    struct iovec parts[3] = {part(key, key_size)};
    int result = kv(c, VR_OP_SCAN, parts, &outcome, out, &size, err);
    if (result)
        return result;
    for (uint32_t at = 0; at + 4 <= size;) {
        uint16_t sizes[2];
        memcpy(sizes, out + at, sizeof(sizes));
        if (sizes[0] > VR_KEY_BYTES_MAX || sizes[1] > VR_VALUE_BYTES_MAX ||
            at + 4u + sizes[0] + sizes[1] > size)
            return error_set(err, -EBADMSG, "the answer to scan is truncated or damaged");
        pair(context, out + at + 4, sizes[0], out + at + 4 + sizes[0], sizes[1]);
        at += 4u + sizes[0] + sizes[1];
        count++;
    }
    *ret_count = count;
    return 0;
}

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
                send_to(c, &m, i);
        again_ns = clock_now_ns() + PATIENCE_NS;
        struct vr_header header;
        const void *body;
        while (answered < count &&
               next_message(c, again_ns < deadline_ns ? again_ns : deadline_ns, &header, &body)) {
            if (header.type != VR_STATUS_REPLY || header.client != m.header.client ||
                header.replica >= count || there[header.replica])
                continue;
            memcpy(&statuses[header.replica], body, sizeof(statuses[0]));
            there[header.replica] = true;
            answered++;
        }
    }
    return answered ? 0 : no_answer(c, err);
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
    *ret_op = c->caller.answer_op;
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
    send_to(c, m, source);
    uint64_t deadline_ns = clock_now_ns() + COPY_PATIENCE_NS;
    while (next_message(c, deadline_ns, &header, &body)) {
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
                             "the state does not fit this configuration; use the one that the "
                             "replicas use (keys and sessions must be the same)");
        if (clock_now_ns() - heard_ns > c->timeout_ns)
            return no_answer(c, err);
    }
    return 0;
}

int vr_client_copy(struct vr_client *c, struct vr_copy **ret_copy, struct error *err)
{
    uint64_t op;
    uint8_t source;
    int result = check_role(c, VR_GET_STATE, 0, err);
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
