/* SPDX-License-Identifier: MIT */
/* Whether the functions of a program or library set up frame pointers. */
#ifndef ASSAY_MACHINE_FRAMES_H
#define ASSAY_MACHINE_FRAMES_H

#include "elf/image.h"

/* How many functions its table of symbols names (that of exported ones where it has no other), and
 * how many of them set one up. */
struct frames {
    size_t functions, framed;
};

/* False when there are none to look at. */
bool frames_count(const struct image *image, struct frames *ret_frames);
/* Enough of them do for the stacks of others to be followed through it by frame pointers. */
bool frames_suffice(const struct frames *frames);
/* Nearly all of them do: also those that call nothing, which compilers often leave without a frame.
 * A sample there lacks the caller, and its time is told of the caller's caller. */
bool frames_are_everywhere(const struct frames *frames);
/* The C library that this process uses, or, when it is a static one, the one that programs here
 * would use. */
bool frames_find_libc(char *path, size_t size);

/* Whether the code at the start of a function sets up a frame pointer. */
bool code_sets_frame_x86_64(const unsigned char *code, size_t length);
bool code_sets_frame_aarch64(const unsigned char *code, size_t length);

#endif
