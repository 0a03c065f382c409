/* SPDX-License-Identifier: MIT */
/* The files that a recording has seen mapped, with their build-ids. */
#ifndef ASSAY_SAMPLER_MAPPED_FILES_H
#define ASSAY_SAMPLER_MAPPED_FILES_H

#include "base/strings.h"
#include "elf/build_id.h"

/* Files by name; the first build-id that is known of a name stays. */
struct mapped_files {
    struct mapped_file *files; /* open addressing; a power of two, at most half full */
    size_t slot_count, count;
};

struct mapped_file {
    char *filename; /* NULL for an empty slot */
    uint16_t cpumode;
    struct build_id id; /* size 0 while it is not known */
};

/* id may be NULL: not known.  Names that are no files ("//anon", "[heap]") are passed over. */
void mapped_files_add(struct mapped_files *t, const char *filename, uint16_t cpumode,
                      const struct build_id *id);
/* The build-id of a name, with size 0 when it is not known; NULL when the name is not there. */
const struct build_id *mapped_files_find(struct mapped_files *t, const char *filename);
/* Looks up what is not known yet and writes all as perf's BUILD_ID feature. */
void mapped_files_write(struct mapped_files *t, struct strbuf *out);
void mapped_files_done(struct mapped_files *t);

#endif
