/* SPDX-License-Identifier: MIT */
/* The plugin for QEMU's user mode: see user.c. */
#ifndef ASSAY_EXACT_PLUGIN_USER_H
#define ASSAY_EXACT_PLUGIN_USER_H

#include <stdbool.h>
#include <stdint.h>

/* Counts the programs of a machine (EM_X86_64 or EM_AARCH64) in files of the directory; false, with
 * words on standard error, when it cannot. */
bool user_open(uint64_t id, const char *folder, uint16_t machine);

#endif
