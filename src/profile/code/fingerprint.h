/* SPDX-License-Identifier: MIT */
/*
 * What the code of a function is like, wherever it lies: its instructions without the addresses in
 * them.  Two builds of one function have equal fingerprints unless the function itself changed.
 */
#ifndef ASSAY_PROFILE_CODE_FINGERPRINT_H
#define ASSAY_PROFILE_CODE_FINGERPRINT_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum { FINGERPRINT_PAIRS = 64 };

struct fingerprint {
    uint64_t exact; /* of the instructions, addresses left out */
    uint64_t loose; /* of the instructions, all numbers left out */
    uint32_t instruction_count;
    uint16_t pairs[FINGERPRINT_PAIRS]; /* how often each kind of two in a row, by hash */
    uint64_t *targets;                 /* the code outside that it calls or jumps to, in order */
    uint64_t *sites;                   /* and the address behind each of these instructions */
    size_t target_count, target_capacity, site_capacity;
};

struct fingerprinter;

/* arch: "x86_64", "aarch64"; NULL for x86_64.  -ENOTSUP when there is no disassembler for it, or
 * none at all. */
int fingerprinter_new(struct fingerprinter **ret, const char *arch, struct error *err);
void fingerprinter_free(struct fingerprinter *f);

/* Numbers of these are addresses: of programs that are always loaded at the same place. */
void fingerprinter_set_addresses(struct fingerprinter *f, uint64_t low, uint64_t high);

/* Of the code of a function that begins at an address (as objdump counts). */
void fingerprint_take(struct fingerprinter *f, const uint8_t *code, size_t size, uint64_t address,
                      struct fingerprint *ret);
void fingerprint_done(struct fingerprint *print);

/* From 0 (nothing in common) to 1. */
double fingerprint_likeness(const struct fingerprint *a, const struct fingerprint *b);

#endif
