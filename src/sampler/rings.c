/* SPDX-License-Identifier: MIT */
/* The kernel's rings: see rings.h. */
#include "sampler/rings.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/strings.h"
#include "sampler/perfdata.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#define RECORD_BYTES_MAX 65536

static int explain_mlock(size_t size, struct error *err)
{
    int64_t limit_kb = 0;
    file_read_i64("/proc/sys/kernel/perf_event_mlock_kb", &limit_kb);
    return error_set(err, -EPERM,
                     "a buffer of %zu KiB for each CPU exceeds your limit on locked memory: "
                     "kernel.perf_event_mlock_kb is %" PRId64
                     " for all your recordings together; stop the others, use a smaller buffer "
                     "with --buffer, or run: sudo sysctl kernel.perf_event_mlock_kb=%zu",
                     size >> 10, limit_kb, (size >> 10) * 4);
}

int rings_add(struct rings *r, int fd, size_t size, struct error *err)
{
    size_t page_size = (size_t)sysconf(_SC_PAGESIZE), wanted = size;
    void *base;
    for (;;) {
        base = mmap(NULL, size + page_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (base != MAP_FAILED)
            break;
        if (errno != EPERM && errno != ENOMEM)
            return error_errno(err, -errno, "mapping a buffer of %zu KiB", size >> 10);
        if (size <= page_size)
            return explain_mlock(wanted, err);
        size /= 2;
    }
    ARRAY_PUSH(r->items, r->count, r->capacity) = (struct ring){
        .fd = fd, .page = base, .data = (unsigned char *)base + page_size, .size = size};
    if (!r->scratch)
        r->scratch = memory_alloc(RECORD_BYTES_MAX);
    return 0;
}

void rings_done(struct rings *r)
{
    size_t page_size = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < r->count; i++)
        munmap(r->items[i].page, r->items[i].size + page_size);
    free(r->items);
    free(r->vector);
    free(r->ids);
    free(r->mends);
    free(r->scratch);
    free(r->shapes);
    strbuf_done(&r->trimmed);
    *r = (struct rings){0};
}

/* The record at `at`, which is copied only when it runs over the ring's end. */
static const void *whole_record(const struct rings *r, const struct ring *ring, uint64_t at,
                                size_t size)
{
    size_t start = (size_t)at & (ring->size - 1), until_end = ring->size - start;
    if (size <= until_end)
        return ring->data + start;
    memcpy(r->scratch, ring->data + start, until_end);
    memcpy(r->scratch + until_end, ring->data, size - until_end);
    return r->scratch;
}

static uint64_t word_at(const struct ring *ring, uint64_t at)
{
    uint64_t word;
    memcpy(&word, ring->data + (at & (ring->size - 1)), sizeof(word));
    return word;
}

