/* SPDX-License-Identifier: MIT */
/*
 * Copies of stacks: where they stand in a sample, and only as long as they are.
 *
 * A sample with PERF_SAMPLE_STACK_USER has room for the whole size that was asked for, however
 * little of it the kernel could copy (dyn_size); the rest is whatever the ring held before.  The
 * format allows each sample a size of its own, so only what was copied is kept.
 */
#ifndef ASSAY_SAMPLER_TRIM_H
#define ASSAY_SAMPLER_TRIM_H

#include "base/strings.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Offsets in a record. */
struct stack_place {
    size_t chain, chain_end; /* from the count of the call chain on; equal where it has none */
    size_t registers;        /* of the user's registers */
    size_t stack;            /* of the size of the copy */
    size_t end;              /* behind the copy and dyn_size */
    uint64_t room, used;     /* bytes: of the copy, and that were copied */
};

/* `type` and `registers` are sample_type and sample_regs_user of the record's event.  False when
 * its samples have no stacks, have fields before it whose length is not known here, or when the
 * record contradicts itself. */
bool stack_place_find(struct stack_place *ret, const void *record, uint64_t type,
                      uint64_t registers);

/* What the stack copies of a recording came to. */
struct trim_totals {
    uint64_t stacks;    /* samples with a copy of some length */
    uint64_t cut;       /* of these, as long as it could be: the stack may go on */
    uint64_t bytes_max; /* the longest copy */
};

/* Appends the record to `out` with no more of its stack than was copied.  False, and nothing
 * appended, when it has no stack that could be shortened. */
bool trim_sample(struct strbuf *out, const void *record, uint64_t type, uint64_t registers,
                 struct trim_totals *totals);

#endif
