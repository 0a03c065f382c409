/* SPDX-License-Identifier: MIT */
/* The oracle: one history, a model that executes it, and what clients were told. */
#include "base/memory.h"
#include "vr/sim/internal.h"

#include <assert.h>

void sim_oracle_init(struct sim *s)
{
    struct sim_model *m = &s->model;
    m->session_capacity = s->config.sessions;
    m->group = (struct vr_group){.members = (1u << s->config.replica_count) - 1};
    for (uint8_t i = 0; i < s->config.replica_count; i++)
        m->group.incarnations[i] = i + 1u; /* as they are formatted, one after the other */
    m->entry_checksums = memory_zalloc(SIM_OPS_MAX, sizeof(uint64_t));
    m->checkpoints = memory_zalloc(SIM_OPS_MAX, sizeof(uint64_t));
    uint32_t places = 1u << 14;
    while (places < 32 * s->options.operations)
        places *= 2;
    m->answers = memory_zalloc(places, sizeof(*m->answers));
    m->answer_mask = places - 1;
}

void sim_oracle_done(struct sim *s)
{
    free(s->model.entry_checksums);
    free(s->model.checkpoints);
    free(s->model.answers);
}

static struct sim_answer *answer_of(struct sim_model *m, uint64_t client, uint64_t session,
                                    uint64_t number)
{
    uint64_t at = (client * 0x9e3779b97f4a7c15 + session * 0x94d049bb133111eb +
                   number * 0xbf58476d1ce4e5b9) >>
                  20;
    for (;; at++) {
        struct sim_answer *a = &m->answers[at & m->answer_mask];
        if (a->place == 0 || (a->client == client && a->session == session && a->number == number))
            return a;
    }
}

static void record(struct sim_model *m, const struct vr_request *r, uint32_t status,
                   const void *result, uint32_t size)
{
    struct sim_answer *a = answer_of(m, r->client, r->session, r->number);
    if (a->place)
        return; /* said once, said for good */
    assert(m->place < m->answer_mask / 2);
    *a = (struct sim_answer){r->client, r->session,           r->number, ++m->place, status,
                             size,      vr_hash(result, size)};
}

static void model_register(struct sim_model *m, const struct vr_request *r, uint64_t session)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < m->session_count; i++)
        if (m->sessions[i].client == r->client)
            return;
    if (m->session_count < m->session_capacity) {
        at = m->session_count++;
    } else {
        for (uint32_t i = 1; i < m->session_count; i++)
            if (m->sessions[i].session < m->sessions[at].session)
                at = i;
    }
    m->sessions[at].client = r->client;
    m->sessions[at].session = session;
    m->sessions[at].number = 0;
    /* A client may have begun, been evicted and begun again before it heard of the first time:
     * each beginning has an answer of its own. */
    struct vr_request beginning = {.client = r->client, .number = session};
    record(m, &beginning, VR_OK, &session, sizeof(session));
}

static uint32_t model_scan(const struct sim_model *m, unsigned from, unsigned char *out)
{
    uint32_t size = 0;
    for (unsigned k = from; k < SIM_KEYS; k++) {
        if (!m->keys[k].there)
            continue;
        uint16_t sizes[2] = {1, (uint16_t)m->keys[k].size};
        memcpy(out + size, sizes, 4);
        out[size + 4] = (unsigned char)('a' + k);
        memcpy(out + size + 5, m->keys[k].value, m->keys[k].size);
        size += 5 + m->keys[k].size;
    }
    return size;
}

