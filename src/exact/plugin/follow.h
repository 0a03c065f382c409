/* SPDX-License-Identifier: MIT */
/*
 * Programs that the emulated one executes.  QEMU's user mode hands an exec to the host's kernel,
 * and the new program would run outside of the emulation; so the plugin executes QEMU instead, with
 * the same options, and the program under it.
 */
#ifndef ASSAY_EXACT_PLUGIN_FOLLOW_H
#define ASSAY_EXACT_PLUGIN_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

/* Reads the options of this QEMU, which emulates a machine (EM_X86_64, …). */
bool follow_open(uint16_t machine);
/* What turns an address of the guest into one of the host. */
void follow_set_shift(uint64_t shift);
uint64_t follow_shift(void);
/* execve or execveat is about to be made: returns when it is to be made as it is, because it will
 * fail or runs what cannot be emulated. */
void follow_exec(int folder, uint64_t path, uint64_t arguments, uint64_t environment, int flags);

#endif
