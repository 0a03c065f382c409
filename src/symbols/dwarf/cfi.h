/* SPDX-License-Identifier: MIT */
/*
 * Call frame information: for each instruction, where the caller's registers are.
 *
 * .eh_frame and .debug_frame hold a small program for each function (DWARF 5, section 6.4; the LSB
 * for .eh_frame) that, run from the start, gives a row of rules for each range of addresses.  Both
 * sections are indexed once; a function's program is run once, when it is first met, into a sorted
 * array of rows.  Written here because this is the inner loop of unwinding: a row is found by two
 * binary searches in some tens of nanoseconds.
 *
 * Threads: cfi_find may be called by many threads; rows are published with one atomic each.
 */
#ifndef ASSAY_SYMBOLS_DWARF_CFI_H
#define ASSAY_SYMBOLS_DWARF_CFI_H

#include "elf/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Registers that are followed: all general ones of x86-64 (0-16) and aarch64 (0-31). */
#define CFI_REGISTER_COUNT 33

enum cfi_rule_kind {
    CFI_UNDEFINED, /* not known; for the return address: there is no caller */
    CFI_AT_OFFSET, /* saved at CFA + offset */
    CFI_IS_OFFSET, /* is CFA + offset */
    CFI_REGISTER,  /* is in another register */
    CFI_AT_EXPRESSION,
    CFI_IS_EXPRESSION,
};

struct cfi_rule {
    uint8_t reg;
    uint8_t kind;
    uint16_t expression_size;
    int32_t value;             /* offset or register */
    const uint8_t *expression; /* in the section's bytes */
};

struct cfi_row {
    uint32_t start;      /* from the function's start */
    uint16_t rule_count; /* registers without a rule are unchanged */
    uint8_t cfa_register;
    bool ra_signed; /* aarch64: the return address carries a signature */
    int32_t cfa_offset;
    uint16_t cfa_expression_size; /* 0: register + offset */
    uint32_t first_rule;
    const uint8_t *cfa_expression;
};

/* What cfi_find gives: a row with the rules it refers to. */
struct cfi_frame {
    const struct cfi_row *row;
    const struct cfi_rule *rules; /* row->rule_count of them */
    uint8_t return_register;
    bool is_signal; /* the trampoline behind a signal handler */
};

struct cfi;

/* Indexes what the file with the code and its debug file have; either may be NULL.  Never NULL: a
 * file without rules gives an index in which nothing is found. */
struct cfi *cfi_load(const struct image *code, const struct image *debug);
void cfi_free(struct cfi *cfi);

/* The rules at an address, in the file's own terms. */
bool cfi_find(struct cfi *cfi, uint64_t address, struct cfi_frame *ret_frame);

/* Where functions begin and how long they are, as far as the rules tell: from 0 to false. */
bool cfi_function(const struct cfi *cfi, size_t index, uint64_t *ret_start, uint64_t *ret_size);

/* Evaluates an expression.  read gives eight bytes of the process's memory. */
struct cfi_context {
    const uint64_t *registers;
    uint64_t known; /* bit i: registers[i] is known */
    bool (*read)(void *memory, uint64_t address, uint64_t *ret_value);
    void *memory;
};

bool cfi_evaluate(const struct cfi_context *context, const uint8_t *expression, size_t size,
                  bool has_cfa, uint64_t cfa, uint64_t *ret_value);

#endif
