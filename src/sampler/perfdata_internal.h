/* SPDX-License-Identifier: MIT */
/*
 * The parts of the perf.data reader, for its own files only:
 *
 *   perfdata_window.c   bytes of a file or of a decompressor, cut into records
 *   perfdata_order.c    records waiting for their turn in time
 *   perfdata_events.c   attributes, ids and names
 *   perfdata_features.c what the header says about the recording
 *   perfdata_parse.c    one record taken apart
 *   perfdata_group.c    samples that stand for a whole group of events
 *   perfdata_open.c     opening and the header
 *   perfdata_read.c     the loop that joins the others
 */
#ifndef ASSAY_SAMPLER_PERFDATA_INTERNAL_H
#define ASSAY_SAMPLER_PERFDATA_INTERNAL_H

#include "base/arena.h"
#include "base/strings.h"
#include "sampler/perfdata.h"
#include "sampler/perfdata_format.h"

#include <sys/types.h>

/*
 * Memory comes in chunks of one size, aligned to it, so that a record's address tells its chunk.
 * A chunk lives while it is being filled or records in it wait in the queue (pins).
 */
#define CHUNK_BYTES ((size_t)256 << 10)
#define RECORD_BYTES_MAX 65536

struct chunk {
    struct chunk *next_free;
    size_t pins;
    _Alignas(8) unsigned char bytes[];
};
#define CHUNK_CAPACITY (CHUNK_BYTES - sizeof(struct chunk))

struct chunk_pool {
    struct chunk *free_list;
    size_t free_count, live_count; /* live: handed out and not yet given back */
};

struct chunk *chunk_get(struct chunk_pool *pool);
void chunk_pin(const void *record);
void chunk_unpin(struct chunk_pool *pool, const void *record);
void chunk_pool_done(struct chunk_pool *pool);

/* A run of bytes that grows at its end and is taken away at its front, record by record. */
struct window {
    struct chunk_pool *pool;
    struct chunk *chunk;
    size_t start, end;   /* what is there and not yet taken, in chunk->bytes */
    struct chunk *spill; /* aligned copies of records that lie askew */
    size_t spill_used;
    uint64_t start_offset;   /* of the byte at start, in the stream */
    uint64_t overflow_bytes; /* of a COMPRESSED2 record that outgrew its header's size */
};

/* Room for more bytes behind the end; never less than RECORD_BYTES_MAX. */
unsigned char *window_room(struct window *w, size_t *ret_size);
void window_done(struct window *w);

enum window_state {
    WINDOW_RECORD,  /* *ret_record is whole, aligned, and stays until the next call */
    WINDOW_HUNGRY,  /* more bytes are needed */
    WINDOW_DAMAGED, /* what comes next cannot be a record */
};
enum window_state window_take(struct window *w, const struct perf_event_header **ret_record);
/* Takes away up to size bytes that are there; returns them and how many. */
const unsigned char *window_skip(struct window *w, uint64_t size, size_t *ret_taken);

/* What a queued record needs. */
struct queue_entry {
    uint64_t time_ns;
    uint64_t offset;
    const struct perf_event_header *record;
};

/*
 * The ordering queue.  perf guarantees that what follows two FINISHED_ROUND marks is newer than
 * all that came before the first of them, so each mark releases what is older than the newest
 * record before the previous mark.
 */
struct queue {
    struct queue_entry *entries, *scratch;
    size_t count, capacity, scratch_capacity;
    size_t given, released;   /* entries[given..released) are in order and may be given */
    uint64_t newest_ns;       /* of all that were queued */
    uint64_t round_newest_ns; /* the same when the last mark came */
};

void queue_add(struct queue *q, const struct queue_entry *entry);
void queue_finish_round(struct queue *q);
void queue_release_half(struct queue *q); /* the older half, whatever the marks say */
void queue_release_all(struct queue *q);
const struct queue_entry *queue_next(struct queue *q); /* only when queue_peek gave one */
void queue_done(struct queue *q);

/* The entry whose turn it is; NULL when nothing is released. */
static inline const struct queue_entry *queue_peek(const struct queue *q)
{
    return q->given < q->released ? &q->entries[q->given] : NULL;
}

struct perfdata_event_entry {
    struct perfdata_event event; /* first, so that the public pointer is this one's */
    uint64_t *ids;
    size_t id_count, id_capacity;
    char *name;
    bool has_file_name;
    size_t sample_id_size; /* bytes at the end of other records, 0 without sample_id_all */
};

struct id_slot {
    uint64_t id;
    struct perfdata_event_entry *entry;
};

