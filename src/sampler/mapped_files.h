/* SPDX-License-Identifier: MIT */
/* Build-ids of files, of the kernel and of its modules, and a table of the files that a recording
 * has seen mapped. */
#ifndef ASSAY_SAMPLER_BUILDID_H
#define ASSAY_SAMPLER_BUILDID_H

#include "base/strings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUILDID_BYTES_MAX 20

struct buildid {
    uint8_t size; /* 0 when there is none */
    uint8_t bytes[BUILDID_BYTES_MAX];
};

/* False when the file has none, is no ELF file, or cannot be read. */
bool buildid_of_file(const char *path, struct buildid *ret_id);
/* From a file of bare notes, as /sys/kernel/notes. */
bool buildid_of_notes(const char *path, struct buildid *ret_id);
/* From notes in memory. */
bool buildid_from_notes(const unsigned char *notes, size_t size, struct buildid *ret_id);

/* Files by name; the first build-id that is known of a name stays. */
struct buildid_table {
    struct buildid_file *files; /* open addressing; a power of two, at most half full */
    size_t slot_count, count;
};

struct buildid_file {
    char *filename; /* NULL for an empty slot */
    uint16_t cpumode;
    struct buildid id; /* size 0 while it is not known */
};

/* id may be NULL: not known.  Names that are no files ("//anon", "[heap]") are passed over. */
void buildid_table_add(struct buildid_table *t, const char *filename, uint16_t cpumode,
                       const struct buildid *id);
/* The build-id of a name, with size 0 when it is not known; NULL when the name is not there. */
const struct buildid *buildid_table_find(struct buildid_table *t, const char *filename);
/* Looks up what is not known yet and writes all as perf's BUILD_ID feature. */
void buildid_table_write(struct buildid_table *t, struct strbuf *out);
void buildid_table_done(struct buildid_table *t);

#endif