static void model_run(struct sim_model *m, const struct vr_request *r, const unsigned char *data)
{
    struct vr_kv_args args;
    memcpy(&args, data, sizeof(args));
    unsigned k = (unsigned)data[sizeof(args)] - 'a';
    const unsigned char *expect = data + sizeof(args) + 1, *value = expect + args.expect_size;
    bool there = m->keys[k].there;
    bool same = there ? args.expect_size && m->keys[k].size == args.expect_size &&
                            memcmp(m->keys[k].value, expect, args.expect_size) == 0
                      : args.expect_size == 0;
    unsigned char out[VR_RESULT_BYTES_MAX];
    uint32_t status = VR_OK, size = 0;
    bool give = (r->opcode == VR_OP_GET && there) || (r->opcode == VR_OP_CAS && there && !same);
    if (give)
        memcpy(out, m->keys[k].value, size = m->keys[k].size);
    if (r->opcode == VR_OP_CAS && !same)
        status = there ? VR_CONFLICT : VR_NOT_FOUND;
    if ((r->opcode == VR_OP_GET || r->opcode == VR_OP_DELETE) && !there)
        status = VR_NOT_FOUND;
    if (r->opcode == VR_OP_SCAN)
        size = model_scan(m, k, out);
    if (r->opcode == VR_OP_PUT || (r->opcode == VR_OP_CAS && same)) {
        m->keys[k].there = true;
        m->keys[k].size = args.value_size;
        memcpy(m->keys[k].value, value, args.value_size);
    }
    if (r->opcode == VR_OP_DELETE)
        m->keys[k].there = false;
    record(m, r, status, out, size);
}

/* The oracle's own reading of a change of the group. */
static void model_reconfigure(struct sim *s, const struct vr_request *r, const void *data)
{
    struct sim_model *m = &s->model;
    struct vr_reconfiguration wish;
    uint64_t epoch = vr_epoch_of(m->group.first_view);
    uint32_t status = VR_OK;
    memcpy(&wish, data, sizeof(wish));
    if (wish.epoch != epoch)
        status = VR_CONFLICT;
    else if (!wish.members || __builtin_popcount(wish.members) > VR_REPLICAS_MAX ||
             (epoch && wish.members == m->group.members && !wish.renew &&
              memcmp(wish.incarnations, m->group.incarnations, sizeof(wish.incarnations)) == 0))
        status = VR_INVALID;
    if (status == VR_OK) {
        uint32_t added = wish.members & ~m->group.members;
        s->result->count[SIM_EPOCHS]++;
        s->result->count[SIM_JOINED] += (uint64_t)__builtin_popcount(added);
        for (uint8_t i = 0; i < VR_NODES_MAX; i++)
            s->result->count[SIM_REPLACED] += wish.members & m->group.members & 1u << i &&
                                              wish.incarnations[i] != m->group.incarnations[i];
        m->group.members = wish.members;
        memcpy(m->group.incarnations, wish.incarnations, sizeof(wish.incarnations));
        m->group.first_view = (epoch + 1) << VR_EPOCH_SHIFT;
    }
    struct vr_reconfiguration now = {.members = m->group.members,
                                     .epoch = (uint32_t)vr_epoch_of(m->group.first_view)};
    /* The first group's are no part of the state that its log makes. */
    if (now.epoch)
        memcpy(now.incarnations, m->group.incarnations, sizeof(now.incarnations));
    record(m, r, status, &now, sizeof(now));
}

static void model_request(struct sim *s, const struct vr_request *r, const void *data,
                          uint64_t session)
{
    struct sim_model *m = &s->model;
    if (r->opcode == VR_OP_REGISTER) {
        model_register(m, r, session);
        return;
    }
    for (uint32_t i = 0; i < m->session_count; i++) {
        if (m->sessions[i].client != r->client || m->sessions[i].session != r->session ||
            r->number <= m->sessions[i].number)
            continue;
        m->sessions[i].number = r->number;
        if (r->opcode == VR_OP_RECONFIGURE)
            model_reconfigure(s, r, data);
        else
            model_run(m, r, data);
    }
}

void sim_oracle_executed(struct sim *s, uint8_t index, const struct vr_entry *entry,
                         const void *requests)
{
    struct sim_model *m = &s->model;
    if (entry->op >= SIM_OPS_MAX)
        return;
    if (entry->op <= m->entry_count) {
        if (m->entry_checksums[entry->op] != entry->checksum)
            sim_fail(s, "replica %u executes a different entry as op %lu than before", index,
                     entry->op);
        return;
    }
    if (entry->op != m->entry_count + 1) {
        sim_fail(s, "replica %u executes op %lu, but nobody executed op %lu", index, entry->op,
                 m->entry_count + 1);
        return;
    }
    m->entry_checksums[++m->entry_count] = entry->checksum;
    s->result->digest = vr_hash(&(uint64_t[2]){s->result->digest, entry->checksum}, 16);
    const unsigned char *at = requests;
    for (uint32_t i = 0; i < entry->count; i++) {
        struct vr_request request;
        memcpy(&request, at, sizeof(request));
        model_request(s, &request, at + sizeof(request), entry->op << 16 | i);
        at += vr_request_bytes(request.size);
    }
}

