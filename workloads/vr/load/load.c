/* SPDX-License-Identifier: MIT */
#include "vr/load/load.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "vr/client/caller.h"
#include "vr/client/client.h"

#include <errno.h>
#include <inttypes.h>

#define START_NS (20 * NS_PER_S)
#define LOOK_NS (10 * NS_PER_MS)

struct worker {
    struct vr_caller caller;
    uint64_t due_ns, begun_ns, sent_ns; /* when the request was due, sent first, sent last */
    uint64_t backlog_due_ns; /* open loop: the first request that waits for this client */
    uint32_t backlog;
    uint32_t opcode, key;
    uint64_t value, expect;
};

struct load {
    const struct vr_cluster *cluster;
    const struct vr_load_settings *s;
    struct vr_load_result *r;
    struct vr_io io;
    struct vr_packets packets;
    struct worker *workers;
    int *sockets;
    uint32_t registered;
    bool going, measured, filling, refused;
    uint64_t issued, wanted; /* in this phase */
    uint64_t answered;
    uint64_t random, next_value;
    uint64_t *last_value; /* of each key: what was written last, a guess for cas */
    uint64_t started_ns, last_answer_ns, look_ns, now_ns;
    uint64_t arrivals; /* open loop: how many were due */
    unsigned char *payload;
};

static const char *const kind_names[] = {"null", "put", "get", "mixed"};

int vr_load_kind_parse(const char *text, enum vr_load_kind *ret_kind, struct error *err)
{
    for (unsigned i = 0; i < ARRAY_COUNT(kind_names); i++)
        if (str_eq(text, kind_names[i])) {
            *ret_kind = (enum vr_load_kind)i;
            return 0;
        }
    return error_set(err, -EINVAL, "'%s' is not an operation; use null, put, get or mixed", text);
}

static uint64_t next_random(struct load *l)
{
    l->random ^= l->random << 13;
    l->random ^= l->random >> 7;
    l->random ^= l->random << 17;
    return l->random;
}

struct target {
    struct load *load;
    uint32_t worker;
};

static void send_datagram(void *context, uint8_t to, uint64_t client, const void *bytes,
                          size_t size)
{
    struct target *t = context;
    (void)client;
    vr_io_send(&t->load->io, t->worker, &t->load->cluster->addresses[to], 1, bytes, size);
}

static void transmit(struct load *l, uint32_t index, bool everybody)
{
    struct worker *w = &l->workers[index];
    struct target target = {l, index};
    w->sent_ns = l->now_ns;
    for (uint8_t i = 0; i < l->cluster->node_count; i++) {
        if (!everybody && i != w->caller.primary)
            continue;
        w->caller.message.to = i;
        vr_packets_send(&l->packets, &w->caller.message, l->packets.own, send_datagram, &target);
    }
}

/* Values are numbers, each written once, so that a history says who read what of whom. */
static uint32_t value_text(const struct load *l, uint64_t value, char *out)
{
    uint32_t size = (uint32_t)snprintf(out, 32, "%" PRIu64, value);
    uint32_t wanted = (uint32_t)l->s->payload_bytes;
    if (wanted > VR_VALUE_BYTES_MAX)
        wanted = VR_VALUE_BYTES_MAX;
    for (; size < wanted; size++)
        out[size] = '.';
    return size;
}

static void choose_operation(struct load *l, struct worker *w)
{
    static const uint32_t mixed[] = {VR_OP_GET, VR_OP_GET, VR_OP_GET, VR_OP_PUT,
                                     VR_OP_PUT, VR_OP_PUT, VR_OP_CAS, VR_OP_DELETE};
    uint64_t random = next_random(l);
    w->key = (uint32_t)((random >> 8) % l->s->keys);
    switch (l->s->kind) {
    case VR_LOAD_NULL:
        w->opcode = VR_OP_NULL;
        break;
    case VR_LOAD_PUT:
        w->opcode = VR_OP_PUT;
        break;
    case VR_LOAD_GET:
        w->opcode = VR_OP_GET;
        break;
    case VR_LOAD_MIXED:
        w->opcode = mixed[random % 8];
        break;
    }
    if (l->filling) {
        w->opcode = VR_OP_PUT;
        w->key = (uint32_t)l->issued;
    }
    w->value = w->opcode == VR_OP_PUT || w->opcode == VR_OP_CAS ? ++l->next_value : 0;
    w->expect = w->opcode == VR_OP_CAS ? l->last_value[w->key] : 0;
}

