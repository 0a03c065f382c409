/* SPDX-License-Identifier: MIT */
/*
 * The parent of a run.  Each side is a process that dies with its parent (PR_SET_PDEATHSIG), so
 * that nothing is left however this one ends; and when one side ends badly, the other is ended.
 */
#include "run.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "control.h"
#include "wire_settings.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* What a side leaves for its parent, in shared memory. */
struct report {
    struct side_result own, other;
    int code;
    struct error err;
};

static struct report *reports_new(size_t count)
{
    void *at = mmap(NULL, count * sizeof(struct report), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* A side's process: 0 in the parent with *ret_pid set; the child never returns. */
static int start_side(struct side *side, struct report *report, pid_t *ret_pid, struct error *err)
{
    pid_t parent = getpid();
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        return error_errno(err, -errno, "starting a process");
    if (pid > 0) {
        *ret_pid = pid;
        return 0;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    prctl(PR_SET_NAME, side->sender ? "move-send" : "move-receive"); /* also of its threads */
    signal(SIGPIPE, SIG_IGN);
    report->code = -EPIPE; /* until it knows better */
    error_set(&report->err, -EPIPE, "the %s died", side->sender ? "sender" : "receiver");
    side->result = &report->own;
    side->other = &report->other;
    struct error words = {0};
    int code = side_run(side, &words);
    report->err = words;
    report->code = code;
    if (code == 0)
        exit(0); /* not _exit: leaks are looked for */
    _exit(1);    /* threads may still hang */
}

static const char *side_name(const struct side *side)
{
    return side->sender ? "sender" : "receiver";
}

/* One that was killed could not say why. */
static void note_death(struct report *report, const struct side *side, int status)
{
    if (WIFSIGNALED(status)) {
        report->code = -EPIPE;
        error_set(&report->err, -EINTR, "the %s was killed by signal %d (%s)", side_name(side),
                  WTERMSIG(status), strsignal(WTERMSIG(status)));
        report->code = -EINTR;
    }
}

/* Waits for both; after one has failed the other gets five seconds to say its part. */
static void await_sides(const struct side *sides, pid_t *pids, struct report *reports, size_t count)
{
    uint64_t deadline_ns = UINT64_MAX;
    for (size_t left = count; left;) {
        int status;
        pid_t pid = waitpid(-1, &status, deadline_ns == UINT64_MAX ? 0 : WNOHANG);
        if (pid < 0 && errno != EINTR)
            return;
        if (pid <= 0) {
            poll(NULL, 0, 10);
            for (size_t i = 0; i < count && clock_now_ns() > deadline_ns; i++)
                if (pids[i] > 0)
                    kill(pids[i], SIGKILL);
            continue;
        }
        for (size_t i = 0; i < count; i++) {
            if (pids[i] != pid)
                continue;
            pids[i] = 0;
            left--;
            note_death(&reports[i], &sides[i], status);
            if (reports[i].code < 0)
                deadline_ns = clock_now_ns() + 5 * NS_PER_S;
        }
    }
}

static bool is_consequence(int code)
{
    return code == -ECANCELED || code == -EPIPE || code == -ECONNRESET || code == -ETIMEDOUT;
}

/* Of two failures the one that is no mere consequence of the other. */
static int judge(const struct report *reports, size_t count, struct error *err)
{
    const struct report *worst = NULL;
    for (size_t i = 0; i < count; i++)
        if (reports[i].code < 0 && (!worst || is_consequence(worst->code)))
            worst = &reports[i];
    if (!worst)
        return 0;
    *err = worst->err;
    return worst->code;
}

int run_here(const struct settings *s, struct run_result *ret, struct error *err)
{
    struct wire *wires = NULL;
    struct report *reports = reports_new(2);
    if (!reports)
        return error_errno(err, -errno, "shared memory");
    bool alone = s->send->role == ROLE_ALONE;
    int ends[2] = {-1, -1};
    int r = alone ? 0 : wires_new(s, &wires, err);
    if (r == 0 && !alone && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        r = error_errno(err, -errno, "socketpair");
    struct side sides[2] = {{.settings = s,
                             .sender = true,
                             .control_fd = ends[0],
                             .other_control_fd = ends[1],
                             .listen_fd = -1,
                             .wires = wires},
                            {.settings = s,
                             .control_fd = ends[1],
                             .other_control_fd = ends[0],
                             .listen_fd = -1,
                             .wires = wires}};
    pid_t pids[2] = {0};
    size_t count = 0;
    /* Each process keeps its own end of the control channel only. */
    for (size_t i = 0; r == 0 && i < (alone ? 1 : 2); i++) {
        r = start_side(&sides[i], &reports[i], &pids[i], err);
        count += r == 0;
    }
    fd_closep(&ends[0]);
    fd_closep(&ends[1]);
    if (r < 0 && count)
        kill(pids[0], SIGKILL);
    wires_free(s, wires);
    await_sides(sides, pids, reports, count);
    r = r ? r : judge(reports, count, err);
    if (r == 0)
        *ret = (struct run_result){reports[0].own, reports[0].other};
    munmap(reports, 2 * sizeof(*reports));
    return r;
}

int run_connect(const struct settings *s, struct run_result *ret, struct error *err)
{
    const struct settings plain = {0};
    struct endpoint to;
    int r = endpoint_parse(s->connect_address, false, &to, err);
    CLEANUP(fd_closep) int fd = r ? -1 : link_connect(&plain, &to, SOCK_STREAM, 10000, err);
    if (fd < 0)
        return error_wrap(err, r ? r : fd, "--connect %s", s->connect_address);
    struct report *reports = reports_new(1);
    if (!reports)
        return error_errno(err, -errno, "shared memory");
    struct side side = {.settings = s,
                        .sender = true,
                        .control_fd = fd,
                        .other_control_fd = -1,
                        .listen_fd = -1,
                        .remote = true,
                        .peer = to};
    pid_t pid;
    r = start_side(&side, reports, &pid, err);
    if (r == 0) {
        await_sides(&side, &pid, reports, 1);
        r = judge(reports, 1, err);
    }
    if (r == 0)
        *ret = (struct run_result){reports->own, reports->other};
    munmap(reports, sizeof(*reports));
    return r;
}

static int serve(const struct settings *s, int control_fd, int listen_fd, struct error *err)
{
    struct settings wanted;
    struct wire_names names;
    struct report *reports = reports_new(1);
    (void)s;
    if (!reports)
        return error_errno(err, -errno, "shared memory");
    struct side side = {.settings = &wanted,
                        .control_fd = control_fd,
                        .other_control_fd = -1,
                        .listen_fd = listen_fd,
                        .remote = true};
    pid_t pid;
    int r = side_greet(control_fd, err);
    r = r ? r : wire_settings_receive(control_fd, &wanted, &names, err);
    if (r < 0) {
        struct error ignored;
        control_send(control_fd, CONTROL_FAILED, err->message, strlen(err->message), &ignored);
        munmap(reports, sizeof(*reports));
        return r;
    }
    r = start_side(&side, reports, &pid, err);
    if (r == 0) {
        await_sides(&side, &pid, reports, 1);
        r = judge(reports, 1, err);
    }
    if (r == 0) {
        const struct snapshot *a = &reports->own.marks[0], *b = &reports->own.marks[1];
        printf("received %s, %llu × %llu B: %.3f Gbit/s\n", names.send,
               (unsigned long long)(b->messages - a->messages), (unsigned long long)wanted.size,
               8.0 * (double)(b->bytes - a->bytes) / (double)(b->t_ns - a->t_ns));
        fflush(stdout);
    }
    settings_done(&wanted);
    munmap(reports, sizeof(*reports));
    return r;
}

int run_listen(const struct settings *s, struct error *err)
{
    const struct settings plain = {0};
    struct endpoint at, own = {.length = sizeof(own.address)};
    int r = endpoint_parse(s->listen_address, true, &at, err);
    CLEANUP(fd_closep) int listen_fd = r ? -1 : link_listen(&plain, &at, err);
    if (listen_fd < 0)
        return error_wrap(err, r ? r : listen_fd, "--listen %s", s->listen_address);
    getsockname(listen_fd, (struct sockaddr *)&own.address, &own.length);
    printf("listening on port %u\n", endpoint_port(&own));
    fflush(stdout);
    for (;;) {
        CLEANUP(fd_closep) int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (fd < 0)
            return error_errno(err, -errno, "accepting");
        struct error failed = {0};
        r = serve(s, fd, listen_fd, &failed);
        if (s->once) {
            *err = failed;
            return r;
        }
        if (r < 0)
            fprintf(stderr, "assay-move: %s\n", failed.message);
    }
}
