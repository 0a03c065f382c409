/* SPDX-License-Identifier: MIT */
/* The fences around this process: container, control groups, quotas, limits, rights. */
#include "base/fd.h"
#include "base/memory.h"
#include "machine/parse.h"
#include "machine/probe.h"

#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <mntent.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>

static void probe_rights(struct machine *m)
{
    static const struct {
        unsigned bit;
        const char *name;
    } wanted[] = {
        {CAP_SYS_ADMIN, "SYS_ADMIN"},      {CAP_PERFMON, "PERFMON"},   {CAP_BPF, "BPF"},
        {CAP_SYS_PTRACE, "SYS_PTRACE"},    {CAP_SYS_NICE, "SYS_NICE"}, {CAP_IPC_LOCK, "IPC_LOCK"},
        {CAP_SYS_RESOURCE, "SYS_RESOURCE"}};
    CLEANUP(strbuf_done) struct strbuf has = {0}, lacks = {0}, status = {0};
    for (size_t i = 0; i < ARRAY_COUNT(wanted); i++) {
        struct strbuf *list = machine_may(m, wanted[i].bit) ? &has : &lacks;
        strbuf_printf(list, "%s%s", list->length ? ", " : "", wanted[i].name);
    }
    uint64_t seccomp = 0;
    if (file_read("/proc/self/status", &status, NULL) == 0)
        proc_field_u64(strbuf_text(&status), "Seccomp", &seccomp);
    CLEANUP(strbuf_done) struct strbuf text = {0};
    strbuf_printf(&text, "%s",
                  m->is_root             ? "root"
                  : m->in_user_namespace ? "in a user namespace"
                                         : "an ordinary user");
    if (has.length)
        strbuf_printf(&text, "; has %s", strbuf_text(&has));
    if (has.length && lacks.length)
        strbuf_printf(&text, "; lacks %s", strbuf_text(&lacks));
    if (seccomp)
        strbuf_puts(&text, "; a seccomp filter restricts system calls");
    struct finding *f =
        finding_add(m, "rights", "rights",
                    machine_may(m, CAP_SYS_ADMIN) || machine_may(m, CAP_PERFMON) ? FINDING_YES
                                                                                 : FINDING_LIMITED,
                    "%s", strbuf_text(&text));
    if (f->state == FINDING_LIMITED && !m->is_root)
        finding_remedy(m, f,
                       "sudo assay …, or run: sudo setcap "
                       "cap_perfmon,cap_bpf,cap_sys_ptrace,cap_syslog+ep \"$(command -v assay)\"");
    else if (f->state == FINDING_LIMITED)
        finding_remedy(m, f, "start the container with --cap-add PERFMON --cap-add BPF");
}

