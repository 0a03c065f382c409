/* SPDX-License-Identifier: MIT */
/* Names for what a stripped C library chooses by the processor: see own_library.h. */
#include "symbols/names/own_library.h"

#include "base/memory.h"

#include <link.h>
#include <string.h>
#include <strings.h>

struct own_library {
    const struct build_id *wanted;
    bool is_found;
    uint64_t base, low, high; /* what its addresses start from, and where they are here */
};

static void read_segment(struct own_library *own, const struct dl_phdr_info *info, size_t i,
                         bool *ret_is_wanted)
{
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    uint64_t start = info->dlpi_addr + segment->p_vaddr;
    struct build_id id;
    if (segment->p_type == PT_NOTE &&
        build_id_in_notes((const void *)(uintptr_t)start, segment->p_memsz, &id))
        *ret_is_wanted |= build_id_equal(&id, own->wanted);
    if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X)) {
        own->low = start;
        own->high = start + segment->p_memsz;
    }
}

static int look_at(struct dl_phdr_info *info, size_t size, void *context)
{
    struct own_library *own = context;
    bool is_wanted = false;
    (void)size;
    for (size_t i = 0; i < info->dlpi_phnum; i++)
        read_segment(own, info, i, &is_wanted);
    own->base = info->dlpi_addr;
    own->is_found = is_wanted;
    return is_wanted;
}

static uint64_t size_at(const struct elfsyms_bounds *bounds, uint64_t start)
{
    for (size_t i = 0; i < bounds->count; i++)
        if (bounds->items[i].start == start)
            return bounds->items[i].size;
    return 0;
}

#define NAMED(function)                  \
    {                                    \
#function, (uintptr_t)(function) \
    }

void own_library_add(struct symtab_builder *builder, const struct image *code,
                     const struct elfsyms_bounds *bounds)
{
    /* Of two names for one code the first is taken. */
    const struct {
        const char *name;
        uintptr_t address;
    } functions[] = {NAMED(memcpy),  NAMED(memmove), NAMED(memset),    NAMED(memcmp),
                     NAMED(memchr),  NAMED(strlen),  NAMED(strnlen),   NAMED(strcmp),
                     NAMED(strncmp), NAMED(strchr),  NAMED(strrchr),   NAMED(strcpy),
                     NAMED(strncpy), NAMED(stpcpy),  NAMED(strcat),    NAMED(strstr),
                     NAMED(strspn),  NAMED(strcspn), NAMED(strcasecmp)};
    struct own_library own = {.wanted = &code->build_id};
    if (!code->build_id.size || !dl_iterate_phdr(look_at, &own))
        return;
    for (size_t i = 0; i < ARRAY_COUNT(functions); i++) {
        uint64_t address = functions[i].address, size;
        bool is_known = address < own.low || address >= own.high;
        for (size_t k = 0; k < i; k++)
            is_known |= functions[k].address == functions[i].address;
        if (!is_known && (size = size_at(bounds, address - own.base)))
            symtab_add(builder, address - own.base, size, UINT64_MAX, SYMTAB_LOCAL,
                       functions[i].name, strlen(functions[i].name));
    }
}
