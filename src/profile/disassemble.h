/* SPDX-License-Identifier: MIT */
/* Machine code as text, through capstone. */
#ifndef ASSAY_PROFILE_DISASSEMBLE_H
#define ASSAY_PROFILE_DISASSEMBLE_H

#include "profile/annotate.h"

/* Appends the instructions of the code at `address` (as objdump counts) to the annotation, with
 * the names of what they call.  shift is what makes an address of the module one of objdump's.
 * Where that cannot be done, a->missing says why. */
void disassemble(struct annotation *a, struct profile *profile, struct module *module,
                 const uint8_t *code, size_t size, uint64_t address, uint64_t shift);

#endif
