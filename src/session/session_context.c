/* SPDX-License-Identifier: MIT */
/* What surrounds an experiment: the commit, the environment, the machine, priority and limits. */
#include "base/fd.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/process.h"
#include "config.h"
#include "machine/machine.h"
#include "session/session_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/utsname.h>

/* What a command prints, without the last line end; false when it fails. */
static bool capture(char *const *argv, struct strbuf *out)
{
    CLEANUP(fd_closep) int out_fd = memfd_create("assay-capture", MFD_CLOEXEC);
    CLEANUP(fd_closep) int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct process_spec spec = {
        .argv = argv, .stdin_fd = null_fd, .stdout_fd = out_fd, .stderr_fd = null_fd};
    pid_t pid;
    struct process_result result;
    if (process_spawn(&spec, &pid, NULL) < 0 || process_wait(pid, &result, NULL) < 0 ||
        result.status != 0)
        return false;
    char bytes[4096];
    ssize_t got = pread(out_fd, bytes, sizeof(bytes), 0);
    while (got > 0 && bytes[got - 1] == '\n')
        got--;
    if (got > 0)
        strbuf_append(out, bytes, (size_t)got);
    return true;
}

char *session_git_commit(const char *folder)
{
    char *head[] = {
        (char *)"git",  (char *)"-C", (char *)folder, (char *)"rev-parse", (char *)"--verify",
        (char *)"HEAD", NULL};
    char *status[] = {(char *)"git",
                      (char *)"-C",
                      (char *)folder,
                      (char *)"status",
                      (char *)"--porcelain",
                      (char *)"--untracked-files=no",
                      NULL};
    struct strbuf commit = {0};
    CLEANUP(strbuf_done) struct strbuf changes = {0};
    if (!capture(head, &commit)) {
        strbuf_done(&commit);
        return memory_strdup("");
    }
    if (capture(status, &changes) && changes.length)
        strbuf_puts(&commit, "-dirty");
    return commit.data;
}

char *session_git_branch(const char *folder)
{
    char *name[] = {(char *)"git",     (char *)"-C",      (char *)folder, (char *)"symbolic-ref",
                    (char *)"--quiet", (char *)"--short", (char *)"HEAD", NULL};
    static const char *const variables[] = {"GITHUB_HEAD_REF", "GITHUB_REF_NAME",
                                            "CI_COMMIT_REF_NAME"};
    struct strbuf branch = {0};
    if (capture(name, &branch) && branch.length)
        return branch.data;
    strbuf_done(&branch);
    for (size_t i = 0; i < ARRAY_COUNT(variables); i++) {
        const char *value = getenv(variables[i]);
        if (value && *value)
            return memory_strdup(value);
    }
    return memory_strdup("");
}

char *session_git_subject(const char *folder, const char *commit)
{
    size_t length = strlen(commit) - (str_has_suffix(commit, "-dirty") ? strlen("-dirty") : 0);
    CLEANUP(memory_freep) char *name = memory_printf("%.*s", (int)length, commit);
    char *log[] = {(char *)"git",
                   (char *)"-C",
                   (char *)folder,
                   (char *)"log",
                   (char *)"-1",
                   (char *)"--format=%s",
                   (char *)"--end-of-options",
                   name,
                   (char *)"--",
                   NULL};
    struct strbuf subject = {0};
    if (!*name || !capture(log, &subject) || !subject.length) {
        strbuf_done(&subject);
        return memory_strdup("");
    }
    return subject.data;
}

/* Only variables that change what is measured: an environment holds secrets, too. */
static const char *const kept_variables[] = {
    "PATH",        "LANG",   "LC_ALL",           "LD_PRELOAD",     "LD_LIBRARY_PATH", "LD_BIND_NOW",
    "CC",          "CFLAGS", "MALLOC_ARENA_MAX", "GLIBC_TUNABLES", "OMP_NUM_THREADS", "GOMAXPROCS",
    "MALLOC_CONF", "TMPDIR",
};

char *session_environment_json(const struct session *s)
{
    struct strbuf out = {0};
    struct json j = {.out = &out, .compact = true};
    struct utsname name;
    char folder[4096];
    json_object(&j, NULL);
    json_string(&j, "assay", ASSAY_VERSION);
    if (uname(&name) == 0) {
        json_string(&j, "host", name.nodename);
        json_string(&j, "kernel", name.release);
        json_string(&j, "kernel_version", name.version);
        json_string(&j, "architecture", name.machine);
    }
    json_string(&j, "working_folder", getcwd(folder, sizeof(folder)));
    json_string(&j, "spec", s->spec.file);
    json_string(&j, "selection", s->selection);
    json_u64(&j, "user_id", getuid());
    if (s->guests)
        session_put_guests(s, &j);
    json_object(&j, "variables");
    for (size_t i = 0; i < ARRAY_COUNT(kept_variables); i++)
        if (getenv(kept_variables[i]))
            json_string(&j, kept_variables[i], getenv(kept_variables[i]));
    json_end(&j);
    if (s->monitors.missing.length)
        json_string(&j, "monitors_missing", strbuf_text(&s->monitors.missing));
    json_array(&j, "counters_missing");
    for (size_t i = 0; i < s->events.count; i++)
        if (s->runner.counters.items[i].why) {
            json_object(&j, NULL);
            json_string(&j, "event", s->events.items[i].name);
            json_string(&j, "why", s->runner.counters.items[i].why);
            json_end(&j);
        }
    json_end(&j);
    json_array(&j, "counters_accounted");
    for (size_t i = 0; i < s->events.count; i++)
        if (s->runner.counters.items[i].accounted)
            json_string(&j, NULL, s->events.items[i].name);
    json_end(&j);
    json_end(&j);
    return out.data;
}

char *session_machine_json(char **ret_class)
{
    struct machine machine;
    machine_probe(&machine, MACHINE_QUICK);
    *ret_class =
        memory_printf("%s, %zu %s", *machine.cpu_model ? machine.cpu_model : machine.arch,
                      machine.cpu_count, plural(machine.cpu_count, "processor", "processors"));
    struct strbuf out = {0};
    struct json j = {.out = &out, .compact = true};
    machine_write_json(&machine, &j, NULL);
    machine_done(&machine);
    return out.data;
}

int session_apply_limits(struct session *s, struct error *err)
{
    int nice = s->options->has_nice ? s->options->nice : s->spec.nice;
    if (nice && setpriority(PRIO_PROCESS, 0, nice) < 0)
        return error_errno(err, -errno, "nice %d (going below the current %d needs root)", nice,
                           getpriority(PRIO_PROCESS, 0));
    return s->spec.cgroup.count ? cgroup_enter(&s->cgroups, &s->spec.cgroup, err) : 0;
}

void session_lift_limits(struct session *s)
{
    cgroup_leave(&s->cgroups);
}
