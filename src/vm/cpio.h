/* SPDX-License-Identifier: MIT */
/*
 * The archive that a kernel unpacks as its first file system: cpio in the format "newc", as the
 * kernel's Documentation/driver-api/early-userspace/buffer-format.rst describes it.
 *
 *   struct cpio c = {0};
 *   cpio_file(&c, "/bin/x", 0755, bytes, length, &err);
 *   cpio_finish(&c);
 *   … c.bytes …
 *   cpio_done(&c);
 */
#ifndef ASSAY_VM_CPIO_H
#define ASSAY_VM_CPIO_H

#include "base/error.h"
#include "base/strings.h"

#include <stdint.h>

struct cpio {
    struct strbuf bytes;
    char **folders; /* that are there already */
    size_t folder_count, folder_capacity;
    uint32_t inode;
};

/* Adds a folder and those above it, each once.  The path begins with a slash. */
int cpio_folder(struct cpio *c, const char *path, struct error *err);
/* Adds a file, and the folders above it.  A path that comes twice is the kernel's to decide: the
 * last one wins. */
int cpio_file(struct cpio *c, const char *path, unsigned mode, const void *bytes, size_t length,
              struct error *err);
/* The same with the content of a file here. */
int cpio_copy(struct cpio *c, const char *path, unsigned mode, const char *source,
              struct error *err);
/* A symbolic link. */
int cpio_link(struct cpio *c, const char *path, const char *target, struct error *err);
/* The end of the archive; nothing may be added any more. */
void cpio_finish(struct cpio *c);
void cpio_done(struct cpio *c);

#endif
