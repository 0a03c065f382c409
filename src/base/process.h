/* SPDX-License-Identifier: MIT */
/*
 * Starting and awaiting the commands that are measured.
 *
 * The command gets assay's own standard streams, environment and signal dispositions, so that it
 * cannot tell that it is measured.  A signal from the terminal reaches the command by itself; one
 * that was sent to assay alone is passed on.  assay outlives the command and reports.
 */
#ifndef ASSAY_BASE_PROCESS_H
#define ASSAY_BASE_PROCESS_H

#include "base/error.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

/* A descriptor that the command gets besides its standard streams, under the number `as`. */
struct process_fd {
    int fd, as;
};

struct process_spec {
    char *const *argv;
    char *const *environment;           /* NULL for assay's own */
    int stdin_fd, stdout_fd, stderr_fd; /* -1 to keep assay's */
    /* The rest is for process_spawn only and may be left out. */
    const char *program;          /* the file to execute; NULL: argv[0], looked up in PATH */
    const char *working_dir;      /* NULL for assay's own */
    const struct process_fd *fds; /* `as` must be none of assay's own numbers that are passed on */
    size_t fd_count;
    bool own_group; /* a process group of its own, which the terminal's signals do not reach */
};

struct process_result {
    int status; /* as wait4 gives it */
    struct rusage usage;
    uint64_t wall_ns; /* from just before the start to just after the end */
};

/* Starts the command.  -ENOENT, -EACCES, … when it cannot be executed: then nothing ran, and
 * process_exit_code_for says which exit code a shell would give. */
int process_spawn(const struct process_spec *spec, pid_t *ret_pid, struct error *err);

/* As process_spawn, but the command waits before its exec until process_release.  A command that
 * is not there fails at once, another failure of the exec is reported by process_release. */
struct process_held {
    pid_t pid;
    int go_fd, error_fd;
    const char *name; /* argv[0] of the spec */
};
int process_hold(const struct process_spec *spec, struct process_held *ret_held, struct error *err);
int process_release(struct process_held *held, struct error *err);
/* Ends a held command that is not wanted any more, before its exec. */
void process_abandon(struct process_held *held);

int process_exit_code_for(int code); /* of a command that could not be started: 126 or 127 */
int process_exit_code(int status);   /* of one that ended: its own, or 128 + signal */

/* Waits without a limit.  Fills status and usage. */
/* Waits until it has ended and leaves it to be reaped by process_wait. */
void process_await_end(pid_t pid);
int process_wait(pid_t pid, struct process_result *ret_result, struct error *err);

/* Waits until the process has ended (then true) or until the clock of clock_now_ns passes
 * deadline_ns (0 for none) or a signal came for assay (then false). */
bool process_poll(pid_t pid, uint64_t deadline_ns);
/* poll(2) until the clock passes deadline_ns (UINT64_MAX for never) or, when asked, until a signal
 * has come for assay, also one that came before the call.  How many are ready, 0 for none. */
int process_poll_fds(struct pollfd *fds, size_t count, uint64_t deadline_ns, bool until_signal);

/* From here to process_signals_restore, SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on to the
 * process that process_signals_target names and remembered.  Within a guard, another changes
 * nothing: the outermost counts, and its end forgets them.  A restore too many does nothing. */
void process_signals_catch(void);
void process_signals_target(pid_t pid); /* 0 for nobody */
int process_signals_caught(void);       /* the first signal that came, 0 for none */
void process_signals_clear(void);       /* forgets it: the next one counts as the first */
void process_signals_restore(void);

/* Lets processes that the command leaves behind become assay's children, and says how many are
 * still alive after those that ended were reaped. */
void process_adopt_orphans(void);
void process_disown_orphans(void); /* from now on they go to init again */
bool process_orphans_alive(void);
/* Ends every child that assay still has, with all that they started, and reaps them. */
void process_kill_orphans(void);

/* The file that PATH gives for a command's first word; the caller frees it. */
int process_find(const char *name, char **ret_path, struct error *err);

/* "TERM" for SIGTERM; NULL for a number without a name. */
const char *signal_name(int number);

#endif
