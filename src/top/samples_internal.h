/* SPDX-License-Identifier: MIT */
/* The kernel's records as the events of samples.c have them: one sample_type for all. */
#ifndef ASSAY_TOP_SAMPLES_INTERNAL_H
#define ASSAY_TOP_SAMPLES_INTERNAL_H

#include "top/samples.h"

#include <linux/perf_event.h>

/* What ends every record that is not a sample: pid and tid, time, cpu, identifier. */
#define RECORD_TAIL_BYTES 32

struct record_mmap2 {
    struct perf_event_header header;
    uint32_t pid, tid;
    uint64_t start, size, offset;
    union {
        struct {
            uint32_t major, minor;
            uint64_t number, generation;
        } inode;
        struct {
            uint8_t size, reserved[3];
            uint8_t bytes[20];
        } id;
    };
    uint32_t prot, flags;
    /* the file's name */
};
_Static_assert(sizeof(struct record_mmap2) == 72, "as the kernel has it");

struct record_comm {
    struct perf_event_header header;
    uint32_t pid, tid;
    /* the name */
};

struct record_task {
    struct perf_event_header header;
    uint32_t pid, ppid, tid, ptid;
    uint64_t time_ns;
};

struct record_ksymbol {
    struct perf_event_header header;
    uint64_t address;
    uint32_t size;
    uint16_t type, flags;
    /* the name */
};

struct sample_fields {
    uint64_t ip, time_ns, period;
    uint32_t pid, tid;
    const uint64_t *chain;
    uint64_t chain_count;
};

/* False for a sample that is shorter than it says. */
bool sample_parse(const struct perf_event_header *head, struct sample_fields *ret_fields);
uint64_t record_time_ns(const struct perf_event_header *head);
/* Follows a record that is not a sample; time 0: it tells what was there before. */
void samples_track(struct samples *s, const struct perf_event_header *head, uint64_t time_ns);
/* Takes the chunk over. */
void samples_keep(struct samples *s, struct samples_chunk *chunk);

#endif
