/* SPDX-License-Identifier: MIT */
/* See steps.h. */
#include "session/steps.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "run/command.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* How often a server is asked whether it is ready, and how long it may take to end. */
#define POLL_NS (5 * NS_PER_MS)
#define END_NS (5 * NS_PER_S)
#define SAID_BYTES 500

/* A task for the worker, with its result. */
struct task {
    struct steps *s;
    const struct spec_step *step;
    const struct hole_values *values;
    struct server *server; /* for a step in the background */
    struct error *err;
    int code;
};

int steps_open(struct steps *s, const struct spec *spec, struct error *err)
{
    *s = (struct steps){.spec = spec};
    if (!spec->setup_count && !spec->teardown_count)
        return 0;
    s->servers = memory_zalloc(spec->setup_count + 1, sizeof(*s->servers));
    s->server_count = spec->setup_count;
    for (size_t i = 0; i < s->server_count; i++)
        s->servers[i] = (struct server){.log_fd = -1, .step = &spec->setups[i]};
    bool has_server = false;
    for (size_t i = 0; i < s->server_count; i++)
        has_server = has_server || spec->setups[i].background;
    int r = has_server ? keeper_start(&s->keeper, err) : 0;
    if (r == 0)
        r = worker_start(&s->worker, err);
    s->started = r == 0;
    if (r < 0)
        steps_done(s);
    return r;
}

/* The end of what a step said, for a message. */
static void put_said(struct strbuf *out, int fd)
{
    char bytes[SAID_BYTES];
    off_t size = lseek(fd, 0, SEEK_END);
    off_t from = size > (off_t)sizeof(bytes) ? size - (off_t)sizeof(bytes) : 0;
    ssize_t got = size > 0 ? pread(fd, bytes, sizeof(bytes), from) : 0;
    while (got > 0 && bytes[got - 1] == '\n')
        got--;
    if (got > 0) {
        strbuf_puts(out, "; its output:\n");
        strbuf_append(out, bytes, (size_t)got);
    } else {
        strbuf_puts(out, " and printed nothing");
    }
}

static int fail_step(const struct task *t, int log_fd, int code, const char *words)
{
    CLEANUP(strbuf_done) struct strbuf said = {0};
    put_said(&said, log_fd);
    return error_set(t->err, code, "%s:%zu: %s%s", t->s->spec->file, t->step->command.line, words,
                     strbuf_text(&said));
}

static bool is_added(const struct text_pairs *added, const char *variable)
{
    for (size_t i = 0; i < added->count; i++) {
        size_t length = strlen(added->items[i].name);
        if (strncmp(added->items[i].name, variable, length) == 0 && variable[length] == '=')
            return true;
    }
    return false;
}

/* The step's environment: assay's, with the spec's additions. */
static char **environment_for(const struct spec *s, const struct hole_values *values)
{
    char **list = NULL;
    size_t count = 0, capacity = 0;
    for (char **e = environ; *e; e++)
        if (!is_added(&s->environment, *e))
            ARRAY_PUSH(list, count, capacity) = memory_strdup(*e);
    for (size_t i = 0; i < s->environment.count; i++) {
        struct strbuf text = {0};
        strbuf_printf(&text, "%s=", s->environment.items[i].name);
        holes_fill(&text, s->environment.items[i].value, values);
        ARRAY_PUSH(list, count, capacity) = text.data;
    }
    ARRAY_PUSH(list, count, capacity) = NULL;
    return list;
}

static int start_step(const struct task *t, int log_fd, pid_t *ret_pid)
{
    char **argv = NULL;
    int r = holes_command(&t->step->command, t->values, &argv, t->err);
    if (r < 0)
        return r;
    char **environment = environment_for(t->s->spec, t->values);
    struct process_spec spec = {.argv = argv,
                                .environment = environment,
                                .stdin_fd = -1,
                                .stdout_fd = log_fd,
                                .stderr_fd = log_fd,
                                .working_dir = spec_folder(t->s->spec, t->values->levels),
                                .own_group = true};
    r = process_spawn(&spec, ret_pid, t->err);
    if (r < 0)
        r = error_wrap(t->err, r, "%s:%zu", t->s->spec->file, t->step->command.line);
    command_free_words(argv);
    command_free_words(environment);
    return r;
}

