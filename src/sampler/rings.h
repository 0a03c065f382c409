/* SPDX-License-Identifier: MIT */
/*
 * The rings that the kernel writes records into, one for each CPU.
 *
 * rings_collect looks over what is there, header by header, and describes it by a vector that
 * points into the rings, so that one writev carries it to the file without a copy of our own;
 * rings_release then gives the room back.  One thread at a time.
 */
#ifndef ASSAY_SAMPLER_RINGS_H
#define ASSAY_SAMPLER_RINGS_H

#include "base/error.h"
#include "base/strings.h"
#include "sampler/mapped_files.h"
#include "sampler/trim.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct ring {
    int fd; /* of the event that owns it; not closed here */
    struct perf_event_mmap_page *page;
    unsigned char *data;
    size_t size; /* of data: a power of two */
    uint64_t head, tail;
    uint64_t last_id; /* the one of ours that was seen last */
};

/* What went by. */
struct ring_totals {
    uint64_t samples, lost, throttled, records, bytes;
    uint64_t first_sample_ns, last_sample_ns;
};

struct rings {
    struct ring *items;
    size_t count, capacity;
    struct iovec *vector; /* with room for one more by the caller */
    size_t vector_count, vector_capacity;
    ptrdiff_t time_offset; /* of the time in a sample, from the header's end; -1 for none */
    struct ring_totals totals;
    struct mapped_files *files; /* where mapped files are noted, or NULL */
    /*
     * Newer kernels (seen on 6.18) take one buffer for all events that a page fault or a context
     * switch is a sample of, and fill in the id only once: when another session samples the same,
     * our samples can have that session's id.  Where one event alone can be meant, the vector has
     * that event's id in place of a foreign one.  ids is sorted; mend_id 0 leaves all as it is.
     */
    uint64_t *ids;
    size_t id_count;
    uint64_t mend_id;
    uint64_t *mends; /* where foreign ids stand in the ring at hand */
    size_t mend_count, mend_capacity;
    unsigned char *scratch; /* for a record that runs over the ring's end */
    /* Copies of stacks are shortened (trim.h) when these are there: the shape of each event's
     * samples by its ids, in their order; one with the id 0 when all are of one event.  The vector
     * then has copies in the place of the rings' own bytes. */
    struct ring_shape *shapes;
    size_t shape_count;
    struct strbuf trimmed;
    struct trim_totals stacks;
};

struct ring_shape {
    uint64_t id, type, registers; /* sample_type, sample_regs_user */
};

/* Maps a ring of at most `size` bytes (a power of two) for the event; where the limit of locked
 * memory forbids it, smaller ones are tried.  -EPERM when not even the smallest is allowed. */
int rings_add(struct rings *r, int fd, size_t size, struct error *err);
void rings_done(struct rings *r);

/* Fills vector[0..vector_count) with all that is there; returns how many bytes that is. */
size_t rings_collect(struct rings *r);
/* Instead of the two: gives each record to f, whole, and gives its room back. */
void rings_each(struct rings *r, void (*f)(void *context, const struct perf_event_header *record),
                void *context);
/* Gives back what rings_collect described. */
void rings_release(struct rings *r);

#endif
