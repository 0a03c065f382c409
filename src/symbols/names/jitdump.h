/* SPDX-License-Identifier: MIT */
/*
 * jitdump: what a JIT compiler made and when, with names, lines and the code itself.  The format
 * is described in the kernel's tools/perf/Documentation/jitdump-specification.txt.
 */
#ifndef ASSAY_SYMBOLS_NAMES_JITDUMP_H
#define ASSAY_SYMBOLS_NAMES_JITDUMP_H

#include "base/arena.h"
#include "base/error.h"
#include "base/strings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a piece of code comes from. */
struct code_line {
    uint64_t offset; /* from the start of the piece */
    const char *file;
    uint32_t line;
};

/* From time_ns on, [address, address + size) holds the piece. */
struct jitdump_code {
    uint64_t time_ns, address, size;
    uint64_t index; /* the compiler's number of the piece */
    bool moved;     /* the piece of this number came here; the rest below is not set */
    const char *name;
    uint64_t bytes_offset; /* where its code stands in the file */
    const struct code_line *lines;
    size_t line_count;
};

struct jitdump {
    struct jitdump_code *codes; /* in the file's order */
    size_t count, capacity;
    bool truncated;     /* ends within a record, as that of a process that still runs does */
    struct arena arena; /* names and lines; the caller may take it over */
};

/* Reads what is there.  -EBADMSG with words when it is no jitdump, or of the other byte order. */
int jitdump_parse(const void *bytes, size_t size, struct jitdump *ret, struct error *err);
void jitdump_done(struct jitdump *dump);

#endif
