/* SPDX-License-Identifier: MIT */
/* perf.data as it lies on the disk, for the reader and the writer.  Little-endian only. */
#ifndef ASSAY_SAMPLER_PERFDATA_FORMAT_H
#define ASSAY_SAMPLER_PERFDATA_FORMAT_H

#include "sampler/perfdata.h"

#include <assert.h>
#include <linux/perf_event.h>
#include <stdint.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "perf.data is read in host byte order");

#define PERFDATA_MAGIC 0x32454c4946524550ULL         /* "PERFILE2" */
#define PERFDATA_MAGIC_SWAPPED 0x50455246494c4532ULL /* the same from a big-endian machine */
#define PERFDATA_MAGIC_OLD 0x454c494646524550ULL     /* "PERFFILE": before 2010 */

struct perfdata_section {
    uint64_t offset, size;
};

struct perfdata_file_header {
    uint64_t magic;
    uint64_t size;      /* of this header; that of a pipe is 16 */
    uint64_t attr_size; /* of one struct perf_event_attr and its section of ids */
    struct perfdata_section attrs;
    struct perfdata_section data; /* size 0 while the recording goes on */
    struct perfdata_section event_types;
    uint64_t features[4];
};
static_assert(sizeof(struct perfdata_file_header) == 104, "perf.data header");

#define PERFDATA_PIPE_HEADER_SIZE 16

struct perfdata_build_id_record {
    struct perf_event_header header;
    int32_t pid;
    uint8_t build_id[PERFDATA_BUILD_ID_BYTES];
    uint8_t size; /* valid with PERFDATA_MISC_BUILD_ID_SIZE, else 20 */
    uint8_t reserved[3];
    char filename[];
};
#define PERFDATA_MISC_BUILD_ID_SIZE (1 << 15)
static_assert(sizeof(struct perfdata_build_id_record) == 36, "build-id record");

#define PERFDATA_ATTR_SIZE_MIN 64
#define PERFDATA_UPDATE_NAME 2

#endif
