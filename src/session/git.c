/* SPDX-License-Identifier: MIT */
/* See git.h. */
#include "session/git.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"

#include <errno.h>
#include <sys/mman.h>

enum { SHOWN_BYTES = 700 };

static void read_all(int fd, struct strbuf *out)
{
    char bytes[8192];
    off_t at = 0;
    for (ssize_t got; (got = pread(fd, bytes, sizeof(bytes), at)) > 0; at += got)
        strbuf_append(out, bytes, (size_t)got);
    while (out->length && out->data[out->length - 1] == '\n')
        out->data[--out->length] = '\0';
}

int capture_in(const char *folder, const char *const *argv, struct strbuf *out, struct error *err)
{
    CLEANUP(fd_closep) int out_fd = memfd_create("assay-capture", MFD_CLOEXEC);
    CLEANUP(fd_closep) int said_fd = memfd_create("assay-capture", MFD_CLOEXEC);
    struct process_spec spec = {.argv = (char *const *)argv,
                                .stdin_fd = -1,
                                .stdout_fd = out_fd,
                                .stderr_fd = said_fd,
                                .working_dir = folder};
    pid_t pid;
    struct process_result result;
    strbuf_clear(out);
    int r = process_spawn(&spec, &pid, err);
    if (r == 0)
        r = process_wait(pid, &result, err);
    if (r < 0)
        return r;
    read_all(out_fd, out);
    if (result.status == 0)
        return 0;
    CLEANUP(strbuf_done) struct strbuf text = {0}, said = {0};
    strbuf_put_command(&text, (char *const *)argv);
    read_all(out_fd, &said);
    if (said.length)
        strbuf_putc(&said, '\n');
    read_all(said_fd, &said);
    size_t from = said.length > SHOWN_BYTES ? said.length - SHOWN_BYTES : 0;
    return error_set(err, -ECANCELED, "%s exited with %d%s%s", strbuf_text(&text),
                     process_exit_code(result.status), said.length ? "; its output:\n" : "",
                     strbuf_text(&said) + from);
}

bool git_is_ancestor(const char *folder, const char *older, const char *newer)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    return GIT(folder, &out, NULL, "merge-base", "--is-ancestor", older, newer) == 0;
}

void git_remove_worktree(const char *repository, const char *path)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    int r = GIT(repository, &out, NULL, "worktree", "remove", "--force", "--force", path);
    capture_in("/", (const char *const[]){"rm", "-rf", "--", path, NULL}, &out, NULL);
    if (r < 0) /* one that was half made: of a folder that is gone git forgets what it knew */
        GIT(repository, &out, NULL, "worktree", "remove", "--force", "--force", path);
}
