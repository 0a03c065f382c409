/* SPDX-License-Identifier: MIT */
/*
 * Counting and sampling: what the hardware PMU and the kernel's software events really deliver.
 *
 * A virtual machine may offer events that open and stay at zero, and a PMU has fewer counters than
 * events can be opened; so each event runs over a little work of its own kind and must have counted
 * (value above zero) while it ran (running time above zero).
 */
#include "base/fd.h"
#include "base/memory.h"
#include "machine/perf_try.h"
#include "machine/probe.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>

#define GROUP_MOST 32 /* no PMU has as many counters */

static const struct {
    const char *name;
    uint64_t config;
} hardware_events[] = {
    {"cycles", PERF_COUNT_HW_CPU_CYCLES},
    {"instructions", PERF_COUNT_HW_INSTRUCTIONS},
    {"branches", PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    {"branch-misses", PERF_COUNT_HW_BRANCH_MISSES},
    {"cache-references", PERF_COUNT_HW_CACHE_REFERENCES},
    {"cache-misses", PERF_COUNT_HW_CACHE_MISSES},
    {"ref-cycles", PERF_COUNT_HW_REF_CPU_CYCLES},
    {"bus-cycles", PERF_COUNT_HW_BUS_CYCLES},
    {"stalled-cycles-frontend", PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
    {"stalled-cycles-backend", PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
};

/* Random branches and misses of the caches, so that no event has a reason to stay at zero. */
static void work_hard(void *context)
{
    volatile unsigned char *bytes = context;
    uint32_t state = 12345;
    for (unsigned i = 0; i < 60000; i++) {
        state = state * 1664525u + 1013904223u;
        if (state & 0x10000)
            bytes[(state >> 8) % (4u << 20)]++;
    }
}

static bool counts(const struct perf_reading *r)
{
    return r->value > 0 && r->running_ns > 0;
}

static void append_word(struct strbuf *list, const char *word)
{
    strbuf_printf(list, "%s%s", list->length ? ", " : "", word);
}

struct hardware {
    bool counts[ARRAY_COUNT(hardware_events)];
    int refused;          /* the errno that said most: -EACCES before -ENOENT */
    size_t counting;      /* how many events count */
    struct strbuf opened; /* those that open but count nothing */
    struct strbuf named;  /* those that count */
};

static void hardware_done(struct hardware *h)
{
    strbuf_done(&h->opened);
    strbuf_done(&h->named);
}

static void try_hardware(struct hardware *h, void *bytes)
{
    for (size_t i = 0; i < ARRAY_COUNT(hardware_events); i++) {
        struct perf_event_attr attr = perf_try_attr(PERF_TYPE_HARDWARE, hardware_events[i].config);
        struct perf_reading reading;
        int r = perf_try_count(&attr, work_hard, bytes, &reading);
        if (r < 0) {
            if (r == -EACCES || r == -EPERM || !h->refused)
                h->refused = r;
            continue;
        }
        h->counts[i] = counts(&reading);
        h->counting += h->counts[i];
        append_word(h->counts[i] ? &h->named : &h->opened, hardware_events[i].name);
    }
}

/* Opens cycles, instructions and then more of an event that fits any counter as one group, until
 * the kernel refuses or the group no longer runs.  Returns how many ran at once. */
static size_t try_group(const struct hardware *h)
{
    int fds[GROUP_MOST];
    size_t opened = 0, ran = 0;
    uint64_t filler = h->counts[2]   ? PERF_COUNT_HW_BRANCH_INSTRUCTIONS
                      : h->counts[1] ? PERF_COUNT_HW_INSTRUCTIONS
                                     : PERF_COUNT_HW_CPU_CYCLES;
    while (opened < GROUP_MOST) {
        bool fixed = opened < 2 && h->counts[opened];
        struct perf_event_attr attr =
            perf_try_attr(PERF_TYPE_HARDWARE, fixed ? hardware_events[opened].config : filler);
        attr.disabled = opened == 0;
        int fd = perf_try_open(&attr, opened ? fds[0] : -1);
        if (fd < 0)
            break;
        fds[opened++] = fd;
        ioctl(fds[0], PERF_EVENT_IOC_RESET, PERF_IOC_FLAG_GROUP);
        ioctl(fds[0], PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
        perf_work_spin(NULL);
        ioctl(fds[0], PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
        /* The times of a group grow from trial to trial, the values start at zero each time. */
        struct perf_reading reading;
        if (!perf_try_read(fd, &reading) || !counts(&reading))
            break;
        ran = opened;
    }
    while (opened)
        close(fds[--opened]);
    return ran;
}

static void report_no_hardware(struct machine *m, const struct hardware *h)
{
    if (h->opened.length) {
        struct finding *f =
            finding_add(m, "pmu", "hardware counters", FINDING_NO, "events open but count nothing");
        finding_value(f, 0, "counters");
        finding_remedy(m, f,
                       "switch the virtual PMU on in the hypervisor, or count with "
                       "assay stat --sim");
        return;
    }
    const char *remedy = perf_refusal_remedy(m, h->refused);
    bool closed = *remedy;
    struct finding *f =
        finding_add(m, "pmu", "hardware counters", closed ? FINDING_UNKNOWN : FINDING_NO,
                    closed ? "perf_event_open is closed to you (%s)"
                           : "none: the kernel has no driver for a PMU here",
                    strerror(-h->refused));
    finding_value(f, 0, "counters");
    finding_remedy(m, f, "%s",
                   closed ? remedy
                          : "a virtual machine needs a virtual PMU from its host; "
                            "assay stat --sim counts instructions without one");
}

static void report_hardware(struct machine *m, const struct hardware *h)
{
    int64_t watchdog;
    size_t at_once = try_group(h);
    bool held = file_read_i64("/proc/sys/kernel/nmi_watchdog", &watchdog) && watchdog > 0;
    struct finding *f = finding_add(
        m, "pmu", "hardware counters", FINDING_YES, "%zu count at once; %s count%s%s", at_once,
        strbuf_text(&h->named), h->opened.length ? "; not: " : "", strbuf_text(&h->opened));
    finding_value(f, (int64_t)at_once, "counters");
    if (held)
        finding_remedy(m, f,
                       "the NMI watchdog may hold one more: sudo sysctl "
                       "kernel.nmi_watchdog=0");
}

static int try_hardware_samples(unsigned precise, uint64_t branches, struct perf_samples *samples)
{
    struct perf_event_attr attr = perf_try_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
    attr.sample_period = 20011;
    attr.sample_type = PERF_SAMPLE_IP;
    attr.precise_ip = precise & 3;
    if (branches) {
        attr.sample_type |= PERF_SAMPLE_BRANCH_STACK;
        attr.branch_sample_type = branches;
    }
    return perf_try_sample(&attr, perf_work_spin, NULL, samples);
}

static void probe_hardware_samples(struct machine *m)
{
    struct perf_samples s;
    int r = try_hardware_samples(0, 0, &s);
    if (r < 0)
        finding_add(m, "pmu-sampling", "hardware sampling", FINDING_NO, "cycles: %s", strerror(-r));
    else
        finding_add(m, "pmu-sampling", "hardware sampling", s.count ? FINDING_YES : FINDING_NO,
                    s.count ? "samples on cycles arrive"
                            : "a sampled cycles event opens, but no sample arrives");
    unsigned precise = 3;
    for (; precise; precise--) {
        r = try_hardware_samples(precise, 0, &s);
        if (r == 0 && s.exact_count)
            break;
    }
    struct finding *f =
        finding_add(m, "precise-ip", "precise addresses", precise ? FINDING_YES : FINDING_NO,
                    precise ? "precise_ip %u gives exact samples"
                            : "no level of precise_ip gives exact samples (%u)",
                    precise);
    finding_value(f, precise, "level");
    r = try_hardware_samples(0, PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY, &s);
    if (r < 0)
        finding_add(m, "branch-stack", "branch stacks", FINDING_NO, "%s", strerror(-r));
    else
        finding_add(m, "branch-stack", "branch stacks", s.branch_count ? FINDING_YES : FINDING_NO,
                    s.branch_count ? "samples carry the last branches"
                                   : "the event opens, but samples carry no branches");
}

void probe_pmu(struct machine *m, enum machine_depth depth)
{
    (void)depth;
    CLEANUP(hardware_done) struct hardware h = {0};
    CLEANUP(memory_freep) void *bytes = memory_zalloc(1, 4u << 20);
    try_hardware(&h, bytes);
    if (h.counting) {
        report_hardware(m, &h);
        probe_hardware_samples(m);
        return;
    }
    report_no_hardware(m, &h);
    static const char *const needing[][2] = {{"pmu-sampling", "hardware sampling"},
                                             {"precise-ip", "precise addresses"},
                                             {"branch-stack", "branch stacks"}};
    for (size_t i = 0; i < ARRAY_COUNT(needing); i++)
        finding_add(m, needing[i][0], needing[i][1], m->findings[m->finding_count - 1].state,
                    "needs hardware counters");
}
