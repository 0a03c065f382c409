/* SPDX-License-Identifier: MIT */
/* Inside src/vm: takes out of a kernel's package what a machine boots from. */
#ifndef ASSAY_VM_UNPACK_H
#define ASSAY_VM_UNPACK_H

#include "vm/arch.h"

/* Fills the folder, which is there and empty, with vmlinuz, config, modules/order and the modules
 * that the port needs, expanded. */
int vm_unpack(const struct vm_arch *arch, const char *deb, const char *folder, struct error *err);

/* The modules on which another depends: the word behind "depends=" in its bytes, with commas;
 * "" for none.  The caller frees it. */
char *vm_module_depends(const char *bytes, size_t length);

#endif
