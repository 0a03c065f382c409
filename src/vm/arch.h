/* SPDX-License-Identifier: MIT */
/* The kinds of machines that are emulated, and how each is started. */
#ifndef ASSAY_VM_ARCH_H
#define ASSAY_VM_ARCH_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vm_arch {
    const char *name;        /* as uname -m says it */
    const char *debian;      /* as Debian calls it */
    uint16_t elf_machine;    /* of its programs */
    const char *qemu;        /* the emulator */
    const char *package;     /* Debian's, that has it */
    const char *build;       /* the folder of a source tree with a static build for it */
    const char *const *args; /* of the machine itself; ends with NULL */
    const char *cpu;         /* that is emulated */
    const char *kvm_cpu;     /* under KVM */
    const char *console;
    const char *serial_device;
    const char *share_device; /* for files of the host */
    const char *const
        *modules; /* of the port and of file systems, where they are not built in; ends with NULL */
    bool counts_instructions; /* the emulated PMU works, and exactly under -icount */
};

/* "aarch64" or "arm64", "x86_64" or "amd64". */
const struct vm_arch *vm_arch_find(const char *name);
/* The same with an error that lists the names. */
int vm_arch_named(const char *name, const struct vm_arch **ret, struct error *err);
/* That of a Debian package, by the end of its name; NULL when it says none. */
const struct vm_arch *vm_arch_of_package(const char *package);
/* That of a kernel image, by its first bytes; NULL when they do not tell. */
const struct vm_arch *vm_arch_of_image(const void *bytes, size_t length);
/* This machine's own; NULL when it is none of the above. */
const struct vm_arch *vm_arch_host(void);

/* Whether KVM can run the machine here; ret_why says why not. */
bool vm_arch_has_kvm(const struct vm_arch *arch, const char **ret_why);

/* 0 when the file is a program that runs in such a machine by itself: for its processor and
 * statically linked.  A script or another kind of file is none. */
int vm_arch_check_program(const struct vm_arch *arch, const char *path, struct error *err);

#endif
