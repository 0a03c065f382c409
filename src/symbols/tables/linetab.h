/* SPDX-License-Identifier: MIT */
/*
 * Source lines and inlined calls of those functions of a module that addresses fell into.
 *
 * Decoding a compilation unit gives tables of thousands of functions; a profile hits a few.  Those
 * are copied here, function by function (a *span* of addresses), in a compact form that holds no
 * pointers, so that it can be kept in a file by build-id: the next report of the same program reads
 * no DWARF at all, as long as it stays in functions that were seen before.
 *
 * Threads: none of its own; the module's lock guards it.
 */
#ifndef ASSAY_SYMBOLS_TABLES_LINETAB_H
#define ASSAY_SYMBOLS_TABLES_LINETAB_H

#include "base/error.h"
#include "symbols/tables/sealed.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINETAB_NONE UINT32_MAX
#define LINETAB_VERSION 2u /* of the file; also when the same DWARF gives other names */

struct linetab_span {
    uint64_t start, end;
    uint32_t first_line, line_count;
    uint32_t first_row, row_count;
};

/* From an offset in the span on; file LINETAB_NONE: no line is known. */
struct linetab_line {
    uint32_t offset, file, line;
};

struct linetab_row {
    uint32_t offset, node;
};

/* A function with code (parent LINETAB_NONE) or an inlined call; parents stand before children. */
struct linetab_node {
    uint32_t parent, origin;
    uint32_t call_file, call_line;
};

/* Strings by offset, the file by index; LINETAB_NONE for none. */
struct linetab_origin {
    uint32_t name, linkage_name;
    uint32_t file, line;
};

/* A growing array of plain structs; items point into the mapped block until the first change. */
struct linetab_array {
    void *items;
    size_t count, capacity;
};

struct linetab_index {
    uint32_t *places; /* index + 1, open addressing */
    size_t size;
};

struct function;

struct linetab {
    struct linetab_array spans; /* by start, except those added since linetab_sort */
    struct linetab_array lines, rows, nodes, origins, files, strings;
    struct sealed_block block; /* where it was read from, until the first change */
    bool changed;
    bool is_thawed;                     /* the arrays are our own */
    uint32_t pending_line, pending_row; /* where the next span's begin */
    struct linetab_index file_index, origin_index;
    /* What was made of the origins and files, as far as it was asked for. */
    const struct function **functions;
    const char **paths;
    size_t function_count, path_count;
};

void linetab_done(struct linetab *table);

/* The span that has an address; NULL when none has. */
const struct linetab_span *linetab_find(const struct linetab *table, uint64_t address);
/* The file and line at an address; LINETAB_NONE and 0 when they are not known. */
void linetab_place(const struct linetab *table, const struct linetab_span *span, uint64_t address,
                   uint32_t *ret_file, uint32_t *ret_line);
/* The innermost node at an address; LINETAB_NONE when there is none. */
uint32_t linetab_node_at(const struct linetab *table, const struct linetab_span *span,
                         uint64_t address);
/* Checked accessors: a table from a file may hold any numbers.  NULL for what is not there. */
const struct linetab_node *linetab_node(const struct linetab *table, uint32_t node);
const struct linetab_origin *linetab_origin(const struct linetab *table, uint32_t origin);
const char *linetab_string(const struct linetab *table, uint32_t string);
const char *linetab_file(const struct linetab *table, uint32_t file);

/* Adding.  Equal files and origins are kept once.  NULL gives LINETAB_NONE. */
uint32_t linetab_add_file(struct linetab *table, const char *path);
uint32_t linetab_add_origin(struct linetab *table, const char *name, const char *linkage_name,
                            const char *file, uint32_t line);
uint32_t linetab_add_node(struct linetab *table, struct linetab_node node);
/* Lines and rows that are added belong to the span that is added next. */
void linetab_add_line(struct linetab *table, uint32_t offset, uint32_t file, uint32_t line);
void linetab_add_row(struct linetab *table, uint32_t offset, uint32_t node);
void linetab_add_span(struct linetab *table, uint64_t start, uint64_t end);
/* Brings the spans in order: before the next linetab_find. */
void linetab_sort(struct linetab *table);

/* As a file's bytes; the caller frees the block. */
struct sealed_block linetab_seal(const struct linetab *table, const struct build_id *build_id,
                                 const char *source);
/* Takes the block over (also when it fails). */
int linetab_unseal(struct linetab *ret_table, struct sealed_block block,
                   const struct build_id *build_id, const char *source, struct error *err);

#endif
