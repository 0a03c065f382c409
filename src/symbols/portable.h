/* SPDX-License-Identifier: MIT */
/*
 * The names, source lines and inlined calls of one profile as a block of bytes, so that a recording
 * can carry them and be read where its binaries are not: `assay export --to portable`.
 *
 * For each module the block has a table of the functions that were hit and its table of source
 * lines, both as the cache of symbols keeps them, and for code of JIT compilers the file that tells
 * what lies where.  What it has comes before what is found on the machine.
 */
#ifndef ASSAY_SYMBOLS_PORTABLE_H
#define ASSAY_SYMBOLS_PORTABLE_H

#include "symbols/symbols.h"

/* Appends what naming these needs; they must have been resolved. */
void symbols_put_portable(struct symbols *symbols, const struct symbols_request *requests,
                          size_t count, struct strbuf *out);
/* Takes such a block, which must live as long as the symbols.  False when it is none. */
bool symbols_take_portable(struct symbols *symbols, const void *bytes, size_t size);

#endif
