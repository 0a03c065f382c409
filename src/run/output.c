/* SPDX-License-Identifier: MIT */
/* Where a command's standard output goes: see output.h. */
#include "run/output.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/strings.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* What an unprivileged process may ask for: the command seldom has to wait for the drain. */
#define PIPE_BYTES (1 << 20)

enum run_output output_parse(const char *word)
{
    static const struct {
        const char *word;
        enum run_output to;
    } words[] = {{"", RUN_KEEP},
                 {"memory", RUN_KEEP},
                 {"null", RUN_DISCARD},
                 {"pipe", RUN_PIPE},
                 {"inherit", RUN_SHOW}};
    for (size_t i = 0; word && i < ARRAY_COUNT(words); i++)
        if (str_eq(word, words[i].word))
            return words[i].to;
    return word ? RUN_FILE : RUN_KEEP;
}

int output_pipe(int ret_ends[2], struct error *err)
{
    int low[2];
    if (pipe2(low, O_CLOEXEC) < 0)
        return error_errno(err, -errno, "a pipe for the command's output");
    for (int i = 0; i < 2; i++) {
        ret_ends[i] = fcntl(low[i], F_DUPFD_CLOEXEC, 10);
        close(low[i]);
    }
    if (ret_ends[0] < 0 || ret_ends[1] < 0)
        return error_errno(err, -EMFILE, "a pipe for the command's output");
    fcntl(ret_ends[0], F_SETFL, O_NONBLOCK);
    fcntl(ret_ends[0], F_SETPIPE_SZ, PIPE_BYTES); /* smaller is slower, but no failure */
    return 0;
}

void output_drain(int pipe_fd, int null_fd)
{
    /* Nothing is copied: the pipe's pages are handed to /dev/null. */
    if (splice(pipe_fd, NULL, null_fd, NULL, PIPE_BYTES, SPLICE_F_NONBLOCK) >= 0 || errno != EINVAL)
        return;
    char bytes[65536];
    for (int i = 0; i < PIPE_BYTES / (int)sizeof(bytes); i++)
        if (read(pipe_fd, bytes, sizeof(bytes)) <= 0)
            return;
}
