/* SPDX-License-Identifier: MIT */
/* Samples that read a whole group of events: see struct group. */
#include "base/memory.h"
#include "sampler/perfdata_internal.h"

/* More instances of events than this are not told apart: a file from outside decides how many. */
#define GROUP_VALUES_MAX ((size_t)1 << 22)

static struct group_value *find_value(struct group *g, uint64_t id, uint32_t tid)
{
    size_t at = (size_t)(((id ^ (uint64_t)tid << 40) * 0x9e3779b97f4a7c15ULL) >> 20);
    for (at &= g->slot_count - 1; g->values[at].used; at = (at + 1) & (g->slot_count - 1))
        if (g->values[at].id == id && g->values[at].tid == tid)
            break;
    return &g->values[at];
}

static void grow(struct group *g)
{
    struct group_value *old = g->values;
    size_t old_count = g->slot_count;
    g->slot_count = old_count ? old_count * 2 : 64;
    g->values = memory_zalloc(g->slot_count, sizeof(*g->values));
    for (size_t i = 0; i < old_count; i++)
        if (old[i].used)
            *find_value(g, old[i].id, old[i].tid) = old[i];
    free(old);
}

/* How far the count has come since it was last seen. */
static uint64_t difference(struct group *g, uint64_t id, uint32_t tid, uint64_t value)
{
    if (g->value_count * 2 >= g->slot_count) {
        if (g->slot_count >= GROUP_VALUES_MAX)
            return value;
        grow(g);
    }
    struct group_value *v = find_value(g, id, tid);
    g->value_count += !v->used;
    uint64_t last = v->last;
    *v = (struct group_value){.id = id, .tid = tid, .last = value, .used = true};
    return value - last;
}

void group_start(struct perfdata *p, const struct perfdata_record *record)
{
    p->group.record = *record;
    p->group.index = 0;
    p->group.is_open = true;
}

bool group_next(struct perfdata *p, struct perfdata_record *ret)
{
    struct group *g = &p->group;
    const struct perfdata_read *read = &g->record.sample.read;
    while (g->index < read->count) {
        struct perfdata_read_value v = perfdata_read_value(read, g->index++);
        if (!(read->format & PERF_FORMAT_ID))
            v.id = g->record.id;
        const struct perf_event_attr *leader = &g->record.event->attr;
        bool is_per_thread = leader->inherit && leader->sample_type & PERF_SAMPLE_TID;
        uint64_t period = difference(g, v.id, is_per_thread ? g->record.tid : 0, v.value);
        const struct perfdata_event_entry *entry =
            p->events.count == 1 ? p->events.entries[0] : events_by_id(&p->events, v.id);
        if (!entry)
            p->losses.unmatched++;
        if (!entry || !period)
            continue;
        *ret = g->record;
        ret->id = v.id;
        ret->event = &entry->event;
        ret->sample.period = period;
        p->losses.samples++;
        return true;
    }
    g->is_open = false;
    return false;
}

void group_done(struct group *g)
{
    free(g->values);
}
