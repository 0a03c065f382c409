/* SPDX-License-Identifier: MIT */
/* Programs that assay runs or is compared with.  The quick record says where they are; only the
 * full one starts them to ask for their versions. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"
#include "machine/probe.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>

#define VERSION_WAIT_NS (5 * NS_PER_S)

struct tool {
    const char *id, *what;
    const char *commands[3]; /* the first that is found counts */
    const char *debian, *fedora, *arch, *suse, *alpine;
};

static const struct tool tools[] = {
    {"perf", "perf", {"perf"}, "linux-perf", "perf", "perf", "perf", "perf"},
    {"valgrind",
     "valgrind",
     {"valgrind"},
     "valgrind",
     "valgrind",
     "valgrind",
     "valgrind",
     "valgrind"},
    {"qemu",
     "qemu",
     {"qemu-system-aarch64", "qemu-system-x86_64"},
     "qemu-system-arm",
     "qemu-system-aarch64",
     "qemu-system-aarch64",
     "qemu-arm",
     "qemu-system-aarch64"},
};

static void install_remedy(struct machine *m, struct finding *f, const struct tool *tool)
{
    const char *id = m->distribution_id;
    if (str_eq(id, "ubuntu") && str_eq(tool->id, "perf"))
        finding_remedy(m, f, "sudo apt install linux-tools-%s", m->kernel_release);
    else if (str_eq(id, "fedora") || str_eq(id, "rhel") || str_eq(id, "centos"))
        finding_remedy(m, f, "sudo dnf install %s", tool->fedora);
    else if (str_eq(id, "arch"))
        finding_remedy(m, f, "sudo pacman -S %s", tool->arch);
    else if (str_has_prefix(id, "opensuse"))
        finding_remedy(m, f, "sudo zypper install %s", tool->suse);
    else if (str_eq(id, "alpine"))
        finding_remedy(m, f, "sudo apk add %s", tool->alpine);
    else
        finding_remedy(m, f, "sudo apt install %s", tool->debian);
}

/* Reads what the process writes until it ends its output or the time is over. */
static void read_until(int fd, struct strbuf *out, uint64_t deadline_ns)
{
    char bytes[512];
    for (;;) {
        uint64_t now_ns = clock_now_ns();
        if (now_ns >= deadline_ns || out->length > 65536)
            return;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int r = poll(&p, 1, (int)((deadline_ns - now_ns) / NS_PER_MS) + 1);
        if (r < 0 && errno != EINTR)
            return;
        if (r <= 0)
            continue;
        ssize_t got = read(fd, bytes, sizeof(bytes));
        if (got <= 0)
            return;
        strbuf_append(out, bytes, (size_t)got);
    }
}

/* The first line that `COMMAND --version` prints; false when it fails. */
static bool ask_version(const char *path, struct strbuf *out)
{
    int ends[2];
    CLEANUP(fd_closep) int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null_fd < 0 || pipe2(ends, O_CLOEXEC) < 0)
        return false;
    char *argv[] = {(char *)(uintptr_t)path, (char[]){"--version"}, NULL};
    struct process_spec spec = {
        .argv = argv, .stdin_fd = null_fd, .stdout_fd = ends[1], .stderr_fd = null_fd};
    struct process_result result = {0};
    pid_t pid;
    int r = process_spawn(&spec, &pid, NULL);
    close(ends[1]);
    if (r == 0) {
        read_until(ends[0], out, clock_now_ns() + VERSION_WAIT_NS);
        /* It has ended its output; if it hangs all the same, or never ended it, it goes. */
        if (!process_poll(pid, clock_now_ns() + NS_PER_S))
            kill(pid, SIGKILL);
        r = process_wait(pid, &result, NULL);
    }
    close(ends[0]);
    const char *text = strbuf_text(out);
    size_t length = strcspn(text, "\n");
    /* What follows in brackets is the distribution's own number. */
    const char *bracket = strstr(text, " (");
    if (bracket && (size_t)(bracket - text) < length)
        length = (size_t)(bracket - text);
    if (out->length > length) {
        out->data[length] = '\0';
        out->length = length;
    }
    return r == 0 && process_exit_code(result.status) == 0 && out->length;
}

static void report_tool(struct machine *m, const struct tool *tool, const char *path,
                        enum machine_depth depth)
{
    if (depth == MACHINE_QUICK) {
        finding_add(m, tool->id, tool->what, FINDING_YES, "%s", path)->is_assumed = true;
        return;
    }
    CLEANUP(strbuf_done) struct strbuf version = {0}, safe = {0};
    if (ask_version(path, &version)) {
        strbuf_put_safe(&safe, version.data, version.length, 60);
        finding_add(m, tool->id, tool->what, FINDING_YES, "%s (%s)", strbuf_text(&safe), path);
        return;
    }
    struct finding *f = finding_add(m, tool->id, tool->what, FINDING_LIMITED,
                                    "%s is installed, but '--version' fails", path);
    install_remedy(m, f, tool);
}

void probe_tools(struct machine *m, enum machine_depth depth)
{
    for (size_t i = 0; i < ARRAY_COUNT(tools); i++) {
        CLEANUP(memory_freep) char *path = NULL;
        for (size_t at = 0; at < ARRAY_COUNT(tools[i].commands) && tools[i].commands[at]; at++)
            if (process_find(tools[i].commands[at], &path, NULL) == 0)
                break;
        if (path) {
            report_tool(m, &tools[i], path, depth);
            continue;
        }
        struct finding *f = finding_add(m, tools[i].id, tools[i].what, FINDING_NO, "not in PATH");
        install_remedy(m, f, &tools[i]);
    }
}
