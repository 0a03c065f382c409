/* SPDX-License-Identifier: MIT */
/*
 * Which way to find callers fits what is recorded.
 *
 * Frame pointers cost next to nothing and are wrong where code does not keep them: the callers of a
 * library without them are left out or made up.  A copy of the stack is right for all code and
 * costs memory.  So frame pointers are taken only where the program and the C library, which stands
 * for the system's libraries, are seen to set them up.
 */
#ifndef ASSAY_SAMPLER_STACKS_H
#define ASSAY_SAMPLER_STACKS_H

#include "sampler/recording.h"

/* Frame pointers or copies of the stack for a recording that leaves it open (SAMPLING_CHOSEN), and
 * a line for the user that says why. */
void stacks_choose(const struct recording_spec *spec, struct sampling_spec *s,
                   struct strbuf *notes);
/* Opens the events with the longest copies of which the rings hold enough. */
int stacks_open(struct sampling *ret_sampling, const struct recording_spec *spec,
                struct sampling_spec *s, struct error *err);

/* How large a copy may be so that a ring holds those of a fifth of a second at this rate. */
uint32_t stacks_copy_bytes(uint64_t samples_per_second, size_t ring_bytes);

#endif
