/* SPDX-License-Identifier: MIT */
/* The events of a recording: attributes, the ids of their instances, and which of them a record
 * belongs to. */
#include "base/memory.h"
#include "sampler/perfdata_internal.h"

#include <inttypes.h>
#include <stdio.h>

#define SAMPLE_ID_BITS                                                             \
    (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | \
     PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)

/* How many bytes the fields of `bits` take, each of which takes eight. */
static ptrdiff_t words(uint64_t sample_type, uint64_t bits)
{
    return 8 * __builtin_popcountll(sample_type & bits);
}

/* Where the time stands in a sample, from the header's end. */
static ptrdiff_t time_offset(uint64_t type)
{
    return type & PERF_SAMPLE_TIME
               ? words(type, PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID)
               : -1;
}

/* Where the id stands in a sample, from the header's end. */
static ptrdiff_t id_offset(uint64_t type)
{
    if (type & PERF_SAMPLE_IDENTIFIER)
        return 0;
    if (type & PERF_SAMPLE_ID)
        return words(type, PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR);
    return -1;
}

/* The same back from the end of other records: the sample_id is the last thing in them. */
static ptrdiff_t time_offset_end(uint64_t type)
{
    return type & PERF_SAMPLE_TIME ? words(type, SAMPLE_ID_BITS & ~(uint64_t)PERF_SAMPLE_TID) : -1;
}

static ptrdiff_t id_offset_end(uint64_t type)
{
    if (type & PERF_SAMPLE_IDENTIFIER)
        return 8;
    if (type & PERF_SAMPLE_ID)
        return words(type, PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU);
    return -1;
}

/* Keeps a position that all events share and gives up on one that they do not. */
static void share(bool is_first, ptrdiff_t *common, ptrdiff_t mine)
{
    if (is_first)
        *common = mine;
    else if (*common != mine)
        *common = -1;
}

static void note_layout(struct events *e, const struct perfdata_event_entry *entry)
{
    uint64_t type = entry->event.attr.sample_type;
    bool is_first = e->count == 1, id_all = entry->event.attr.sample_id_all;
    share(is_first, &e->id_offset, id_offset(type));
    share(is_first, &e->id_offset_end, id_all ? id_offset_end(type) : -1);
    share(is_first, &e->time_offset, time_offset(type));
    share(is_first, &e->time_offset_end, id_all ? time_offset_end(type) : -1);
}

struct perfdata_event_entry *events_add(struct events *e, const void *attr, size_t attr_size)
{
    struct perfdata_event_entry *entry = memory_zalloc(1, sizeof(*entry));
    struct perf_event_attr *a = &entry->event.attr;
    memcpy(a, attr, attr_size < sizeof(*a) ? attr_size : sizeof(*a));
    entry->event.index = e->count;
    if (a->sample_id_all)
        entry->sample_id_size = (size_t)words(a->sample_type, SAMPLE_ID_BITS);
    char name[128];
    perfdata_attr_name(a, name, sizeof(name));
    entry->name = memory_strdup(name);
    entry->event.name = entry->name;
    ARRAY_PUSH(e->entries, e->count, e->capacity) = entry;
    note_layout(e, entry);
    return entry;
}

static size_t id_hash(uint64_t id)
{
    return (size_t)((id * 0x9e3779b97f4a7c15ULL) >> 20);
}

static void id_insert(struct events *e, uint64_t id, struct perfdata_event_entry *entry)
{
    size_t at = id_hash(id) & (e->slot_count - 1);
    while (e->slots[at].entry && e->slots[at].id != id)
        at = (at + 1) & (e->slot_count - 1);
    if (!e->slots[at].entry)
        e->id_count++;
    e->slots[at] = (struct id_slot){id, entry};
}

static void id_table_grow(struct events *e)
{
    struct id_slot *old = e->slots;
    size_t old_count = e->slot_count;
    e->slot_count = old_count ? old_count * 2 : 64;
    e->slots = memory_zalloc(e->slot_count, sizeof(*e->slots));
    e->id_count = 0;
    for (size_t i = 0; i < old_count; i++)
        if (old[i].entry)
            id_insert(e, old[i].id, old[i].entry);
    free(old);
}

void events_add_ids(struct events *e, struct perfdata_event_entry *entry, const uint64_t *ids,
                    size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (e->id_count * 2 >= e->slot_count)
            id_table_grow(e);
        id_insert(e, ids[i], entry);
        ARRAY_PUSH(entry->ids, entry->id_count, entry->id_capacity) = ids[i];
    }
    entry->event.ids = entry->ids;
    entry->event.id_count = entry->id_count;
}

void events_set_name(struct perfdata_event_entry *entry, const char *name, size_t length)
{
    length = strnlen(name, length);
    if (!length)
        return;
    free(entry->name);
    entry->name = memory_strndup(name, length);
    entry->event.name = entry->name;
    entry->has_file_name = true;
}

void events_done(struct events *e)
{
    for (size_t i = 0; i < e->count; i++) {
        free(e->entries[i]->ids);
        free(e->entries[i]->name);
        free(e->entries[i]);
    }
    free(e->entries);
    free(e->slots);
    *e = (struct events){0};
}

struct perfdata_event_entry *events_by_id(const struct events *e, uint64_t id)
{
    if (!e->slot_count)
        return NULL;
    size_t at = id_hash(id) & (e->slot_count - 1);
    while (e->slots[at].entry) {
        if (e->slots[at].id == id)
            return e->slots[at].entry;
        at = (at + 1) & (e->slot_count - 1);
    }
    return NULL;
}

