/* SPDX-License-Identifier: MIT */
#include "vr/core/sessions.h"
#include "base/memory.h"
#include "vr/core/planted.h"

#include <string.h>

#define NOBODY UINT32_MAX
#define SAVED_HEAD offsetof(struct vr_session, in_flight)
#define KEPT_BYTES (SAVED_HEAD + VR_RESULT_BYTES_MAX)

uint32_t vr_sessions_pages(uint32_t page_bytes, uint32_t capacity)
{
    return (uint32_t)((capacity * KEPT_BYTES + page_bytes - 1) / page_bytes);
}

void vr_sessions_init(struct vr_sessions *t, uint32_t capacity, struct vr_pages *pages,
                      uint32_t first)
{
    uint32_t places = 4;
    while (places < 2 * capacity)
        places *= 2;
    *t = (struct vr_sessions){
        .capacity = capacity, .index_mask = places - 1, .pages = pages, .first = first};
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

void vr_sessions_keep(struct vr_sessions *t, const struct vr_session *s)
{
    size_t at = (size_t)(s - t->items) * KEPT_BYTES;
    vr_pages_write(t->pages, t->first, at, s, SAVED_HEAD);
    vr_pages_write(t->pages, t->first, at + SAVED_HEAD, s->result, s->size);
}

bool vr_sessions_valid(const struct vr_sessions *t, uint32_t count, vr_page_reader read,
                       const void *context)
{
    for (uint32_t i = 0; i < count; i++) {
        unsigned char head[SAVED_HEAD];
        struct vr_session s;
        for (size_t b = 0; b < sizeof(head); b++) {
            size_t at = i * KEPT_BYTES + b;
            head[b] =
                read(context, t->first + (uint32_t)(at / t->pages->bytes))[at % t->pages->bytes];
        }
        memcpy(&s, head, sizeof(head));
        if (s.size > VR_RESULT_BYTES_MAX || !s.client)
            return false;
    }
    return count <= t->capacity;
}

void vr_sessions_load(struct vr_sessions *t, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct vr_session *s = &t->items[i];
        vr_pages_read(t->pages, t->first, i * KEPT_BYTES, s, SAVED_HEAD);
        vr_pages_read(t->pages, t->first, i * KEPT_BYTES + SAVED_HEAD, s->result, s->size);
        s->in_flight = 0;
    }
    t->count = count;
    reindex(t);
}