static void issue(struct load *l, uint32_t index, uint64_t due_ns)
{
    struct worker *w = &l->workers[index];
    choose_operation(l, w);
    w->due_ns = due_ns;
    w->begun_ns = l->now_ns;
    l->issued++;
    if (w->opcode == VR_OP_NULL) {
        vr_caller_request(&w->caller, VR_OP_NULL, l->payload, (uint32_t)l->s->payload_bytes);
    } else {
        unsigned char data[sizeof(struct vr_kv_args) + 32 + 2 * (VR_VALUE_BYTES_MAX + 32)];
        char key[32], value[VR_VALUE_BYTES_MAX + 32], expect[VR_VALUE_BYTES_MAX + 32];
        size_t key_size = (size_t)snprintf(key, sizeof(key), "key-%u", w->key);
        uint32_t value_size = w->value ? value_text(l, w->value, value) : 0;
        uint32_t expect_size = w->expect ? value_text(l, w->expect, expect) : 0;
        vr_caller_request(
            &w->caller, w->opcode, data,
            vr_kv_encode(data, key, key_size, expect, expect_size, value, value_size));
    }
    transmit(l, index, false);
}

static bool stopped(const struct load *l)
{
    return l->s->stop && *l->s->stop;
}

static bool open_loop(const struct load *l)
{
    return l->measured && l->s->rate > 0;
}

/* Whether there are further requests to come.  Those of an open loop that were due before its end
 * are still sent after it: they are the slowest, and to leave them out would hide that. */
static bool goes_on(const struct load *l)
{
    uint64_t come = open_loop(l) ? l->arrivals : l->issued;
    return l->going && !l->refused && !stopped(l) && come < l->wanted &&
           (!l->measured || !l->s->time_ns || l->now_ns - l->started_ns < l->s->time_ns);
}

static void next(struct load *l, uint32_t index)
{
    struct worker *w = &l->workers[index];
    if (!open_loop(l)) {
        if (goes_on(l))
            issue(l, index, l->now_ns);
        return;
    }
    if (!w->backlog || l->refused || stopped(l))
        return;
    w->backlog--;
    uint64_t due_ns = w->backlog_due_ns;
    w->backlog_due_ns += (uint64_t)(1e9 * (double)l->s->clients / l->s->rate);
    issue(l, index, due_ns);
}

static const char *operation_name(uint32_t opcode)
{
    static const char *const names[] = {"null", "register", "get", "put", "cas", "delete", "scan"};
    return names[opcode];
}

/* client, begin, end (-1: never), operation, key, value, expected value, status, what was read. */
static void note(struct load *l, const struct worker *w, const struct vr_reply *reply,
                 const void *data)
{
    uint64_t read = 0;
    if (!l->s->history)
        return;
    if (reply && reply->size && reply->size < 600) {
        char text[600];
        memcpy(text, data, reply->size);
        text[reply->size] = '\0';
        read = strtoull(text, NULL, 10);
    }
    fprintf(l->s->history,
            "%016" PRIx64 " %" PRIu64 " %" PRIi64 " %s %u %" PRIu64 " %" PRIu64 " %d %" PRIu64 "\n",
            w->caller.id, w->begun_ns, reply ? (int64_t)l->now_ns : -1, operation_name(w->opcode),
            w->key, w->value, w->expect, reply ? (int)reply->status : -1, read);
}

static void replied(struct load *l, struct worker *w, const struct vr_reply *reply,
                    const void *data)
{
    l->answered++;
    if (l->last_answer_ns && l->now_ns - l->last_answer_ns > l->r->gap_ns && l->measured)
        l->r->gap_ns = l->now_ns - l->last_answer_ns;
    l->last_answer_ns = l->now_ns;
    note(l, w, reply, data);
    l->refused |= reply->status == VR_TOO_LARGE;
    if (l->s->kind != VR_LOAD_MIXED)
        ; /* nobody guesses */
    else if (reply->status == VR_OK && w->value)
        l->last_value[w->key] = w->value;
    else if (reply->status == VR_OK && w->opcode == VR_OP_DELETE)
        l->last_value[w->key] = 0;
    if (!l->measured)
        return;
    l->r->done++;
    l->r->failed += reply->status != VR_OK;
    vr_hist_add(&l->r->hist, l->now_ns - w->due_ns, 1);
}

static void begin_session(struct load *l, uint32_t index)
{
    struct worker *w = &l->workers[index];
    vr_caller_init(&w->caller, l->cluster->config.cluster, vr_client_id());
    vr_caller_register(&w->caller);
    transmit(l, index, true);
}

