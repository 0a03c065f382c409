/* SPDX-License-Identifier: MIT */
/* perf.data made by hand for tests: every file that comes from here is synthesised, no perf wrote
 * it. */
#ifndef ASSAY_TESTS_UNIT_SAMPLER_SYNTHETIC_H
#define ASSAY_TESTS_UNIT_SAMPLER_SYNTHETIC_H

#include "base/fd.h"
#include "base/memory.h"
#include "sampler/perfdata.h"
#include "sampler/perfdata_write.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Puts the header with the right size in front of a body. */
static inline void put_record(struct strbuf *out, uint32_t type, uint16_t misc, const void *body,
                              size_t body_size)
{
    struct perf_event_header head = {
        .type = type, .misc = misc, .size = (uint16_t)(sizeof(head) + body_size)};
    strbuf_append(out, (const char *)&head, sizeof(head));
    strbuf_append(out, body, body_size);
}

/* A record of words. */
#define PUT_WORDS(out, type, misc, ...)                            \
    do {                                                           \
        const uint64_t words_[] = {__VA_ARGS__};                   \
        put_record((out), (type), (misc), words_, sizeof(words_)); \
    } while (0)

static inline uint64_t pair(uint32_t low, uint32_t high)
{
    return low | (uint64_t)high << 32;
}

/* A file in memory with these events and records; the caller closes the descriptor. */
static inline int make_file(const struct perfdata_writer_event *events, size_t event_count,
                            const struct strbuf *records)
{
    char path[] = "/tmp/assay-perfdata-XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);
    struct perfdata_writer w;
    struct error err;
    if (fd < 0 || perfdata_writer_open(&w, path, events, event_count, &err) < 0)
        abort();
    if (perfdata_writer_append(&w, strbuf_text(records), records->length, &err) < 0)
        abort();
    perfdata_put_string(perfdata_writer_feature(&w, PERFDATA_FEATURE_VERSION), "synthetic");
    if (perfdata_writer_finish(&w, &err) < 0)
        abort();
    perfdata_writer_done(&w);
    unlink(path);
    return fd;
}

/* Bytes as a file. */
static inline int make_raw(const void *bytes, size_t size)
{
    int fd = memfd_create("perf.data", MFD_CLOEXEC);
    if (fd < 0 || fd_write_all(fd, bytes, size) < 0)
        abort();
    return fd;
}

static inline void read_file(int fd, struct strbuf *out)
{
    char block[65536];
    ssize_t got;
    for (off_t at = 0; (got = pread(fd, block, sizeof(block), at)) > 0; at += got)
        strbuf_append(out, block, (size_t)got);
}

/* A reader that takes the descriptor with it. */
static inline struct perfdata *open_reader(int fd, const struct perfdata_options *options)
{
    struct perfdata *p = NULL;
    struct error err;
    if (perfdata_open_fd(&p, fd, "synthetic", options, &err) < 0) {
        printf("# %s\n", err.message);
        abort();
    }
    return p;
}

static inline void freep(struct perfdata **p)
{
    perfdata_free(*p);
}

#endif
