/* SPDX-License-Identifier: MIT */
/* Fuzzes the reader of hyperfine's JSON. */
#include "analysis/hyperfine.h"
#include "base/fd.h"
#include "base/memory.h"

#include <stdio.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    CLEANUP(fd_closep) int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || fd_write_all(fd, data, size) < 0)
        return 0;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    const char *paths[] = {path};
    struct error err;
    CLEANUP(imported_done) struct imported imported = {0};
    hyperfine_import(paths, 1, &imported, &err);
    return 0;
}
