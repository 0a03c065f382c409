/* SPDX-License-Identifier: MIT */
/*
 * /proc/kallsyms: "ADDRESS TYPE NAME" and, for code of a kernel module, "[MODULE]" behind a tab.
 */
#ifndef ASSAY_SYMBOLS_NAMES_KALLSYMS_H
#define ASSAY_SYMBOLS_NAMES_KALLSYMS_H

#include "symbols/tables/symtab.h"

struct kallsyms {
    struct symtab table; /* the part of a symbol: "" for the kernel itself, "[ext4]" */
    bool restricted;     /* all addresses are zero */
    size_t bad_lines;
};

/*
 * length bytes of text in the file's format.  shift is added to each address; a shift other than 0
 * means that the text is of another boot, and then modules are left out: they were loaded anywhere.
 */
void kallsyms_parse(const char *text, size_t length, uint64_t shift, struct kallsyms *ret);
/* The address of a symbol as the text has it; 0 when it is not there. */
uint64_t kallsyms_address_of(const char *text, size_t length, const char *name);
void kallsyms_done(struct kallsyms *kallsyms);

#endif
