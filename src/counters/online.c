/* SPDX-License-Identifier: MIT */
/* Which CPUs, threads and cgroups there are: see online.h. */
#include "counters/online.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/strings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>

/* From the lines "cpu0 …" of /proc/stat, which has those that are online. */
static int cpus_of_proc_stat(int **ret_cpus, size_t *ret_count)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    int *cpus = NULL;
    size_t count = 0, capacity = 0;
    if (file_read("/proc/stat", &text, NULL) < 0)
        return -ENOENT;
    for (const char *line = strbuf_text(&text); line; line = strchr(line, '\n')) {
        line += *line == '\n';
        /* The first line, "cpu  …", is the sum of all. */
        if (str_has_prefix(line, "cpu") && line[3] >= '0' && line[3] <= '9')
            ARRAY_PUSH(cpus, count, capacity) = (int)strtol(line + 3, NULL, 10);
    }
    if (!count)
        return -ENOENT;
    *ret_cpus = cpus;
    *ret_count = count;
    return 0;
}

int online_cpus(int **ret_cpus, size_t *ret_count, struct error *err)
{
    char line[4096];
    if (!file_read_line("/sys/devices/system/cpu/online", line, sizeof(line)))
        return cpus_of_proc_stat(ret_cpus, ret_count) == 0
                   ? 0
                   : error_set(err, -ENOENT,
                               "neither /sys/devices/system/cpu/online nor /proc/stat can be read: "
                               "mount /proc");
    int r = parse_cpu_list(line, ret_cpus, ret_count, err);
    return r < 0 ? error_wrap(err, r, "/sys/devices/system/cpu/online") : 0;
}

/* The process that a thread belongs to; 0 when it cannot be told. */
static int process_of_thread(pid_t tid)
{
    char path[64];
    CLEANUP(strbuf_done) struct strbuf text = {0};
    snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
    const char *line = file_read(path, &text, NULL) == 0 ? strstr(text.data, "\nTgid:") : NULL;
    return line ? (int)strtol(line + strlen("\nTgid:"), NULL, 10) : 0;
}

int online_threads(pid_t pid, pid_t **threads, size_t *count, size_t *capacity, struct error *err)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    if (!folder)
        return error_set(err, -ESRCH, "there is no process %d", (int)pid);
    int process = process_of_thread(pid);
    if (process && process != pid) {
        closedir(folder);
        return error_set(err, -EINVAL,
                         "%d is a thread of process %d: give -p %d, with --per-thread to tell its "
                         "threads apart",
                         (int)pid, process, process);
    }
    for (struct dirent *entry; (entry = readdir(folder));) {
        uint64_t tid;
        if (parse_u64(entry->d_name, &tid, NULL) == 0)
            ARRAY_PUSH(*threads, *count, *capacity) = (pid_t)tid;
    }
    closedir(folder);
    return 0;
}

static int open_folder(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int online_cgroup(const char *name, struct error *err)
{
    FILE *mounts = setmntent("/proc/mounts", "re");
    if (!mounts)
        return error_errno(err, -errno, "/proc/mounts");
    int fd = -1;
    CLEANUP(strbuf_done) struct strbuf places = {0};
    for (struct mntent *entry; fd < 0 && (entry = getmntent(mounts));) {
        /* perf counts by the v1 controller perf_event where it is mounted, else by v2. */
        bool v1 = str_eq(entry->mnt_type, "cgroup") && hasmntopt(entry, "perf_event");
        if (!v1 && !str_eq(entry->mnt_type, "cgroup2"))
            continue;
        size_t length = strlen(entry->mnt_dir);
        bool is_path = strncmp(name, entry->mnt_dir, length) == 0 &&
                       (name[length] == '/' || name[length] == '\0');
        CLEANUP(memory_freep)
        char *path = is_path ? memory_strdup(name) : memory_printf("%s/%s", entry->mnt_dir, name);
        fd = open_folder(path);
        strbuf_printf(&places, "%s%s", places.length ? ", " : "", path);
    }
    endmntent(mounts);
    if (fd >= 0)
        return fd;
    if (!places.length)
        return error_set(err, -ENOENT,
                         "no cgroup hierarchy that perf supports is mounted (cgroup2, or cgroup v1 "
                         "with perf_event)");
    return error_set(err, -ENOENT, "there is no cgroup '%s'; tried %s", name, strbuf_text(&places));
}
