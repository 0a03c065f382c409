/* SPDX-License-Identifier: MIT */
/*
 * --prove: what a variant claims of its copies, held against four kinds of evidence.
 *
 *   completions  the kernel's own word on each zero-copy send
 *   aliasing     the source is overwritten after the call: what does the receiver read?
 *   bpf          bytes that passed skb_copy_datagram_iovec for this process
 *   profile      samples in the kernel's copying functions, taken by `assay record`
 *
 * Every way is the same for every variant: one that stands in variants.c is proven without a line
 * of its own.
 */
#ifndef ASSAY_MOVE_PROVE_H
#define ASSAY_MOVE_PROVE_H

#include "settings.h"

enum finding {
    FOUND_NOTHING, /* this way cannot tell, and `words` says why */
    FOUND_COPY,
    FOUND_NO_COPY,
    FOUND_BOTH, /* some of the bytes were copied */
};

struct evidence {
    enum finding finding;
    char cell[16];   /* for the table; "" when this way cannot tell */
    char words[112]; /* in full */
};

enum way { WAY_COMPLETIONS, WAY_ALIASING, WAY_BPF, WAY_PROFILE, WAYS };

struct proof {
    const struct variant *variant;
    enum transport transport;
    struct evidence ways[WAYS];
    enum {
        PROVEN,       /* the evidence says what the claim says */
        REFUSED,      /* zero-copy was asked for, and all was copied */
        CONTRADICTED, /* the evidence says otherwise */
        UNPROVEN,     /* no way could tell */
        FAILED,       /* the variant does not run here: words */
    } verdict;
    char words[200];
};

extern const char *const way_names[WAYS];

/* All variants of the table, or settings->variant_name alone; 0, or a negative errno when nothing
 * could be done.  *ret_contradictions counts claims that are not true. */
int prove(const struct settings *s, size_t *ret_contradictions, struct error *err);

/* prove_try.c: sends once and looks; fills completions, aliasing and bpf.  In the process of the
 * caller, which must be one that may be ended. */
int prove_try(const struct settings *s, struct proof *p, const bool wanted[WAYS],
              struct error *err);
/* prove_profile.c: runs the variant for a while under `assay record`. */
void prove_profile(const struct settings *s, struct proof *p);
/* Judges by the evidence. */
void prove_judge(struct proof *p);

#endif
