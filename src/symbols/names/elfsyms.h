/* SPDX-License-Identifier: MIT */
/* The symbols of ELF files: .symtab or .dynsym, .gnu_debugdata, and names for PLT entries. */
#ifndef ASSAY_SYMBOLS_NAMES_ELFSYMS_H
#define ASSAY_SYMBOLS_NAMES_ELFSYMS_H

#include "elf/image.h"
#include "symbols/tables/symtab.h"

/* Whether the image has a .symtab with something in it. */
bool elfsyms_has_symtab(const struct image *image);

/* Functions that no symbol may name: where they are, and what stands before "+0x3f210" in their
 * names.  Sorted by start. */
struct elfsyms_bounds {
    const char *module;
    struct elfsyms_bound {
        uint64_t start, size;
    } * items;
    size_t count, capacity;
};

/* Makes the table from the file with the code and its separate debug file; either may be NULL.
 * bounds may be NULL: those that no symbol lies in are named by their addresses.
 * Addresses are the file's own.  A table without symbols is a result, not an error; words in err
 * (its code else 0) say why packed symbols could not be had. */
void elfsyms_load(const struct image *code, const struct image *debug,
                  const struct elfsyms_bounds *bounds, struct symtab *ret_table, struct error *err);
/* Whether a name is such a one. */
bool elfsyms_is_address(const char *name, size_t length);

/* The value of a symbol in .symtab; 0 when it is not there. */
uint64_t elfsyms_address_of(const struct image *image, const char *name);

/* Adds "name@plt" for each entry of the procedure linkage table: x86-64 and aarch64. */
void elfsyms_add_plt(struct symtab_builder *builder, const struct image *code);

#endif
