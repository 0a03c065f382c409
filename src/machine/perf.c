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
    bool is_often_fixed; /* many processors have a counter for this event alone */
} hardware_events[] = {
    {"cycles", PERF_COUNT_HW_CPU_CYCLES, true},
    {"instructions", PERF_COUNT_HW_INSTRUCTIONS, true},
    {"branches", PERF_COUNT_HW_BRANCH_INSTRUCTIONS, false},
    {"branch-misses", PERF_COUNT_HW_BRANCH_MISSES, false},
    {"cache-references", PERF_COUNT_HW_CACHE_REFERENCES, false},
    {"cache-misses", PERF_COUNT_HW_CACHE_MISSES, false},
    {"ref-cycles", PERF_COUNT_HW_REF_CPU_CYCLES, true},
    {"bus-cycles", PERF_COUNT_HW_BUS_CYCLES, false},
    {"stalled-cycles-frontend", PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, false},
    {"stalled-cycles-backend", PERF_COUNT_HW_STALLED_CYCLES_BACKEND, false},
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
    int refused;           /* the errno that said most: -EACCES before -ENOENT */
    size_t counting;       /* how many events count */
    struct strbuf named;   /* those that count */
    struct strbuf silent;  /* those that open but count nothing */
    struct strbuf lacking; /* those that do not open */
};

static void hardware_done(struct hardware *h)
{
    strbuf_done(&h->named);
    strbuf_done(&h->silent);
    strbuf_done(&h->lacking);
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
            append_word(&h->lacking, hardware_events[i].name);
            continue;
        }
        h->counts[i] = counts(&reading);
        h->counting += h->counts[i];
        append_word(h->counts[i] ? &h->named : &h->silent, hardware_events[i].name);
    }
}

/* Opens events that may have a counter of their own, then more and more of one that fits any
 * counter, as one group, until the kernel refuses or the group no longer runs.  Returns how many
 * ran at once. */
