/* SPDX-License-Identifier: MIT */
/* Why perf_event_open refused: see explain.h. */
#include "counters/explain.h"
#include "base/fd.h"
#include "base/memory.h"
#include "counters/counters.h"
#include "counters/pmu.h"

#include <errno.h>
#include <unistd.h>

int explain_paranoid(void)
{
    int64_t level;
    return file_read_i64("/proc/sys/kernel/perf_event_paranoid", &level) ? (int)level : 2;
}

static int try_dummy(void)
{
    struct perf_event_attr attr = {.size = sizeof(attr),
                                   .type = PERF_TYPE_SOFTWARE,
                                   .config = PERF_COUNT_SW_DUMMY,
                                   .disabled = 1,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
    CLEANUP(fd_closep) int fd = counters_open_raw(&attr, 0, -1, -1, 0);
    return fd < 0 ? fd : 0;
}

bool explain_is_closed(void)
{
    int code = try_dummy();
    return code == -EACCES || code == -EPERM || code == -ENOSYS;
}

int explain_need_events(const char *needed, struct error *err)
{
    CLEANUP(strbuf_done) struct strbuf why = {0};
    if (!explain_is_closed())
        return 0;
    const struct event any = {.attr.type = PERF_TYPE_SOFTWARE};
    explain_perf_open(&why, &any, &(struct explain_context){0}, try_dummy());
    return error_set(err, -EACCES, "%s: %s", needed, strbuf_text(&why));
}

static bool needs_pmu(const struct event *e)
{
    return e->attr.type == PERF_TYPE_HARDWARE || e->attr.type == PERF_TYPE_HW_CACHE ||
           e->attr.type == PERF_TYPE_RAW;
}

enum refusal explain_refusal(int code)
{
    switch (-code) {
    case EACCES:
    case EPERM:
        return REFUSAL_PERMISSION;
    case ESRCH:
        return REFUSAL_GONE;
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP:
    case ENXIO:
        return REFUSAL_NOT_SUPPORTED;
    case EINVAL:
        /* A PMU that cannot count tasks, a group that does not fit, a cache event that the CPU
         * does not have: the others can still be counted. */
        return REFUSAL_NOT_SUPPORTED;
    default:
        return REFUSAL_FATAL;
    }
}

/* Whether there is a PMU at all: every one of them counts cycles. */
static bool has_pmu(void)
{
    struct perf_event_attr attr = {.size = sizeof(attr),
                                   .type = PERF_TYPE_HARDWARE,
                                   .config = PERF_COUNT_HW_CPU_CYCLES,
                                   .disabled = 1,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
    CLEANUP(fd_closep) int fd = counters_open_raw(&attr, 0, -1, -1, 0);
    return fd >= 0;
}

static void explain_missing(struct strbuf *out, const struct event *e)
{
    if (needs_pmu(e) && has_pmu())
        strbuf_puts(out, "this machine's PMU does not have the event");
    else if (needs_pmu(e))
        strbuf_puts(
            out, "no hardware PMU on this machine, or it is hidden, as in most virtual machines");
    else if (e->attr.type == PERF_TYPE_BREAKPOINT)
        strbuf_puts(out, "no hardware breakpoints on this machine");
    else
        strbuf_puts(out, "this kernel does not have the event");
}

static void explain_permission(struct strbuf *out, const struct event *e,
                               const struct explain_context *context)
{
    int level = explain_paranoid();
    if (geteuid() == 0) {
        strbuf_puts(out, "refused even for root: a container or security policy (seccomp, "
                         "lockdown) forbids perf_event_open; add CAP_PERFMON or run outside of it");
        return;
    }
    if (level <= 2 && explain_is_closed()) {
        strbuf_puts(out, "a container or security policy (seccomp, lockdown) forbids "
                         "perf_event_open; run outside of it");
        return;
    }
    if (e->probe_target)
        strbuf_puts(out,
                    "probes need root or CAP_PERFMON, regardless of kernel.perf_event_paranoid");
    else if (e->attr.type == PERF_TYPE_TRACEPOINT)
        strbuf_printf(out,
                      "tracepoints need root, CAP_PERFMON or kernel.perf_event_paranoid=-1 "
                      "(now %d)",
                      level);
    else if (context->systemwide)
        strbuf_printf(out,
                      "counting whole CPUs needs root, CAP_PERFMON or: sudo sysctl "
                      "kernel.perf_event_paranoid=0 (now %d)",
                      level);
    else if (level > 2)
        strbuf_printf(out,
                      "kernel.perf_event_paranoid is %d, which forbids users to count: sudo sysctl "
                      "kernel.perf_event_paranoid=2",
                      level);
    else
        strbuf_printf(out,
                      "not permitted; root, CAP_PERFMON or: sudo sysctl "
                      "kernel.perf_event_paranoid=1 (now %d); another user's process needs "
                      "root",
                      level);
}

void explain_perf_open(struct strbuf *out, const struct event *e,
                       const struct explain_context *context, int code)
{
    switch (-code) {
    case EACCES:
    case EPERM:
        explain_permission(out, e, context);
        break;
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP:
    case ENXIO:
        explain_missing(out, e);
        break;
    case EINVAL:
        if (e->pmu && pmu_is_systemwide(e->pmu) && !context->systemwide)
            strbuf_printf(out, "the PMU %s counts only whole CPUs: add -a", e->pmu);
        else if (context->grouped)
            strbuf_puts(out, "the kernel refuses it in this group: more events than counters, or "
                             "events of PMUs that cannot be grouped; try without { }");
        else if (needs_pmu(e))
            explain_missing(out, e);
        else
            strbuf_puts(out, "the kernel refuses these settings (EINVAL)");
        break;
    case ENOSPC:
        strbuf_puts(out, e->attr.type == PERF_TYPE_BREAKPOINT
                             ? "all hardware breakpoints are in use (most CPUs have four)"
                             : "all counters of this kind are in use");
        break;
    case EMFILE:
        strbuf_puts(out, "too many open files: each event takes one descriptor per CPU or thread; "
                         "raise the limit with ulimit -n");
        break;
    case EBUSY:
        strbuf_puts(out, "another program holds the PMU exclusively");
        break;
    case ENOSYS:
        strbuf_puts(out, "this kernel has no perf_event_open (CONFIG_PERF_EVENTS), or a sandbox "
                         "hides it");
        break;
    case ESRCH:
        strbuf_puts(out, "the process has ended");
        break;
    default:
        strbuf_printf(out, "perf_event_open: %s", strerror(-code));
        break;
    }
}
