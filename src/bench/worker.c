/* SPDX-License-Identifier: MIT */
/* See worker.h. */
#include "bench/worker.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "bench/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

enum { LINE_MAX_BYTES = 1 << 20, WORDS_MAX = 4096 };

/* ---- starting and ending ---- */

void bench_worker_stop(struct bench_worker *w)
{
    if (w->pid > 0 && !w->is_guest) {
        kill(-w->pid, SIGKILL);
        kill(w->pid, SIGKILL);
        while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    if (w->target) {
        fd_closep(&w->to);
        fd_closep(&w->from);
        fd_closep(&w->errors);
    }
    strbuf_done(&w->in);
    strbuf_done(&w->words);
    *w = (struct bench_worker){0};
}

/* ---- what it says ---- */

/* Keeps the end of what it prints on standard error. */
static void take_words(struct bench_worker *w)
{
    char buffer[4096];
    ssize_t got;
    while ((got = read(w->errors, buffer, sizeof(buffer))) > 0) {
        strbuf_append(&w->words, buffer, (size_t)got);
        if (w->words.length > 2 * WORDS_MAX) {
            memmove(w->words.data, w->words.data + w->words.length - WORDS_MAX, WORDS_MAX);
            w->words.length = WORDS_MAX;
            w->words.data[WORDS_MAX] = '\0';
        }
    }
}

static void put_words(struct bench_worker *w, struct strbuf *out)
{
    const char *text = strbuf_text(&w->words);
    size_t length = w->words.length;
    while (length && text[length - 1] == '\n')
        length--;
    size_t start = length;
    for (int lines = 0; start > 0 && lines < 5 && length - start < 600; start--)
        lines += text[start - 1] == '\n';
    if (start > 0)
        while (start < length && text[start] == '\n')
            start++;
    strbuf_put_safe(out, text + start, length - start, 600);
}

/* It has ended, or will: why, in words. */
static int describe_end(struct bench_worker *w, struct error *err)
{
    int status = 0;
    CLEANUP(strbuf_done) struct strbuf words = {0};
    pid_t pid = w->pid;
    /* One that closed its end of the pipe and lives on is no use any more. */
    if (!process_poll(pid, clock_now_ns() + NS_PER_S))
        kill(-pid, SIGKILL);
    if (w->is_guest) { /* its host reaps it */
        siginfo_t end = {0};
        while (waitid(P_PID, (id_t)pid, &end, WEXITED | WNOWAIT) < 0 && errno == EINTR)
            ;
        status = end.si_code == CLD_EXITED ? end.si_status << 8 : end.si_status;
    } else {
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
        kill(-pid, SIGKILL); /* what it left behind */
    }
    w->pid = 0;
    take_words(w);
    put_words(w, &words);
    const char *separator = words.length ? "; its last words: " : "";
    if (WIFSIGNALED(status))
        return error_set(err, -ECHILD, "crashed: %s (SIG%s)%s%s", strsignal(WTERMSIG(status)),
                         signal_name(WTERMSIG(status)), separator, strbuf_text(&words));
    return error_set(err, -ECHILD, "ended by itself with exit code %d%s%s", WEXITSTATUS(status),
                     separator, strbuf_text(&words));
}

/* Whether it is over though its pipes are not: a process that it left behind may hold them. */
static bool has_ended(const struct bench_worker *w)
{
    siginfo_t end = {0};
    return waitid(P_PID, (id_t)w->pid, &end, WEXITED | WNOWAIT | WNOHANG) == 0 && end.si_pid;
}

/* The next line, without its end; it stays the worker's until the next call. */
static int receive(struct bench_worker *w, const char **ret_line, struct error *err)
{
    uint64_t deadline = clock_now_ns() + w->timeout_ns;
    if (w->used) {
        memmove(w->in.data, w->in.data + w->used, w->in.length - w->used + 1);
        w->in.length -= w->used;
        w->used = 0;
    }
    for (;;) {
        char *end = w->in.length ? memchr(w->in.data, '\n', w->in.length) : NULL;
        if (end) {
            *end = '\0';
            w->used = (size_t)(end - w->in.data) + 1;
            *ret_line = w->in.data;
            return 0;
        }
        if (w->in.length > LINE_MAX_BYTES)
            return error_set(err, -EPROTO, "it does not speak as a program with assay.h does");
        struct pollfd fds[] = {{w->from, POLLIN, 0}, {w->errors, POLLIN, 0}};
        size_t count = w->errors >= 0 ? 2 : 1;
        uint64_t look = clock_now_ns() + NS_PER_S;
        if (process_poll_fds(fds, count, look < deadline ? look : deadline, true) == 0) {
            w->interrupted = process_signals_caught() != 0;
            if (w->interrupted)
                return error_set(err, -EINTR, "interrupted");
            if (has_ended(w))
                return describe_end(w, err);
            if (look < deadline)
                continue;
            char time[32];
            return error_set(err, -ETIMEDOUT,
                             "no answer for %s: an endless loop, or one call takes longer than "
                             "--timeout allows",
                             format_duration((double)w->timeout_ns, time, sizeof(time)));
        }
        char buffer[4096];
        if (count > 1 && fds[1].revents) {
            take_words(w);
            if (!(fds[1].revents & POLLIN))
                fd_closep(&w->errors);
        }
        if (!fds[0].revents)
            continue;
        ssize_t got = read(w->from, buffer, sizeof(buffer));
        if (got > 0)
            strbuf_append(&w->in, buffer, (size_t)got);
        else if (got == 0 || errno != EINTR)
            return describe_end(w, err);
    }
}

static int say(struct bench_worker *w, const char *line, struct error *err)
{
    if (w->pid <= 0)
        return error_set(err, -ECHILD, "is not running");
    if (fd_write_all(w->to, line, strlen(line)) < 0)
        return describe_end(w, err);
    return 0;
}

/* Waits for its first words. */
static int greet(struct bench_worker *w, struct error *err)
{
    const char *line;
    const struct bench_target *t = w->target;
    int r = receive(w, &line, err);
    if (r == -ECHILD || r == -ETIMEDOUT)
        return error_wrap(err, r,
                          "%s does not answer as a program with benchmarks does (is ASSAY_MAIN, or "
                          "a call of assay_main, in it?)",
                          t->path);
    if (r < 0)
        return r;
    if (line[0] == 'x' && line[1] == ' ') {
        CLEANUP(strbuf_done) struct strbuf safe = {0};
        strbuf_put_safe(&safe, line + 2, strlen(line + 2), 700);
        return error_set(err, -ENOEXEC, "%s", strbuf_text(&safe));
    }
    if (!str_eq(line, "assay 1"))
        return error_set(err, -EPROTO,
                         "%s was built with another version of assay.h; rebuild it with the "
                         "assay.h of this assay",
                         t->path);
    return 0;
}

int bench_worker_start(struct bench_worker *w, const struct bench_target *t,
                       const struct bench_start *how, struct error *err)
{
    *w = (struct bench_worker){
        .target = t, .to = -1, .from = -1, .errors = -1, .timeout_ns = how->timeout_ns};
    int r = bench_spawn(w, how, err);
    return r < 0 ? r : greet(w, err);
}

int bench_worker_start_both(struct bench_worker *w, struct bench_worker *guest,
                            const struct bench_target *t, const struct bench_target *beside,
                            const struct bench_start *how, struct error *err)
{
    struct bench_start both = *how;
    int to[2] = {-1, -1}, from[2] = {-1, -1};
    if (pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0) {
        int r = error_errno(err, -errno, "creating a pipe");
        fd_closep(&to[0]);
        fd_closep(&to[1]);
        return r;
    }
    both.beside = beside;
    both.beside_in = to[0];
    both.beside_out = from[1];
    *guest = (struct bench_worker){.target = beside,
                                   .to = to[1],
                                   .from = from[0],
                                   .errors = -1,
                                   .timeout_ns = how->timeout_ns,
                                   .is_guest = true};
    int r = bench_worker_start(w, t, &both, err);
    fd_closep(&to[0]);
    fd_closep(&from[1]);
    guest->pid = w->pid;
    guest->errors = w->errors >= 0 ? fcntl(w->errors, F_DUPFD_CLOEXEC, 0) : -1;
    return r < 0 ? r : greet(guest, err);
}

/* Until it has closed its standard error, or time is up. */
static int drain(struct bench_worker *w, uint64_t deadline_ns, struct error *err)
{
    for (;;) {
        struct pollfd fd = {w->errors, POLLIN, 0};
        if (process_poll_fds(&fd, 1, deadline_ns, true) == 0)
            return process_signals_caught() ? error_set(err, -EINTR, "interrupted")
                                            : error_set(err, -ETIMEDOUT, "it does not end");
        take_words(w);
        if (!(fd.revents & POLLIN))
            return 0;
    }
}

int bench_worker_once(const struct bench_target *t, const struct bench_start *how,
                      struct error *err)
{
    CLEANUP(bench_worker_stop)
    struct bench_worker w = {.target = t, .to = -1, .from = -1, .errors = -1};
    CLEANUP(strbuf_done) struct strbuf words = {0};
    int status = 0, r = bench_spawn(&w, how, err);
    if (r == 0)
        r = drain(&w, clock_now_ns() + 10 * how->timeout_ns, err);
    if (r < 0)
        return r;
    while (waitpid(w.pid, &status, 0) < 0 && errno == EINTR)
        ;
    w.pid = 0;
    put_words(&w, &words);
    if (status)
        return error_set(err, -ECHILD, "%s %s %d: %s", t->path,
                         WIFSIGNALED(status) ? "ended with signal" : "ended with exit code",
                         WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
                         strbuf_text(&words));
    return 0;
}

int bench_worker_list(struct bench_worker *w, struct bench_entries *entries, struct error *err)
{
    const char *line;
    int r = say(w, "l\n", err);
    while (r == 0 && (r = receive(w, &line, err)) == 0 && !str_eq(line, "."))
        r = bench_entries_take(entries, line, err);
    if (r == 0)
        bench_entries_sort(entries);
    return r < 0 ? error_wrap(err, r, "%s", w->target->path) : 0;
}

int bench_worker_overhead(struct bench_worker *w, double *ret_loop_ns, double *ret_clock_ns,
                          struct error *err)
{
    const char *line;
    double loop, clock;
    int r = say(w, "o\n", err);
    if (r == 0)
        r = receive(w, &line, err);
    if (r < 0)
        return r;
    if (sscanf(line, "o %lf %lf", &loop, &clock) != 2)
        return error_set(err, -EPROTO, "it does not say what an empty loop costs");
    *ret_loop_ns = loop / 1000;
    *ret_clock_ns = clock / 1000;
    return 0;
}

/* ---- one call ---- */

void bench_said_done(struct bench_said *said)
{
    for (size_t i = 0; i < said->figure_count; i++) {
        free(said->figures[i].name);
        free(said->figures[i].unit);
    }
    free(said->figures);
    free(said->failed);
    free(said->skipped);
    free(said->law);
    *said = (struct bench_said){0};
}

static char *safe_text(const char *text)
{
    CLEANUP(strbuf_done) struct strbuf safe = {0};
    strbuf_put_safe(&safe, text, strlen(text), 700);
    return memory_strdup(strbuf_text(&safe));
}

static int take_figure(struct bench_said *said, const char *line, struct error *err)
{
    struct bench_figure f;
    int r = bench_figure_parse(line, &f.value, &f.name, &f.unit, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < said->figure_count; i++)
        if (str_eq(said->figures[i].name, f.name)) {
            said->figures[i].value = f.value;
            free(f.name);
            free(f.unit);
            return 0;
        }
    ARRAY_PUSH(said->figures, said->figure_count, said->figure_capacity) = f;
    return 0;
}

static void fail_with(struct bench_said *said, const char *why)
{
    if (!said->failed)
        said->failed = safe_text(why);
}

/* How the call ended: "d CODE". */
static void take_end(struct bench_said *said, const char *line)
{
    if (said->skipped)
        return;
    if (line[2] == '1')
        fail_with(said, "it has no loop: ASSAY_LOOP { … } is the part that is timed");
    else if (line[2] == '2')
        fail_with(said,
                  "its loop was left early: break, return and goto must not leave ASSAY_LOOP");
    else if (line[2] == '3')
        fail_with(said, "it has more than one loop: a benchmark has one ASSAY_LOOP");
}

/* Reads up to a line of one of the kinds in `until`, and takes what comes before. */
static int read_until(struct bench_worker *w, const char *until, struct bench_said *said,
                      const char **ret_line, struct error *err)
{
    for (;;) {
        const char *line;
        int r = receive(w, &line, err);
        if (r < 0)
            return r;
        if (line[0] && strchr(until, line[0])) {
            *ret_line = line;
            return 0;
        }
        if (line[0] == 'v')
            r = take_figure(said, line, err);
        else if (line[0] == 'c' && !said->law)
            r = bench_law_parse(line, &said->n, &said->law, err);
        else if (line[0] == 'f' && line[1])
            fail_with(said, line + 2);
        else if (line[0] == 'k' && line[1]) /* of several threads each may say it */
            said->skipped = said->skipped ? said->skipped : safe_text(line + 2);
        else if (line[0] == 'x' && line[1])
            return error_set(err, -ECHILD, "%s", line + 2);
        else if (line[0] != 'c')
            r = error_set(err, -EPROTO, "it does not speak as a program with assay.h does");
        if (r < 0)
            return r;
    }
}

int bench_worker_call(struct bench_worker *w, const struct bench_call *call, bool *ret_ready,
                      struct bench_said *said, struct error *err)
{
    const char *line;
    CLEANUP(strbuf_done) struct strbuf words = {0};
    strbuf_printf(&words, "r %zu %llu %llu %llu", call->index, (unsigned long long)call->threads,
                  (unsigned long long)call->stack_bytes, (unsigned long long)call->heap_bytes);
    for (size_t i = 0; i < ARRAY_COUNT(call->values); i++)
        strbuf_printf(&words, " %lld", (long long)call->values[i]);
    strbuf_putc(&words, '\n');
    int r = say(w, strbuf_text(&words), err);
    if (r == 0)
        r = read_until(w, "rd", said, &line, err);
    if (r < 0)
        return r;
    *ret_ready = line[0] == 'r';
    if (!*ret_ready)
        take_end(said, line);
    return 0;
}

int bench_worker_go(struct bench_worker *w, uint64_t warm, uint64_t iterations,
                    struct bench_sample *ret_sample, bool *ret_more, struct bench_said *said,
                    struct error *err)
{
    char words[64];
    const char *line;
    snprintf(words, sizeof(words), "g %llu %llu\n", (unsigned long long)warm,
             (unsigned long long)iterations);
    int r = say(w, words, err);
    if (r == 0)
        r = read_until(w, "sd", said, &line, err);
    if (r < 0)
        return r;
    *ret_more = line[0] == 's';
    if (!*ret_more) {
        take_end(said, line);
        return 0;
    }
    r = bench_sample_parse(line, ret_sample, err);
    if (r == 0)
        ret_sample->iterations = iterations;
    return r;
}

int bench_worker_finish(struct bench_worker *w, struct bench_said *said, struct error *err)
{
    const char *line;
    int r = say(w, "e\n", err);
    if (r == 0)
        r = read_until(w, "rd", said, &line, err);
    if (r == 0 && line[0] == 'r')
        return error_set(err, -EPROTO, "its loop does not end");
    if (r == 0)
        take_end(said, line);
    return r;
}
