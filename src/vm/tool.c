/* SPDX-License-Identifier: MIT */
/* See tool.h. */
#include "vm/tool.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>

extern char **environ;

static bool is_replaced(const char *variable, const char *const *added)
{
    size_t length = strcspn(variable, "=");
    for (size_t i = 0; added && added[i]; i++)
        if (strncmp(added[i], variable, length) == 0 && added[i][length] == '=')
            return true;
    return false;
}

static const char **make_environment(const char *const *added)
{
    const char **all = NULL;
    size_t count = 0, capacity = 0;
    for (char **own = environ; *own; own++)
        if (!is_replaced(*own, added))
            ARRAY_PUSH(all, count, capacity) = *own;
    for (size_t i = 0; added && added[i]; i++)
        ARRAY_PUSH(all, count, capacity) = added[i];
    ARRAY_PUSH(all, count, capacity) = NULL;
    return all;
}

/* Hands out whole lines; progress is written over with \r, which ends a line here as well. */
static void take(const struct vm_tool *t, struct strbuf *line, const char *bytes, size_t length)
{
    if (t->output)
        strbuf_append(t->output, bytes, length);
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] != '\n' && bytes[i] != '\r') {
            if (line->length < 4096)
                strbuf_putc(line, bytes[i]);
            continue;
        }
        if (t->on_line && line->length)
            t->on_line(t->context, strbuf_text(line));
        strbuf_clear(line);
    }
}

/* -EINTR when a signal came for assay. */
static int read_output(const struct vm_tool *t, int fd)
{
    CLEANUP(strbuf_done) struct strbuf line = {0};
    for (;;) {
        struct pollfd watched = {.fd = fd, .events = POLLIN};
        process_poll_fds(&watched, 1, UINT64_MAX, true);
        if (process_signals_caught())
            return -EINTR;
        char bytes[4096];
        ssize_t got = read(fd, bytes, sizeof(bytes));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        take(t, &line, bytes, (size_t)got);
    }
    if (line.length)
        take(t, &line, "\n", 1);
    return 0;
}

int vm_tool_run(const struct vm_tool *t, struct error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_errno(err, -errno, "a pipe");
    CLEANUP(fd_closep) int out = ends[0], in = ends[1];
    CLEANUP(fd_closep) int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CLEANUP(memory_freep) const char **environment = make_environment(t->environment);
    struct process_spec spec = {.argv = (char *const *)t->argv,
                                .environment = (char *const *)environment,
                                .stdin_fd = null_fd,
                                .stdout_fd = in,
                                .stderr_fd = in,
                                .working_dir = t->folder,
                                .own_group = true};
    pid_t pid;
    int r = process_spawn(&spec, &pid, err);
    if (r < 0)
        return r;
    fd_closep(&in);
    r = read_output(t, out);
    if (r == -EINTR)
        kill(-pid, SIGTERM);
    struct process_result result;
    int waited = process_wait(pid, &result, r < 0 ? NULL : err);
    if (r == -EINTR)
        return error_set(err, -EINTR, "interrupted");
    return waited < 0 ? waited : process_exit_code(result.status);
}
