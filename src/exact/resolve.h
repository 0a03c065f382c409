/* SPDX-License-Identifier: MIT */
/*
 * Which program an exec of a file really runs: scripts name their interpreter, and a QEMU emulates
 * programs for one processor.  Used by assay and by the plugin inside QEMU, so it
 * needs the C library only.
 */
#ifndef ASSAY_EXACT_RESOLVE_H
#define ASSAY_EXACT_RESOLVE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

enum exact_kind {
    EXACT_RUNS,    /* the program can be emulated */
    EXACT_FOREIGN, /* a program for another processor, or in another format */
    EXACT_FAILS,   /* the kernel will refuse it, and is the one to say so */
};

enum { EXACT_WORDS_MAX = 10 };

struct exact_program {
    char path[PATH_MAX]; /* that is loaded */
    /* What stands in the place of argv[0], for scripts: the interpreter, its argument, the script;
     * no words for a program. */
    char *words[EXACT_WORDS_MAX + 1];
    int word_count;
    bool is_set_id;        /* it would run as somebody else */
    bool is_x86, is_arm64; /* EXACT_FOREIGN: what it is for */
};

/* For a machine as ELF files name it.  Free what it holds with exact_program_done, whatever it
 * returned. */
enum exact_kind exact_resolve(struct exact_program *p, const char *path, uint16_t machine);
void exact_program_done(struct exact_program *p);

#endif
