/* SPDX-License-Identifier: MIT */
/* See foreign_run.h. */
#include "bench/foreign_run.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { WORDS_MAX = 32, JSON_FD = 202, SLOWER = 15 /* than one call may be */ };

/* With a backslash before what the harness takes for a pattern. */
static void put_name(struct strbuf *out, const char *name, const char *special)
{
    for (; *name; name++) {
        if (strchr(special, *name))
            strbuf_putc(out, '\\');
        strbuf_putc(out, *name);
    }
}

/* A word with the name in the place of %s; the caller frees it. */
static char *fill(const char *word, const struct foreign_run *run)
{
    struct strbuf out = {0};
    const char *hole = strstr(word, "%s");
    if (!hole || !run->name)
        return memory_strdup(word);
    strbuf_append(&out, word, (size_t)(hole - word));
    put_name(&out, run->name, run->harness->special);
    strbuf_puts(&out, hole + 2);
    return out.data;
}

static void free_words(char *(*words)[WORDS_MAX])
{
    for (size_t i = 0; i < WORDS_MAX; i++)
        free((*words)[i]);
}

static void make_words(char *(*words)[WORDS_MAX], const struct foreign_run *run)
{
    size_t count = 0;
    if (run->harness->runner) {
        (*words)[count++] = memory_strdup(run->harness->runner);
    } else if (run->harness->is_python) {
        (*words)[count++] = memory_strdup("python3");
        (*words)[count++] = memory_strdup("-m");
        (*words)[count++] = memory_strdup("pytest");
    }
    if (run->harness->is_python)
        (*words)[count++] = memory_printf("--benchmark-json=/proc/self/fd/%d", JSON_FD);
    (*words)[count++] = memory_strdup(run->path);
    const char *const *given =
        run->name && run->harness->one ? run->harness->one : run->harness->all;
    for (size_t i = 0; given[i] && count + 1 < WORDS_MAX; i++)
        (*words)[count++] = fill(given[i], run);
}

/* In the new process. */
static void become(char **words, const struct foreign_run *run, const char *home, int out,
                   int errors)
{
    sigset_t none;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    dup2(run->harness->is_python ? errors : out, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    if (run->harness->is_python)
        dup2(out, JSON_FD);
    if (run->how->cpu >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET((unsigned)run->how->cpu, &set);
        sched_setaffinity(0, sizeof(set), &set);
    }
    if (*home)
        setenv(run->harness->home, home, 1);
    execvp(words[0], words);
    _exit(127);
}

static void read_back(int fd, struct strbuf *out)
{
    char buffer[65536];
    ssize_t got;
    lseek(fd, 0, SEEK_SET);
    while ((got = read(fd, buffer, sizeof(buffer))) > 0 && out->length < (64u << 20))
        strbuf_append(out, buffer, (size_t)got);
}

static int wait_for(pid_t pid, const struct foreign_run *run, int *ret_status, struct error *err)
{
    uint64_t deadline = clock_now_ns() + SLOWER * run->how->timeout_ns;
    bool ended = process_poll(pid, deadline);
    if (!ended)
        kill(-pid, SIGKILL);
    while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
        ;
    kill(-pid, SIGKILL); /* what it left behind */
    if (!ended && process_signals_caught())
        return error_set(err, -EINTR, "interrupted");
    char time[32];
    if (!ended)
        return error_set(
            err, -ETIMEDOUT, "%s has not ended after %s (--timeout)", run->path,
            format_duration((double)(SLOWER * run->how->timeout_ns), time, sizeof(time)));
    return 0;
}

/* The last line of what it said. */
static void put_last_words(struct strbuf *out, const struct strbuf *words)
{
    const char *text = strbuf_text(words);
    size_t length = words->length, start;
    while (length && text[length - 1] == '\n')
        length--;
    for (start = length; start > 0 && text[start - 1] != '\n'; start--)
        ;
    if (length > start)
        strbuf_puts(out, ": ");
    strbuf_put_safe(out, text + start, length - start, 300);
}

static int check_status(int status, const struct foreign_run *run, int errors, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf said = {0}, words = {0};
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    read_back(errors, &said);
    put_last_words(&words, &said);
    if (WIFSIGNALED(status))
        return error_set(err, -ECHILD, "%s crashed: %s (SIG%s)%s", run->path,
                         strsignal(WTERMSIG(status)), signal_name(WTERMSIG(status)),
                         strbuf_text(&words));
    return error_set(err, -ECHILD, "%s failed with exit code %d%s", run->path, WEXITSTATUS(status),
                     strbuf_text(&words));
}

/* A directory for what the harness writes beside its output, so that results that the user keeps
 * stay as they are; "" when it writes nothing. */
static int make_home(char *home, size_t size, const struct foreign_run *run, struct error *err)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(home, size, "%s/assay-bench-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!run->harness->home)
        *home = '\0';
    else if (!mkdtemp(home))
        return error_errno(err, -errno, "%s", home);
    return 0;
}

int foreign_run(const struct foreign_run *run, struct program_results *results, struct error *err)
{
    char home[PATH_MAX];
    CLEANUP(free_words) char *words[WORDS_MAX] = {0};
    CLEANUP(strbuf_done) struct strbuf text = {0};
    CLEANUP(fd_closep) int out = memfd_create("assay-harness", MFD_CLOEXEC);
    CLEANUP(fd_closep) int errors = memfd_create("assay-harness", MFD_CLOEXEC);
    int status = 0;
    make_words(&words, run);
    int r = make_home(home, sizeof(home), run, err);
    if (r < 0)
        return r;
    pid_t pid = out >= 0 && errors >= 0 ? fork() : -1;
    if (pid < 0)
        r = error_errno(err, -errno, "starting %s", run->path);
    if (pid == 0)
        become(words, run, home, out, errors);
    if (r == 0)
        r = wait_for(pid, run, &status, err);
    if (*home)
        file_remove_tree(home);
    if (r == 0)
        r = check_status(status, run, errors, err);
    if (r < 0)
        return r;
    read_back(out, &text);
    return program_results_read(results, run->harness, strbuf_text(&text), text.length, run->path,
                                err);
}
