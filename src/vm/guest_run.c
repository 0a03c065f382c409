/* SPDX-License-Identifier: MIT */
/* See guest.h: running commands, and counting what they do. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "vm/guest_internal.h"
#include "vm/marker.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { METRICS_NUMBER = 9, METRICS_BYTES_MAX = 1 << 20, REST_MS = 20 };

struct job {
    char **argv, **variables;
    size_t argument_count, argument_capacity, variable_count, variable_capacity;
    const char *events, *folder, *input;
    const char
        *program; /* of the host's files, among which the command runs; NULL: of the guest's */
    const char *groups; /* there: its group and further ones, "1000,27" */
    const char *tree,
        *seen_as; /* there: a directory, and in whose place it is seen; NULL for none */
    bool drops_output;
    bool has_layout;
    size_t mapping_count; /* that it has more than by itself */
    unsigned uid;
    /* The command's own; -1 for none. */
    int out, err, metrics;
};

static void job_done(struct job *j)
{
    free(j->argv);
    free(j->variables);
}

/* As the user of the host, among the host's files. */
static bool enter_host(const struct job *j, const char **failed)
{
    gid_t groups[64];
    size_t count = 0;
    char *at = (char *)(uintptr_t)j->groups;
    while (at && *at && count < ARRAY_COUNT(groups)) {
        groups[count++] = (gid_t)strtoul(at, &at, 10);
        at += *at == ',';
    }
    umask(022);
    *failed = GUEST_ROOT;
    if (chroot(GUEST_ROOT) < 0 || chdir("/") < 0)
        return false;
    *failed = "the command's groups";
    return (!count || (setgroups(count, groups) == 0 && setgid(groups[0]) == 0)) &&
           (j->uid == 0 || setuid(j->uid) == 0);
}

/* The last step in the host's files: from here on everything is the command's. */
static void execute_in_host(struct job *j)
{
    ARRAY_PUSH(j->variables, j->variable_count, j->variable_capacity) = NULL;
    guest_await_tick();
    MARK(MARKER_BEGIN);
    execve(j->program, j->argv, j->variables);
}

/* What others do for the command before is over by now, and the clock ticks at the same places of
 * what it does: counts that repeat. */
static void execute_here(const struct job *j)
{
    struct timespec rest = {.tv_nsec = REST_MS * 1000 * 1000};
    while (j->metrics >= 0 && nanosleep(&rest, &rest) < 0 && errno == EINTR)
        continue;
    if (j->metrics >= 0)
        guest_await_tick();
    execvp(j->argv[0], j->argv);
}

/* The child's side of a command; what goes wrong is said on its own standard error. */
static _Noreturn void execute(struct job *j)
{
    const char *failed = j->input ? j->input : "/dev/null";
    bool entered = !j->program || enter_host(j, &failed);
    int in = entered ? open(failed = j->input ? j->input : "/dev/null", O_RDONLY) : -1;
    int null_fd = j->drops_output ? open("/dev/null", O_WRONLY) : -1;
    dup2(in, STDIN_FILENO);
    dup2(null_fd >= 0 ? null_fd : j->out, STDOUT_FILENO);
    dup2(j->err, STDERR_FILENO);
    if (j->metrics >= 0)
        dup2(j->metrics, METRICS_NUMBER);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    for (size_t i = 0; !j->program && i < j->variable_count; i++)
        putenv(j->variables[i]);
    bool ready = in >= 0;
    if (ready && j->folder) {
        failed = j->folder;
        ready = chdir(j->folder) == 0;
    }
    if (ready && j->uid != 0 && !j->program)
        ready = setgid(j->uid) == 0 && setuid(j->uid) == 0;
    if (ready) {
        failed = j->argv[0];
        if (j->program)
            execute_in_host(j);
        else if (!j->has_layout || guest_layout_ask())
            execute_here(j);
    }
    int code = errno;
    bool is_own = failed == j->argv[0] && !j->program;
    dprintf(STDERR_FILENO, "init: %s: %s\n", failed,
            is_own ? guest_exec_words(failed, code) : strerror(code));
    _exit(code == ENOENT ? 127 : 126);
}

