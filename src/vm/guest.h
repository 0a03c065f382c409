/* SPDX-License-Identifier: MIT */
/*
 * assay as the first and only process of an emulated machine: mounts what measuring needs, loads
 * the modules that the initramfs holds, and serves the requests of frames.h.  Whatever a command
 * leaves running is killed before its exit frame is sent, so that no command can disturb the next.
 * When the host goes away, power goes off.
 */
#ifndef ASSAY_VM_GUEST_H
#define ASSAY_VM_GUEST_H

#include <stdbool.h>

/* Whether this process is one: the kernel started it as /init. */
bool vm_guest_is(char *const *argv);
_Noreturn void vm_guest_serve(void);

/* There: `with-mappings N COMMAND…` runs a command with so many mappings more than it has by
 * itself, for commands that another one starts (assay record). */
#define VM_WITH_MAPPINGS "/bin/with-mappings"
bool vm_guest_is_with_mappings(char *const *argv);
int vm_guest_with_mappings(char *const *argv);

#endif
