/* SPDX-License-Identifier: MIT */
/*
 * The spool: a local file of what could not be told to the store, because the connection to it was
 * lost.  Each record is on the disk before the call that adds it returns, and is whole or not
 * there: it has its length and a checksum.  docs/FORMATS.md describes the file.
 *
 * The process that writes a spool holds a lock on it; one without a lock belongs to nobody any more
 * and may be delivered by anybody.
 */
#ifndef ASSAY_STORE_SPOOL_H
#define ASSAY_STORE_SPOOL_H

#include "base/error.h"
#include "base/strings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spool {
    int fd;
    char *path;
};

/* ASSAY_SPOOL, else assay/spool in the folder of the user's state.  NULL when there is none. */
char *spool_folder(void);

/* A new file for what is meant for that place. */
int spool_create(struct spool *spool, const char *place, struct error *err);
/* A new file of that name, which replaces one that is there, for the experiment of that uuid. */
int spool_create_at(struct spool *spool, const char *path, const char *uuid, struct error *err);
/* For reading what there is by now, whether its writer still runs or not. */
int spool_open(struct spool *spool, const char *path, struct error *err);
/* Takes a file over; -EBUSY when its writer still runs, -ENOENT when it is gone. */
int spool_take(struct spool *spool, const char *path, struct error *err);
/* Adds a record; it is on the disk afterwards. */
int spool_add(struct spool *spool, const struct strbuf *record, struct error *err);
/* The whole content, and where its first record is. */
int spool_read(struct spool *spool, struct strbuf *ret_content, size_t *ret_position,
               struct error *err);
/* The record at the position, which moves on.  0: no more (the last one may have been cut short by
 * the end of its writer). */
int spool_next(const struct strbuf *content, size_t *position, struct strbuf *ret_record,
               struct error *err);
/* Forgets the file; what it holds has been delivered. */
void spool_remove(struct spool *spool);
/* Leaves the file to whoever takes it over. */
void spool_close(struct spool *spool);

/* Paths of the files for that place; the caller frees them and the list. */
int spool_list(const char *place, char ***ret_paths, size_t *ret_count, struct error *err);

/* ---- what a record is made of ---- */

void record_put_i64(struct strbuf *record, int64_t value);
void record_put_double(struct strbuf *record, double value);
void record_put_text(struct strbuf *record, const char *text); /* NULL stays NULL */
void record_put_bytes(struct strbuf *record, const void *bytes, size_t size);

/* Reads in the order of writing.  After the end everything is 0 or NULL, and `bad` is set. */
struct record_reader {
    const char *at, *end;
    bool bad;
};

int64_t record_i64(struct record_reader *r);
double record_double(struct record_reader *r);
/* Lasts as long as the record; a text ends with a zero. */
const char *record_text(struct record_reader *r);
const void *record_bytes(struct record_reader *r, size_t *ret_size);
/* A number of things that follow, each of at least that many bytes. */
size_t record_count(struct record_reader *r, size_t least_bytes);

#endif
