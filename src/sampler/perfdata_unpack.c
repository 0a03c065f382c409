/* SPDX-License-Identifier: MIT */
/* COMPRESSED records: blocks of one long zstd stream, unpacked bit by bit as records are taken
 * from what came out. */
#include "base/memory.h"
#include "config.h"
#include "sampler/perfdata_internal.h"

#include <errno.h>

#if HAVE_LIBZSTD
#include <zstd.h>

bool unpack_start(struct source *s, const struct perf_event_header *record, uint64_t offset)
{
    const unsigned char *bytes = (const unsigned char *)record;
    size_t head = sizeof(*record), size = record->size - head;
    if (record->type == PERFDATA_COMPRESSED2) {
        uint64_t data_size;
        if (size < sizeof(data_size))
            return false;
        memcpy(&data_size, bytes + head, sizeof(data_size));
        head += sizeof(data_size);
        size -= sizeof(data_size);
        if (data_size > size)
            return false;
        size = (size_t)data_size;
    }
    if (!s->zstd)
        s->zstd = ZSTD_createDStream();
    s->packed = bytes + head;
    s->packed_size = size;
    s->packed_offset = offset;
    s->unpacking = true;
    return s->zstd;
}

int unpack_more(struct source *s)
{
    size_t room;
    unsigned char *to = window_room(&s->unpacked, &room);
    ZSTD_outBuffer out = {.dst = to, .size = room};
    ZSTD_inBuffer in = {.src = s->packed, .size = s->packed_size};
    size_t r = ZSTD_decompressStream(s->zstd, &out, &in);
    s->packed += in.pos;
    s->packed_size -= in.pos;
    s->unpacked.end += out.pos;
    if (ZSTD_isError(r)) {
        /* Nothing that follows can be read before the next frame starts. */
        ZSTD_DCtx_reset(s->zstd, ZSTD_reset_session_only);
        s->packed_size = 0;
        s->unpacked.start = s->unpacked.end;
        return -EBADMSG;
    }
    return out.pos == room || s->packed_size;
}

void unpack_done(struct source *s)
{
    ZSTD_freeDStream(s->zstd);
    s->zstd = NULL;
}

#else

bool unpack_start(struct source *s, const struct perf_event_header *record, uint64_t offset)
{
    (void)s;
    (void)record;
    (void)offset;
    return false;
}

int unpack_more(struct source *s)
{
    (void)s;
    return -ENOTSUP;
}

void unpack_done(struct source *s)
{
    (void)s;
}

#endif
