/* SPDX-License-Identifier: MIT */
/*
 * What befalls an emulated machine, as exit codes of the verbs that use one (error_end_with), apart
 * from those of shells and of timeout(1).  assay-vm(1) has the table for people.
 */
#ifndef ASSAY_VM_EXITS_H
#define ASSAY_VM_EXITS_H

enum vm_exit {
    VM_EXIT_NO_QEMU = 110,    /* not installed, or not usable */
    VM_EXIT_OTHER_ARCH = 111, /* a kernel or program for another processor */
    VM_EXIT_HANGS = 112,      /* did not boot, or answer, in time */
    VM_EXIT_PANICKED = 113,
    VM_EXIT_NO_MEMORY = 114, /* in the machine, or for it */
    VM_EXIT_ENDED = 115,     /* QEMU was killed, or ended by itself */
    VM_EXIT_NO_EVENTS = 116, /* its kernel or processor counts nothing of what was asked for */
};

#endif