static void probe_lockdown(struct machine *m)
{
    char line[128], mode[32];
    if (!file_read_line("/sys/kernel/security/lockdown", line, sizeof(line)) ||
        !proc_chosen(line, mode, sizeof(mode)) || str_eq(mode, "none"))
        return;
    struct finding *f =
        finding_add(m, "lockdown", "kernel lockdown", FINDING_YES,
                    "%s: kernel memory, kprobes and some eBPF are not accessible", mode);
    finding_remedy(m, f, "boot without secure boot, or with lockdown=none");
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* The number that the kernel gives to the PID namespace the machine started with. */
#define FIRST_PID_NAMESPACE "pid:[4026531836]"

static bool is_first_pid_namespace(void)
{
    char name[64] = "";
    ssize_t length = readlink("/proc/self/ns/pid", name, sizeof(name) - 1);
    return length > 0 && str_eq(name, FIRST_PID_NAMESPACE);
}

static void probe_container(struct machine *m)
{
    CLEANUP(strbuf_done) struct strbuf groups = {0};
    static const char *const words[] = {"docker",     "kubepods", "lxc",
                                        "containerd", "libpod",   "machine.slice"};
    char kind[64] = "";
    if (exists("/.dockerenv"))
        snprintf(kind, sizeof(kind), "docker");
    else if (exists("/run/.containerenv"))
        snprintf(kind, sizeof(kind), "podman");
    else if (file_read_line("/run/systemd/container", kind, sizeof(kind)) && *kind)
        ;
    else if (file_read("/proc/1/cgroup", &groups, NULL) == 0)
        for (size_t i = 0; i < ARRAY_COUNT(words) && !*kind; i++)
            if (strstr(strbuf_text(&groups), words[i]))
                snprintf(kind, sizeof(kind), "%s", words[i]);
    if (*kind && is_first_pid_namespace())
        finding_add(m, "container", "container", FINDING_LIMITED,
                    "an image of %s, but in the host's process namespace", kind);
    else if (*kind)
        finding_add(m, "container", "container", FINDING_YES, "%s%s", kind,
                    m->in_user_namespace ? ", in a user namespace" : "");
    else if (m->in_user_namespace)
        finding_add(m, "container", "container", FINDING_LIMITED, "in a user namespace");
    else
        finding_add(m, "container", "container", FINDING_NO, "none detected");
}

/* Where the control groups are, and which of them this process may write. */
struct cgroups {
    bool v1, v2;
    struct strbuf writable, closed;
    char cpu_path[PATH_MAX];  /* this process's group of v1's cpu controller, "" for none */
    char v2_path[PATH_MAX];   /* its group of v2 */
    char cpu_mount[PATH_MAX]; /* where the one that has cpu is mounted */
};

static void cgroups_done(struct cgroups *g)
{
    strbuf_done(&g->writable);
    strbuf_done(&g->closed);
}

/* Whether a comma-separated list holds the word. */
static bool list_has(const char *list, size_t length, const char *word)
{
    size_t word_length = strlen(word);
    for (size_t at = 0; at < length;) {
        const char *comma = memchr(list + at, ',', length - at);
        size_t part = comma ? (size_t)(comma - list) - at : length - at;
        if (part == word_length && memcmp(list + at, word, part) == 0)
            return true;
        at += part + 1;
    }
    return false;
}

/* This process's path in the hierarchy that is mounted with these options. */
static bool own_group(const char *text, bool v2, const char *options, struct proc_cgroup *ret_group)
{
    for (const char *line = text; line; line = proc_next_line(line)) {
        struct proc_cgroup group;
        if (!proc_cgroup_line(line, &group) || (group.controllers_length == 0) != v2)
            continue;
        size_t first = strcspn(group.controllers, ",:");
        CLEANUP(memory_freep) char *word = memory_strndup(group.controllers, first);
        if (v2 || list_has(options, strlen(options), word)) {
            *ret_group = group;
            return true;
        }
    }
    return false;
}

static void look_at_mount(struct cgroups *g, const struct mntent *mount, const char *groups)
{
    bool v2 = str_eq(mount->mnt_type, "cgroup2");
    struct proc_cgroup group;
    if ((!v2 && !str_eq(mount->mnt_type, "cgroup")) ||
        !own_group(groups, v2, mount->mnt_opts, &group))
        return;
    char path[PATH_MAX];
    int length =
        snprintf(path, sizeof(path), "%s%.*s", mount->mnt_dir, (int)group.path_length, group.path);
    /* Seen from inside a namespace the path may not be below the mount. */
    if (length < 0 || (size_t)length >= sizeof(path) || !exists(path))
        snprintf(path, sizeof(path), "%s", mount->mnt_dir);
    *(v2 ? &g->v2 : &g->v1) = true;
    bool has_cpu = list_has(group.controllers, group.controllers_length, "cpu");
    if (v2)
        snprintf(g->v2_path, sizeof(g->v2_path), "%s", path);
    if (has_cpu)
        snprintf(g->cpu_path, sizeof(g->cpu_path), "%s", path);
    if (has_cpu || (v2 && !*g->cpu_mount))
        snprintf(g->cpu_mount, sizeof(g->cpu_mount), "%s", mount->mnt_dir);
    struct strbuf *list = access(path, W_OK) == 0 ? &g->writable : &g->closed;
    if (v2) {
        char controllers[256] = "", file[PATH_MAX + 32];
        snprintf(file, sizeof(file), "%s/cgroup.controllers", path);
        file_read_line(file, controllers, sizeof(controllers));
        strbuf_printf(list, "%sv2 (%s)", list->length ? ", " : "",
                      *controllers ? controllers : "no controllers");
    } else if (memchr(group.controllers, '=', group.controllers_length) == NULL) {
        strbuf_printf(list, "%s%.*s", list->length ? ", " : "", (int)group.controllers_length,
                      group.controllers);
    }
}

static void find_cgroups(struct cgroups *g)
{
    CLEANUP(strbuf_done) struct strbuf groups = {0};
    if (file_read("/proc/self/cgroup", &groups, NULL) < 0)
        return;
    FILE *mounts = setmntent("/proc/self/mounts", "re");
    if (!mounts)
        return;
    struct mntent mount;
    char buffer[8192];
    while (getmntent_r(mounts, &mount, buffer, sizeof(buffer)))
        look_at_mount(g, &mount, strbuf_text(&groups));
    endmntent(mounts);
}

static void report_cgroups(struct machine *m, const struct cgroups *g)
{
    if (!g->v1 && !g->v2) {
        struct finding *f =
            finding_add(m, "cgroups", "control groups", FINDING_NO, "none are mounted");
        finding_remedy(m, f, "sudo mount -t cgroup2 none /sys/fs/cgroup");
        return;
    }
    struct finding *f =
        finding_add(m, "cgroups", "control groups",
                    !g->writable.length ? FINDING_NO
                    : g->closed.length  ? FINDING_LIMITED
                                        : FINDING_YES,
                    "%s; %s%s%s%s",
                    g->v1 && g->v2 ? "v1 and v2"
                    : g->v2        ? "v2"
                                   : "v1",
                    g->writable.length ? "writable: " : "none writable", strbuf_text(&g->writable),
                    g->writable.length && g->closed.length ? "; closed: " : "",
                    g->writable.length ? strbuf_text(&g->closed) : "");
    finding_value(f, g->v2 ? 2 : 1, "version");
    if (!g->writable.length)
        finding_remedy(
            m, f, "%s",
            m->is_root ? "mount them writable in the container"
                       : "run as root, or run: systemd-run --user --scope -p Delegate=yes assay …");
}

/* How many processors' worth of time a group of v1 or v2 may use; 0 for no limit. */
static double group_quota(const char *path, bool v2)
{
    char file[PATH_MAX + 32], line[128];
    long long quota, period;
    if (v2) {
        snprintf(file, sizeof(file), "%s/cpu.max", path);
        if (!file_read_line(file, line, sizeof(line)) ||
            sscanf(line, "%lld %lld", &quota, &period) != 2)
            return 0;
    } else {
        int64_t value;
        snprintf(file, sizeof(file), "%s/cpu.cfs_quota_us", path);
        if (!file_read_i64(file, &value))
            return 0;
        quota = value;
        snprintf(file, sizeof(file), "%s/cpu.cfs_period_us", path);
        if (!file_read_i64(file, &value))
            return 0;
        period = value;
    }
    return quota > 0 && period > 0 ? (double)quota / (double)period : 0;
}

static void report_quota(struct machine *m, const struct cgroups *g)
{
    /* The least on the way from this process's group up to the mount. */
    char path[PATH_MAX];
    bool v2 = !*g->cpu_path;
    double least = 0;
    snprintf(path, sizeof(path), "%s", v2 ? g->v2_path : g->cpu_path);
    while (strlen(path) >= strlen(g->cpu_mount) && *path) {
        double quota = group_quota(path, v2);
        if (quota > 0 && (least == 0 || quota < least))
            least = quota;
        char *slash = strrchr(path, '/');
        if (!slash)
            break;
        *slash = '\0';
    }
    if (least == 0) {
        finding_add(m, "cpu-quota", "CPU quota", FINDING_NO, "%s",
                    *g->cpu_mount ? "this process's control group has none"
                                  : "no control group limits the processor");
        return;
    }
    struct finding *f =
        finding_add(m, "cpu-quota", "CPU quota", FINDING_YES,
                    "%.2f processors; above that the kernel throttles the whole group", least);
    finding_value(f, (int64_t)(least * 1000), "thousandths of a processor");
    finding_remedy(m, f, "remove it while measuring (docker: no --cpus; kubernetes: no CPU limit)");
}

static void probe_limit(struct machine *m, const char *id, const char *what, int resource,
                        uint64_t wanted, const char *unit, const char *command)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) < 0)
        return;
    char soft[32], hard[32];
    bool in_bytes = str_eq(unit, "bytes");
    const rlim_t values[] = {limit.rlim_cur, limit.rlim_max};
    char *const texts[] = {soft, hard};
    for (int i = 0; i < 2; i++)
        if (values[i] == RLIM_INFINITY)
            snprintf(texts[i], sizeof(soft), "unlimited");
        else if (in_bytes)
            format_bytes((double)values[i], texts[i], sizeof(soft));
        else
            format_thousands(values[i], texts[i], sizeof(soft));
    bool enough = limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= wanted;
    struct finding *f =
        finding_add(m, id, what, enough ? FINDING_YES : FINDING_LIMITED,
                    str_eq(soft, hard) ? "%s" : "%s, can be raised to %s", soft, hard);
    finding_value(f, limit.rlim_cur == RLIM_INFINITY ? -1 : (int64_t)limit.rlim_cur, unit);
    if (!enough)
        finding_remedy(m, f, "%s", command);
}

