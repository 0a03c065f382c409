/* SPDX-License-Identifier: MIT */
/* Places in code and data: tracepoints, uprobes, kprobes and hardware breakpoints.  One of each
 * is set on ourselves, hit a known number of times, and must have counted exactly that. */
#include "base/fd.h"
#include "base/memory.h"
#include "machine/parse.h"
#include "machine/perf_try.h"
#include "machine/probe.h"
#include "machine/tracefs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/hw_breakpoint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>

#define HITS 3
#define BREAKPOINTS_MOST 32

#ifdef __clang__
#define KEPT_WHOLE __attribute__((noinline))
#else
#define KEPT_WHOLE __attribute__((noinline, noclone))
#endif

/* What uprobes and execution breakpoints are set on: the very function that is called, no copy. */
KEPT_WHOLE static void probed_function(volatile int *target)
{
    *target = *target + 1;
    __asm__ volatile("" ::: "memory");
}

static volatile int probed_variable;

static void work_call(void *context)
{
    (void)context;
    for (int i = 0; i < HITS; i++)
        probed_function(&probed_variable);
}

static void work_syscall(void *context)
{
    (void)context;
    struct timespec moment = {.tv_nsec = 1000};
    nanosleep(&moment, NULL);
    syscall(SYS_getppid);
}

/* How many tracepoints there are, from the list beside the folder of events. */
static size_t count_tracepoints(int events_fd)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    size_t count = 0;
    if (file_read_at(events_fd, "../available_events", &text, NULL) < 0)
        return 0;
    for (const char *line = strbuf_text(&text); line && *line; line = proc_next_line(line))
        count++;
    return count;
}

/* A tracepoint that work_syscall is sure to hit. */
static int find_tracepoint(int events_fd, uint64_t *ret_id, const char **ret_name)
{
    static const char *const names[][3] = {
        {"raw_syscalls", "sys_enter", "raw_syscalls:sys_enter"},
        {"sched", "sched_switch", "sched:sched_switch"},
        {"timer", "hrtimer_start", "timer:hrtimer_start"},
    };
    int r = -ENOENT;
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        r = tracefs_event_id(events_fd, names[i][0], names[i][1], ret_id, NULL);
        if (r == 0) {
            *ret_name = names[i][2];
            return 0;
        }
    }
    return r;
}

/* Whether the kernel lets this process count tracepoints. */
static bool may_trace(const struct machine *m)
{
    int64_t paranoid;
    return machine_may(m, CAP_SYS_ADMIN) || machine_may(m, CAP_PERFMON) ||
           (file_read_i64("/proc/sys/kernel/perf_event_paranoid", &paranoid) && paranoid < 2);
}

/* In the quick record a probe that would be allowed is not set.  Some kernels take CAP_PERFMON for
 * it, others want CAP_SYS_ADMIN.  Returns whether that settled it. */
static bool assume_probe(struct machine *m, const char *id, enum machine_depth depth)
{
    bool admin = machine_may(m, CAP_SYS_ADMIN);
    if (depth != MACHINE_QUICK || (!admin && !machine_may(m, CAP_PERFMON)))
        return false;
    finding_add(m, id, id, admin ? FINDING_YES : FINDING_UNKNOWN, "offered to perf; not tested")
        ->is_assumed = true;
    return true;
}

static void probe_tracepoints(struct machine *m, enum machine_depth depth)
{
    struct error err;
    CLEANUP(fd_closep) int events_fd = tracefs_open_events(&err);
    uint64_t id = 0;
    const char *name = "";
    int r = events_fd < 0 ? events_fd : find_tracepoint(events_fd, &id, &name);
    if (r < 0) {
        struct finding *f = finding_add(
            m, "tracepoints", "tracepoints", FINDING_NO, "%s",
            r == -ENOENT ? "not in this kernel" : "no permission to read the tracing directory");
        if (r == -ENOENT)
            finding_remedy(m, f, "a kernel with CONFIG_TRACING and CONFIG_PERF_EVENTS");
        else
            finding_remedy(m, f,
                           "run as root, or run: %s && sudo sysctl kernel.perf_event_paranoid=1",
                           tracefs_open_command());
        return;
    }
    size_t count = count_tracepoints(events_fd);
    if (depth == MACHINE_QUICK && may_trace(m)) {
        struct finding *f = finding_add(m, "tracepoints", "tracepoints", FINDING_YES,
                                        "%zu listed; not tested", count);
        finding_value(f, (int64_t)count, "tracepoints");
        f->is_assumed = true;
        return;
    }
    struct perf_event_attr attr = perf_try_attr(PERF_TYPE_TRACEPOINT, id);
    attr.exclude_kernel = 0;
    struct perf_reading reading = {0};
    r = perf_try_count(&attr, work_syscall, NULL, &reading);
    struct finding *f = finding_add(m, "tracepoints", "tracepoints",
                                    r == 0 && reading.value ? FINDING_YES : FINDING_LIMITED,
                                    "%zu listed; %s %s", count, name,
                                    r < 0           ? strerror(-r)
                                    : reading.value ? "counts"
                                                    : "opens but stays at zero");
    finding_value(f, (int64_t)count, "tracepoints");
    if (r == -EACCES || r == -EPERM)
        finding_remedy(m, f, "sudo sysctl kernel.perf_event_paranoid=1 (-1 to sample them, too)");
}

