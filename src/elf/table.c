/* SPDX-License-Identifier: MIT */
/* Symbol tables: see table.h. */
#include "elf/table.h"

#include <stdlib.h>

bool elf_table_read(struct elf_table *t, const struct image *image,
                    const struct image_section *section)
{
    *t = (struct elf_table){.entry_size = image->is_64bit ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym)};
    size_t size = 0;
    if (section->link >= image->section_count ||
        image_section_bytes(image, section, &t->symbols, &size, NULL) < 0 ||
        image_section_bytes(image, &image->sections[section->link], &t->names, &t->names_size,
                            NULL) < 0)
        return false;
    t->count = size / t->entry_size;
    return true;
}

void elf_table_done(struct elf_table *t)
{
    free(t->symbols);
    free(t->names);
    *t = (struct elf_table){0};
}
