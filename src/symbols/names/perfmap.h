/* SPDX-License-Identifier: MIT */
/*
 * /tmp/perf-PID.map: the names that a JIT compiler writes for its code, a line "START SIZE NAME"
 * for each piece, numbers in hexadecimal.  Memory is used again, so the later line wins.
 */
#ifndef ASSAY_SYMBOLS_NAMES_PERFMAP_H
#define ASSAY_SYMBOLS_NAMES_PERFMAP_H

#include "symbols/tables/symtab.h"

#include <sys/types.h>

/* Adds what the lines say; returns how many made no sense. */
size_t perfmap_parse(const char *text, size_t length, struct symtab_builder *builder);

enum perfmap_found {
    PERFMAP_MISSING,
    PERFMAP_FOREIGN, /* it belongs to somebody else */
    PERFMAP_READ,
};

/* Reads a file that a JIT compiler left for us.  Only a regular file of whoever runs this or of
 * root, as perf does: anybody may write to /tmp, and the names end up in a report. */
enum perfmap_found perfmap_read_file(const char *path, struct strbuf *out);

/* The same of a process's map, whose path is known; where it is not there, as the process itself
 * would find it, which may live in a container.  pid is 0 when it is not known. */
enum perfmap_found perfmap_read(const char *path, pid_t pid, struct strbuf *out);

#endif
