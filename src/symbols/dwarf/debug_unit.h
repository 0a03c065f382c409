/* SPDX-License-Identifier: MIT */
/* One compilation unit's lines and inlined calls, decoded into arrays: see debug.h. */
#ifndef ASSAY_SYMBOLS_DWARF_DEBUG_UNIT_H
#define ASSAY_SYMBOLS_DWARF_DEBUG_UNIT_H

#include "base/arena.h"
#include "symbols/dwarf/dwarf.h"
#include "symbols/tables/ranges.h"

#define UNIT_NO_PARENT UINT32_MAX

/* A function with code (parent == UNIT_NO_PARENT) or a call that was inlined. */
struct unit_node {
    uint32_t parent;               /* always before its children */
    uint32_t origin;               /* which function */
    uint32_t call_file, call_line; /* of an inlined call: where in its parent */
};

/* A function as DWARF describes it: the DIE, and what it says once it was asked. */
struct unit_origin {
    uint64_t offset;
    bool alternate; /* in the file that dwz made */
    bool is_read;
    const char *name, *linkage_name;
    const char *file; /* where it is declared */
    uint32_t line;
};

/* A namespace or class: what stands before "::" in the names of the functions in it. */
struct unit_scope {
    uint64_t offset, end; /* of its DIE and of those below it */
    uint32_t parent;      /* always before; UNIT_NO_PARENT for none */
    bool is_namespace;    /* one without a name is still shown */
};

struct unit {
    const struct dwarf *dwarf;
    struct dwarf_unit *header; /* in dwarf */
    bool is_decoded;
    struct dwarf_line *lines; /* by address */
    size_t line_count;
    struct dwarf_files files;
    const char **paths;  /* of the files, as far as they were asked for */
    struct dwarf *split; /* where its functions stand, if in another file */
    struct dwarf_files split_files;
    const char **split_paths;
    struct range_map map;   /* address → node, the innermost */
    struct range_map roots; /* address → node with the code */
    struct unit_node *nodes;
    size_t node_count;
    struct unit_origin *origins;
    size_t origin_count;
    struct unit_scope *scopes; /* by offset */
    size_t scope_count;
    struct dwarf_abbrevs abbrevs;       /* of the unit with the functions */
    struct dwarf_abbrevs other_abbrevs; /* of the unit that an origin was last found in */
    uint32_t *copied_nodes;             /* number + 1 of each node in the caller's table */
    struct arena arena;                 /* paths */
};

void unit_decode(struct unit *unit);
/* Frees what was decoded. */
void unit_drop(struct unit *unit);

/* The path of a file by its index in the line table; NULL when there is none. */
const char *unit_path(struct unit *unit, uint32_t file);
/* The same for call_file of a node. */
const char *unit_call_path(struct unit *unit, uint32_t file);
/* The path of a file below the folder that a unit was compiled in; NULL when it has no name. */
const char *unit_make_path(struct arena *arena, const char *base, const struct dwarf_file *file);
/* The origin of a node, with what its DIE says. */
struct unit_origin *unit_origin(struct unit *unit, uint32_t origin);

#endif
