/* SPDX-License-Identifier: MIT */
/*
 * What goes over the port between assay and the emulated machine: frames, in both directions, each
 * a line "KIND LENGTH [WORD]\n" followed by LENGTH bytes.
 *
 *   from assay             payload                        answer
 *   run LENGTH UID         argv, each ended by NUL        out…, err…, then exit
 *   measure LENGTH UID     fields, each ended by NUL      out…, err…, metrics, usage, counts, exit
 *   put LENGTH 0MODE       path, NUL, the file's bytes    exit
 *   get LENGTH             path                           out…, exit
 *   hold 0                                                exit, when the machine is to be kept
 *   off 0                                                 none: the machine powers off
 *
 * The guest greets with "ready": its kernel's release, and on a second line how many nanoseconds of
 * its clock had passed when its first process began.  The exit frame says "exit 3" or "signal 9".
 * A request that cannot be served is answered with err (why) and exit 127, as a shell would.
 *
 * Fields of measure begin with a letter: a word of the argv, v NAME=VALUE for the environment, e
 * the events to count (as -e takes them), d the folder to run in, i the file to read from, l how
 * many mappings its memory has more than by itself.  A
 * command among the host's files has p, the program there, g, its groups, f and t, a directory and
 * the name of another one in whose place it is to be seen, and n when its output is not wanted;
 * maps then comes behind err, and says which files it mapped as code.  What comes back: metrics has
 * the lines that the program wrote to ASSAY_METRICS_FD; usage is a line of numbers (see struct
 * vm_usage); counts has a line for each event, in their order: "RAW ENABLED RUNNING FAILED\tNAME"
 * or "-\tNAME\tWHY".
 *
 * What comes from the machine is foreign input: everything is bounded and checked.
 */
#ifndef ASSAY_VM_FRAMES_H
#define ASSAY_VM_FRAMES_H

#include "base/error.h"
#include "base/strings.h"
#include "counters/counters.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

enum {
    VM_HEADER_MAX = 128,
    VM_KIND_MAX = 16,
    VM_FRAME_MAX = 256 << 20,
};

struct vm_frame {
    char kind[VM_KIND_MAX];
    size_t length;
    long word;           /* a user's number or a file's mode */
    const char *payload; /* length bytes */
};

/* The header's line with or without its end; payload is not set. */
bool vm_frame_parse(const char *line, struct vm_frame *ret);
/* Appends a frame. */
void vm_frame_put(struct strbuf *out, const char *kind, const char *word, const void *bytes,
                  size_t length);

/* Bytes as they come, taken apart into frames. */
struct vm_frames {
    struct strbuf bytes;
    size_t at; /* of the first byte that was not handed out */
};

void vm_frames_add(struct vm_frames *f, const void *bytes, size_t length);
/* 1 and the next frame, whose payload is valid until bytes are added; 0 when it is not there yet;
 * -EPROTO when what came is no frame. */
int vm_frames_next(struct vm_frames *f, struct vm_frame *ret, struct error *err);
void vm_frames_done(struct vm_frames *f);

/* What the kernel says of a command that ended there. */
struct vm_usage {
    uint64_t wall_ns, user_ns, sys_ns, rss_kib_max;
    uint64_t minor_faults, major_faults, voluntary_switches, involuntary_switches;
};

void vm_usage_put(struct strbuf *out, uint64_t wall_ns, const struct rusage *usage);
bool vm_usage_parse(const char *text, size_t length, struct vm_usage *ret);

struct vm_count {
    char *name;
    char *why; /* not NULL: not counted there, and why */
    struct counter_value value;
};

struct vm_counts {
    struct vm_count *items;
    size_t count, capacity;
};

void vm_counts_put(struct strbuf *out, const char *name, const char *why,
                   const struct counter_value *value);
/* False when a line makes no sense; what was read before it stays. */
bool vm_counts_parse(const char *text, size_t length, struct vm_counts *counts);
const struct vm_count *vm_counts_find(const struct vm_counts *counts, const char *name);
void vm_counts_done(struct vm_counts *counts);
/* Frees what was there; `from` is empty afterwards. */
void vm_counts_move(struct vm_counts *to, struct vm_counts *from);

/* "exit 3" or "signal 9" as wait(2) would tell it; false for anything else. */
bool vm_exit_parse(const char *text, size_t length, int *ret_status);

#endif