static void on_packet(void *context, uint32_t socket, const union vr_address *from,
                      const void *bytes, size_t size)
{
    struct load *l = context;
    struct worker *w = &l->workers[socket];
    struct vr_header header;
    struct vr_reply reply;
    const void *body, *data;
    (void)from;
    l->now_ns = clock_now_ns();
    if (!vr_packets_receive(&l->packets, bytes, size, &header, &body))
        return;
    switch (vr_caller_receive(&w->caller, &header, body, &reply, &data)) {
    case VR_ANSWER_NONE:
        return;
    case VR_ANSWER_REGISTERED:
        l->registered++;
        break;
    case VR_ANSWER_REPLY:
        replied(l, w, &reply, data);
        break;
    case VR_ANSWER_EVICTED:
        /* Whether its operation was executed nobody knows. */
        note(l, w, NULL, NULL);
        l->r->evictions++;
        l->registered--;
        l->answered++;
        begin_session(l, socket);
        return;
    }
    next(l, socket);
}

static void on_disk(void *context, uint32_t tag, int result)
{
    (void)context, (void)tag, (void)result;
}

static void resend(struct load *l)
{
    for (uint32_t i = 0; i < l->s->clients; i++) {
        struct worker *w = &l->workers[i];
        if (!w->caller.waiting || l->now_ns - w->sent_ns < l->s->patience_ns)
            continue;
        l->r->resends++;
        transmit(l, i, true);
    }
    l->look_ns = l->now_ns + LOOK_NS;
}

/* Open loop: requests that are due by now, each its client's. */
static void arrive(struct load *l)
{
    while (goes_on(l)) {
        uint64_t due_ns = l->started_ns + (uint64_t)((double)l->arrivals * 1e9 / l->s->rate);
        if (due_ns > l->now_ns)
            return;
        uint32_t index = (uint32_t)(l->arrivals++ % l->s->clients);
        struct worker *w = &l->workers[index];
        if (!w->backlog++)
            w->backlog_due_ns = due_ns;
        if (!w->caller.waiting)
            next(l, index);
    }
}

static uint64_t deadline(const struct load *l)
{
    uint64_t at = l->look_ns;
    if (open_loop(l) && goes_on(l)) {
        uint64_t due_ns = l->started_ns + (uint64_t)((double)l->arrivals * 1e9 / l->s->rate);
        at = due_ns < at ? due_ns : at;
    }
    return at;
}

static int turn(struct load *l, struct error *err)
{
    int result = vr_io_turn(&l->io, deadline(l), err);
    l->now_ns = clock_now_ns();
    if (open_loop(l))
        arrive(l);
    if (l->now_ns >= l->look_ns) {
        resend(l);
        if (l->s->tick && l->measured)
            l->s->tick(l->s->context, l->now_ns - l->started_ns);
        if (l->s->check && !result)
            result = l->s->check(l->s->context, err);
    }
    return result;
}

static int begin_sessions(struct load *l, struct error *err)
{
    uint64_t end_ns = clock_now_ns() + START_NS;
    l->now_ns = clock_now_ns();
    for (uint32_t i = 0; i < l->s->clients; i++)
        begin_session(l, i);
    while (l->registered < l->s->clients) {
        int result = turn(l, err);
        if (result)
            return result;
        if (stopped(l))
            return error_set(err, -EINTR, "interrupted");
        if (l->now_ns > end_ns)
            return error_set(err, -ETIMEDOUT,
                             "only %u of %lu clients got a session within %llu s: is a majority of "
                             "the replicas running?",
                             l->registered, l->s->clients, START_NS / NS_PER_S);
    }
    return 0;
}

/* A silence that has not ended is one, too. */
static void conclude(struct load *l)
{
    struct vr_load_result *r = l->r;
    bool all = l->answered == l->issued && l->issued >= l->arrivals;
    r->elapsed_ns = (all ? l->last_answer_ns : l->now_ns) - l->started_ns;
    if (!all && l->now_ns - l->last_answer_ns > r->gap_ns)
        r->gap_ns = l->now_ns - l->last_answer_ns;
    if (l->arrivals > l->issued)
        r->unanswered += l->arrivals - l->issued; /* due, and never sent */
}

