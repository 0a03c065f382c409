/* SPDX-License-Identifier: MIT */
/*
 * Tables of symbols on disk, one file for each build-id, so that a large binary is read once.
 *
 * A file is written beside and renamed, so readers see it whole or not at all; what is damaged, of
 * another version or made from other files than are there now is ignored and written anew.  The
 * folder is the user's own; it is kept below CACHE_BYTES_MAX by removing what was used least
 * recently.
 */
#ifndef ASSAY_SYMBOLS_TABLES_CACHE_H
#define ASSAY_SYMBOLS_TABLES_CACHE_H

#include "symbols/tables/symtab.h"

#define CACHE_BYTES_MAX (1ull << 30)
#define CACHE_LINES ".lines" /* the ending of a table of source lines */

/* The folder that was given (or NULL), else where the environment puts it; NULL when that switches
 * it off or there is no home.  The caller frees it. */
char *cache_folder(const char *given);

/* Maps the file of a build-id with that ending, unchecked. */
int cache_map(const char *folder, const struct build_id *id, const char *ending,
              struct sealed_block *ret_block, struct error *err);
/* Writes a block that is sealed; failure costs nothing but the next time. */
int cache_write(const char *folder, const struct build_id *id, const char *ending,
                const struct sealed_block *block, struct error *err);

/* The table of symbols.  source NULL: whatever it was made from. */
int cache_load(const char *folder, const struct build_id *id, const char *source,
               struct symtab *ret_table, struct error *err);
int cache_store(const char *folder, const struct build_id *id, const char *source,
                struct symtab *table, struct error *err);

#endif
