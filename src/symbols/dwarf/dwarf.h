/* SPDX-License-Identifier: MIT */
/*
 * Reading of DWARF, versions 2 to 5: units, DIEs, ranges and line programs.
 *
 * Written here rather than on libdw: libdw's handles cannot be shared by threads, and it stops the
 * process by assertion on some files (dwarf_decl_file on a split-DWARF binary).  What this reads is
 * exactly what source lines and inlined functions need.
 *
 * Threads: a struct dwarf is read-only once it is open.  Strings point into it.
 */
#ifndef ASSAY_SYMBOLS_DWARF_H
#define ASSAY_SYMBOLS_DWARF_H

#include "elf/image.h"
#include "symbols/tables/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dwarf_section {
    DWARF_INFO,
    DWARF_ABBREV,
    DWARF_LINE,
    DWARF_LINE_STR,
    DWARF_STR,
    DWARF_STR_OFFSETS,
    DWARF_ADDR,
    DWARF_RANGES,
    DWARF_RNGLISTS,
    DWARF_SECTION_COUNT,
};

struct dwarf_bytes {
    const uint8_t *bytes;
    size_t size;
    uint8_t *owned; /* where it had to be decompressed */
};

struct dwarf_unit {
    size_t offset;     /* of its header in .debug_info */
    size_t die_offset; /* of its first DIE */
    size_t end;
    uint64_t abbrev_offset;
    uint8_t version, type;
    uint8_t address_size, offset_size; /* of the machine and of the format */
    /* What its first DIE says, once dwarf_read_unit_die was there. */
    uint64_t low_pc, str_offsets_base, addr_base, rnglists_base, line_offset;
    bool has_lines;
    const char *folder;   /* where the compiler was started; or NULL */
    const char *dwo_name; /* the rest stands in another file; or NULL */
    uint64_t dwo_id;
};

struct dwarf {
    struct dwarf_bytes sections[DWARF_SECTION_COUNT];
    void *mapping; /* of the file */
    size_t mapping_size;
    struct dwarf_unit *units; /* by offset */
    size_t unit_count;
    struct dwarf *alternate;  /* what dwz shared between files; or NULL */
    const struct dwarf *main; /* of a .dwo file: where its addresses are */
};

/* NULL when there is no DWARF in it.  The image must live as long where it lies in memory. */
struct dwarf *dwarf_open(const struct image *image);
/* The .dwo file of a skeleton unit; NULL when it is not there or not of this build. */
struct dwarf *dwarf_open_split(const struct dwarf *main, const struct dwarf_unit *skeleton);
void dwarf_close(struct dwarf *dwarf);

/* The unit that has an offset of .debug_info; NULL when there is none. */
const struct dwarf_unit *dwarf_unit_at(const struct dwarf *dwarf, uint64_t offset);

/* A value as it stands in a DIE; what it means is asked for with the functions below. */
struct dwarf_value {
    uint16_t form; /* 0: the attribute is not there */
    uint64_t number;
};

struct dwarf_attribute {
    uint16_t name, form;
    int64_t constant; /* of DW_FORM_implicit_const */
};

struct dwarf_abbrev {
    uint16_t tag; /* 0: there is no abbreviation of this code */
    bool has_children;
    uint16_t attribute_count;
    uint32_t first_attribute;
    int32_t fixed_size; /* of the DIE behind its code; -1 when it varies */
};

/* The abbreviations of one unit by code. */
struct dwarf_abbrevs {
    const struct dwarf_unit *unit; /* whose sizes fixed_size is computed for */
    struct dwarf_abbrev *by_code;
    size_t count, capacity;
    struct dwarf_attribute *attributes;
    size_t attribute_count, attribute_capacity;
};

void dwarf_read_abbrevs(const struct dwarf *dwarf, const struct dwarf_unit *unit,
                        struct dwarf_abbrevs *ret);
void dwarf_abbrevs_done(struct dwarf_abbrevs *abbrevs);

/* Reads one value and moves on. */
struct dwarf_value dwarf_read_value(const struct dwarf_unit *unit, struct cursor *c,
                                    const struct dwarf_attribute *attribute);
/* Moves over the attributes of a DIE. */
void dwarf_skip_die(const struct dwarf_abbrevs *abbrevs, const struct dwarf_abbrev *abbrev,
                    struct cursor *c);

const char *dwarf_string(const struct dwarf *dwarf, const struct dwarf_unit *unit,
                         struct dwarf_value value);
bool dwarf_address(const struct dwarf *dwarf, const struct dwarf_unit *unit,
                   struct dwarf_value value, uint64_t *ret_address);
/* A number; 0 for what is none. */
uint64_t dwarf_number(struct dwarf_value value);
/* Another DIE: its offset in .debug_info, of the alternate file when *ret_alternate. */
bool dwarf_reference(const struct dwarf_unit *unit, struct dwarf_value value, uint64_t *ret_offset,
                     bool *ret_alternate);

/* Fills in what the unit's first DIE says; its ranges and ends go to ret_pc.  False when the DIE
 * cannot be read. */
struct dwarf_pc {
    struct dwarf_value low, high, ranges;
};
bool dwarf_read_unit_die(const struct dwarf *dwarf, struct dwarf_unit *unit,
                         struct dwarf_pc *ret_pc);

/* Calls for each range of code that low, high and ranges describe.  Ranges of functions that the
 * linker dropped are left out.  Returns how many were read, for callers that must come to an end:
 * many DIEs may refer to one long list. */
size_t dwarf_each_range(const struct dwarf *dwarf, const struct dwarf_unit *unit,
                        const struct dwarf_pc *pc,
                        void (*call)(void *context, uint64_t start, uint64_t end), void *context);

/* The files of a unit's line program, by index. */
struct dwarf_file {
    const char *folder, *name; /* folder may be NULL */
};

struct dwarf_files {
    struct dwarf_file *items;
    size_t count;
};

struct dwarf_line {
    uint64_t address;
    uint32_t file; /* index of the files; UINT32_MAX where a sequence ends */
    uint32_t line;
};

/* Runs the line program.  Lines come sorted by address; of neighbours with the same place only the
 * first is kept.  lines may be NULL: only the files are wanted.  The caller frees both arrays. */
void dwarf_read_lines(const struct dwarf *dwarf, const struct dwarf_unit *unit,
                      struct dwarf_files *ret_files, struct dwarf_line **ret_lines,
                      size_t *ret_line_count);

#endif
