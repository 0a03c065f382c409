/* SPDX-License-Identifier: MIT */
/*
 * Kernels to boot: images that the user names, or Debian packages that vm/fetch.h brought into
 * the cache before.
 *
 *   ${XDG_CACHE_HOME:-~/.cache}/assay/vm/kernels/
 *     linux-image-6.1.0-54-arm64_6.1.190-1/{vmlinuz,config,modules/order,modules/….ko}
 *     linux-image-arm64 -> linux-image-6.1.0-54-arm64_6.1.190-1
 */
#ifndef ASSAY_VM_KERNELS_H
#define ASSAY_VM_KERNELS_H

#include "base/error.h"
#include "base/strings.h"
#include "vm/arch.h"

#include <time.h>

struct vm_kernel {
    char *name;     /* package and version, or the path */
    char *image;    /* the file */
    char *folder;   /* of the package; NULL for an image of the user's */
    char **modules; /* files, each after what it depends on */
    size_t module_count;
    const struct vm_arch *arch; /* NULL when the image does not tell */
};

/* A path of an image (with a slash in it), or a package's name. */
int vm_kernel_find(struct vm_kernel *k, const char *word, struct error *err);
void vm_kernel_done(struct vm_kernel *k);

/* What is in the cache. */
struct vm_kernel_entry {
    char *package; /* with its version */
    char *names;   /* by which it may be called, too, with blanks between; "" for none */
    const struct vm_arch *arch;
    uint64_t size_bytes;
    time_t fetched;
};

struct vm_kernel_list {
    struct vm_kernel_entry *items; /* by name */
    size_t count, capacity;
};

int vm_kernels_list(struct vm_kernel_list *list, struct error *err);
void vm_kernel_list_done(struct vm_kernel_list *list);

/* ${XDG_CACHE_HOME:-~/.cache}/assay/vm with a name below it ("" for none); NULL where neither
 * variable is set. */
char *vm_cache_path(const char *name);

#endif
