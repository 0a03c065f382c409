/* SPDX-License-Identifier: MIT */
/* A symbol table of an ELF file, with its names, in memory. */
#ifndef ASSAY_ELF_TABLE_H
#define ASSAY_ELF_TABLE_H

#include "elf/image.h"

#include <elf.h>
#include <string.h>

struct elf_table {
    uint8_t *symbols, *names; /* each with a zero byte behind its end */
    size_t names_size, entry_size, count;
};

/* Of a section of type SHT_SYMTAB or SHT_DYNSYM.  False when there is nothing to read; done is due
 * in both cases. */
bool elf_table_read(struct elf_table *t, const struct image *image,
                    const struct image_section *section);
void elf_table_done(struct elf_table *t);

/* A symbol by its index, in the terms of 64 bits. */
static inline Elf64_Sym elf_table_symbol(const struct elf_table *t, size_t index)
{
    Elf64_Sym wide;
    if (t->entry_size == sizeof(wide)) {
        memcpy(&wide, t->symbols + index * sizeof(wide), sizeof(wide));
        return wide;
    }
    Elf32_Sym narrow;
    memcpy(&narrow, t->symbols + index * sizeof(narrow), sizeof(narrow));
    return (Elf64_Sym){.st_name = narrow.st_name,
                       .st_info = narrow.st_info,
                       .st_other = narrow.st_other,
                       .st_shndx = narrow.st_shndx,
                       .st_value = narrow.st_value,
                       .st_size = narrow.st_size};
}

/* A symbol's name, "" when the table has none, and its length, which counts up to `most`. */
static inline const char *elf_table_name(const struct elf_table *t, uint32_t offset, size_t most,
                                         size_t *ret_length)
{
    if (offset >= t->names_size) {
        *ret_length = 0;
        return "";
    }
    const char *name = (const char *)t->names + offset;
    size_t left = t->names_size - offset;
    *ret_length = strnlen(name, left < most ? left : most);
    return name;
}

#endif
