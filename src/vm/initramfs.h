/* SPDX-License-Identifier: MIT */
/*
 * What an emulated machine holds: a static assay, which is its /init and /bin/assay, the kernel's
 * modules, and the files that the user names.  There is nothing else: no shell, no libraries.
 */
#ifndef ASSAY_VM_INITRAMFS_H
#define ASSAY_VM_INITRAMFS_H

#include "vm/cpio.h"
#include "vm/kernels.h"

struct vm_file {
    char *host, *guest; /* paths here and there */
};

struct vm_files {
    struct vm_file *items;
    size_t count, capacity;
};

/* "HOST[:GUEST]"; without GUEST it goes to /bin/NAME.  HOST is relative to the folder (NULL for the
 * current one) and must be there. */
int vm_files_add(struct vm_files *files, const char *word, const char *folder, struct error *err);
/* A program that is to run: checked, and put at /bin/NAME, or /bin/2/NAME when that is
 * another one.  ret_guest (may be NULL) stays the
 * list's. */
int vm_files_add_program(struct vm_files *files, const struct vm_arch *arch, const char *path,
                         const char **ret_guest, struct error *err);
bool vm_files_have(const struct vm_files *files, const char *guest);
void vm_files_done(struct vm_files *files);

/* The static assay for such machines: the file given; else that which ASSAY_GUEST_AARCH64 or
 * ASSAY_GUEST_X86_64 names; else the one installed beside this program, or built in its source
 * tree; else this program itself, where it is one.  The caller frees it. */
int vm_guest_find(const struct vm_arch *arch, const char *given, char **ret_path,
                  struct error *err);

int vm_initramfs_build(struct cpio *c, const struct vm_kernel *kernel, const char *guest,
                       const struct vm_files *files, struct error *err);

#endif
