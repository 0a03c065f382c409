/* SPDX-License-Identifier: MIT */
/* Starting and awaiting commands: see process.h. */
#include "base/process.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;

/* What the signal handler knows; written outside it only while no signal can be lost. */
static const int caught_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
static struct sigaction saved_actions[ARRAY_COUNT(caught_signals)];
static volatile sig_atomic_t first_signal;
static volatile sig_atomic_t forward_pid;
static unsigned guard_count;                 /* process_signals_catch without its restore */
static volatile sig_atomic_t pending_signal; /* came from a process while nobody was named */

static bool is_executable(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

/* The first file of this name in a folder of PATH that fits, or NULL. */
static char *find_in_path(const char *name, bool (*fits)(const char *path))
{
    const char *path = getenv("PATH");
    if (!path)
        path = "/usr/local/bin:/usr/bin:/bin";
    while (*name) {
        size_t length = strcspn(path, ":");
        char *file =
            length ? memory_printf("%.*s/%s", (int)length, path, name) : memory_strdup(name);
        if (fits(file))
            return file;
        free(file);
        if (!path[length])
            break;
        path += length + 1;
    }
    return NULL;
}

/* The C library says EACCES when a folder of PATH is closed and no other one has the command: as
 * shells do, that is called a command that is not there. */
static int start_code(const char *name, int code)
{
    if (code != -EACCES || strchr(name, '/'))
        return code;
    CLEANUP(memory_freep) char *path = find_in_path(name, is_there);
    return path ? code : -ENOENT;
}

static int explain_start(const char *name, int code, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf safe = {0};
    strbuf_put_safe(&safe, name, strlen(name), 200);
    name = strbuf_text(&safe);
    if (code == -ENOENT && !strchr(name, '/'))
        return error_set(err, code, "cannot run '%s': no such command in PATH", name);
    if (code == -ENOENT)
        return error_set(err, code,
                         "cannot run '%s': no such file, or the interpreter it names is missing",
                         name);
    if (code == -EACCES)
        return error_set(err, code,
                         "cannot run '%s': not executable (chmod +x?), or no permission to enter a "
                         "directory in its path",
                         name);
    if (code == -ENOEXEC)
        return error_set(
            err, code, "cannot run '%s': not a program for this machine; a script needs a #! line",
            name);
    return error_errno(err, code, "cannot run '%s'", name);
}

int process_spawn(const struct process_spec *spec, pid_t *ret_pid, struct error *err)
{
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    const int fds[3] = {spec->stdin_fd, spec->stdout_fd, spec->stderr_fd};
    for (int i = 0; i < 3; i++)
        if (fds[i] >= 0)
            posix_spawn_file_actions_adddup2(&actions, fds[i], i);
    for (size_t i = 0; i < spec->fd_count; i++)
        posix_spawn_file_actions_adddup2(&actions, spec->fds[i].fd, spec->fds[i].as);
    if (spec->working_dir)
        posix_spawn_file_actions_addchdir_np(&actions, spec->working_dir);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    if (spec->own_group)
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    int r = posix_spawnp(ret_pid, spec->program ? spec->program : spec->argv[0], &actions,
                         &attributes, spec->argv, spec->environment ? spec->environment : environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return r ? explain_start(spec->argv[0],
                             start_code(spec->program ? spec->program : spec->argv[0], -r), err)
             : 0;
}

/* The held child's side: waits for a byte, then becomes the command. */
static _Noreturn void held_child(const struct process_spec *spec, const char *path, int go_fd,
                                 int error_fd)
{
    char byte;
    /* A Ctrl-C from here on ends it, as it would end the command. */
    if (guard_count) {
        guard_count = 1;
        process_signals_restore();
    }
    const int fds[3] = {spec->stdin_fd, spec->stdout_fd, spec->stderr_fd};
    for (int i = 0; i < 3; i++)
        if (fds[i] >= 0)
            dup2(fds[i], i);
    if (read(go_fd, &byte, 1) != 1)
        _exit(0); /* assay gave up */
    execve(path, spec->argv, spec->environment ? spec->environment : environ);
    int code = -errno;
    if (write(error_fd, &code, sizeof(code)) < 0)
        _exit(126);
    _exit(process_exit_code_for(code));
}

int process_hold(const struct process_spec *spec, struct process_held *ret_held, struct error *err)
{
    int go[2], failed[2];
    CLEANUP(memory_freep) char *path = NULL;
    int r = process_find(spec->argv[0], &path, err);
    if (r < 0)
        return r;
    /* A socket: unlike a pipe it can be written without SIGPIPE when the child was killed. */
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, go) < 0)
        return error_errno(err, -errno, "socketpair");
    if (pipe2(failed, O_CLOEXEC) < 0) {
        close(go[0]);
        close(go[1]);
        return error_errno(err, -errno, "pipe");
    }
    pid_t pid = fork();
    if (pid == 0) {
        close(go[1]);
        held_child(spec, path, go[0], failed[1]);
    }
    close(go[0]);
    close(failed[1]);
    if (pid < 0) {
        close(go[1]);
        close(failed[0]);
        return error_errno(err, -errno, "fork");
    }
    *ret_held = (struct process_held){
        .pid = pid, .go_fd = go[1], .error_fd = failed[0], .name = spec->argv[0]};
    return 0;
}

