/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "vr/client/client_internal.h"
#include "vr/core/planted.h"

#include <errno.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

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
    union vr_address any = vr_address_any(cluster->addresses[0].any.sa_family, local);
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
    for (unsigned i = 0; i < VR_CLIENT_CALLS_MAX && c->calls[i]; i++) {
        free(c->calls[i]->data);
        free(c->calls[i]);
    }
    free(c->datagram);
    free(c);
}

const struct vr_cluster *vr_client_cluster(const struct vr_client *c)
{
    return c->cluster;
}

void vr_client_set_timeout(struct vr_client *c, uint64_t timeout_ns)
{
    c->timeout_ns = timeout_ns;
}

static void send_datagram(void *context, uint8_t to, uint64_t client, const void *bytes,
                          size_t size)
{
    struct vr_client *c = context;
    const union vr_address *address = &c->cluster->addresses[to];
    (void)client;
    /* What is not sent counts as lost: it is sent again. */
    if (sendto(c->socket, bytes, size, 0, &address->any, vr_address_size(address)) < 0)
        return;
}

void vr_client_send(struct vr_client *c, struct vr_message *m, uint8_t to)
{
    m->to = to;
    vr_packets_send(&c->packets, m, c->packets.own, send_datagram, c);
}

/* A message that is there already; false when there is none. */
static bool take_message(struct vr_client *c, struct vr_header *ret_header, const void **ret_body)
{
    ssize_t size;
    while ((size = recv(c->socket, c->datagram, c->cluster->datagram_bytes, 0)) > 0)
        if (vr_packets_receive(&c->packets, c->datagram, (size_t)size, ret_header, ret_body))
            return true;
    return false;
}

static void wait_until(const struct vr_client *c, uint64_t now_ns, uint64_t end_ns)
{
    struct pollfd ready = {c->socket, POLLIN, 0};
    if (end_ns > now_ns)
        poll(&ready, 1, (int)((end_ns - now_ns) / NS_PER_MS) + 1);
}

bool vr_client_next(struct vr_client *c, uint64_t deadline_ns, struct vr_header *ret_header,
                    const void **ret_body)
{
    while (!take_message(c, ret_header, ret_body)) {
        uint64_t now_ns = clock_now_ns();
        if (now_ns >= deadline_ns)
            return false;
        wait_until(c, now_ns, deadline_ns);
    }
    return true;
}

int vr_client_no_answer(const struct vr_client *c, struct error *err)
{
    char text[32];
    return error_set(
        err, -ETIMEDOUT,
        "no answer from the cluster in %s; 'assay-vr status' shows which replicas are up",
        format_duration((double)c->timeout_ns, text, sizeof(text)));
}

/* Replicas drop in silence what a key does not allow: say it here. */
int vr_client_check_role(const struct vr_client *c, enum vr_type type, uint32_t opcode,
                         struct error *err)
{
    enum vr_role role = c->cluster->key.role;
    if (vr_role_allows(role, type, opcode))
        return 0;
    return error_set(err, -EACCES, "%s is a key of role '%s', which does not allow this",
                     c->cluster->key_path, vr_role_names[role]);
}

/* ---- calls */

static void transmit(struct vr_client *c, struct vr_call *call, bool everybody)
{
    for (uint8_t i = 0; i < c->cluster->node_count; i++)
        if (everybody || i == call->caller.primary)
            vr_client_send(c, &call->caller.message, i);
    if (PLANTED(RENUMBERED) && call->caller.registered)
        call->caller.message.header.number = call->caller.body[2] = ++call->caller.number;
    call->again_ns = clock_now_ns() + PATIENCE_NS;
}

static struct vr_call *free_call(struct vr_client *c)
{
    for (unsigned i = 0; i < VR_CLIENT_CALLS_MAX; i++) {
        if (!c->calls[i])
            c->calls[i] = memory_zalloc(1, sizeof(*c->calls[i]));
        if (!c->calls[i]->done)
            return c->calls[i];
    }
    return NULL;
}