void sim_oracle_answered(struct sim *s, const struct sim_client *c, const struct vr_header *h,
                         const void *body)
{
    struct vr_reply reply;
    memcpy(&reply, body, sizeof(reply));
    const char *result = (const char *)body + sizeof(reply);
    uint64_t number = c->number;
    if (c->oversized && c->registered) {
        s->result->count[SIM_REFUSED]++;
        if (reply.status != VR_TOO_LARGE)
            sim_fail(s, "client %lu: request %lu is too large, and got status %u", c->id, number,
                     reply.status);
        return;
    }
    if (!c->registered && reply.size == sizeof(number))
        memcpy(&number, result, sizeof(number));
    struct sim_answer *a = answer_of(&s->model, c->id, c->session, number);
    if (!a->place)
        sim_fail(s, "client %lu got a reply to request %lu, which is in nobody's history", c->id,
                 c->number);
    else if (a->status != reply.status || a->size != reply.size ||
             a->hash != vr_hash(result, reply.size))
        sim_fail(s,
                 "client %lu got for request %lu status %u \"%.*s\" in view %lu; the history gives "
                 "status %u and other bytes",
                 c->id, c->number, reply.status, (int)(reply.size < 40 ? reply.size : 40), result,
                 h->view, a->status);
    else if (a->place <= c->invoked_place && c->registered)
        sim_fail(s,
                 "client %lu: request %lu precedes in the history one that was answered "
                 "before it was made",
                 c->id, c->number);
    if (a->place > s->completed_place)
        s->completed_place = a->place;
}

void sim_oracle_checkpoint(struct sim *s, uint8_t index)
{
    struct sim_replica *r = &s->replicas[index];
    const struct vr_snapshot *n = &r->core->newest;
    if (n->op == 0 || n->op == r->checkpoint_seen || n->op >= SIM_OPS_MAX)
        return;
    r->checkpoint_seen = n->op;
    uint64_t *known = &s->model.checkpoints[n->op];
    if (*known && *known != n->checksum)
        sim_fail(s, "replica %u has a different state at op %lu than another", index, n->op);
    *known = n->checksum;
}

static bool same_state(struct sim *s, uint8_t index)
{
    struct vr_service *service = s->replicas[index].core->service;
    uint32_t count = 0;
    for (unsigned k = 0; k < SIM_KEYS; k++) {
        unsigned char key = (unsigned char)('a' + k), data[16], out[VR_RESULT_BYTES_MAX];
        uint32_t size, length = vr_kv_encode(data, &key, 1, NULL, 0, NULL, 0);
        bool there = vr_service_execute(service, VR_OP_GET, data, length, out, &size) == VR_OK;
        if (there != s->model.keys[k].there ||
            (there &&
             (size != s->model.keys[k].size || memcmp(out, s->model.keys[k].value, size) != 0)))
            return false;
        count += there;
    }
    return count == vr_service_count(service);
}

bool sim_oracle_converged(struct sim *s)
{
    const struct vr_replica *first = NULL;
    for (uint8_t i = 0; i < s->node_count; i++) {
        const struct vr_replica *r = s->replicas[i].core;
        if (!(s->model.group.members >> i & 1))
            continue;
        if (!r || r->state != VR_NORMAL || (first && r->view != first->view) ||
            r->commit != s->model.entry_count || r->op != s->model.entry_count)
            return false;
        first = r;
    }
    for (uint8_t i = 0; i < s->node_count; i++)
        if (s->model.group.members >> i & 1 && !same_state(s, i))
            sim_fail(s, "replica %u has executed all, but its state differs from the model's", i);
    return true;
}
