/* SPDX-License-Identifier: MIT */
/* What a kernel's image tells about it. */
#ifndef ASSAY_VM_DESCRIBE_H
#define ASSAY_VM_DESCRIBE_H

#include "vm/kernels.h"

/* "" for what is not known. */
struct vm_kernel_facts {
    char release[128];  /* "6.1.0-54-arm64" */
    char version[128];  /* of the package: "6.1.190-1" */
    char compiler[128]; /* "gcc-12" */
};

/* "Linux version 6.1.0-54-arm64 (builder@host) (gcc-12 (Debian …) …) #1 SMP Debian 6.1.190-1 …" */
bool vm_banner_parse(const char *text, struct vm_kernel_facts *ret);
/* Reads the whole image; false where it is compressed in a way that hides its name. */
bool vm_kernel_describe(const struct vm_kernel *k, struct vm_kernel_facts *ret);

#endif