static void end_process(pid_t pid)
{
    kill(-pid, SIGTERM);
    uint64_t deadline_ns = clock_now_ns() + END_NS;
    while (!process_poll(pid, deadline_ns) && clock_now_ns() < deadline_ns)
        if (process_signals_caught())
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    kill(-pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static int run_to_end(const struct task *t, int log_fd)
{
    pid_t pid;
    int r = start_step(t, log_fd, &pid);
    if (r < 0)
        return r;
    uint64_t deadline_ns = clock_now_ns() + t->step->timeout_ns;
    bool ended = false;
    while (!ended && clock_now_ns() < deadline_ns && !process_signals_caught())
        ended = process_poll(pid, deadline_ns);
    if (!ended) {
        end_process(pid);
        return fail_step(t, log_fd, -ETIMEDOUT,
                         process_signals_caught() ? "the step was interrupted"
                                                  : "the step took longer than its timeout");
    }
    struct process_result result;
    r = process_wait(pid, &result, t->err);
    if (r < 0 || result.status == 0)
        return r;
    char words[64];
    snprintf(words, sizeof(words), "the step exited with %d", process_exit_code(result.status));
    return fail_step(t, log_fd, -ECANCELED, words);
}

static bool port_answers(const char *text)
{
    uint64_t port;
    const char *colon = strrchr(text, ':');
    char host[64] = "127.0.0.1";
    if (colon && (size_t)(colon - text) < sizeof(host)) {
        memcpy(host, text, (size_t)(colon - text));
        host[colon - text] = '\0';
        text = colon + 1;
    }
    struct sockaddr_in address = {.sin_family = AF_INET};
    if (parse_u64(text, &port, NULL) < 0 || port > 65535 ||
        inet_pton(AF_INET, host, &address.sin_addr) != 1)
        return false;
    address.sin_port = htons((uint16_t)port);
    CLEANUP(fd_closep) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
}

static bool output_matches(int log_fd, const char *pattern)
{
    regex_t regex;
    if (regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB | REG_NEWLINE) != 0)
        return false;
    static const size_t most = 1 << 20;
    off_t size = lseek(log_fd, 0, SEEK_END);
    size_t length = size > (off_t)most ? most : size > 0 ? (size_t)size : 0;
    CLEANUP(memory_freep) char *text = memory_alloc(length + 1);
    ssize_t got = pread(log_fd, text, length, 0);
    text[got > 0 ? got : 0] = '\0';
    bool found = regexec(&regex, text, 0, NULL, 0) == 0;
    regfree(&regex);
    return found;
}

static bool command_succeeds(const struct task *t, const char *text)
{
    char *argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)text, NULL};
    CLEANUP(fd_closep) int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct process_spec spec = {.argv = argv,
                                .stdin_fd = null_fd,
                                .stdout_fd = null_fd,
                                .stderr_fd = null_fd,
                                .working_dir = spec_folder(t->s->spec, t->values->levels),
                                .own_group = true};
    pid_t pid;
    struct process_result result;
    return process_spawn(&spec, &pid, NULL) == 0 && process_wait(pid, &result, NULL) == 0 &&
           result.status == 0;
}

static bool is_ready(const struct task *t, const char *text)
{
    switch (t->step->ready) {
    case READY_PORT:
        return port_answers(text);
    case READY_OUTPUT:
        return output_matches(t->server->log_fd, text);
    case READY_FILE: {
        CLEANUP(memory_freep)
        char *path = memory_printf("%s/%s", spec_folder(t->s->spec, t->values->levels), text);
        return access(text[0] == '/' ? text : path, F_OK) == 0;
    }
    case READY_COMMAND:
        return command_succeeds(t, text);
    default:
        return true;
    }
}

static bool has_ended(pid_t pid)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

