/* SPDX-License-Identifier: MIT */
/* Records packed with zstd: see pack.h. */
#include "sampler/pack.h"
#include "config.h"
#include "sampler/perfdata.h"

#include <errno.h>

#if HAVE_LIBZSTD
#include <zstd.h>

#define BLOCK_BYTES_MAX (65535 - sizeof(struct perf_event_header))

int packer_init(struct packer *p, int level, struct error *err)
{
    *p = (struct packer){.zstd = ZSTD_createCStream()};
    if (!p->zstd || ZSTD_isError(ZSTD_initCStream(p->zstd, level)))
        return error_set(err, -EINVAL, "zstd does not accept level %d", level);
    return 0;
}

int packer_add(struct packer *p, const void *bytes, size_t size, struct strbuf *out,
               struct error *err)
{
    ZSTD_inBuffer in = {.src = bytes, .size = size};
    unsigned char block[BLOCK_BYTES_MAX];
    size_t left;
    p->bytes_in += size;
    do {
        ZSTD_outBuffer to = {.dst = block, .size = sizeof(block)};
        left = ZSTD_compressStream2(p->zstd, &to, &in, ZSTD_e_flush);
        if (ZSTD_isError(left))
            return error_set(err, -EIO, "zstd: %s", ZSTD_getErrorName(left));
        if (!to.pos)
            continue;
        struct perf_event_header head = {.type = PERFDATA_COMPRESSED,
                                         .size = (uint16_t)(sizeof(head) + to.pos)};
        strbuf_append(out, (const char *)&head, sizeof(head));
        strbuf_append(out, (const char *)block, to.pos);
        p->bytes_out += head.size;
    } while (left);
    return 0;
}

void packer_done(struct packer *p)
{
    ZSTD_freeCStream(p->zstd);
    *p = (struct packer){0};
}

#else

int packer_init(struct packer *p, int level, struct error *err)
{
    (void)p;
    (void)level;
    return error_set(
        err, -ENOTSUP,
        "assay was built without zstd; record without -z, or install libzstd and rebuild it");
}

int packer_add(struct packer *p, const void *bytes, size_t size, struct strbuf *out,
               struct error *err)
{
    (void)p;
    (void)bytes;
    (void)size;
    (void)out;
    return error_set(err, -ENOTSUP, "built without zstd");
}

void packer_done(struct packer *p)
{
    (void)p;
}

#endif