/* Where in its file the code of an address lies. */
static bool find_file_offset(const void *address, char *path, size_t size, uint64_t *ret_offset)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    if (file_read("/proc/self/maps", &text, NULL) < 0)
        return false;
    uint64_t wanted = (uint64_t)(uintptr_t)address;
    for (const char *line = strbuf_text(&text); line; line = proc_next_line(line)) {
        struct proc_mapping map;
        if (!proc_maps_line(line, &map) || wanted < map.start || wanted >= map.end)
            continue;
        if (map.path[0] != '/' || map.path_length >= size)
            return false;
        memcpy(path, map.path, map.path_length);
        path[map.path_length] = '\0';
        *ret_offset = wanted - map.start + map.file_offset;
        return true;
    }
    return false;
}

/* The bit of config that makes a return probe, from the PMU's own description ("config:0"). */
static uint64_t return_probe_bit(const char *pmu)
{
    char path[128], line[64];
    unsigned bit;
    snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/format/retprobe", pmu);
    if (!file_read_line(path, line, sizeof(line)) || sscanf(line, "config:%u", &bit) != 1 ||
        bit > 63)
        return 0;
    return UINT64_C(1) << bit;
}

/* Counts the calls of probed_function; negative errno when that is refused. */
static int try_uprobe(uint32_t type, uint64_t config, const char *path, uint64_t offset,
                      uint64_t *ret_hits)
{
    struct perf_event_attr attr = perf_try_attr(type, config);
    attr.exclude_kernel = 0;
    attr.config1 = (uint64_t)(uintptr_t)path;
    attr.config2 = offset;
    struct perf_reading reading = {0};
    int r = perf_try_count(&attr, work_call, NULL, &reading);
    *ret_hits = reading.value;
    return r;
}

static void probe_uprobes(struct machine *m, enum machine_depth depth)
{
    char path[4096];
    uint64_t offset, hits = 0, return_hits = 0;
    int type = perf_pmu_type("uprobe");
    if (type < 0) {
        struct finding *f = finding_add(m, "uprobes", "uprobes", FINDING_NO,
                                        "this kernel does not offer them to perf");
        finding_remedy(m, f, "a kernel with CONFIG_UPROBE_EVENTS, and /sys mounted");
        return;
    }
    if (assume_probe(m, "uprobes", depth))
        return;
    if (!find_file_offset((const void *)probed_function, path, sizeof(path), &offset)) {
        finding_add(m, "uprobes", "uprobes", FINDING_UNKNOWN,
                    "assay's own code was not found in /proc/self/maps, so none was tested");
        return;
    }
    int r = try_uprobe((uint32_t)type, 0, path, offset, &hits);
    uint64_t bit = return_probe_bit("uprobe");
    if (r == 0 && bit && try_uprobe((uint32_t)type, bit, path, offset, &return_hits) < 0)
        return_hits = 0;
    bool works = r == 0 && hits == HITS;
    struct finding *f = finding_add(
        m, "uprobes", "uprobes", works ? FINDING_YES : FINDING_NO, "%s",
        r < 0                 ? machine_text(m, "refused (%s)", strerror(-r))
        : !works              ? "one can be set, but its hits are miscounted"
        : return_hits == HITS ? "one on assay's own code counts each call and each return"
                              : "one on assay's own code counts each call, but not returns");
    if (r == -EACCES || r == -EPERM)
        finding_remedy(m, f,
                       "run as root, or run: sudo setcap cap_sys_admin+ep \"$(command -v assay)\"");
}