static int await_ready(const struct task *t)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    if (t->step->ready_text)
        holes_fill(&text, t->step->ready_text, t->values);
    uint64_t deadline_ns = clock_now_ns() + t->step->timeout_ns;
    for (;;) {
        if (has_ended(t->server->pid))
            return fail_step(t, t->server->log_fd, -ECANCELED, "the server exited on its own");
        if (is_ready(t, strbuf_text(&text)))
            return 0;
        if (process_signals_caught())
            return error_set(t->err, -EINTR, "interrupted while waiting for a server");
        if (clock_now_ns() > deadline_ns)
            return fail_step(t, t->server->log_fd, -ETIMEDOUT,
                             "the server did not become ready within its timeout");
        struct timespec pause = timespec_from_ns(POLL_NS);
        nanosleep(&pause, NULL);
    }
}

static void stop_server(struct steps *s, struct server *server)
{
    if (server->pid) {
        end_process(server->pid);
        keeper_forget(&s->keeper, server->pid);
    }
    server->pid = 0;
    fd_closep(&server->log_fd);
}

static int run_server(struct task *t)
{
    stop_server(t->s, t->server);
    t->server->log_fd = memfd_create("assay-server", MFD_CLOEXEC);
    if (t->server->log_fd < 0)
        return error_errno(t->err, -errno, "memfd_create");
    int r = start_step(t, t->server->log_fd, &t->server->pid);
    if (r < 0)
        return r;
    keeper_add(&t->s->keeper, t->server->pid);
    r = await_ready(t);
    if (r < 0)
        stop_server(t->s, t->server);
    return r;
}

static void do_step(void *context)
{
    struct task *t = context;
    if (t->step->background) {
        t->code = run_server(t);
        return;
    }
    CLEANUP(fd_closep) int log_fd = memfd_create("assay-step", MFD_CLOEXEC);
    t->code = log_fd < 0 ? error_errno(t->err, -errno, "memfd_create") : run_to_end(t, log_fd);
}

static int run_task(struct task *t)
{
    worker_begin(&t->s->worker, do_step, t);
    worker_wait(&t->s->worker);
    return t->code;
}

int steps_before(struct steps *s, const struct hole_values *values, bool once, struct error *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < s->spec->setup_count; i++) {
        struct task t = {.s = s,
                         .step = &s->spec->setups[i],
                         .values = values,
                         .server = &s->servers[i],
                         .err = err};
        if (t.step->once == once)
            r = run_task(&t);
    }
    return r;
}

int steps_after(struct steps *s, const struct hole_values *values, bool once, struct error *err)
{
    int first = 0;
    for (size_t i = s->server_count; i-- > 0;)
        if (s->servers[i].step->once == once)
            stop_server(s, &s->servers[i]);
    for (size_t i = 0; i < s->spec->teardown_count; i++) {
        struct error ignored;
        struct task t = {.s = s,
                         .step = &s->spec->teardowns[i],
                         .values = values,
                         .err = first < 0 ? &ignored : err};
        if (t.step->once != once)
            continue;
        int r = run_task(&t);
        first = first < 0 ? first : r;
    }
    return first;
}

bool steps_running(const struct steps *s)
{
    for (size_t i = 0; i < s->server_count; i++)
        if (s->servers[i].pid)
            return true;
    return false;
}

int steps_check(struct steps *s, struct error *err)
{
    for (size_t i = 0; i < s->server_count; i++) {
        struct server *server = &s->servers[i];
        if (!server->pid || !has_ended(server->pid))
            continue;
        struct task t = {.s = s, .step = server->step, .err = err};
        return fail_step(&t, server->log_fd, -ECANCELED, "the server exited during the run");
    }
    return 0;
}

void steps_done(struct steps *s)
{
    for (size_t i = 0; i < s->server_count; i++)
        stop_server(s, &s->servers[i]);
    keeper_stop(&s->keeper);
    if (s->started)
        worker_stop(&s->worker);
    free(s->servers);
    *s = (struct steps){0};
}
