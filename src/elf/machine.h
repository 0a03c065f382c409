/* SPDX-License-Identifier: MIT */
/* Which processor a program is for.  Needs the C library only: it is part of the plugin for QEMU.
 */
#ifndef ASSAY_ELF_MACHINE_H
#define ASSAY_ELF_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The machine (EM_X86_64, …) that the beginning of a file says; false when that is no ELF file's.
 */
bool image_machine(const void *bytes, size_t size, uint16_t *ret_machine);

/* The processor that this code was compiled for. */
uint16_t image_own_machine(void);
/* The file is for that processor, and has 64-bit words. */
bool image_is_for(const void *bytes, size_t size, uint16_t machine);

#endif
