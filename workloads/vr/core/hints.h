/* SPDX-License-Identifier: MIT */
/*
 * Guesses where a key stands, so that one that is there is found without a walk through the
 * tree: the walk waits for memory again and again, and a guess only once.  A guess may be wrong or
 * missing, and who takes one looks whether the key is there.  It is no part of the state, and no
 * result depends on it.
 */
#ifndef ASSAY_VR_HINTS_H
#define ASSAY_VR_HINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vr_hints {
    struct vr_hint_line *lines; /* one for each line of the processor's cache */
    uint64_t mask;
    void *memory;
};

/* pages: how many there may be; a few keys in each. */
void vr_hints_init(struct vr_hints *h, uint32_t pages);
void vr_hints_done(struct vr_hints *h);

uint64_t vr_hint_of(const void *key, size_t size);
void vr_hints_prefetch(const struct vr_hints *h, uint64_t hint);
/* The page, and where in it the key's record begins.  False: none is known. */
bool vr_hints_find(const struct vr_hints *h, uint64_t hint, uint32_t *ret_page,
                   uint16_t *ret_place);
void vr_hints_set(struct vr_hints *h, uint64_t hint, uint32_t page, uint16_t place);

#endif
