/* SPDX-License-Identifier: MIT */
/* What a recording says about itself in its header: the machine, the command, the events, the
 * files that were mapped, and assay's capability record. */
#ifndef ASSAY_SAMPLER_FACTS_H
#define ASSAY_SAMPLER_FACTS_H

#include "sampler/mapped_files.h"
#include "sampler/perfdata_write.h"

struct facts {
    const struct perfdata_writer_event *events;
    size_t event_count;
    char *const *command_line; /* or NULL */
    struct mapped_files *files;
    uint64_t first_sample_ns, last_sample_ns;
    bool has_clock; /* the records' times are CLOCK_MONOTONIC: */
    uint64_t wall_clock_ns, record_clock_ns;
    int pack_level; /* 0 for none */
    uint32_t pack_ratio;
    size_t pack_chunk_max;
};

/* The host's name is left out: a profile is often shown to others. */
void facts_write(struct perfdata_writer *w, const struct facts *facts);

#endif
