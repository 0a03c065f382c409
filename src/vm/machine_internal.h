/* SPDX-License-Identifier: MIT */
/* What the files of a machine's host side share. */
#ifndef ASSAY_VM_MACHINE_INTERNAL_H
#define ASSAY_VM_MACHINE_INTERNAL_H

#include "vm/machine.h"

/* An instruction takes this power of two of nanoseconds of the machine's clock. */
enum { VM_CLOCK_SHIFT = 1, VM_CLOCK_SHIFT_EXACT = 0 };

/* Ends of QEMU that it inherits; -1 for none. */
struct vm_qemu_fds {
    int initramfs, console, port, monitor, state;
};

/* QEMU's command line; ends with NULL.  The caller frees the list and its words. */
char **vm_qemu_words(const struct vm_machine *m, const struct vm_qemu_fds *fds);
void vm_qemu_words_free(char **words);

/* Ends the machine and says what it said last. */
int vm_machine_broken(struct vm_machine *m, int code, const char *what, struct error *err);
/* A request whose answer is "exit 0", within so much time. */
int vm_machine_ask(struct vm_machine *m, const char *kind, uint64_t timeout_ns, struct error *err);

/* A command for QEMU's monitor, in JSON, and its answer (may be NULL). */
int vm_monitor_ask(struct vm_machine *m, const char *command, struct strbuf *answer,
                   struct error *err);
/* Begins a conversation: before the first command. */
int vm_monitor_open(struct vm_machine *m, struct error *err);

#endif