/* Whether a thread may run before all ordinary ones: tried, and taken back. */
static void probe_realtime(struct machine *m)
{
    struct sched_param before, now = {.sched_priority = 1};
    int policy = sched_getscheduler(0);
    if (policy != SCHED_OTHER && policy != SCHED_BATCH) {
        bool is_used = policy == SCHED_FIFO || policy == SCHED_RR;
        finding_add(m, "realtime", "real-time scheduling", is_used ? FINDING_YES : FINDING_UNKNOWN,
                    "%s", is_used ? "in use" : "not tested under this scheduling policy");
        return;
    }
    int r =
        sched_getparam(0, &before) < 0 || sched_setscheduler(0, SCHED_FIFO, &now) < 0 ? -errno : 0;
    if (r == 0)
        sched_setscheduler(0, policy, &before);
    struct finding *f =
        finding_add(m, "realtime", "real-time scheduling", r == 0 ? FINDING_YES : FINDING_NO, "%s",
                    r == 0 ? "SCHED_FIFO is allowed" : "SCHED_FIFO is refused");
    if (r < 0)
        finding_remedy(
            m, f, "run as root, or run: ulimit -r 1 (with 'rtprio' in /etc/security/limits.conf)");
}

static void probe_ptrace(struct machine *m)
{
    int64_t scope = 0;
    if (!file_read_i64("/proc/sys/kernel/yama/ptrace_scope", &scope) || scope == 0) {
        finding_add(m, "ptrace", "attaching to processes", FINDING_YES,
                    "you can attach to your own processes (no Yama)");
        return;
    }
    bool may = machine_may(m, CAP_SYS_PTRACE) && scope < 3;
    struct finding *f =
        finding_add(m, "ptrace", "attaching to processes", may ? FINDING_YES : FINDING_LIMITED,
                    "ptrace_scope is %lld: %s", (long long)scope,
                    may ? "but you have permission" : "only your own children");
    finding_value(f, scope, "level");
    if (!may)
        finding_remedy(m, f, "sudo sysctl kernel.yama.ptrace_scope=0");
}

void probe_host(struct machine *m, enum machine_depth depth)
{
    (void)depth;
    CLEANUP(cgroups_done) struct cgroups groups = {0};
    probe_rights(m);
    probe_lockdown(m);
    probe_container(m);
    find_cgroups(&groups);
    report_cgroups(m, &groups);
    report_quota(m, &groups);
    probe_limit(m, "memlock", "locked memory", RLIMIT_MEMLOCK, 8u << 20, "bytes",
                "ulimit -l unlimited (root, or 'memlock' in /etc/security/limits.conf)");
    probe_limit(m, "open-files", "open files", RLIMIT_NOFILE, 1024, "files", "ulimit -n 65536");
    probe_realtime(m);
    probe_ptrace(m);
}