static bool is_ours(const struct rings *r, uint64_t id)
{
    size_t low = 0, high = r->id_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->ids[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < r->id_count && r->ids[low] == id;
}

/* The id is the first thing in a sample.  The ring itself cannot be written to. */
static void note_id(struct rings *r, struct ring *ring, uint64_t at)
{
    uint64_t id = word_at(ring, at);
    if (id == ring->last_id)
        return;
    if (is_ours(r, id))
        ring->last_id = id;
    else
        ARRAY_PUSH(r->mends, r->mend_count, r->mend_capacity) = at;
}

static void note_sample(struct rings *r, struct ring *ring, uint64_t at)
{
    r->totals.samples++;
    if (r->mend_id)
        note_id(r, ring, at + sizeof(struct perf_event_header));
    if (r->time_offset < 0)
        return;
    uint64_t time_ns =
        word_at(ring, at + sizeof(struct perf_event_header) + (uint64_t)r->time_offset);
    if (time_ns < r->totals.first_sample_ns || !r->totals.first_sample_ns)
        r->totals.first_sample_ns = time_ns;
    if (time_ns > r->totals.last_sample_ns)
        r->totals.last_sample_ns = time_ns;
}

/* The file of a mapping: pid, tid, start, size, offset, then 24 bytes of inode or build-id. */
static void note_mmap2(const struct rings *r, const struct ring *ring, uint64_t at,
                       const struct perf_event_header *head)
{
    const size_t id_offset = 40, name_offset = 72;
    if (!r->files || head->size <= name_offset)
        return;
    const unsigned char *record = whole_record(r, ring, at, head->size);
    const char *filename = (const char *)record + name_offset;
    if (!memchr(filename, '\0', head->size - name_offset))
        return;
    struct build_id id = {0};
    if (head->misc & PERF_RECORD_MISC_MMAP_BUILD_ID &&
        record[id_offset] <= PERFDATA_BUILD_ID_BYTES) {
        id.size = record[id_offset];
        memcpy(id.bytes, record + id_offset + 4, id.size);
    }
    mapped_files_add(r->files, filename, head->misc & PERF_RECORD_MISC_CPUMODE_MASK,
                     id.size ? &id : NULL);
}

static void note_record(struct rings *r, struct ring *ring, uint64_t at,
                        const struct perf_event_header *head)
{
    switch (head->type) {
    case PERF_RECORD_SAMPLE:
        note_sample(r, ring, at);
        break;
    case PERF_RECORD_LOST:
        r->totals.lost += word_at(ring, at + 16);
        break;
    case PERF_RECORD_THROTTLE:
        r->totals.throttled++;
        break;
    case PERF_RECORD_MMAP2:
        note_mmap2(r, ring, at, head);
        break;
    default:
        break;
    }
}

typedef void record_fn(void *context, const struct perf_event_header *record);

/* Walks from tail to head; records are multiples of eight bytes, so a header never wraps. */
static void look_over(struct rings *r, struct ring *ring, record_fn *f, void *context)
{
    for (uint64_t at = ring->tail; at < ring->head;) {
        struct perf_event_header head;
        memcpy(&head, ring->data + (at & (ring->size - 1)), sizeof(head));
        if (head.size < sizeof(head) || head.size > ring->head - at)
            break;
        note_record(r, ring, at, &head);
        if (f)
            f(context, whole_record(r, ring, at, head.size));
        r->totals.records++;
        at += head.size;
    }
}

static void put_part(struct rings *r, void *bytes, size_t size)
{
    if (size)
        ARRAY_PUSH(r->vector, r->vector_count, r->vector_capacity) = (struct iovec){bytes, size};
}

/* The ring's bytes from one place to another, in two parts when they run over its end. */
static void put_range(struct rings *r, const struct ring *ring, uint64_t from, uint64_t to)
{
    size_t start = (size_t)from & (ring->size - 1), size = (size_t)(to - from);
    size_t until_end = ring->size - start, first = size < until_end ? size : until_end;
    put_part(r, ring->data + start, first);
    put_part(r, ring->data, size - first);
}

static void describe(struct rings *r, const struct ring *ring)
{
    uint64_t from = ring->tail;
    for (size_t i = 0; i < r->mend_count; i++) {
        put_range(r, ring, from, r->mends[i]);
        put_part(r, &r->mend_id, sizeof(r->mend_id));
        from = r->mends[i] + sizeof(r->mend_id);
    }
    put_range(r, ring, from, ring->head);
}

/* What a sample with this id, or without one, has in it. */
static const struct ring_shape *shape_of(const struct rings *r, uint64_t id)
{
    if (!r->shapes[0].id)
        return &r->shapes[0];
    size_t low = 0, high = r->shape_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->shapes[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < r->shape_count && r->shapes[low].id == id ? &r->shapes[low] : NULL;
}

/* Copies the ring's records behind those of the other rings, their stacks shortened. */
static void copy_trimmed(struct rings *r, const struct ring *ring)
{
    size_t mend = 0;
    for (uint64_t at = ring->tail; at < ring->head;) {
        struct perf_event_header head;
        memcpy(&head, ring->data + (at & (ring->size - 1)), sizeof(head));
        if (head.size < sizeof(head) || head.size > ring->head - at)
            break;
        const unsigned char *record = whole_record(r, ring, at, head.size);
        bool is_mended = mend < r->mend_count && r->mends[mend] == at + sizeof(head);
        uint64_t id = is_mended ? r->mend_id : word_at(ring, at + sizeof(head));
        size_t start = r->trimmed.length;
        const struct ring_shape *shape =
            head.type == PERF_RECORD_SAMPLE && head.size > sizeof(head) ? shape_of(r, id) : NULL;
        if (!shape || !trim_sample(&r->trimmed, record, shape->type, shape->registers, &r->stacks))
            strbuf_append(&r->trimmed, (const char *)record, head.size);
        if (is_mended) {
            memcpy(r->trimmed.data + start + sizeof(head), &id, sizeof(id));
            mend++;
        }
        at += head.size;
    }
}

/* Whether the kernel wrote something since the last time. */
static bool find_new(struct ring *ring)
{
    /* Pairs with the kernel's barrier before it moves data_head: the records are there. */
    ring->head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
    ring->tail = ring->page->data_tail;
    return ring->head != ring->tail;
}

void rings_each(struct rings *r, record_fn *f, void *context)
{
    for (size_t i = 0; i < r->count; i++) {
        struct ring *ring = &r->items[i];
        if (!find_new(ring))
            continue;
        r->mend_count = 0;
        look_over(r, ring, f, context);
        r->totals.bytes += ring->head - ring->tail;
    }
    rings_release(r);
}

size_t rings_collect(struct rings *r)
{
    size_t total = 0;
    r->vector_count = 0;
    strbuf_clear(&r->trimmed);
    for (size_t i = 0; i < r->count; i++) {
        struct ring *ring = &r->items[i];
        if (!find_new(ring))
            continue;
        r->mend_count = 0;
        look_over(r, ring, NULL, NULL);
        if (r->shapes)
            copy_trimmed(r, ring);
        else
            describe(r, ring);
        total += (size_t)(ring->head - ring->tail);
    }
    r->totals.bytes += total;
    put_part(r, r->trimmed.data, r->trimmed.length);
    r->vector =
        memory_grow(r->vector, &r->vector_capacity, r->vector_count + 1, sizeof(*r->vector));
    return total;
}

void rings_release(struct rings *r)
{
    for (size_t i = 0; i < r->count; i++) {
        struct ring *ring = &r->items[i];
        /* Pairs with the kernel's read of data_tail: our reads are done. */
        if (ring->head != ring->tail)
            __atomic_store_n(&ring->page->data_tail, ring->head, __ATOMIC_RELEASE);
        ring->tail = ring->head;
    }
}
