/* SPDX-License-Identifier: MIT */
/*
 * Sorted tables of symbols: built once for a module, kept as one block of memory that can be
 * written to a file and mapped again.
 *
 * Symbols overlap in practice (aliases, a label within a function, JIT code that replaced other
 * code), so building settles who owns which addresses: of several that start together the one
 * with the best name, else the innermost (or the latest, for maps written by JIT compilers).  The
 * result is a row of starts that do not overlap, and a look-up is one binary search.
 *
 * Threads: a table that was built is read-only.
 */
#ifndef ASSAY_SYMBOLS_TABLES_SYMTAB_H
#define ASSAY_SYMBOLS_TABLES_SYMTAB_H

#include "base/error.h"
#include "symbols/tables/sealed.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYMTAB_NONE UINT32_MAX           /* also the owner of a gap: RANGE_NONE */
#define SYMTAB_NAME_BYTES_MAX (2u << 30) /* of all names together; more are left out */

enum symtab_binding {
    SYMTAB_WEAK,
    SYMTAB_LOCAL,
    SYMTAB_GLOBAL,
};

struct symtab_symbol {
    uint64_t start, size;
    uint32_t name; /* offset in the strings */
    uint32_t part; /* a string too: which part of the module it belongs to, "" for none */
};

/* Where the file's bytes are loaded: offsets in the file to addresses. */
struct symtab_segment {
    uint64_t offset, address, size;
};

struct symtab {
    const uint64_t *starts; /* range i is [starts[i], starts[i + 1]) */
    const uint32_t *owners; /* its symbol, or SYMTAB_NONE for a gap */
    size_t range_count;
    const struct symtab_symbol *symbols; /* by start */
    size_t symbol_count;
    const struct symtab_segment *segments; /* none: both are the same */
    size_t segment_count;
    const char *strings; /* ends with a zero byte */
    size_t strings_size;
    struct sealed_block block; /* header and arrays in one piece, as in the file */
};

void symtab_done(struct symtab *table);

/* The symbol that owns the address; SYMTAB_NONE when there is none. */
uint32_t symtab_find(const struct symtab *table, uint64_t address);
/* Between offsets in the file and the addresses of the table; what lies in no segment stays. */
uint64_t symtab_to_address(const struct symtab *table, uint64_t offset);
uint64_t symtab_to_offset(const struct symtab *table, uint64_t address);
/* The part it belongs to, "" for none. */
const char *symtab_part(const struct symtab *table, uint32_t symbol);
/* Its name, cut at SYMBOLS_NAME_MAX by *ret_length. */
const char *symtab_name(const struct symtab *table, uint32_t symbol, size_t *ret_length);

struct symtab_entry {
    uint64_t start, end; /* end == start: up to the next symbol, but not beyond limit */
    uint64_t limit;
    uint32_t name, part;
    uint32_t order; /* in which it was added */
    uint8_t binding;
    bool unsized; /* its end was guessed: a label within a function gives way to the function */
};

struct symtab_builder {
    struct symtab_entry *entries;
    size_t count, capacity;
    struct strbuf strings;
    struct symtab_segment *segments; /* the first that has an offset or address decides */
    size_t segment_count, segment_capacity;
    uint32_t last_part; /* the string of the part that was added last */
    bool latest_wins;   /* as in a JIT compiler's map, where memory is used again */
    bool page_limits;   /* a symbol without size before another part ends with the next page */
};

/* Names of no length are left out. */
void symtab_add(struct symtab_builder *builder, uint64_t start, uint64_t size, uint64_t limit,
                enum symtab_binding binding, const char *name, size_t length);
/* Those that are added from here on belong to this part; "" for none. */
void symtab_set_part(struct symtab_builder *builder, const char *part, size_t length);
void symtab_add_segment(struct symtab_builder *builder, uint64_t offset, uint64_t address,
                        uint64_t size);
/* Makes the table and empties the builder. */
void symtab_build(struct symtab_builder *builder, struct symtab *ret_table);

void symtab_copy(const struct symtab *table, struct symtab *ret_copy);

/* Takes over a block that was written to a file (also when it fails).  source NULL: whatever it
 * was made from. */
int symtab_unseal(struct symtab *ret_table, struct sealed_block block,
                  const struct build_id *build_id, const char *source, struct error *err);
/* Makes the block ready to be written. */
void symtab_seal(struct symtab *table, const struct build_id *build_id, const char *source);

#endif
