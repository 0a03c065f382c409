/* SPDX-License-Identifier: MIT */
#include "vr/load/local.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define SOCKET_AS 3

static int open_sockets(struct vr_local *l, int *sockets, struct strbuf *config, struct error *err)
{
    for (uint32_t i = 0; i < l->count; i++) {
        char text[VR_ADDRESS_TEXT_MAX];
        union vr_address address = vr_address_any(AF_INET, true);
        socklen_t size = sizeof(address);
        sockets[i] = vr_socket_open(&address, err);
        if (sockets[i] < 0)
            return sockets[i];
        getsockname(sockets[i], &address.any, &size);
        strbuf_printf(config, "replica %s\n", vr_address_format(&address, text));
    }
    return 0;
}

static int spawn(struct vr_local *l, const struct vr_local_settings *s, uint32_t index, int socket,
                 struct error *err)
{
    char number[16], cpu[16], program[4096];
    /* By its own name: profilers show what was executed, and that is not to be "exe". */
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (length < 0)
        return error_errno(err, -errno, "/proc/self/exe");
    program[length] = '\0';
    const char *words[16] = {"assay-vr", "replica",  "--config", l->config_path, "--index", number,
                             "--format", "--socket", "3",        "--quiet"};
    size_t count = 10;
    snprintf(number, sizeof(number), "%u", index);
    if (s->cpu_count) {
        snprintf(cpu, sizeof(cpu), "%d", s->cpus[index % s->cpu_count]);
        words[count++] = "--pin";
        words[count++] = cpu;
    }
    struct process_fd fds = {socket, SOCKET_AS};
    struct process_spec spec = {.argv = (char *const *)(uintptr_t)words,
                                .stdin_fd = -1,
                                .stdout_fd = -1,
                                .stderr_fd = -1,
                                .program = program,
                                .fds = &fds,
                                .fd_count = 1,
                                .own_group = true}; /* Ctrl-C is for who started them */
    return process_spawn(&spec, &l->pids[index], err);
}

static int make_folder(struct vr_local *l, const char *parent, struct error *err)
{
    if (!parent)
        parent = temporary_folder();
    /* Whole: in a configuration, paths are from its own folder on. */
    CLEANUP(memory_freep) char *whole = realpath(parent, NULL);
    if (!whole)
        return error_errno(err, -errno, "%s", parent);
    l->folder = memory_printf("%s/assay-vr-XXXXXX", whole);
    if (mkdtemp(l->folder))
        return 0;
    int result = error_errno(err, -errno, "creating a directory like %s", l->folder);
    free(l->folder);
    l->folder = NULL;
    return result;
}

int vr_local_start(struct vr_local *l, const struct vr_local_settings *s, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf config = {0};
    int sockets[VR_REPLICAS_MAX];
    *l = (struct vr_local){.count = (uint32_t)s->replicas};
    for (unsigned i = 0; i < VR_REPLICAS_MAX; i++)
        sockets[i] = -1;
    int result = make_folder(l, s->folder, err);
    if (result)
        return result;
    l->config_path = memory_printf("%s/cluster.conf", l->folder);
    strbuf_printf(&config, "cluster %u\nopen yes\ntransport %s\nin-memory %s\ndata %s\n",
                  (unsigned)getpid() | 1, s->transport, s->in_memory ? "yes" : "no", l->folder);
    if (s->settings)
        strbuf_puts(&config, s->settings);
    result = open_sockets(l, sockets, &config, err);
    if (!result)
        result = file_write(l->config_path, strbuf_text(&config), config.length, err);
    if (!result)
        result = vr_cluster_read(&l->cluster, l->config_path, err);
    for (uint32_t i = 0; i < l->count && !result; i++)
        result = spawn(l, s, i, sockets[i], err);
    for (uint32_t i = 0; i < l->count; i++)
        fd_closep(&sockets[i]);
    if (result)
        vr_local_stop(l);
    return result;
}

void vr_local_kill(struct vr_local *l, uint32_t index)
{
    if (!l->pids[index])
        return;
    l->ended_cpu_ns[index] = vr_local_cpu_ns(l, index);
    kill(l->pids[index], SIGKILL);
    while (waitpid(l->pids[index], NULL, 0) < 0 && errno == EINTR)
        ;
    l->pids[index] = 0;
}

int vr_local_check(struct vr_local *l, struct error *err)
{
    for (uint32_t i = 0; i < l->count; i++) {
        int status;
        if (!l->pids[i] || waitpid(l->pids[i], &status, WNOHANG) != l->pids[i])
            continue;
        l->pids[i] = 0;
        return error_set(err, -ECHILD,
                         "replica %u ended unexpectedly (%s %d): what the others did without it "
                         "does not measure %u replicas",
                         i, WIFSIGNALED(status) ? "signal" : "exit code",
                         WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), l->count);
    }
    return 0;
}

void vr_local_stop(struct vr_local *l)
{
    for (uint32_t i = 0; i < l->count; i++)
        vr_local_kill(l, i);
    /* Only what was made here: never the files of a cluster that is in use. */
    bool own = l->cluster.data && str_eq(l->cluster.data, l->folder);
    for (uint32_t i = 0; i < l->count && own; i++) {
        CLEANUP(memory_freep) char *path = vr_cluster_file(&l->cluster, i);
        CLEANUP(memory_freep) char *unfinished = memory_printf("%s.new", path);
        unlink(path);
        unlink(unfinished);
    }
    if (l->config_path)
        unlink(l->config_path);
    if (l->folder)
        rmdir(l->folder);
    vr_cluster_done(&l->cluster);
    free(l->config_path);
    free(l->folder);
    *l = (struct vr_local){0};
}

uint64_t vr_local_cpu_ns(const struct vr_local *l, uint32_t index)
{
    clockid_t clock;
    if (!l->pids[index] || clock_getcpuclockid(l->pids[index], &clock))
        return l->ended_cpu_ns[index];
    return clock_read_ns(clock);
}

uint64_t vr_local_rss_bytes(const struct vr_local *l, uint32_t index)
{
    CLEANUP(memory_freep) char *path = memory_printf("/proc/%d/statm", l->pids[index]);
    char line[128];
    unsigned long total, resident;
    if (!l->pids[index] || !file_read_line(path, line, sizeof(line)) ||
        sscanf(line, "%lu %lu", &total, &resident) != 2)
        return 0;
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}
