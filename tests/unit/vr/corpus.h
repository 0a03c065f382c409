/* SPDX-License-Identifier: MIT */
/*
 * The corpus of a fuzzer, made by a unit test and looked at by it, so that it cannot become stale:
 * each file must still be what its name says.  When a format has changed, the test run with
 * VR_CORPUS_WRITE=1 writes the files anew.  VR_CORPUS is the folder, from meson.build.
 */
#ifndef ASSAY_TEST_VR_CORPUS_H
#define ASSAY_TEST_VR_CORPUS_H

#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define AGAIN "; run this test with VR_CORPUS_WRITE=1 to make the corpus again"

/* Only when it is asked for. */
static inline void write_file(const char *target, const char *name, const void *bytes, size_t size)
{
    char path[512];
    if (!getenv("VR_CORPUS_WRITE"))
        return;
    snprintf(path, sizeof(path), "%s/%s/%s", VR_CORPUS, target, name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, size, f) != size || fclose(f))
        test_fail(__FILE__, __LINE__, "%s: %s", path, strerror(errno));
}

static inline size_t read_file(const char *target, const char *name, unsigned char *bytes,
                               size_t most)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s/%s", VR_CORPUS, target, name);
    FILE *f = fopen(path, "rb");
    if (!f) {
        test_fail(__FILE__, __LINE__, "%s: %s", path, strerror(errno));
        return 0;
    }
    size_t size = fread(bytes, 1, most, f);
    fclose(f);
    return size;
}

#endif
