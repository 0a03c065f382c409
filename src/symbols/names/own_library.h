/* SPDX-License-Identifier: MIT */
/*
 * Names for what a stripped C library chooses by the processor.
 *
 * memcpy and its like are many functions, of which the loader chooses one; the table of exported
 * symbols has the one that chooses.  Where a file is the library that this process itself runs
 * with, this process knows what was chosen.
 */
#ifndef ASSAY_SYMBOLS_NAMES_OWN_LIBRARY_H
#define ASSAY_SYMBOLS_NAMES_OWN_LIBRARY_H

#include "symbols/names/elfsyms.h"

/* Adds those that begin where a function of the bounds does. */
void own_library_add(struct symtab_builder *builder, const struct image *code,
                     const struct elfsyms_bounds *bounds);

#endif