int process_release(struct process_held *held, struct error *err)
{
    int code = 0;
    /* Fails when the child was killed meanwhile: then waiting for it tells how it ended. */
    send(held->go_fd, "", 1, MSG_NOSIGNAL);
    fd_closep(&held->go_fd);
    /* End of file means that the exec closed the descriptor: the command runs. */
    ssize_t got;
    do
        got = read(held->error_fd, &code, sizeof(code));
    while (got < 0 && errno == EINTR);
    fd_closep(&held->error_fd);
    if (!code)
        return 0;
    waitpid(held->pid, NULL, 0);
    return explain_start(held->name, code, err);
}

void process_abandon(struct process_held *held)
{
    fd_closep(&held->go_fd);
    fd_closep(&held->error_fd);
    while (waitpid(held->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

int process_exit_code_for(int code)
{
    return code == -ENOENT ? 127 : 126;
}

int process_exit_code(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void process_await_end(pid_t pid)
{
    siginfo_t info;
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
        ;
}

int process_wait(pid_t pid, struct process_result *ret_result, struct error *err)
{
    while (wait4(pid, &ret_result->status, 0, &ret_result->usage) < 0)
        if (errno != EINTR)
            return error_errno(err, -errno, "waiting for process %d", (int)pid);
    return 0;
}

bool process_poll(pid_t pid, uint64_t deadline_ns)
{
    CLEANUP(fd_closep) int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        return errno == ESRCH;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return process_poll_fds(&p, 1, deadline_ns ? deadline_ns : UINT64_MAX, true) > 0;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    int saved = errno;
    if (!first_signal)
        first_signal = number;
    /* The terminal sends its signals to the whole foreground group itself. */
    if (info->si_code != SI_KERNEL) {
        if (forward_pid)
            kill((pid_t)forward_pid, number);
        else
            pending_signal = number;
    }
    errno = saved;
}

void process_signals_catch(void)
{
    if (guard_count++)
        return;
    first_signal = 0;
    pending_signal = 0;
    forward_pid = 0;
    /* Ignored by whoever started assay, it would keep us from learning how the command ended. */
    signal(SIGCHLD, SIG_DFL);
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    for (size_t i = 0; i < ARRAY_COUNT(caught_signals); i++) {
        sigaction(caught_signals[i], NULL, &saved_actions[i]);
        /* What was ignored (nohup, a background job) stays ignored, for the command too. */
        if (saved_actions[i].sa_handler != SIG_IGN)
            sigaction(caught_signals[i], &action, NULL);
    }
}

void process_signals_target(pid_t pid)
{
    forward_pid = (sig_atomic_t)pid;
    if (pid && pending_signal) {
        kill(pid, (int)pending_signal);
        pending_signal = 0;
    }
}

int process_poll_fds(struct pollfd *fds, size_t count, uint64_t deadline_ns, bool until_signal)
{
    /* A signal that came after the last look and before the sleep would go unnoticed: signals are
     * let through only while sleeping. */
    sigset_t blocked, before;
    sigemptyset(&blocked);
    for (size_t i = 0; i < ARRAY_COUNT(caught_signals); i++)
        sigaddset(&blocked, caught_signals[i]);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    int r = -1;
    while (r < 0 && !(until_signal && first_signal)) {
        uint64_t now_ns = clock_now_ns();
        struct timespec left = timespec_from_ns(deadline_ns > now_ns ? deadline_ns - now_ns : 0);
        r = ppoll(fds, count, deadline_ns == UINT64_MAX ? NULL : &left, &before);
        if (r < 0 && errno != EINTR)
            r = 0;
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return r < 0 ? 0 : r;
}

int process_signals_caught(void)
{
    return (int)first_signal;
}

void process_signals_clear(void)
{
    first_signal = 0;
}

void process_signals_restore(void)
{
    if (!guard_count || --guard_count)
        return;
    for (size_t i = 0; i < ARRAY_COUNT(caught_signals); i++)
        sigaction(caught_signals[i], &saved_actions[i], NULL);
    forward_pid = 0;
    first_signal = 0;
}

void process_adopt_orphans(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void process_disown_orphans(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 0);
}

bool process_orphans_alive(void)
{
    for (;;) {
        pid_t pid = waitpid(-1, NULL, WNOHANG);
        if (pid == 0)
            return true;
        if (pid < 0 && errno != EINTR)
            return false;
    }
}

/* Kills the children of this process that /proc shows; the number of them. */
static size_t kill_children(void)
{
    size_t count = 0;
    DIR *folder = opendir("/proc");
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char path[300], line[512];
        int pid, parent;
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
        if (!file_read_line(path, line, sizeof(line)))
            continue;
        /* The name stands in parentheses and may hold anything. */
        const char *rest = strrchr(line, ')');
        if (!rest || sscanf(line, "%d", &pid) != 1 || sscanf(rest, ") %*c %d", &parent) != 1)
            continue;
        if (parent == getpid() && kill(pid, SIGKILL) == 0)
            count++;
    }
    if (folder)
        closedir(folder);
    return count;
}

void process_kill_orphans(void)
{
    /* Each pass may bring the children of those it killed. */
    for (int pass = 0; pass < 100 && process_orphans_alive() && kill_children(); pass++) {
        struct timespec pause = timespec_from_ns(5 * NS_PER_MS);
        nanosleep(&pause, NULL);
    }
}

int process_find(const char *name, char **ret_path, struct error *err)
{
    if (strchr(name, '/')) {
        if (access(name, X_OK) < 0)
            return explain_start(name, -errno, err);
        if (!is_executable(name))
            return explain_start(name, -EACCES, err);
        *ret_path = memory_strdup(name);
        return 0;
    }
    char *path = find_in_path(name, is_executable);
    if (!path)
        return explain_start(name, -ENOENT, err);
    *ret_path = path;
    return 0;
}

#define NAMED(name) [SIG##name] = #name

static const char *const signals[] = {
    NAMED(HUP),  NAMED(INT),    NAMED(QUIT), NAMED(ILL),  NAMED(TRAP),   NAMED(ABRT), NAMED(BUS),
    NAMED(FPE),  NAMED(KILL),   NAMED(USR1), NAMED(SEGV), NAMED(USR2),   NAMED(PIPE), NAMED(ALRM),
    NAMED(TERM), NAMED(STKFLT), NAMED(CHLD), NAMED(CONT), NAMED(STOP),   NAMED(TSTP), NAMED(TTIN),
    NAMED(TTOU), NAMED(URG),    NAMED(XCPU), NAMED(XFSZ), NAMED(VTALRM), NAMED(PROF), NAMED(WINCH),
    NAMED(POLL), NAMED(PWR),    NAMED(SYS),
};

const char *signal_name(int number)
{
    return number > 0 && (size_t)number < sizeof(signals) / sizeof(*signals) ? signals[number]
                                                                             : NULL;
}
