/* SPDX-License-Identifier: MIT */
/*
 * The replicated state as memory in pages, of which earlier states stay readable.
 *
 * Problem: a checkpoint is the state at one operation, and while it is hashed, written and sent to
 * others, operations go on.  To copy everything at once takes a pause that grows with the state.
 *
 * Here the whole state lives in pages (struct vr_pages), and who changes a page says so before
 * (vr_pages_touch).  A freeze begins a checkpoint; nothing is copied then.  The first touch of a
 * page after a freeze keeps its content aside.  So the page at a freeze is the kept copy, if there
 * is one, else the page as it is; and the pages touched since the last freeze are what differs.
 * Most changes are of few bytes (vr_pages_put): then only those are kept, and how much the change
 * adds to the page's sum, so that nobody has to read the page again.
 * At most two frozen states exist: the newest checkpoint, from which others are served, and a
 * pending one, which is being hashed and written.
 *
 * A state is named by the sum of its pages' sums, and a page by that of its blocks' sums: what
 * changes adds a difference, and equal states have equal sums, whatever way led to them.  Sums of
 * groups of pages are kept, too, so that two replicas find out where they differ by comparing few
 * numbers.  The sums find damage and difference; they are no defence against somebody who may write
 * states.
 */
#ifndef ASSAY_VR_PAGES_H
#define ASSAY_VR_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a page of some state is read. */
typedef const unsigned char *(*vr_page_reader)(const void *context, uint32_t page);

struct vr_frozen {   /* what is kept of one frozen state */
    uint32_t *place; /* by page: what is kept and where (pages.c), 0: nothing */
    uint32_t *list;  /* the pages that were touched since */
    uint32_t count, capacity;
};

struct vr_pages {
    uint32_t count, bytes; /* how many there may be, and the size of one */
    unsigned char *memory;
    size_t mapped_bytes; /* 0: from the heap */
    /* Of the newest checkpoint. */
    uint64_t *sums, *groups, root;
    struct vr_frozen newest, pending;
    bool has_pending;
    uint64_t *pending_sums; /* of the pages in newest.list, in that order */
    uint32_t pending_capacity;
    uint64_t pending_root;
    /* Kept pages: in chunks that are never given back, so that the memory follows the need. */
    unsigned char **chunks, *empty; /* empty: a page of zeros */
    uint32_t chunk_count, pool_used, *pool_free, pool_free_count, pool_free_capacity;
    /* Kept parts of pages, likewise; those that are free are a list. */
    struct vr_part **part_chunks;
    uint32_t part_chunk_count, parts_used, part_free;
    unsigned char *written; /* by page: whether it was ever changed */
};

void vr_pages_init(struct vr_pages *p, uint32_t count, uint32_t bytes);
void vr_pages_done(struct vr_pages *p);

static inline const unsigned char *vr_pages_at(const struct vr_pages *p, uint32_t page)
{
    return p->memory + (size_t)page * p->bytes;
}
/* A hint: this will be read or changed soon. */
void vr_pages_prefetch(const unsigned char *content, uint32_t bytes);
/* A hint that a few bytes of the page will be changed soon. */
void vr_pages_prefetch_known(const struct vr_pages *p, uint32_t page);
/* The page, to be changed anywhere. */
unsigned char *vr_pages_touch(struct vr_pages *p, uint32_t page);
/* Changes these bytes of a page that has been touched before, and no others. */
void vr_pages_put(struct vr_pages *p, uint32_t page, uint32_t offset, const void *bytes,
                  uint32_t size);
/* Bytes that may stand in several pages, from an offset behind the first of them. */
void vr_pages_write(struct vr_pages *p, uint32_t first, size_t offset, const void *bytes,
                    size_t size);
void vr_pages_read(const struct vr_pages *p, uint32_t first, size_t offset, void *bytes,
                   size_t size);

/* 0 for one with nothing in it: pages that were never used are the same as none. */
uint64_t vr_page_sum(uint32_t page, const void *content, uint32_t bytes);
/* A page as it was at the newest checkpoint, or at the pending one; valid until a page changes. */
const unsigned char *vr_pages_newest(const struct vr_pages *p, uint32_t page);
const unsigned char *vr_pages_pending(const struct vr_pages *p, uint32_t page);

/* Freezes the present state as the pending one.  What differs from the newest are the pages of
 * p->newest.list; each is to be summed (vr_pages_sum) before the pending one can become the newest.
 */
void vr_pages_freeze(struct vr_pages *p);
/* Sums the page at this index of the list. */
void vr_pages_sum(struct vr_pages *p, uint32_t index);
void vr_pages_settle(struct vr_pages *p);
/* The present state is that of the newest checkpoint again. */
void vr_pages_revert(struct vr_pages *p);
/* Puts a page of another state into the newest checkpoint, and into the present state, which must
 * be the same. */
void vr_pages_replace(struct vr_pages *p, uint32_t page, const void *content, uint64_t sum);

/* As many as have sums that fill half a page. */
static inline uint32_t vr_pages_in_group(const struct vr_pages *p)
{
    return p->bytes / 16;
}

#endif