static size_t try_group(const struct hardware *h)
{
    uint64_t configs[GROUP_MOST];
    int fds[GROUP_MOST];
    size_t opened = 0, ran = 0, own = 0;
    for (size_t i = 0; i < ARRAY_COUNT(hardware_events); i++)
        if (h->counts[i] && hardware_events[i].is_often_fixed)
            configs[own++] = hardware_events[i].config;
    for (size_t i = own; i < GROUP_MOST; i++)
        configs[i] = h->counts[2]   ? PERF_COUNT_HW_BRANCH_INSTRUCTIONS
                     : h->counts[1] ? PERF_COUNT_HW_INSTRUCTIONS
                                    : PERF_COUNT_HW_CPU_CYCLES;
    while (opened < GROUP_MOST) {
        struct perf_event_attr attr = perf_try_attr(PERF_TYPE_HARDWARE, configs[opened]);
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
    if (h->silent.length) {
        struct finding *f =
            finding_add(m, "pmu", "hardware counters", FINDING_NO, "events open but count nothing");
        finding_value(f, 0, "counters");
        finding_remedy(m, f,
                       "enable the virtual PMU in the hypervisor, or count with assay stat --sim");
        return;
    }
    const char *remedy = perf_refusal_remedy(m, h->refused);
    bool closed = *remedy;
    struct finding *f =
        finding_add(m, "pmu", "hardware counters", closed ? FINDING_UNKNOWN : FINDING_NO,
                    closed ? "no permission to use perf_event_open (%s)"
                           : "none: the kernel has no driver for a PMU on this machine",
                    strerror(-h->refused));
    finding_value(f, 0, "counters");
    finding_remedy(m, f, "%s",
                   closed ? remedy
                          : "a virtual machine needs a virtual PMU from its host; "
                            "assay stat --sim counts instructions without one");
}

static void report_hardware(struct machine *m, const struct hardware *h, const char *pmu)
{
    int64_t watchdog;
    size_t at_once = try_group(h);
    bool held = file_read_i64("/proc/sys/kernel/nmi_watchdog", &watchdog) && watchdog > 0;
    CLEANUP(strbuf_done) struct strbuf text = {0};
    strbuf_printf(&text, "%zu count at once%s%s; count: %s", at_once, *pmu ? " on " : "", pmu,
                  strbuf_text(&h->named));
    if (h->silent.length)
        strbuf_printf(&text, "; stay at zero: %s", strbuf_text(&h->silent));
    if (h->lacking.length)
        strbuf_printf(&text, "; not available: %s", strbuf_text(&h->lacking));
    struct finding *f =
        finding_add(m, "pmu", "hardware counters", FINDING_YES, "%s", strbuf_text(&text));
    finding_value(f, (int64_t)at_once, "counters");
    if (held)
        finding_remedy(m, f,
                       "the NMI watchdog may be using one: sudo sysctl kernel.nmi_watchdog=0");
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
        finding_add(m, "precise-ip", "precise addresses", precise ? FINDING_YES : FINDING_NO, "%s",
                    precise ? machine_text(m, "precise_ip %u gives exact samples", precise)
                            : "no level of precise_ip gives exact samples");
    finding_value(f, precise, "level");
    r = try_hardware_samples(0, PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY, &s);
    if (r < 0)
        finding_add(m, "branch-stack", "branch stacks", FINDING_NO, "refused (%s)", strerror(-r));
    else
        finding_add(m, "branch-stack", "branch stacks", s.branch_count ? FINDING_YES : FINDING_NO,
                    s.branch_count ? "samples carry the last branches"
                                   : "the event opens, but samples carry no branches");
}

/*
 * Machines with two kinds of cores have two PMUs, and an event counts only on the cores of its own.
 * There the trials run on the cores of the first one, which has a list of them ("cpus").
 */
struct pin {
    char pmu[64]; /* "" when there is no such list */
    size_t size;
    cpu_set_t *before;
};

static bool pmu_cpus(const char *pmu, cpu_set_t *set, size_t size)
{
    char path[384], line[1024];
    CLEANUP(memory_freep) int *cpus = NULL;
    size_t count = 0;
    snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/cpus", pmu);
    if (!file_read_line(path, line, sizeof(line)) || parse_cpu_list(line, &cpus, &count, NULL) < 0)
        return false;
    CPU_ZERO_S(size, set);
    for (size_t i = 0; i < count; i++)
        CPU_SET_S((size_t)cpus[i], size, set);
    return true;
}

static void pin_start(struct pin *p)
{
    p->size = CPU_ALLOC_SIZE(8192);
    p->before = memory_zalloc(1, p->size);
    CLEANUP(memory_freep) cpu_set_t *cpus = memory_zalloc(1, p->size);
    DIR *folder = opendir("/sys/bus/event_source/devices");
    if (!folder)
        return;
    bool known = sched_getaffinity(0, p->size, p->before) == 0;
    for (struct dirent *entry; known && !*p->pmu && (entry = readdir(folder));) {
        if (entry->d_name[0] == '.' || !pmu_cpus(entry->d_name, cpus, p->size))
            continue;
        CPU_AND_S(p->size, cpus, cpus, p->before);
        if (sched_setaffinity(0, p->size, cpus) == 0)
            snprintf(p->pmu, sizeof(p->pmu), "%.60s", entry->d_name);
    }
    closedir(folder);
}

static void pin_end(struct pin *p)
{
    if (*p->pmu)
        sched_setaffinity(0, p->size, p->before);
    free(p->before);
}

/* Units that write a trace of every branch or of sampled accesses into memory.  They are only
 * named: trying one takes a decoder. */
static void probe_hardware_trace(struct machine *m)
{
    static const char *const units[] = {"intel_pt", "intel_bts", "arm_spe_0", "cs_etm", "ibs_op"};
    CLEANUP(strbuf_done) struct strbuf found = {0};
    for (size_t i = 0; i < ARRAY_COUNT(units); i++)
        if (perf_pmu_type(units[i]) >= 0)
            append_word(&found, units[i]);
    struct finding *f = finding_add(m, "hardware-trace", "hardware tracing",
                                    found.length ? FINDING_LIMITED : FINDING_NO, "%s%s",
                                    found.length ? strbuf_text(&found) : "no such unit",
                                    found.length ? " (not tested)" : "");
    f->is_assumed = found.length > 0;
}

static void report_hardware_samples(struct machine *m, bool has_counters)
{
    if (has_counters) {
        probe_hardware_samples(m);
        return;
    }
    static const char *const needing[][2] = {{"pmu-sampling", "hardware sampling"},
                                             {"precise-ip", "precise addresses"},
                                             {"branch-stack", "branch stacks"}};
    enum finding_state state = m->findings[m->finding_count - 1].state;
    for (size_t i = 0; i < ARRAY_COUNT(needing); i++)
        finding_add(m, needing[i][0], needing[i][1], state, "needs hardware counters");
}

void probe_pmu(struct machine *m, enum machine_depth depth)
{
    (void)depth;
    CLEANUP(hardware_done) struct hardware h = {0};
    CLEANUP(pin_end) struct pin pin = {0};
    CLEANUP(memory_freep) void *bytes = memory_zalloc(1, 4u << 20);
    pin_start(&pin);
    try_hardware(&h, bytes);
    if (h.counting)
        report_hardware(m, &h, pin.pmu);
    else
        report_no_hardware(m, &h);
    report_hardware_samples(m, h.counting > 0);
    probe_hardware_trace(m);
}