/* Reaps whatever has ended; true when the command is among them. */
static bool reap(pid_t command, int *ret_status, struct rusage *usage)
{
    bool found = false;
    int status;
    struct rusage of_one;
    for (pid_t pid; (pid = wait4(-1, &status, WNOHANG, &of_one)) > 0;)
        if (pid == command) {
            *ret_status = status;
            *usage = of_one;
            found = true;
        }
    return found;
}

/* Waits until the command and everything that it started are gone; forwards the streams of which
 * there is an end to read from (-1 for none). */
static int attend(const struct guest *g, pid_t command, int out, int err, struct rusage *usage)
{
    struct pollfd watched[] = {{.fd = out, .events = POLLIN},
                               {.fd = err, .events = POLLIN},
                               {.fd = g->child_ended, .events = POLLIN},
                               {.fd = g->port, .events = 0}};
    int status = 0;
    while (watched[0].fd >= 0 || watched[1].fd >= 0 || watched[2].fd >= 0) {
        if (poll(watched, 4, -1) < 0)
            continue;
        if (watched[0].revents && !guest_forward(g, "out", out))
            watched[0].fd = -1;
        if (watched[1].revents && !guest_forward(g, "err", err))
            watched[1].fd = -1;
        if (watched[3].revents & POLLHUP)
            guest_power_off();
        if (watched[2].revents) {
            struct signalfd_siginfo ignored;
            while (read(g->child_ended, &ignored, sizeof(ignored)) > 0)
                continue;
            if (reap(command, &status, usage)) {
                kill(-1, SIGKILL);
                watched[2].fd = -1;
            }
        }
    }
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        continue;
    return status;
}

void guest_serve_run(const struct guest *g, const struct vm_frame *request)
{
    CLEANUP(job_done) struct job j = {.uid = (unsigned)request->word, .metrics = -1};
    const char *end = request->payload + request->length;
    for (const char *at = request->payload; at < end; at += strlen(at) + 1)
        ARRAY_PUSH(j.argv, j.argument_count, j.argument_capacity) = (char *)(uintptr_t)at;
    ARRAY_PUSH(j.argv, j.argument_count, j.argument_capacity) = NULL;
    int out[2], err[2];
    errno = EINVAL;
    if (!j.argv[0] || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) {
        guest_refuse(g, "the command");
        return;
    }
    j.out = out[1];
    j.err = err[1];
    pid_t pid = fork();
    if (pid == 0)
        execute(&j);
    close(out[1]);
    close(err[1]);
    struct rusage usage;
    if (pid < 0) {
        guest_refuse(g, "fork");
    } else {
        int status = attend(g, pid, out[0], err[0], &usage);
        guest_tell_death(g, status);
        guest_send_status(g, status);
    }
    close(out[0]);
    close(err[0]);
}

static bool read_fields(struct job *j, const struct vm_frame *request)
{
    const char *end = request->payload + request->length;
    for (const char *at = request->payload; at < end; at += strlen(at) + 1) {
        char *text = (char *)(uintptr_t)at + 1;
        switch (*at) {
        case 'a':
            ARRAY_PUSH(j->argv, j->argument_count, j->argument_capacity) = text;
            break;
        case 'v':
            ARRAY_PUSH(j->variables, j->variable_count, j->variable_capacity) = text;
            break;
        case 'e':
            j->events = text;
            break;
        case 'd':
            j->folder = text;
            break;
        case 'i':
            j->input = text;
            break;
        case 'p':
            j->program = text;
            break;
        case 'g':
            j->groups = text;
            break;
        case 'f':
            j->tree = text;
            break;
        case 't':
            j->seen_as = text;
            break;
        case 'n':
            j->drops_output = true;
            break;
        case 'l':
            j->has_layout = true;
            j->mapping_count = strtoul(text, NULL, 10);
            break;
        default:
            return false;
        }
    }
    ARRAY_PUSH(j->argv, j->argument_count, j->argument_capacity) = NULL;
    return j->argv[0] != NULL;
}

/* A file in memory is read only when all is over: a pipe's reader would run in between. */
static void send_file(const struct guest *g, const char *kind, int fd, size_t most)
{
    char part[65536];
    ssize_t got;
    for (size_t at = 0; at < most && (got = pread(fd, part, sizeof(part), (off_t)at)) > 0;
         at += (size_t)got)
        guest_send(g, kind, part, (size_t)got);
}

