/* SPDX-License-Identifier: MIT */
/*
 * Which functions of two programs are the same one?
 *
 * Binaries differ in their names, in what was inlined, in the pieces that the compiler cut a
 * function into, and in who provides a function.  So a function is known by its linkage name
 * without what compilers append (.isra.0, .constprop.0, .part.0, .cold) and without what libraries
 * put before or behind the name that programs call (__GI___libc_write,
 * __memmove_avx_unaligned_erms, tc_malloc). Where one side has several of that name (two static
 * functions, one name in two libraries), the file that declares it (DWARF), else the binary, tells
 * them apart.  What remains on one side only is compared with what remains on the other: the same
 * name with other parameters, or another name declared at the same line of the same file, is the
 * same function under a new name.
 *
 * Functions of stripped code have no names but their places, which another build moves.  Those of
 * two builds are matched by their code (code/twins.h).  Where that leaves some on both sides, they
 * are one item, since nothing tells whether one of them was removed or changed; notes say so.
 */
#ifndef ASSAY_PROFILE_MATCH_H
#define ASSAY_PROFILE_MATCH_H

#include "base/strings.h"
#include "profile/profile.h"

#define MATCH_NONE UINT32_MAX

enum match_kind {
    MATCH_SAME,    /* one linkage name */
    MATCH_VARIANT, /* but for .isra.0 and the like */
    MATCH_ALIAS,   /* a library's other name for it: tc_malloc and malloc */
    MATCH_RENAMED, /* other parameters, or another name at the same declaration, or the same code */
    MATCH_MIXED,   /* stripped functions of both sides, none of which can be told to be another's */
    MATCH_ONLY_A,
    MATCH_ONLY_B,
};

/* One function of both sides. */
struct matched {
    enum match_kind kind;
    bool is_kernel;
    const char *name;                        /* to show */
    const struct profile_symbol *symbols[2]; /* one of each side's, NULL for none */
    const char *dsos[2];
    uint32_t item; /* its own number */
};

struct match {
    struct matched *items;
    size_t count;
    uint32_t **rows[2]; /* [side][run][symbol]: number in items, or MATCH_NONE without a name */
    size_t run_counts[2];
    const char *lacks_debug; /* a binary without debug information, whose other build has some */
    struct strbuf notes;     /* lines: what could not be matched, and what would help */
    struct arena arena;
};

/* The profiles are symbolized, at best with SYMBOLS_INLINES, and outlive the match. */
void match_build(struct match *m, const struct profile *const *const profiles[2],
                 const size_t run_counts[2]);
void match_done(struct match *m);

/* Makes one item of those that have the same target; target[i] is i for one that stays. */
void match_join(struct match *m, const struct profile *const *const profiles[2],
                const uint32_t *target);
/* Finds which functions of stripped code are one. */
void match_stripped(struct match *m, const struct profile *const *const profiles[2]);
/* Where one side's compiler made one of several equal functions, gives the samples back to those
 * that the source calls: changes profile->calls. */
void match_folded(struct match *m, const struct profile *const *const profiles[2]);

/* Calls back for the two builds of each binary that differ. */
typedef void match_builds(void *context, struct module *const modules[2]);
void match_each_build(const struct match *m, const struct profile *const *const profiles[2],
                      match_builds *found, void *context);
bool match_is_one_build(const struct module *a, const struct module *b);

/* Lets another of an item's symbols stand for it on a side: the one that people should see. */
void match_show(struct match *m, uint32_t item, unsigned side, const struct profile *profile,
                uint32_t symbol);

/* The name by which a function is known; *ret_is_alias when it is not the linker's but for what
 * compilers append. */
void match_name(const char *linkage_name, bool is_kernel, struct strbuf *out, bool *ret_is_alias);

#endif