int vr_client_begin(struct vr_client *c, uint32_t opcode, const void *data, uint32_t size,
                    vr_client_done done, void *context, struct error *err)
{
    int result = vr_caller_check_size(&c->cluster->config, size, err);
    if (!result)
        result = vr_client_check_role(c, VR_REQUEST, opcode, err);
    if (result)
        return result;
    struct vr_call *call = free_call(c);
    if (!call)
        return error_set(err, -EAGAIN, "%u operations are under way, the maximum of one client",
                         VR_CLIENT_CALLS_MAX);
    call->done = done;
    call->context = context;
    call->deadline_ns = clock_now_ns() + c->timeout_ns;
    c->under_way++;
    bool registered = call->caller.registered;
    if (registered) {
        vr_caller_request(&call->caller, opcode, data, size);
    } else {
        /* The operation waits until the session has begun. */
        call->opcode = opcode;
        call->size = size;
        call->data = memory_alloc(size + 1);
        if (size)
            memcpy(call->data, data, size);
        vr_caller_init(&call->caller, c->cluster->config.cluster, vr_client_id());
        vr_caller_register(&call->caller);
    }
    transmit(c, call, !registered);
    return 0;
}

/* The call is over, and its place is free before anybody hears of it. */
static void end(struct vr_client *c, struct vr_call *call, int result, enum vr_result outcome,
                const void *bytes, uint32_t size, const struct error *err)
{
    vr_client_done done = call->done;
    call->done = NULL;
    free(call->data);
    call->data = NULL;
    c->under_way--;
    c->ended++;
    done(call->context, result, outcome, bytes, size, err);
}

static void fail(struct vr_client *c, struct vr_call *call, const struct error *err)
{
    call->caller.waiting = call->caller.registered = false; /* the number is spent */
    end(c, call, err->code, VR_INVALID, NULL, 0, err);
}

static void begin_request(struct vr_client *c, struct vr_call *call)
{
    vr_caller_request(&call->caller, call->opcode, call->data, call->size);
    free(call->data);
    call->data = NULL;
    transmit(c, call, false);
}

/* Gives a message to the call that it answers. */
static void answer(struct vr_client *c, const struct vr_header *header, const void *body)
{
    struct vr_reply reply;
    const void *bytes;
    struct error err = {0};
    for (unsigned i = 0; i < VR_CLIENT_CALLS_MAX && c->calls[i]; i++) {
        struct vr_call *call = c->calls[i];
        if (!call->done)
            continue;
        switch (vr_caller_receive(&call->caller, header, body, &reply, &bytes)) {
        case VR_ANSWER_NONE:
            continue;
        case VR_ANSWER_REGISTERED:
            begin_request(c, call);
            return;
        case VR_ANSWER_EVICTED:
            error_set(&err, -ESTALE,
                      "the session was evicted: there are more clients than sessions; it is not "
                      "known whether the operation was executed");
            fail(c, call, &err);
            return;
        case VR_ANSWER_REPLY:
            c->answer_op = call->caller.answer_op;
            if (reply.size <= VR_RESULT_BYTES_MAX) {
                end(c, call, 0, (enum vr_result)reply.status, bytes, reply.size, &err);
                return;
            }
            error_set(&err, -EBADMSG, "an answer of %u bytes", reply.size);
            fail(c, call, &err);
            return;
        }
    }
}

/* Sends again what nobody has answered, and gives up what is too late. */
static void look_at_calls(struct vr_client *c, uint64_t now_ns)
{
    for (unsigned i = 0; i < VR_CLIENT_CALLS_MAX && c->calls[i]; i++) {
        struct vr_call *call = c->calls[i];
        if (call->done && now_ns >= call->deadline_ns) {
            struct error err = {0};
            vr_client_no_answer(c, &err);
            fail(c, call, &err);
        } else if (call->done && now_ns >= call->again_ns) {
            transmit(c, call, true);
        }
    }
}

