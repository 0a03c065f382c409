/* SPDX-License-Identifier: MIT */
/* Running the program of one function's call frame information: see cfi.h. */
#ifndef ASSAY_SYMBOLS_DWARF_CFI_PROGRAM_H
#define ASSAY_SYMBOLS_DWARF_CFI_PROGRAM_H

#include "symbols/dwarf/cfi.h"
#include "symbols/tables/bytes.h"

struct cfi_cie {
    uint64_t offset; /* in its section */
    uint64_t code_align;
    int64_t data_align;
    const uint8_t *program; /* that comes before each function's own */
    size_t program_size;
    uint8_t return_register, address_size, pointer_encoding;
    bool has_augmentation, is_signal;
};

/* Rows by start, in one block that free() frees. */
struct cfi_rows {
    struct cfi_row *rows;
    size_t row_count;
    struct cfi_rule *rules;
    uint64_t valid_size; /* the rows hold up to here */
};

/* Where the program makes no sense, the rows before that stand, and none follow. */
struct cfi_rows *cfi_program_run(const struct cfi_cie *cie, const uint8_t *program, size_t size);

#endif
