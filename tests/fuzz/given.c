/* SPDX-License-Identifier: MIT */
/* Fuzzes the readers of other tools' profiles, and what names their frames. */
#include "profile/given/given.h"
#include "base/fd.h"
#include "base/memory.h"
#include "profile/profile.h"

#include <stdio.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As a file, through all of profile_load. */
static void load(const uint8_t *data, size_t size)
{
    char path[64];
    struct error err;
    struct profile *profile;
    CLEANUP(fd_closep) int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || fd_write_all(fd, data, size) < 0)
        return;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (given_kind_of(path) == GIVEN_NONE ||
        profile_load(&profile, path, &(struct profile_options){.with_lines = true}, &err) < 0)
        return;
    profile_symbolize(profile);
    profile_free(profile);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum given_kind kinds[] = {GIVEN_PPROF, GIVEN_FOLDED};
    /* At its exact length: what reads beyond the end is found. */
    CLEANUP(memory_freep) char *bytes = memory_alloc(size ? size : 1);
    memcpy(bytes, data, size);
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
        struct given g = {0};
        struct error err;
        if (given_read(&g, kinds[i], bytes, size, &err) == 0)
            given_done(&g);
    }
    load(data, size);
    return 0;
}