uint64_t vr_client_due_ns(const struct vr_client *c)
{
    uint64_t next_ns = UINT64_MAX;
    for (unsigned i = 0; i < VR_CLIENT_CALLS_MAX && c->calls[i]; i++) {
        const struct vr_call *call = c->calls[i];
        uint64_t due_ns = call->again_ns < call->deadline_ns ? call->again_ns : call->deadline_ns;
        if (call->done && due_ns < next_ns)
            next_ns = due_ns;
    }
    return next_ns;
}

uint32_t vr_client_turn(struct vr_client *c, uint64_t end_ns)
{
    uint64_t ended = c->ended;
    for (;;) {
        struct vr_header header;
        const void *body;
        while (take_message(c, &header, &body))
            answer(c, &header, body);
        uint64_t now_ns = clock_now_ns();
        look_at_calls(c, now_ns);
        if (c->ended != ended || now_ns >= end_ns || !c->under_way)
            return (uint32_t)(c->ended - ended);
        uint64_t due_ns = vr_client_due_ns(c);
        wait_until(c, now_ns, due_ns < end_ns ? due_ns : end_ns);
    }
}

uint32_t vr_client_under_way(const struct vr_client *c)
{
    return c->under_way;
}

int vr_client_fd(const struct vr_client *c)
{
    return c->socket;
}

/* What a call that is waited for has brought. */
struct waited {
    bool over;
    int result;
    enum vr_result outcome;
    void *out;
    uint32_t size;
    struct error *err;
};

static void take_result(void *context, int result, enum vr_result outcome, const void *bytes,
                        uint32_t size, const struct error *err)
{
    struct waited *w = context;
    w->over = true;
    w->result = result;
    w->outcome = outcome;
    w->size = size;
    if (result && w->err)
        *w->err = *err;
    if (!result && w->out && size)
        memcpy(w->out, bytes, size);
}

int vr_client_call(struct vr_client *c, uint32_t opcode, const void *data, uint32_t size,
                   enum vr_result *ret_result, void *out, uint32_t *ret_size, struct error *err)
{
    struct waited w = {.out = out, .err = err};
    int result = vr_client_begin(c, opcode, data, size, take_result, &w, err);
    if (result)
        return result;
    while (!w.over)
        vr_client_turn(c, UINT64_MAX);
    if (w.result)
        return w.result;
    *ret_result = w.outcome;
    if (ret_size)
        *ret_size = w.size;
    return 0;
}

/* ---- the key-value store */

#define KV_BYTES_MAX (sizeof(struct vr_kv_args) + VR_KEY_BYTES_MAX + 2 * VR_VALUE_BYTES_MAX)

/* parts: key, expect, value. */
static int encode(const struct iovec *parts, unsigned char *data, uint32_t *ret_size,
                  struct error *err)
{
    if (parts[0].iov_len > VR_KEY_BYTES_MAX)
        return error_set(err, -E2BIG, "a key of %zu bytes; the maximum is %u", parts[0].iov_len,
                         VR_KEY_BYTES_MAX);
    for (unsigned i = 1; i < 3; i++)
        if (parts[i].iov_len > VR_VALUE_BYTES_MAX)
            return error_set(err, -E2BIG, "a value of %zu bytes; the maximum is %u",
                             parts[i].iov_len, VR_VALUE_BYTES_MAX);
    *ret_size = vr_kv_encode(data, parts[0].iov_base, parts[0].iov_len, parts[1].iov_base,
                             parts[1].iov_len, parts[2].iov_base, parts[2].iov_len);
    return 0;
}

int vr_client_begin_kv(struct vr_client *c, uint32_t opcode, const struct iovec *parts,
                       vr_client_done done, void *context, struct error *err)
{
    unsigned char data[KV_BYTES_MAX];
    uint32_t size;
    int result = encode(parts, data, &size, err);
    return result ? result : vr_client_begin(c, opcode, data, size, done, context, err);
}

static int kv(struct vr_client *c, uint32_t opcode, const struct iovec *parts,
              enum vr_result *ret_result, void *out, uint32_t *ret_size, struct error *err)
{
    unsigned char data[KV_BYTES_MAX];
    uint32_t size;
    int result = encode(parts, data, &size, err);
    return result ? result : vr_client_call(c, opcode, data, size, ret_result, out, ret_size, err);
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
