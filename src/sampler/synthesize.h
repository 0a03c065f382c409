/* SPDX-License-Identifier: MIT */
/* Records for what was there before the recording began: the kernel, its modules and BPF programs,
 * and the names and maps of processes that run already.  Their time is 0. */
#ifndef ASSAY_SAMPLER_SYNTHESIZE_H
#define ASSAY_SAMPLER_SYNTHESIZE_H

#include "base/strings.h"
#include "sampler/mapped_files.h"

#include <sys/types.h>

struct synthesis {
    struct strbuf *out;         /* where the records go */
    size_t sample_id_size;      /* of the first event: that many zeros end each record */
    struct mapped_files *files; /* where mapped files are noted */
};

/* The kernel and its modules.  False when the kernel hides its addresses (kptr_restrict). */
bool synthesize_kernel(const struct synthesis *s);
/* BPF programs that are loaded. */
void synthesize_bpf(const struct synthesis *s);
/* One process with its threads; one that has ended gives nothing. */
void synthesize_process(const struct synthesis *s, pid_t pid);
void synthesize_all_processes(const struct synthesis *s);

#endif
