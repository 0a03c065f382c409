/* SPDX-License-Identifier: MIT */
/* Records packed with zstd into COMPRESSED records, as perf record -z does. */
#ifndef ASSAY_SAMPLER_PACK_H
#define ASSAY_SAMPLER_PACK_H

#include "base/error.h"
#include "base/strings.h"

#include <stdint.h>

struct packer {
    void *zstd; /* ZSTD_CStream */
    uint64_t bytes_in, bytes_out;
};

/* -ENOTSUP when assay was built without zstd. */
int packer_init(struct packer *p, int level, struct error *err);
/* Appends COMPRESSED records that hold the bytes; what was added before can then be unpacked. */
int packer_add(struct packer *p, const void *bytes, size_t size, struct strbuf *out,
               struct error *err);
void packer_done(struct packer *p);

#endif