/* The eight bytes at an offset from the header's end, or back from the record's end; false when
 * the record is too short for them. */
static bool word_at(const struct perf_event_header *record, ptrdiff_t from_start,
                    ptrdiff_t from_end, uint64_t *ret_word)
{
    bool is_sample = record->type == PERF_RECORD_SAMPLE;
    ptrdiff_t offset = is_sample ? from_start : from_end, size = record->size;
    if (offset < 0)
        return false;
    offset = is_sample ? offset + (ptrdiff_t)sizeof(*record) : size - offset;
    if (offset < (ptrdiff_t)sizeof(*record) || offset + 8 > size)
        return false;
    memcpy(ret_word, (const char *)record + offset, 8);
    return true;
}

struct perfdata_event_entry *events_of_record(const struct events *e,
                                              const struct perf_event_header *record)
{
    if (!e->count)
        return NULL;
    bool is_sample = record->type == PERF_RECORD_SAMPLE;
    uint64_t id;
    if (e->count == 1)
        return e->entries[0];
    if (!word_at(record, e->id_offset, e->id_offset_end, &id))
        return is_sample ? NULL : e->entries[0];
    /* Records that perf made up itself have the id zero. */
    struct perfdata_event_entry *entry = id ? events_by_id(e, id) : e->entries[0];
    return entry || is_sample ? entry : e->entries[0];
}

uint64_t events_record_time(const struct events *e, const struct perf_event_header *record)
{
    uint64_t time_ns = 0;
    if (word_at(record, e->time_offset, e->time_offset_end, &time_ns))
        return time_ns == UINT64_MAX ? 0 : time_ns;
    if (e->count < 2)
        return 0;
    const struct perfdata_event_entry *entry = events_of_record(e, record);
    if (!entry)
        return 0;
    const struct perf_event_attr *a = &entry->event.attr;
    word_at(record, time_offset(a->sample_type),
            a->sample_id_all ? time_offset_end(a->sample_type) : -1, &time_ns);
    return time_ns == UINT64_MAX ? 0 : time_ns;
}

size_t perfdata_event_count(const struct perfdata *p)
{
    return p->events.count;
}

const struct perfdata_event *perfdata_event(const struct perfdata *p, size_t index)
{
    return &p->events.entries[index]->event;
}

static const char *software_name(uint64_t config)
{
    static const char *const names[] = {
        "cpu-clock",        "task-clock",   "page-faults",  "context-switches",
        "cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
        "emulation-faults", "dummy",        "bpf-output",   "cgroup-switches",
    };
    return config < ARRAY_COUNT(names) ? names[config] : NULL;
}

static const char *hardware_name(uint64_t config)
{
    static const char *const names[] = {
        "cycles",
        "instructions",
        "cache-references",
        "cache-misses",
        "branches",
        "branch-misses",
        "bus-cycles",
        "stalled-cycles-frontend",
        "stalled-cycles-backend",
        "ref-cycles",
    };
    config &= 0xffffffff; /* above stands the PMU of a hybrid machine */
    return config < ARRAY_COUNT(names) ? names[config] : NULL;
}

static void cache_name(uint64_t config, char *name, size_t size)
{
    static const char *const caches[] = {"L1-dcache", "L1-icache", "LLC", "dTLB",
                                         "iTLB",      "branch",    "node"};
    static const char *const ops[] = {"load", "store", "prefetch"};
    uint64_t cache = config & 0xff, op = config >> 8 & 0xff, result = config >> 16 & 0xff;
    if (cache < ARRAY_COUNT(caches) && op < ARRAY_COUNT(ops) && result < 2)
        snprintf(name, size, result ? "%s-%s-misses" : "%s-%ss", caches[cache], ops[op]);
    else
        snprintf(name, size, "cache:0x%" PRIx64, config);
}

static void base_name(const struct perf_event_attr *a, char *name, size_t size)
{
    const char *known = NULL;
    if (a->type == PERF_TYPE_HARDWARE)
        known = hardware_name(a->config);
    else if (a->type == PERF_TYPE_SOFTWARE)
        known = software_name(a->config);
    if (known)
        snprintf(name, size, "%s", known);
    else if (a->type == PERF_TYPE_HW_CACHE)
        cache_name(a->config, name, size);
    else if (a->type == PERF_TYPE_TRACEPOINT)
        snprintf(name, size, "tracepoint:%" PRIu64, (uint64_t)a->config);
    else if (a->type == PERF_TYPE_BREAKPOINT)
        snprintf(name, size, "mem:0x%" PRIx64, (uint64_t)a->bp_addr);
    else if (a->type == PERF_TYPE_RAW)
        snprintf(name, size, "r%" PRIx64, (uint64_t)a->config);
    else
        snprintf(name, size, "type%u/config=0x%" PRIx64 "/", a->type, (uint64_t)a->config);
}

void perfdata_attr_name(const struct perf_event_attr *a, char *name, size_t size)
{
    char base[96], modifiers[8];
    size_t m = 0;
    base_name(a, base, sizeof(base));
    if ((a->exclude_user || a->exclude_kernel) && !(a->exclude_user && a->exclude_kernel))
        modifiers[m++] = a->exclude_kernel ? 'u' : 'k';
    for (unsigned i = 0; i < a->precise_ip; i++)
        modifiers[m++] = 'p';
    modifiers[m] = '\0';
    snprintf(name, size, "%s%s%s", base, m ? ":" : "", modifiers);
}
