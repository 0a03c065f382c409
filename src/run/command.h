/* SPDX-License-Identifier: MIT */
/*
 * A command line as a person types it, made ready to be started: split into words and executed
 * directly where that is all it needs, else given to a shell.  Starting a shell takes about as long
 * as starting a small program, so who measures wants to know which of the two it was.
 */
#ifndef ASSAY_RUN_COMMAND_H
#define ASSAY_RUN_COMMAND_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct command {
    char *text;    /* as it was given */
    char **argv;   /* what is executed */
    char *program; /* the file of argv[0]; NULL where the exec is to look it up */
    bool through_shell;
};

/*
 * Splits a text into words as a POSIX shell does: blanks separate, '…' keeps all, "…" keeps all but
 * backslashes before $ ` " \ and a newline, a backslash keeps the next character.  *ret_needs_shell
 * says that the text holds what only a shell can do: expansions, pipes, redirections, lists,
 * assignments, patterns, built-ins.  The words are then not to be used.  -EINVAL when a quote is
 * not closed or there are no words.  The caller frees the words (command_free_words).
 */
int command_split(const char *text, char ***ret_words, bool *ret_needs_shell, struct error *err);
void command_free_words(char **words);
/* The words before a command (NULL for none) and its own as one list; the caller frees the list. */
char **command_join_words(char *const *before, char *const *argv);

/* Whether the text needs a shell; -EINVAL as command_split. */
int command_needs_shell(const char *text, bool *ret_needs_shell, struct error *err);

/*
 * Makes a command of a text.  shell is a command line such as "/bin/bash -e", to which -c and the
 * text are added; NULL executes directly, and refuses a text that needs a shell.
 */
int command_init(struct command *c, const char *text, const char *shell, struct error *err);
void command_done(struct command *c);

#endif
