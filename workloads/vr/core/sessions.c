/* SPDX-License-Identifier: MIT */
#include "vr/core/sessions.h"
#include "base/memory.h"
#include "vr/core/planted.h"

#include <string.h>

#define NOBODY UINT32_MAX
#define SAVED_HEAD offsetof(struct vr_session, in_flight)

void vr_sessions_init(struct vr_sessions *t, uint32_t capacity)
{
    uint32_t places = 4;
    while (places < 2 * capacity)
        places *= 2;
    *t = (struct vr_sessions){.capacity = capacity, .index_mask = places - 1};
    t->items = memory_zalloc(capacity, sizeof(*t->items));
    t->index = memory_alloc(places * sizeof(*t->index));
    memset(t->index, 0xff, places * sizeof(*t->index));
}

void vr_sessions_done(struct vr_sessions *t)
{
    free(t->items);
    free(t->index);
    *t = (struct vr_sessions){0};
}

static uint32_t place(const struct vr_sessions *t, uint64_t client)
{
    uint32_t at = (uint32_t)((client * 0x9e3779b97f4a7c15) >> 32) & t->index_mask;
    while (t->index[at] != NOBODY && t->items[t->index[at]].client != client)
        at = (at + 1) & t->index_mask;
    return at;
}

static void reindex(struct vr_sessions *t)
{
    memset(t->index, 0xff, (t->index_mask + 1) * sizeof(*t->index));
    for (uint32_t i = 0; i < t->count; i++)
        t->index[place(t, t->items[i].client)] = i;
}

struct vr_session *vr_sessions_find(struct vr_sessions *t, uint64_t client)
{
    uint32_t index = t->index[place(t, client)];
    return index == NOBODY ? NULL : &t->items[index];
}

/* The oldest session: the one that began first, not the one that this replica heard of last. */
static struct vr_session *oldest(struct vr_sessions *t)
{
    struct vr_session *least = &t->items[0];
    for (uint32_t i = 1; i < t->count; i++) {
        struct vr_session *s = &t->items[i];
        if (PLANTED(EVICT_BY_LOCAL) ? s->in_flight < least->in_flight : s->session < least->session)
            least = s;
    }
    return least;
}

struct vr_session *vr_sessions_begin(struct vr_sessions *t, uint64_t client, uint64_t session,
                                     struct vr_session *ret_evicted)
{
    struct vr_session *s;
    ret_evicted->client = 0;
    if (t->count == t->capacity) {
        s = oldest(t);
        *ret_evicted = *s;
        *s = (struct vr_session){.client = client, .session = session};
        reindex(t);
        return s;
    }
    s = &t->items[t->count];
    *s = (struct vr_session){.client = client, .session = session};
    t->index[place(t, client)] = t->count++;
    return s;
}

void vr_sessions_forget_in_flight(struct vr_sessions *t)
{
    for (uint32_t i = 0; i < t->count; i++)
        t->items[i].in_flight = 0;
}

size_t vr_sessions_bytes_max(const struct vr_sessions *t)
{
    return 8 + t->capacity * (SAVED_HEAD + VR_RESULT_BYTES_MAX);
}

size_t vr_sessions_save(const struct vr_sessions *t, void *out)
{
    unsigned char *at = out;
    uint32_t head[2] = {t->capacity, t->count};
    memcpy(at, head, sizeof(head));
    at += sizeof(head);
    for (uint32_t i = 0; i < t->count; i++) {
        memcpy(at, &t->items[i], SAVED_HEAD);
        memcpy(at + SAVED_HEAD, t->items[i].result, t->items[i].size);
        at += SAVED_HEAD + t->items[i].size;
    }
    return (size_t)(at - (unsigned char *)out);
}

size_t vr_sessions_load(struct vr_sessions *t, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    uint32_t head[2];
    t->count = 0;
    if (size < sizeof(head))
        return 0;
    memcpy(head, at, sizeof(head));
    size_t used = sizeof(head);
    if (head[0] != t->capacity || head[1] > t->capacity)
        return 0;
    for (uint32_t i = 0; i < head[1]; i++) {
        struct vr_session *s = &t->items[i];
        if (size - used < SAVED_HEAD)
            return 0;
        memcpy(s, at + used, SAVED_HEAD);
        used += SAVED_HEAD;
        if (s->size > VR_RESULT_BYTES_MAX || size - used < s->size)
            return 0;
        memcpy(s->result, at + used, s->size);
        s->in_flight = 0;
        used += s->size;
    }
    t->count = head[1];
    reindex(t);
    return used;
}
