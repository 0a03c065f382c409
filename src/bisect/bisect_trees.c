/* SPDX-License-Identifier: MIT */
/*
 * A worktree for each commit, built once.  A file beside it, written when the build has ended, says
 * with which command: without it the tree is made anew.  All paths are equally long, because the
 * length of a path in the environment can move a result.
 */
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "bisect/bisect_internal.h"
#include "run/keeper.h"
#include "session/git.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

enum { HASH_DIGITS = 16, GRACE_NS = 2000000000 };

static char *tree_path(const struct bisect *b, size_t commit)
{
    return memory_printf("%s/trees/%.*s", b->folder, HASH_DIGITS, b->commits[commit].hash);
}

char *bisect_tree_folder(const struct bisect *b, size_t commit)
{
    CLEANUP(memory_freep) char *path = tree_path(b, commit);
    return memory_printf("%s/%s", path, b->settings.prefix);
}

static char *stamp_path(const struct bisect *b, size_t commit)
{
    CLEANUP(memory_freep) char *path = tree_path(b, commit);
    return memory_printf("%s.built", path);
}

static char *log_path(const struct bisect *b, size_t commit)
{
    return memory_printf("%s/logs/%.*s.txt", b->folder, HASH_DIGITS, b->commits[commit].hash);
}

static bool is_built(const struct bisect *b, size_t commit)
{
    CLEANUP(memory_freep) char *stamp = stamp_path(b, commit);
    CLEANUP(memory_freep) char *folder = bisect_tree_folder(b, commit);
    CLEANUP(strbuf_done) struct strbuf text = {0};
    struct error ignored;
    return access(folder, X_OK) == 0 && access(stamp, R_OK) == 0 &&
           file_read(stamp, &text, &ignored) == 0 && str_eq(strbuf_text(&text), b->settings.build);
}

/* Ends a process group, asking it first. */
static void end_group(pid_t pid)
{
    kill(-pid, SIGTERM);
    struct timespec step = {.tv_nsec = 20000000};
    for (uint64_t waited_ns = 0; waited_ns < GRACE_NS && kill(-pid, 0) == 0;
         waited_ns += 20000000) {
        siginfo_t info = {0};
        waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT);
        if (info.si_pid == pid)
            break;
        nanosleep(&step, NULL);
    }
    kill(-pid, SIGKILL);
}

/* Runs the build in a group of its own; a keeper ends it, should assay be killed. */
static int run_build(const struct bisect *b, size_t commit, int log_fd, bool *ret_ok,
                     struct error *err)
{
    CLEANUP(memory_freep) char *folder = bisect_tree_folder(b, commit);
    CLEANUP(fd_closep) int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    char *argv[] = {(char *)"/bin/sh", (char *)"-c", b->settings.build, NULL};
    struct process_spec spec = {.argv = argv,
                                .stdin_fd = null_fd,
                                .stdout_fd = log_fd,
                                .stderr_fd = log_fd,
                                .working_dir = folder,
                                .own_group = true};
    struct keeper keeper = {0};
    struct process_result result;
    pid_t pid;
    *ret_ok = false;
    if (access(folder, X_OK) < 0)
        return 0; /* the commit does not have that folder */
    int r = keeper_start(&keeper, err);
    if (r == 0)
        r = process_spawn(&spec, &pid, err);
    if (r < 0) {
        keeper_stop(&keeper);
        return r;
    }
    keeper_add(&keeper, pid);
    bool ended = process_poll(pid, 0);
    end_group(pid); /* what it left behind would disturb the runs */
    r = process_wait(pid, &result, err);
    keeper_forget(&keeper, pid);
    keeper_stop(&keeper);
    if (r == 0 && (!ended || process_signals_caught()))
        r = error_set(err, -EINTR, "stopped while building");
    if (r == 0)
        *ret_ok = result.status == 0;
    return r;
}

static void note_failure(struct bisect *b, size_t commit, const char *log)
{
    strbuf_printf(&b->notes, "skipping %.12s, which cannot be built; its output: %s\n",
                  b->commits[commit].hash, log);
}

int bisect_tree_make(struct bisect *b, size_t commit, bool *ret_ok, struct error *err)
{
    *ret_ok = true;
    if (is_built(b, commit))
        return 0;
    CLEANUP(memory_freep) char *path = tree_path(b, commit);
    CLEANUP(memory_freep) char *stamp = stamp_path(b, commit);
    CLEANUP(memory_freep) char *log = log_path(b, commit);
    CLEANUP(strbuf_done) struct strbuf out = {0};
    if (b->on_progress) {
        CLEANUP(memory_freep)
        char *what = memory_printf("building %.12s", b->commits[commit].hash);
        b->on_progress(b, what, b->context);
    }
    unlink(stamp);
    git_remove_worktree(b->repository, path);
    int r = GIT(b->repository, &out, err, "worktree", "add", "--detach", "--force", path,
                b->commits[commit].hash);
    if (process_signals_caught())
        return error_set(err, -EINTR, "stopped");
    if (r < 0)
        return error_wrap(err, r, "checking out %.12s", b->commits[commit].hash);
    CLEANUP(fd_closep)
    int log_fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (log_fd < 0)
        return error_errno(err, -errno, "%s", log);
    r = *b->settings.build ? run_build(b, commit, log_fd, ret_ok, err) : 0;
    if (r < 0)
        return r;
    if (!*ret_ok) {
        note_failure(b, commit, log);
        git_remove_worktree(b->repository, path);
        return 0;
    }
    return file_write(stamp, b->settings.build, strlen(b->settings.build), err);
}

void bisect_trees_remove(const struct bisect *b)
{
    CLEANUP(memory_freep) char *trees = memory_printf("%s/trees", b->folder);
    DIR *dir = opendir(trees);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.')
            continue;
        CLEANUP(memory_freep) char *path = memory_printf("%s/%s", trees, entry->d_name);
        if (str_has_suffix(entry->d_name, ".built"))
            unlink(path);
        else
            git_remove_worktree(b->repository, path);
    }
    closedir(dir);
    rmdir(trees);
}
