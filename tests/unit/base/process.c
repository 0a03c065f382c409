/* SPDX-License-Identifier: MIT */
#include "base/process.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

static struct process_spec command(char *const *argv)
{
    return (struct process_spec){.argv = argv, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
}

TEST(exit_codes_pass_through)
{
    struct error err;
    struct process_result result;
    pid_t pid;
    struct process_spec spec = command((char *[]){"sh", "-c", "exit 7", NULL});
    CHECK_INT(process_spawn(&spec, &pid, &err), 0);
    CHECK_INT(process_wait(pid, &result, &err), 0);
    CHECK_INT(process_exit_code(result.status), 7);
    spec = command((char *[]){"sh", "-c", "kill -9 $$", NULL});
    CHECK_INT(process_spawn(&spec, &pid, &err), 0);
    CHECK_INT(process_wait(pid, &result, &err), 0);
    CHECK_INT(process_exit_code(result.status), 137);
}

TEST(a_command_that_cannot_start_says_why)
{
    struct error err;
    pid_t pid;
    struct process_spec spec = command((char *[]){"no-such-command-here", NULL});
    CHECK_INT(process_spawn(&spec, &pid, &err), -ENOENT);
    CHECK_CONTAINS(err.message, "no such command in PATH");
    CHECK_INT(process_exit_code_for(-ENOENT), 127);
    /* Also where PATH has a folder that is closed to us. */
    char folder[] = "/tmp/assay-closed-XXXXXX";
    CHECK(mkdtemp(folder) != NULL && chmod(folder, 0) == 0);
    CLEANUP(memory_freep) char *old = memory_strdup(getenv("PATH"));
    CLEANUP(memory_freep) char *new = memory_printf("%s:%s", folder, old);
    setenv("PATH", new, 1);
    CHECK_INT(process_spawn(&spec, &pid, &err), -ENOENT);
    setenv("PATH", old, 1);
    rmdir(folder);
    spec = command((char *[]){"/etc/passwd", NULL});
    CHECK_INT(process_spawn(&spec, &pid, &err), -EACCES);
    CHECK_INT(process_exit_code_for(-EACCES), 126);
    char *path = NULL;
    CHECK_INT(process_find("no-such-command-here", &path, &err), -ENOENT);
    CHECK_INT(process_find("/etc/passwd", &path, &err), -EACCES);
    CHECK_INT(process_find("/etc", &path, &err), -EACCES);
    CHECK_INT(process_find("sh", &path, &err), 0);
    free(path);
}

TEST(a_held_command_waits)
{
    struct error err;
    struct process_held held;
    struct process_result result;
    struct process_spec spec = command((char *[]){"sh", "-c", "exit 3", NULL});
    CHECK_INT(process_hold(&spec, &held, &err), 0);
    CHECK(!process_poll(held.pid, clock_now_ns() + 20 * NS_PER_MS));
    CHECK_INT(process_release(&held, &err), 0);
    CHECK(process_poll(held.pid, 0));
    CHECK_INT(process_wait(held.pid, &result, &err), 0);
    CHECK_INT(process_exit_code(result.status), 3);
    spec = command((char *[]){"no-such-command-here", NULL});
    CHECK_INT(process_hold(&spec, &held, &err), -ENOENT);
    char script[] = "/tmp/assay-script-XXXXXX";
    int fd = mkostemp(script, O_CLOEXEC);
    CHECK(fd >= 0 && write(fd, "exit 3\n", 7) == 7 && fchmod(fd, 0755) == 0);
    close(fd);
    spec = command((char *[]){script, NULL});
    CHECK_INT(process_hold(&spec, &held, &err), 0);
    CHECK_INT(process_release(&held, &err), -ENOEXEC);
    CHECK_CONTAINS(err.message, "a script needs a #! line");
    pid_t pid;
    CHECK_INT(process_spawn(&spec, &pid, &err), -ENOEXEC);
    unlink(script);
}

TEST(signals_sent_to_us_are_passed_on)
{
    struct error err;
    struct process_result result;
    pid_t pid;
    struct process_spec spec = command((char *[]){"sleep", "60", NULL});
    process_signals_catch();
    CHECK_INT(process_spawn(&spec, &pid, &err), 0);
    process_signals_target(pid);
    kill(getpid(), SIGTERM);
    CHECK_INT(process_wait(pid, &result, &err), 0);
    CHECK(WIFSIGNALED(result.status));
    CHECK_INT(WTERMSIG(result.status), SIGTERM);
    CHECK_INT(process_signals_caught(), SIGTERM);
    process_signals_restore();
}

TEST(a_held_command_that_is_not_wanted_never_runs)
{
    struct error err;
    struct process_held held;
    struct process_result result;
    char mark[] = "/tmp/assay-mark-XXXXXX";
    int fd = mkostemp(mark, O_CLOEXEC);
    CHECK(fd >= 0 && unlink(mark) == 0);
    close(fd);
    struct process_spec spec = command((char *[]){"touch", mark, NULL});
    CHECK_INT(process_hold(&spec, &held, &err), 0);
    process_abandon(&held);
    CHECK_INT(kill(held.pid, 0), -1);
    CHECK_INT(access(mark, F_OK), -1);
    /* One that was killed before it was let go ends as killed, and assay lives. */
    CHECK_INT(process_hold(&spec, &held, &err), 0);
    kill(held.pid, SIGKILL);
    CHECK(process_poll(held.pid, 0));
    CHECK_INT(process_release(&held, &err), 0);
    CHECK_INT(process_wait(held.pid, &result, &err), 0);
    CHECK_INT(process_exit_code(result.status), 128 + SIGKILL);
}

TEST(a_signal_that_came_before_the_sleep_is_seen)
{
    process_signals_catch();
    process_signals_catch();
    raise(SIGHUP);
    CHECK_INT(process_poll_fds(NULL, 0, UINT64_MAX, true), 0);
    CHECK_INT(process_signals_caught(), SIGHUP);
    process_signals_restore();
    raise(SIGHUP); /* still within the outer guard */
    process_signals_restore();
    process_signals_restore();
    process_signals_clear();
}

TEST(orphans_are_noticed)
{
    struct error err;
    struct process_result result;
    pid_t pid;
    process_adopt_orphans();
    struct process_spec spec = command((char *[]){"sh", "-c", "sleep 60 & echo $! >&2", NULL});
    int out[2];
    CHECK_INT(pipe2(out, O_CLOEXEC), 0);
    spec.stderr_fd = out[1];
    CHECK_INT(process_spawn(&spec, &pid, &err), 0);
    CHECK_INT(process_wait(pid, &result, &err), 0);
    char text[32] = "";
    CHECK(read(out[0], text, sizeof(text) - 1) > 0);
    CHECK(process_orphans_alive());
    kill((pid_t)atoi(text), SIGKILL);
    while (process_orphans_alive())
        usleep(1000);
    CHECK(!process_orphans_alive());
    close(out[0]);
    close(out[1]);
}
