/* SPDX-License-Identifier: MIT */
/*
 * What the arguments of system calls point to, read by an eBPF program at the call's entry: paths,
 * the beginning of written data, socket addresses, times.  Without permission for eBPF there is
 * nothing to read, and arguments are shown as pointers.
 *
 * The program runs at every entry on the machine and looks up whether the thread is followed; a
 * second one adds the children of followed threads.  Both are gone when the descriptors are closed.
 */
#ifndef ASSAY_LIVE_PEEK_H
#define ASSAY_LIVE_PEEK_H

#include "base/error.h"
#include "live/calls.h"
#include "sampler/rings.h"

#include <sys/types.h>

#define PEEK_SLOTS 2

/* Of the entry, of the fork, and of the return. */
enum { PEEK_ENTER, PEEK_FORK, PEEK_EXIT, PEEK_PROGRAMS };

/* Which arguments of a call to read, and how: see calls.h for the kinds. */
struct peek_shape {
    uint8_t argument[PEEK_SLOTS]; /* UINT8_MAX for none */
    uint8_t kind[PEEK_SLOTS];
};

struct peek_record {
    uint64_t time_ns;
    uint32_t tid, number;
    struct call_memory memory[PEEK_SLOTS];
    struct peek_record *next;
};

struct peek {
    bool is_open;
    int followed_fd, shapes_fd, buffer_fd, output_fd, pending_fd;
    int programs[PEEK_PROGRAMS], events[PEEK_PROGRAMS];
    int *ring_fds;
    size_t ring_count;
    struct rings rings;
    void (*take)(void *context, struct peek_record *record); /* record is its to free */
    void *context;
};

/* What of a call is to be read; false when nothing is. */
bool peek_shape_of(const struct call_shape *shape, struct peek_shape *ret);

/* Starts reading for the threads, or for all with everywhere. */
int peek_open(struct peek *p, const pid_t *threads, size_t count, bool everywhere,
              struct error *err);
/* From now on the call's arguments are read. */
int peek_want(struct peek *p, uint32_t number, const struct peek_shape *shape, struct error *err);
/* Gives what has been read to take(). */
void peek_drain(struct peek *p);
void peek_done(struct peek *p);

#endif
