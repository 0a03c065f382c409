/* SPDX-License-Identifier: MIT */
/*
 * /tmp/perf-PID.map: the names that a JIT compiler writes for its code, a line "START SIZE NAME"
 * for each piece, numbers in hexadecimal.  Memory is used again, so the later line wins.
 */
#ifndef ASSAY_SYMBOLS_PERFMAP_H
#define ASSAY_SYMBOLS_PERFMAP_H

#include "symbols/internal.h"

/* Adds what the lines say; returns how many made no sense. */
size_t perfmap_parse(const char *text, size_t length, struct symtab_builder *builder);

/* Reads a file that a JIT compiler left for us.  Only a regular file of whoever runs this or of
 * root (root reads anybody's): anybody may write to /tmp, and the names end up in a report. */
bool perfmap_read_file(const char *path, struct strbuf *out);

/* Finds and reads the map of a module of kind MODULE_PERFMAP.  For holders of its lock. */
void perfmap_load_table(struct module *module);

#endif