static void send_maps(const struct guest *g, const struct guest_maps *maps)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    guest_maps_put(maps, &text);
    guest_send(g, "maps", strbuf_text(&text), text.length);
}

static void send_counts(const struct guest *g, const struct event_list *events,
                        const struct counters *counters)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    struct error err;
    struct counter_value *values = memory_zalloc(events->count + 1, sizeof(*values));
    const char *failed = counters_read(counters, values, &err) < 0 ? err.message : NULL;
    for (size_t i = 0; i < events->count; i++)
        vm_counts_put(&text, events->items[i].name,
                      counters->items[i].why ? counters->items[i].why : failed, &values[i]);
    guest_send(g, "counts", strbuf_text(&text), text.length);
    free(values);
}

/* The command with its counters open on this process: its children inherit them. */
static void run_counted(const struct guest *g, struct job *j, const struct event_list *events,
                        const struct counters *counters)
{
    CLEANUP(guest_maps_close) struct guest_maps maps = {.fd = -1};
    if (j->program)
        guest_maps_open(&maps);
    uint64_t start_ns = clock_now_ns();
    pid_t pid = fork();
    if (pid == 0)
        execute(j);
    if (pid < 0) {
        guest_refuse(g, "fork");
        return;
    }
    if (j->has_layout && !j->program && !guest_layout_give(pid, j->mapping_count)) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        guest_refuse(g, "changing the layout of the command's memory");
        return;
    }
    struct rusage usage = {0};
    int status = attend(g, pid, -1, -1, &usage);
    MARK(MARKER_END);
    uint64_t wall_ns = clock_now_ns() - start_ns;
    CLEANUP(strbuf_done) struct strbuf text = {0};
    vm_usage_put(&text, wall_ns, &usage);
    send_file(g, "out", j->out, VM_FRAME_MAX / 4);
    send_file(g, "err", j->err, VM_FRAME_MAX / 4);
    if (j->program)
        send_maps(g, &maps);
    else
        guest_tell_death(g, status);
    send_file(g, "metrics", j->metrics, METRICS_BYTES_MAX);
    guest_send(g, "usage", strbuf_text(&text), text.length);
    send_counts(g, events, counters);
    guest_send_status(g, status);
}

void guest_serve_measure(const struct guest *g, const struct vm_frame *request)
{
    CLEANUP(job_done) struct job j = {.uid = (unsigned)request->word};
    CLEANUP(event_list_done) struct event_list events = {0};
    struct counters counters;
    struct error err = {0};
    const struct counter_target target = {.kind = TARGET_CHILDREN};
    CLEANUP(fd_closep) int out = memfd_create("out", MFD_CLOEXEC);
    CLEANUP(fd_closep) int error = memfd_create("err", MFD_CLOEXEC);
    CLEANUP(fd_closep) int metrics = memfd_create("metrics", MFD_CLOEXEC);
    j.out = out;
    j.err = error;
    j.metrics = metrics;
    if (!read_fields(&j, request)) {
        errno = EINVAL;
        guest_refuse(g, "the command");
        return;
    }
    const char *failed = NULL;
    if (j.program && !guest_host_mount(&failed)) {
        guest_refuse(g, failed);
        return;
    }
    if (j.tree && j.seen_as && !guest_host_bind(j.tree, j.seen_as)) {
        guest_refuse(g, j.seen_as);
        return;
    }
    if (j.program)
        guest_set_date();
    char number[] = "ASSAY_METRICS_FD=9";
    static_assert(METRICS_NUMBER == 9, "the variable above says so");
    putenv(number);
    int r = j.events && *j.events ? event_list_parse(&events, j.events, &err) : 0;
    if (r == 0)
        r = counters_open(&counters, &events, &target, &err);
    if (r < 0) {
        CLEANUP(memory_freep) char *text = memory_printf("init: %s\n", err.message);
        guest_send(g, "err", text, strlen(text));
        guest_send_status(g, 125 << 8);
    } else {
        run_counted(g, &j, &events, &counters);
        counters_done(&counters);
    }
    unsetenv("ASSAY_METRICS_FD");
}
