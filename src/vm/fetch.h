/* SPDX-License-Identifier: MIT */
/*
 * Debian kernels for emulated machines, brought by a private apt and kept in the cache.
 *
 * apt runs with a state, cache and architecture of its own below the cache folder, but with the
 * host's sources, keys and download settings (a proxy, say): the host's package lists and dpkg
 * architectures are neither read nor changed, and no root is needed.  apt checks signatures and
 * sums, and goes on with what it had begun to download.  Of the package only what a machine boots
 * from is kept: the kernel, its configuration and the virtio modules.
 */
#ifndef ASSAY_VM_FETCH_H
#define ASSAY_VM_FETCH_H

#include "base/strings.h"
#include "vm/arch.h"

struct vm_fetch {
    const struct vm_arch *arch; /* NULL: by the package's name */
    const char *suite;  /* of Debian, beside those of the host ("bookworm-backports"); or NULL */
    const char *mirror; /* of that suite; NULL for deb.debian.org */
    bool refresh;       /* also when it is in the cache */
    /* Called often with what is being done; may be NULL. */
    void (*progress)(void *context, const char *what);
    void *context;
};

/* Brings the package, or the one that it stands for (linux-image-arm64 is always the newest), or
 * unpacks a file whose name ends in .deb.  With a suite the cache has it as PACKAGE@SUITE, too.
 * The caller frees ret_name: package and version. */
int vm_fetch(const struct vm_fetch *f, const char *package, char **ret_name, struct error *err);

/* A line for each kernel that there is for the architecture (aarch64), and that fits one of the
 * patterns (fnmatch(3); none: all): package, version, where from. */
int vm_fetch_list(const struct vm_fetch *f, char *const *patterns, struct strbuf *out,
                  struct error *err);

/* What `apt-cache show` says a package stands for: "linux-image-6.1.0-54-arm64=6.1.190-1"; NULL
 * when the text describes no package.  The caller frees it. */
char *vm_fetch_concrete(const char *package, const char *shown);

#endif
