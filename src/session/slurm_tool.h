/* SPDX-License-Identifier: MIT */
/*
 * Running Slurm's own programs: sbatch, squeue, scontrol and their like.  They get two minutes for
 * an answer; what they say when they fail becomes the error, with what to do about it.
 */
#ifndef ASSAY_SESSION_SLURM_TOOL_H
#define ASSAY_SESSION_SLURM_TOOL_H

#include "base/error.h"
#include "base/strings.h"

#include <stddef.h>

/* A command line that grows; the words are the list's own. */
struct slurm_words {
    char **items;
    size_t count, capacity;
};

__attribute__((format(printf, 2, 3))) void slurm_words_add(struct slurm_words *w,
                                                           const char *format, ...);
void slurm_words_done(struct slurm_words *w);
/* What it prints is appended to `out`. */
int slurm_words_run(struct slurm_words *w, struct strbuf *out, struct error *err);
int slurm_run(char *const *argv, struct strbuf *out, struct error *err);

struct slurm_host {
    char name[64], address[64];
};

struct slurm_hosts {
    struct slurm_host *items;
    size_t count, capacity;
};

/* The nodes of the allocation that this process runs in, in their order. */
int slurm_list_allocation(struct slurm_hosts *ret_hosts, struct error *err);
void slurm_hosts_done(struct slurm_hosts *hosts);

/* What to do about what they say when they fail, to be put behind it; "" for nothing known. */
const char *slurm_remedy(const char *words);

#endif
