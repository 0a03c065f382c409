/* SPDX-License-Identifier: MIT */
/* Inside src/machine: whether the functions of a library set up frame pointers. */
#ifndef ASSAY_MACHINE_FRAMES_H
#define ASSAY_MACHINE_FRAMES_H

#include "elf/image.h"

/* How many functions its table of exported symbols names, and how many of them set one up. */
struct frames {
    size_t functions, framed;
};

/* False when there are none to look at. */
bool frames_count(const struct image *image, struct frames *ret_frames);

/* Whether the code at the start of a function sets up a frame pointer. */
bool code_sets_frame_x86_64(const unsigned char *code, size_t length);
bool code_sets_frame_aarch64(const unsigned char *code, size_t length);

#endif
