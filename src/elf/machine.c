/* SPDX-License-Identifier: MIT */
/* See machine.h. */
#include "elf/machine.h"

#include <elf.h>
#include <string.h>

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#else
#define OWN_MACHINE EM_NONE
#endif

bool image_machine(const void *bytes, size_t size, uint16_t *ret_machine)
{
    Elf64_Half machine; /* at the same place in both sizes of the header */
    size_t at = offsetof(Elf64_Ehdr, e_machine);
    if (size < at + sizeof(machine) || memcmp(bytes, ELFMAG, SELFMAG) != 0)
        return false;
    memcpy(&machine, (const uint8_t *)bytes + at, sizeof(machine));
    *ret_machine = machine;
    return true;
}

uint16_t image_own_machine(void)
{
    return OWN_MACHINE;
}

bool image_is_for(const void *bytes, size_t size, uint16_t machine)
{
    uint16_t found;
    return size >= sizeof(Elf64_Ehdr) && image_machine(bytes, size, &found) && found == machine &&
           ((const uint8_t *)bytes)[EI_CLASS] == ELFCLASS64;
}
