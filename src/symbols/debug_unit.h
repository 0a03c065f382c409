/* SPDX-License-Identifier: MIT */
/* One compilation unit's lines and inlined calls, decoded into arrays: see debug.h. */
#ifndef ASSAY_SYMBOLS_DEBUG_UNIT_H
#define ASSAY_SYMBOLS_DEBUG_UNIT_H

#include "config.h"
#include "symbols/debug.h"
#include "symbols/ranges.h"

#if HAVE_LIBDW
#include <elfutils/libdw.h>

struct unit_line {
    uint64_t address;
    uint32_t file; /* index; UINT32_MAX where a sequence ends */
    uint32_t line;
};

/* A function with code (parent == UINT32_MAX) or a call that was inlined. */
struct unit_node {
    const struct function *function; /* NULL for one with code until it is needed */
    uint32_t parent;
    uint32_t call_line;              /* of an inlined call: where in its parent */
    const char *call_file;           /* or NULL */
    const char *name, *linkage_name; /* of one with code: for those the symbol table lacks */
    const char *declared_file;
    uint32_t declared_line;
};

struct unit {
    uint64_t die_offset;
    bool has_lines, has_nodes; /* decoded */
    struct unit_line *lines;   /* by address */
    size_t line_count;
    const char **files; /* each once, in the arena */
    size_t file_count;
    struct range_map map; /* address → node */
    struct unit_node *nodes;
    size_t node_count;
    struct arena arena;
};

void unit_decode_lines(struct unit *unit, Dwarf *dwarf);
/* Makes functions in the module, whose lock it takes. */
void unit_decode_nodes(struct unit *unit, Dwarf *dwarf, struct module *module);
void unit_done(struct unit *unit);

/* The last line at or before an address; NULL when there is none. */
const struct unit_line *unit_line_at(const struct unit *unit, uint64_t address);

#endif
#endif
