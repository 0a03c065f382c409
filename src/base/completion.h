/* SPDX-License-Identifier: MIT */
/*
 * Completion scripts for bash, zsh and fish, made from the tables of options that programs parse
 * with, so that they cannot fall behind them.
 */
#ifndef ASSAY_BASE_COMPLETION_H
#define ASSAY_BASE_COMPLETION_H

#include "base/options.h"

struct completion {
    const char *program;
    const struct verb *const *verbs; /* ends with NULL; NULL for a program without verbs: */
    const struct verb *only;         /* its options */
    /* With verbs: more words that may stand first.  Without: the shell's command that prints what
     * may stand where no option does, "" for files. */
    const char *words;
};

/* The shell is "bash", "zsh" or "fish". */
int completion_write(struct strbuf *out, const struct completion *c, const char *shell,
                     struct error *err);

#endif