struct events {
    struct perfdata_event_entry **entries;
    size_t count, capacity;
    struct id_slot *slots; /* open addressing; a power of two, at most half full */
    size_t slot_count, id_count;
    /* Where an id stands, for all events alike; -1 when the events disagree or have none. */
    ptrdiff_t id_offset;     /* in a sample, from the header's end */
    ptrdiff_t id_offset_end; /* in other records, back from the end */
    /* The same for the time. */
    ptrdiff_t time_offset, time_offset_end;
};

struct perfdata_event_entry *events_add(struct events *e, const void *attr, size_t attr_size);
void events_add_ids(struct events *e, struct perfdata_event_entry *entry, const uint64_t *ids,
                    size_t count);
void events_set_name(struct perfdata_event_entry *entry, const char *name, size_t length);
void events_done(struct events *e);
/* The event that a record belongs to; NULL when it names an unknown one. */
struct perfdata_event_entry *events_of_record(const struct events *e,
                                              const struct perf_event_header *record);
struct perfdata_event_entry *events_by_id(const struct events *e, uint64_t id);
/* The record's time; 0 when it has none. */
uint64_t events_record_time(const struct events *e, const struct perf_event_header *record);

struct feature {
    enum perfdata_feature bit;
    uint64_t offset, size; /* in the file; offset 0 when bytes came through a pipe */
    void *bytes;           /* NULL until asked for */
};

/* One stream of records: the file, or one of a folder's. */
struct source {
    int fd;
    bool owns_fd;
    bool is_seekable;
    uint64_t offset, limit; /* next byte to read, end of the data; seekable only */
    struct window window;
    struct window unpacked;      /* of compressed blocks */
    void *zstd;                  /* ZSTD_DStream */
    const unsigned char *packed; /* what is left of the block in work; in window's chunk */
    size_t packed_size;
    bool unpacking;
    uint64_t packed_offset;
    bool at_end; /* no more bytes */
    bool ended;  /* no more records */
    struct queue queue;
};

/*
 * A sample with PERF_SAMPLE_READ stands for one sample of each event in its group: as in perf, the
 * period of each is how far its count has come since the group's last sample.
 */
struct group_value {
    uint64_t id, last;
    uint32_t tid; /* counts of inherited events are each thread's own; else 0 */
    bool used;
};

struct group {
    bool is_open;
    uint64_t index; /* of the next value */
    struct perfdata_record record;
    struct group_value *values; /* open addressing; a power of two, at most half full */
    size_t value_count, slot_count;
};

struct perfdata {
    char *name;
    struct perfdata_options options;
    struct chunk_pool pool;
    struct source *sources;
    size_t source_count;
    uint64_t file_size; /* of the main file; 0 for a pipe */
    uint64_t bytes_done, bytes_total;
    uint64_t given_ns;  /* the time of the newest queued record that was given */
    const void *pinned; /* the queued record that was given last */
    struct events events;
    struct group group;
    struct perfdata_info info;
    struct perfdata_losses losses;
    struct perfdata_build_id *build_ids;
    size_t build_id_count, build_id_capacity;
    struct feature *features;
    size_t feature_count, feature_capacity;
    struct arena arena; /* strings of info and build_ids */
    struct strbuf trouble;
    int read_error;
    struct error read_error_words;
};

/* Appends words to what perfdata_trouble() says. */
void perfdata_complain(struct perfdata *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* perfdata_features.c */
int features_read_table(struct perfdata *p, int fd, const struct perfdata_file_header *header,
                        struct error *err);
void features_take(struct perfdata *p, uint64_t bit, const void *bytes, size_t size);
void features_take_build_id(struct perfdata *p, const struct perf_event_header *record);
void features_done(struct perfdata *p);

/* perfdata_parse.c: false when the record contradicts itself. */
bool perfdata_parse(struct perfdata *p, const struct perf_event_header *record,
                    struct perfdata_record *ret);

/* perfdata_group.c */
void group_start(struct perfdata *p, const struct perfdata_record *record);
bool group_next(struct perfdata *p, struct perfdata_record *ret); /* false at the group's end */
void group_done(struct group *g);

/* perfdata_unpack.c: the decompressor behind COMPRESSED records. */
bool unpack_start(struct source *s, const struct perf_event_header *record, uint64_t offset);
/* Fills s->unpacked further; 1 when there is more to come, 0 when the block is used up, or a
 * negative errno. */
int unpack_more(struct source *s);
void unpack_done(struct source *s);

/* pread of exactly that many bytes; -ENODATA when the file ends before. */
int perfdata_pread(int fd, void *bytes, size_t size, uint64_t offset);

#endif
