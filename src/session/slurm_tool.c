/* SPDX-License-Identifier: MIT */
/* See slurm_tool.h. */
#include "session/slurm_tool.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "run/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* A controller that is busy answers late; one that is gone never does. */
#define ANSWER_NS (120 * NS_PER_S)

/* ---- running the programs ---- */

static void read_all(int fd, struct strbuf *out)
{
    char block[65536];
    off_t at = 0;
    ssize_t got;
    while ((got = pread(fd, block, sizeof(block), at)) > 0) {
        strbuf_append(out, block, (size_t)got);
        at += got;
    }
}

/* What to do about what Slurm's programs say; "" when there is nothing to be added. */
const char *slurm_remedy(const char *words)
{
    static const struct {
        const char *symptom, *remedy;
    } known[] = {
        {"Unable to contact slurm controller",
         "; no controller answers: 'scontrol ping' must report UP here; start slurmctld on the "
         "host that SlurmctldHost in slurm.conf names, or set SLURM_CONF to the right slurm.conf"},
        {"configuration source", "; this host does not know its cluster: it needs the cluster's "
                                 "slurm.conf in /etc/slurm, or its path in SLURM_CONF"},
        {"slurm.conf",
         "; this host needs the cluster's slurm.conf in /etc/slurm, or its path in SLURM_CONF"},
        {"unge", "; munged must run here with the cluster's key: try 'munge -n | unmunge'"},
        {"uthentication",
         "; munged must run here with the cluster's key: try 'munge -n | unmunge'"},
        {"nvalid partition", "; 'sinfo' lists the partitions; choose one with --partition"},
        {"nvalid feature",
         "; 'sinfo -o \"%N %f\"' lists the features; choose them with --constraint"},
        {"nvalid account", "; name yours with --slurm-args --account=NAME"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(known); i++)
        if (strstr(words, known[i].symptom))
            return known[i].remedy;
    return "";
}

/* What the program said on both streams, in one line, for an error. */
static int failed(struct error *err, const char *program, int status, struct strbuf *said)
{
    CLEANUP(strbuf_done) struct strbuf words = {0};
    for (size_t i = 0; i < said->length; i++)
        if (said->data[i] == '\n')
            said->data[i] = ' ';
    strbuf_put_safe(&words, strbuf_text(said), said->length, 400);
    while (words.length && words.data[words.length - 1] == ' ')
        words.data[--words.length] = '\0';
    return error_set(err, -EIO, "%s exited with %d: %s%s", program, process_exit_code(status),
                     words.length ? words.data : "it printed nothing",
                     slurm_remedy(strbuf_text(&words)));
}

/* Whatever signals come for assay meanwhile. */
static bool has_ended_by(pid_t pid, uint64_t deadline_ns)
{
    siginfo_t info = {0};
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT | WNOHANG) == 0 && !info.si_pid) {
        if (clock_now_ns() >= deadline_ns)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = (long)(5 * NS_PER_MS)}, NULL);
    }
    return true;
}

/* In a group of its own: Ctrl-C is for assay, which then wants an answer of these. */
int slurm_run(char *const *argv, struct strbuf *out, struct error *err)
{
    CLEANUP(fd_closep) int out_fd = memfd_create("assay-slurm", MFD_CLOEXEC);
    CLEANUP(fd_closep) int err_fd = memfd_create("assay-slurm", MFD_CLOEXEC);
    CLEANUP(fd_closep) int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct process_spec spec = {.argv = argv,
                                .stdin_fd = null_fd,
                                .stdout_fd = out_fd,
                                .stderr_fd = err_fd,
                                .own_group = true};
    pid_t pid;
    struct process_result result;
    int r = process_spawn(&spec, &pid, err);
    if (r == -ENOENT)
        return error_set(err, r, "%s is not installed: --on slurm needs Slurm's own programs",
                         argv[0]);
    if (r < 0)
        return r;
    bool ended = has_ended_by(pid, clock_now_ns() + ANSWER_NS);
    if (!ended)
        kill(pid, SIGKILL);
    r = process_wait(pid, &result, err);
    if (r < 0)
        return r;
    if (!ended)
        return error_set(err, -ETIMEDOUT, "%s did not answer within two minutes", argv[0]);
    read_all(out_fd, out);
    if (result.status == 0)
        return 0;
    CLEANUP(strbuf_done) struct strbuf said = {0};
    read_all(err_fd, &said);
    return failed(err, argv[0], result.status, said.length ? &said : out);
}

void slurm_words_done(struct slurm_words *w)
{
    ARRAY_PUSH(w->items, w->count, w->capacity) = NULL;
    command_free_words(w->items);
}

void slurm_words_add(struct slurm_words *w, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        abort();
    va_end(arguments);
    ARRAY_PUSH(w->items, w->count, w->capacity) = text;
}

int slurm_words_run(struct slurm_words *w, struct strbuf *out, struct error *err)
{
    ARRAY_PUSH(w->items, w->count, w->capacity) = NULL;
    w->count--;
    return slurm_run(w->items, out, err);
}

/* The word behind `key` in a line of scontrol's, up to a blank. */
static void copy_value(char *to, size_t size, const char *line, const char *key, const char *other)
{
    const char *found = strstr(line, key);
    const char *value = found ? found + strlen(key) : other;
    snprintf(to, size, "%.*s", (int)strcspn(value, " \n"), value);
}

int slurm_list_allocation(struct slurm_hosts *ret_hosts, struct error *err)
{
    char *names_of[] = {(char *)"scontrol", (char *)"show", (char *)"hostnames", NULL};
    CLEANUP(strbuf_done) struct strbuf names = {0};
    int r = slurm_run(names_of, &names, err); /* of SLURM_JOB_NODELIST */
    for (const char *line = strbuf_text(&names); r == 0 && *line;) {
        struct slurm_host host = {0};
        CLEANUP(slurm_words_done) struct slurm_words show = {0};
        CLEANUP(strbuf_done) struct strbuf text = {0};
        size_t length = strcspn(line, "\n");
        snprintf(host.name, sizeof(host.name), "%.*s", (int)length, line);
        line += length + (line[length] == '\n');
        slurm_words_add(&show, "scontrol");
        slurm_words_add(&show, "--oneliner");
        slurm_words_add(&show, "show");
        slurm_words_add(&show, "node");
        slurm_words_add(&show, "%s", host.name);
        r = slurm_words_run(&show, &text, err);
        copy_value(host.address, sizeof(host.address), strbuf_text(&text), "NodeAddr=", host.name);
        ARRAY_PUSH(ret_hosts->items, ret_hosts->count, ret_hosts->capacity) = host;
    }
    return r;
}

void slurm_hosts_done(struct slurm_hosts *hosts)
{
    free(hosts->items);
    *hosts = (struct slurm_hosts){0};
}
