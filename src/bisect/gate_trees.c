/* SPDX-License-Identifier: MIT */
/* See gate_trees.h. */
#include "bisect/gate_trees.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/strings.h"
#include "session/git.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int gate_trees_look(struct gate_trees *t, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    int r = GIT(".", &out, err, "rev-parse", "--verify", "HEAD");
    if (r < 0)
        return r;
    t->new_commit = memory_strdup(strbuf_text(&out));
    r = GIT(".", &out, err, "status", "--porcelain", "--untracked-files=no");
    t->is_dirty = r == 0 && out.length;
    return r;
}

/* A commit that git does not have: most often it was never fetched. */
static int explain_missing(const char *ref, int code, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    if (GIT(".", &out, NULL, "rev-parse", "--is-shallow-repository") == 0 &&
        str_eq(strbuf_text(&out), "true"))
        return error_set(err, code,
                         "--base %s: this is a shallow clone, which does not have that commit; run "
                         "'git fetch --unshallow' first, or clone it whole: 'fetch-depth: 0' for "
                         "actions/checkout, 'GIT_DEPTH: 0' in GitLab",
                         ref);
    return error_wrap(err, code, "--base %s", ref);
}

int gate_trees_open(struct gate_trees *t, const char *ref, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    char here[PATH_MAX];
    CLEANUP(memory_freep)
    char *temporary = memory_printf("%s/assay-gate-XXXXXX", temporary_folder());
    int r = GIT(".", &out, err, "rev-parse", "--show-toplevel");
    if (r < 0)
        return error_wrap(err, r, "--base needs a git repository");
    t->top = memory_strdup(strbuf_text(&out));
    CLEANUP(memory_freep) char *name = memory_printf("%s^{commit}", ref);
    r = GIT(".", &out, err, "rev-parse", "--verify", name);
    if (r < 0)
        return explain_missing(ref, r, err);
    t->commit = memory_strdup(strbuf_text(&out));
    r = gate_trees_look(t, err);
    if (r < 0)
        return r;
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
    free(t->new_commit);
}

int gate_trees_build(const struct gate_trees *t, const char *command, struct error *err)
{
    const char *folders[] = {t->base, t->new};
    for (size_t i = t->base ? 0 : 1; i < ARRAY_COUNT(folders); i++) {
        const char *const argv[] = {"/bin/sh", "-c", command, NULL};
        CLEANUP(strbuf_done) struct strbuf out = {0};
        int r = capture_in(folders[i] ? folders[i] : ".", argv, &out, err);
        if (r < 0)
            return error_wrap(err, r, "building %s", i ? "the new one" : "the base");
    }
    return 0;
}

static bool is_there(const char *tree, const char *inside, const char *program)
{
    CLEANUP(memory_freep) char *path = memory_printf("%s/%s/%s", tree, inside, program);
    return access(path, F_OK) == 0;
}

int gate_trees_check(const struct gate_trees *t, const char *inside, const char *program,
                     const char *built, struct error *err)
{
    bool in_base = is_there(t->base, inside, program), in_new = is_there(t->new, inside, program);
    if (!strchr(program, '/') || *program == '/' || (in_base && in_new))
        return 0;
    const char *where = in_new    ? "the base's tree has no"
                        : in_base ? "the working tree has no"
                                  : "neither the base's tree nor the working tree has a";
    if (built)
        return error_set(err, -ENOENT, "%s %s, though '%s' (--build) ran in both (base %.12s)",
                         where, program, built, t->commit);
    return error_set(err, -ENOENT,
                     "%s %s, and nothing built it there (base %.12s); give the command that does: "
                     "--build COMMAND runs in both trees",
                     where, program, t->commit);
}
