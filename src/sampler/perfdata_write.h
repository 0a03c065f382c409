/* SPDX-License-Identifier: MIT */
/*
 * Writing perf.data so that perf, hotspot and assay open it.
 *
 * Records are appended as they come.  perfdata_writer_checkpoint puts the size of the data so far
 * into the header, so that a recording that was killed, or that filled the disk, can be read up to
 * there.  Features stand behind the data and are written by perfdata_writer_finish.  "-" and pipes
 * get perf's stream format, where attributes and features are records.
 */
#ifndef ASSAY_SAMPLER_PERFDATA_WRITE_H
#define ASSAY_SAMPLER_PERFDATA_WRITE_H

#include "base/error.h"
#include "base/strings.h"
#include "sampler/perfdata.h"
#include "sampler/perfdata_format.h"

#include <sys/uio.h>

struct perfdata_writer_event {
    struct perf_event_attr attr;
    const char *name;
    const uint64_t *ids;
    size_t id_count;
};

struct perfdata_writer_feature {
    enum perfdata_feature bit;
    struct strbuf bytes;
};

struct perfdata_writer {
    int fd;
    char *path;
    bool is_pipe;
    struct perfdata_file_header header;
    uint64_t data_size;       /* appended so far */
    uint64_t checkpoint_size; /* what the header on the disk says */
    uint64_t kept_samples;    /* of a vector that did not fit whole */
    struct perfdata_writer_feature *features;
    size_t feature_count, feature_capacity;
};

/* Creates the file; one that is there is kept as PATH.old.  Writes the header and the attributes,
 * and a record with each event's name. */
int perfdata_writer_open(struct perfdata_writer *w, const char *path,
                         const struct perfdata_writer_event *events, size_t event_count,
                         struct error *err);
/* The same into a regular file that is open and empty; the descriptor stays the caller's. */
int perfdata_writer_open_fd(struct perfdata_writer *w, int fd, const char *path,
                            const struct perfdata_writer_event *events, size_t event_count,
                            struct error *err);
/* Whole records.  After a failure the file holds what was appended before. */
int perfdata_writer_append(struct perfdata_writer *w, const void *bytes, size_t size,
                           struct error *err);
/* The same from several places, where a record may run over from one into the next.  After a
 * failure, the file holds those whole records that fitted. */
int perfdata_writer_append_vector(struct perfdata_writer *w, const struct iovec *vector,
                                  size_t count, struct error *err);
int perfdata_writer_checkpoint(struct perfdata_writer *w, struct error *err);

/* A feature's bytes, to be filled by the caller before perfdata_writer_finish. */
struct strbuf *perfdata_writer_feature(struct perfdata_writer *w, enum perfdata_feature bit);
void perfdata_put_u32(struct strbuf *b, uint32_t value);
void perfdata_put_u64(struct strbuf *b, uint64_t value);
void perfdata_put_string(struct strbuf *b, const char *text); /* as perf pads it */
void perfdata_put_build_id(struct strbuf *b, uint16_t cpumode, const uint8_t *id, size_t id_size,
                           const char *filename);
/* EVENT_DESC: the events with their names and ids. */
void perfdata_put_event_desc(struct strbuf *b, const struct perfdata_writer_event *events,
                             size_t event_count);

/* Writes the features and the final header. */
int perfdata_writer_finish(struct perfdata_writer *w, struct error *err);
void perfdata_writer_done(struct perfdata_writer *w);

#endif
