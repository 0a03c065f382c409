/* SPDX-License-Identifier: MIT */
/* See guest_internal.h: which files a command mapped as code, and where, as the kernel records it
 * for perf. */
#include "base/memory.h"
#include "vm/guest_internal.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { RING_BYTES = 8 << 20, PAGE_BYTES = 4096 };

void guest_maps_open(struct guest_maps *m)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof(attr),
                                   .config = PERF_COUNT_SW_DUMMY,
                                   .mmap = 1,
                                   .mmap2 = 1,
                                   .inherit = 1,
                                   .watermark = 1,
                                   .wakeup_watermark = RING_BYTES};
    *m = (struct guest_maps){0};
    m->fd = (int)syscall(SYS_perf_event_open, &attr, 0, 0, -1, PERF_FLAG_FD_CLOEXEC);
    if (m->fd < 0)
        return;
    m->ring = mmap(NULL, PAGE_BYTES + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
    if (m->ring == MAP_FAILED)
        m->ring = NULL;
}

/* PERF_RECORD_MMAP2 up to the name. */
struct record {
    struct perf_event_header header;
    uint32_t pid, tid;
    uint64_t start, length, offset;
    uint32_t major, minor;
    uint64_t inode, generation;
    uint32_t protection, flags;
    char name[];
};

static void put_record(struct strbuf *out, const struct record *r)
{
    CLEANUP(memory_freep)
    char *line = memory_printf("%llx %llx %llx %s\n", (unsigned long long)r->start,
                               (unsigned long long)(r->start + r->length),
                               (unsigned long long)r->offset, r->name);
    bool is_known = r->name[0] == '/' || r->name[0] == '[';
    if (is_known && !(out->length && strstr(out->data, line)))
        strbuf_puts(out, line);
}

/* Nothing was read before, so the records begin at the ring's start; those behind its end are
 * lost. */
void guest_maps_put(const struct guest_maps *m, struct strbuf *out)
{
    if (!m->ring)
        return;
    const struct perf_event_mmap_page *page = m->ring;
    uint64_t end = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE); /* the kernel's release */
    const char *bytes = (const char *)m->ring + PAGE_BYTES;
    for (uint64_t at = 0; at + sizeof(struct record) <= end && at < RING_BYTES;) {
        const struct record *r = (const struct record *)(bytes + at);
        if (r->header.size < sizeof(r->header))
            break;
        if (r->header.type == PERF_RECORD_MMAP2)
            put_record(out, r);
        at += r->header.size;
    }
}

void guest_maps_close(struct guest_maps *m)
{
    if (m->ring)
        munmap(m->ring, PAGE_BYTES + RING_BYTES);
    if (m->fd >= 0)
        close(m->fd);
}