static void probe_kprobes(struct machine *m, enum machine_depth depth)
{
    int type = perf_pmu_type("kprobe");
    if (type < 0) {
        struct finding *f = finding_add(m, "kprobes", "kprobes", FINDING_NO,
                                        "this kernel does not offer them to perf");
        finding_remedy(m, f, "a kernel with CONFIG_KPROBE_EVENTS");
        return;
    }
    if (assume_probe(m, "kprobes", depth))
        return;
    struct perf_event_attr attr = perf_try_attr((uint32_t)type, 0);
    attr.exclude_kernel = 0;
    attr.config1 = (uint64_t)(uintptr_t) "do_nanosleep";
    struct perf_reading reading = {0};
    int r = perf_try_count(&attr, work_syscall, NULL, &reading);
    struct finding *f = finding_add(m, "kprobes", "kprobes",
                                    r == 0 && reading.value ? FINDING_YES
                                    : r == -ENOENT          ? FINDING_UNKNOWN
                                                            : FINDING_NO,
                                    "on do_nanosleep: %s",
                                    r < 0           ? strerror(-r)
                                    : reading.value ? "counts"
                                                    : "opens but stays at zero");
    if (r == -EACCES || r == -EPERM)
        finding_remedy(m, f, "run as root; a locked-down kernel allows none");
}

static struct perf_event_attr breakpoint_attr(uint32_t kind, const volatile void *address,
                                              uint64_t length)
{
    struct perf_event_attr attr = perf_try_attr(PERF_TYPE_BREAKPOINT, 0);
    attr.bp_type = kind;
    attr.bp_addr = (uint64_t)(uintptr_t)address;
    attr.bp_len = length;
    return attr;
}

/* How many breakpoints can be set at once. */
static size_t count_breakpoints(void)
{
    static volatile int targets[BREAKPOINTS_MOST];
    int fds[BREAKPOINTS_MOST];
    size_t count = 0;
    while (count < BREAKPOINTS_MOST) {
        struct perf_event_attr attr = breakpoint_attr(HW_BREAKPOINT_W, &targets[count], 4);
        int fd = perf_try_open(&attr, -1);
        if (fd < 0)
            break;
        fds[count++] = fd;
    }
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
    return count;
}

static void probe_breakpoints(struct machine *m)
{
    struct perf_event_attr data = breakpoint_attr(HW_BREAKPOINT_W, &probed_variable, 4);
    struct perf_event_attr code =
        breakpoint_attr(HW_BREAKPOINT_X, (const volatile void *)probed_function,
                        strstr(m->arch, "86") ? sizeof(long) : 4);
    struct perf_reading data_hits = {0}, code_hits = {0};
    int r = perf_try_count(&data, work_call, NULL, &data_hits);
    if (r < 0) {
        struct finding *f = finding_add(m, "breakpoints", "hardware breakpoints", FINDING_NO, "%s",
                                        r == -ENOENT || r == -EOPNOTSUPP || r == -ENODEV
                                            ? "not in this kernel or processor"
                                            : strerror(-r));
        if (*perf_refusal_remedy(m, r))
            finding_remedy(m, f, "%s", perf_refusal_remedy(m, r));
        return;
    }
    bool code_works =
        perf_try_count(&code, work_call, NULL, &code_hits) == 0 && code_hits.value == HITS;
    bool data_works = data_hits.value == HITS;
    size_t count = count_breakpoints();
    struct finding *f = finding_add(m, "breakpoints", "hardware breakpoints",
                                    data_works && code_works   ? FINDING_YES
                                    : data_works || code_works ? FINDING_LIMITED
                                                               : FINDING_NO,
                                    "%zu at once; writes %s, execution %s", count,
                                    data_works ? "count" : "open but are not counted",
                                    code_works ? "counts" : "does not");
    finding_value(f, (int64_t)count, "breakpoints");
}

void probe_tracing(struct machine *m, enum machine_depth depth)
{
    /* Taking a tracepoint or a probe away waits for the whole machine (a grace period of RCU), up
     * to 90 ms each; so the quick record does without these trials where they would succeed. */
    probe_tracepoints(m, depth);
    probe_uprobes(m, depth);
    probe_kprobes(m, depth);
    probe_breakpoints(m);
}