static int run_phase(struct load *l, uint64_t requests, bool measured, struct error *err)
{
    l->measured = measured;
    l->issued = l->answered = l->arrivals = 0;
    l->wanted = requests;
    l->going = true;
    l->now_ns = l->started_ns = l->last_answer_ns = clock_now_ns();
    for (uint32_t i = 0; i < l->s->clients && !open_loop(l); i++)
        if (!l->workers[i].caller.waiting)
            next(l, i);
    int result = 0;
    uint64_t end_ns = 0;
    while (!result && !stopped(l) &&
           (l->answered < l->issued || l->issued < l->arrivals || goes_on(l))) {
        result = turn(l, err);
        /* After the last request the rest gets its time, and then is left. */
        if (!goes_on(l) && !end_ns)
            end_ns = l->now_ns + START_NS;
        if (end_ns && l->now_ns > end_ns)
            break;
    }
    l->going = false;
    if (!result && !measured && stopped(l))
        return error_set(err, -EINTR, "interrupted");
    if (!result && l->refused)
        return error_set(err, -E2BIG,
                         "the replicas refuse requests of this size; their batch-bytes is smaller "
                         "than in this configuration");
    if (measured)
        conclude(l);
    return result;
}

static int open_load(struct load *l, struct error *err)
{
    const struct vr_load_settings *s = l->s;
    l->workers = memory_zalloc(s->clients, sizeof(*l->workers));
    l->sockets = memory_zalloc(s->clients, sizeof(*l->sockets));
    l->last_value = memory_zalloc(s->keys, sizeof(*l->last_value));
    l->payload = memory_zalloc(1, VR_CALLER_DATA_MAX);
    for (uint64_t i = 0; i < s->clients; i++)
        l->sockets[i] = -1;
    struct vr_config config = l->cluster->config;
    config.index = VR_TO_CLIENT;
    vr_packets_init(&l->packets, &config, &l->cluster->key.keys, l->cluster->datagram_bytes,
                    vr_client_id());
    vr_cluster_use_keys(l->cluster, &l->packets);
    for (uint64_t i = 0; i < s->clients; i++) {
        l->sockets[i] = vr_client_socket(l->cluster, err);
        if (l->sockets[i] < 0)
            return l->sockets[i];
    }
    struct vr_io_handler handler = {on_packet, on_disk, l};
    return vr_io_open(&l->io, s->way, l->sockets, (uint32_t)s->clients, l->cluster->datagram_bytes,
                      false, handler, err);
}

static void close_load(struct load *l)
{
    vr_io_close(&l->io);
    for (uint64_t i = 0; l->sockets && i < l->s->clients; i++)
        if (l->sockets[i] >= 0)
            close(l->sockets[i]);
    vr_packets_done(&l->packets);
    free(l->sockets);
    free(l->workers);
    free(l->last_value);
    free(l->payload);
}

int vr_load_run(const struct vr_cluster *cluster, const struct vr_load_settings *settings,
                struct vr_load_result *ret_result, struct error *err)
{
    struct load l = {.cluster = cluster, .s = settings, .r = ret_result};
    memset(ret_result, 0, sizeof(*ret_result));
    l.random = settings->seed * 0x9e3779b97f4a7c15 + 1;
    l.next_value = (settings->seed & 0xffff) << 40;
    int result = vr_caller_check_size(
        &cluster->config, settings->kind == VR_LOAD_NULL ? settings->payload_bytes : 0, err);
    bool writes =
        settings->kind == VR_LOAD_PUT || settings->kind == VR_LOAD_MIXED || settings->fill;
    if (!result && writes && !vr_role_allows(cluster->key.role, VR_REQUEST, VR_OP_PUT))
        result = error_set(err, -EACCES, "%s is a key of role '%s', which does not allow writing",
                           cluster->key_path, vr_role_names[cluster->key.role]);
    if (result)
        return result;
    result = open_load(&l, err);
    if (!result)
        result = begin_sessions(&l, err);
    if (!result && settings->fill) {
        l.filling = true;
        result = run_phase(&l, settings->keys, false, err);
        l.filling = false;
    }
    if (!result && settings->warmup)
        result = run_phase(&l, settings->warmup, false, err);
    if (!result) {
        ret_result->resends = ret_result->evictions = 0;
        if (settings->begins)
            settings->begins(settings->context);
        result = run_phase(&l, settings->requests, true, err);
        if (settings->ends)
            settings->ends(settings->context);
        for (uint32_t i = 0; i < settings->clients; i++)
            if (l.workers[i].caller.waiting && l.workers[i].caller.registered) {
                ret_result->unanswered++;
                note(&l, &l.workers[i], NULL, NULL);
            }
    }
    close_load(&l);
    return result;
}
