/* SPDX-License-Identifier: MIT */
/* The eBPF programs of peek.h, as instructions. */
#ifndef ASSAY_LIVE_PEEK_CODE_H
#define ASSAY_LIVE_PEEK_CODE_H

#include "live/peek.h"

#include <linux/bpf.h>

#define PEEK_NUMBERS 512 /* calls with higher numbers are not read */
#define PEEK_BYTES 128   /* of what is no text */

/* What the program writes for one call. */
struct peek_output {
    uint64_t number;
    uint32_t sizes[PEEK_SLOTS];
    uint8_t bytes[PEEK_SLOTS][CALL_TEXT_MAX];
};

/* A call whose memory could not be read at its entry, as the tracepoint has it. */
struct peek_pending {
    uint64_t head, number, arguments[CALL_ARGUMENTS];
};

struct peek_maps {
    int followed_fd, shapes_fd, buffer_fd, output_fd, pending_fd;
};

struct peek_code {
    struct bpf_insn *items;
    size_t count, capacity;
};

void peek_code_enter(struct peek_code *c, const struct peek_maps *maps, bool everywhere);
/* At the call's return: reads what was not there at its entry.  The kernel has read it meanwhile,
 * so that it is there. */
void peek_code_exit(struct peek_code *c, const struct peek_maps *maps);
void peek_code_fork(struct peek_code *c, const struct peek_maps *maps, int16_t child_offset);
void peek_code_done(struct peek_code *c);

#endif
