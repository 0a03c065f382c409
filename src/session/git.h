/* SPDX-License-Identifier: MIT */
/* Asking git, and running other short commands whose output is wanted. */
#ifndef ASSAY_SESSION_GIT_H
#define ASSAY_SESSION_GIT_H

#include "base/error.h"
#include "base/strings.h"

/* Runs a command in a folder and sets out to what it printed, without the last line ends.  When it
 * fails (-ECANCELED), the message has the end of that. */
int capture_in(const char *folder, const char *const *argv, struct strbuf *out, struct error *err);

/* The same for git: GIT(".", &out, &err, "rev-parse", "HEAD"). */
#define GIT(folder, out, err, ...) \
    capture_in((folder), (const char *const[]){"git", __VA_ARGS__, NULL}, (out), (err))

/* Whether one commit is in the other's history. */
bool git_is_ancestor(const char *folder, const char *older, const char *newer);
/* Takes a worktree away, whatever is in it; git forgets it, too. */
void git_remove_worktree(const char *repository, const char *path);

#endif
