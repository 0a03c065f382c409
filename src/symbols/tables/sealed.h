/* SPDX-License-Identifier: MIT */
/*
 * Tables that are kept in files: one block of memory with a header that says what it is, which
 * build it belongs to and what it was made from, and a checksum over all of it.
 */
#ifndef ASSAY_SYMBOLS_TABLES_SEALED_H
#define ASSAY_SYMBOLS_TABLES_SEALED_H

#include "base/error.h"
#include "base/strings.h"
#include "elf/build_id.h"
#include "symbols/tables/names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEALED_SOURCE_MAX 4096u

enum sealed_kind {
    SEALED_SYMBOLS = 1,
    SEALED_LINES = 2,
};

/* Stands at the start of each block, which is a multiple of 8 bytes up to its strings. */
struct sealed_header {
    uint64_t magic;
    uint32_t kind, version;
    uint64_t checksum; /* of all that follows this field */
    uint64_t size;     /* of the whole block */
    struct build_id build_id;
    char source[SEALED_SOURCE_MAX]; /* what it was made from */
};

/* Memory that is either allocated or mapped from a file. */
struct sealed_block {
    void *bytes;
    size_t size;
    bool mapped;
};

void sealed_block_done(struct sealed_block *block);

/* Fills in the header.  source is cut at SEALED_SOURCE_MAX - 1. */
void sealed_close(struct sealed_block *block, enum sealed_kind kind, uint32_t version,
                  const struct build_id *build_id, const char *source);
/* Whether the block is whole and what is wanted; source NULL: whatever it was made from. */
int sealed_check(const struct sealed_block *block, enum sealed_kind kind, uint32_t version,
                 const struct build_id *build_id, const char *source, struct error *err);

#endif
