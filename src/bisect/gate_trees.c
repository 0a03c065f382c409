/* SPDX-License-Identifier: MIT */
/* See gate_trees.h. */
#include "bisect/gate_trees.h"
#include "base/memory.h"
#include "base/strings.h"
#include "session/git.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

int gate_trees_open(struct gate_trees *t, const char *ref, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    char here[PATH_MAX];
    const char *place = getenv("TMPDIR");
    CLEANUP(memory_freep)
    char *temporary = memory_printf("%s/assay-gate-XXXXXX", place && *place ? place : "/tmp");
    int r = GIT(".", &out, err, "rev-parse", "--show-toplevel");
    if (r < 0)
        return error_wrap(err, r, "--base needs a git repository");
    t->top = memory_strdup(strbuf_text(&out));
    CLEANUP(memory_freep) char *name = memory_printf("%s^{commit}", ref);
    r = GIT(".", &out, err, "rev-parse", "--verify", name);
    if (r < 0)
        return error_wrap(err, r, "--base %s", ref);
    t->commit = memory_strdup(strbuf_text(&out));
    r = GIT(".", &out, err, "rev-parse", "--show-prefix");
    if (r < 0)
        return r;
    if (!realpath(".", here) || !mkdtemp(temporary))
        return error_errno(err, -errno, "creating a directory for the base");
    t->base_top = memory_strdup(temporary);
    t->base = memory_printf("%s/%s", temporary, strbuf_text(&out));
    t->new = memory_strdup(here);
    r = GIT(t->top, &out, err, "worktree", "add", "--detach", temporary, t->commit);
    return r < 0 ? error_wrap(err, r, "checking out the base") : 0;
}

void gate_trees_close(struct gate_trees *t)
{
    if (t->base_top)
        git_remove_worktree(t->top, t->base_top);
    free(t->top);
    free(t->base_top);
    free(t->base);
    free(t->new);
    free(t->commit);
}

int gate_trees_build(const struct gate_trees *t, const char *command, struct error *err)
{
    const char *folders[] = {t->base, t->new};
    for (size_t i = 0; i < ARRAY_COUNT(folders); i++) {
        const char *const argv[] = {"/bin/sh", "-c", command, NULL};
        CLEANUP(strbuf_done) struct strbuf out = {0};
        int r = capture_in(folders[i], argv, &out, err);
        if (r < 0)
            return error_wrap(err, r, "building %s", i ? "the new one" : "the base");
    }
    return 0;
}
