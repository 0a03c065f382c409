/* SPDX-License-Identifier: MIT */
/*
 * Profiles that other tools wrote, as one model: stacks whose frames have names already.  The
 * readers know nothing of struct profile; profile/take_given.c makes one of it.
 *
 *   pprof    profile.proto, packed with gzip or not: go tool pprof, pprof-rs, py-spy, parca, …
 *   folded   "main;parse;read 12", one stack a line: stackcollapse-*.pl, inferno, bpftrace, …
 */
#ifndef ASSAY_PROFILE_GIVEN_GIVEN_H
#define ASSAY_PROFILE_GIVEN_GIVEN_H

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum given_kind { GIVEN_NONE, GIVEN_PPROF, GIVEN_FOLDED };

/* Texts are the arena's; "" where they are not known. */
struct given_frame {
    const char *name, *binary, *file;
    uint32_t line;
    bool inlined, is_kernel;
};

/* The frames of one address, the innermost first; without a name none, but the address. */
struct given_location {
    uint32_t first_frame, frame_count;
    uint64_t address;
    const char *binary;
};

struct given_event {
    const char *name;
    bool is_time; /* values are nanoseconds */
};

struct given_sample {
    size_t first_location; /* in `chain`, the innermost first */
    uint32_t location_count;
    const char *comm; /* "" when not known */
    uint32_t pid, tid;
    uint64_t samples; /* how many are merged in it */
};

struct given {
    struct arena arena;
    struct given_event *events;
    size_t event_count, event_capacity;
    struct given_frame *frames;
    size_t frame_count, frame_capacity;
    struct given_location *locations;
    size_t location_count, location_capacity;
    uint32_t *chain;
    size_t chain_count, chain_capacity;
    struct given_sample *samples;
    size_t sample_count, sample_capacity;
    uint64_t *values; /* event_count for each sample */
    size_t value_count, value_capacity;
    uint64_t duration_ns;
    const char *comment; /* the command line, where the writer left it; or NULL */
};

/* What a file is, by how it begins; GIVEN_NONE also for what cannot be read, and for pipes. */
enum given_kind given_kind_of(const char *path);
/* Errors name the place; the caller names the file.  `bytes` needs no end mark. */
int given_read(struct given *ret_given, enum given_kind kind, const char *bytes, size_t length,
               struct error *err);
void given_done(struct given *g);

int given_read_pprof(struct given *g, const char *bytes, size_t length, struct error *err);
int given_read_folded(struct given *g, const char *bytes, size_t length, struct error *err);

#endif
