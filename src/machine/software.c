/* SPDX-License-Identifier: MIT */
/* The kernel's own events and who may use them: every software event that can be provoked is
 * provoked, with the kernel side where it is allowed and without it otherwise. */
#include "base/fd.h"
#include "base/memory.h"
#include "machine/perf_try.h"
#include "machine/probe.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

#define AFFINITY_CPUS 8192

static void work_fault(void *context)
{
    (void)context;
    size_t size = 4 * (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return;
    for (size_t at = 0; at < size; at += size / 4)
        *(volatile char *)(pages + at) = 1;
    munmap(pages, size);
}

static void work_sleep(void *context)
{
    (void)context;
    nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
}

/* Runs on each of the first usable processors once, then wherever it was allowed before. */
static void work_migrate(void *context)
{
    (void)context;
    size_t size = CPU_ALLOC_SIZE(AFFINITY_CPUS), moved = 0;
    CLEANUP(memory_freep) cpu_set_t *before = memory_zalloc(1, size);
    CLEANUP(memory_freep) cpu_set_t *one = memory_zalloc(1, size);
    if (sched_getaffinity(0, size, before) < 0)
        return;
    for (size_t cpu = 0; cpu < AFFINITY_CPUS && moved < 2; cpu++) {
        if (!CPU_ISSET_S(cpu, size, before))
            continue;
        CPU_ZERO_S(size, one);
        CPU_SET_S(cpu, size, one);
        moved += sched_setaffinity(0, size, one) == 0;
    }
    sched_setaffinity(0, size, before);
}

static const struct {
    const char *name;
    uint64_t config;
    perf_work_fn *work; /* NULL where nothing provokes it cheaply */
} software_events[] = {
    {"task-clock", PERF_COUNT_SW_TASK_CLOCK, perf_work_spin},
    {"cpu-clock", PERF_COUNT_SW_CPU_CLOCK, perf_work_spin},
    {"page-faults", PERF_COUNT_SW_PAGE_FAULTS, work_fault},
    {"minor-faults", PERF_COUNT_SW_PAGE_FAULTS_MIN, work_fault},
    {"context-switches", PERF_COUNT_SW_CONTEXT_SWITCHES, work_sleep},
    {"cpu-migrations", PERF_COUNT_SW_CPU_MIGRATIONS, work_migrate},
    {"major-faults", PERF_COUNT_SW_PAGE_FAULTS_MAJ, NULL},
    {"alignment-faults", PERF_COUNT_SW_ALIGNMENT_FAULTS, NULL},
    {"emulation-faults", PERF_COUNT_SW_EMULATION_FAULTS, NULL},
    {"cgroup-switches", PERF_COUNT_SW_CGROUP_SWITCHES, NULL},
    {"bpf-output", PERF_COUNT_SW_BPF_OUTPUT, NULL},
};

struct software {
    struct strbuf counting, opening, silent, refused;
    size_t counting_count, silent_count, refused_count;
    int refusal;
    bool kernel_side;
};

static void software_done(struct software *s)
{
    strbuf_done(&s->counting);
    strbuf_done(&s->opening);
    strbuf_done(&s->silent);
    strbuf_done(&s->refused);
}

static void append_word(struct strbuf *list, const char *word)
{
    strbuf_printf(list, "%s%s", list->length ? ", " : "", word);
}

static void nothing(void *context)
{
    (void)context;
}

static void try_software(struct software *s, size_t index, bool can_migrate)
{
    const char *name = software_events[index].name;
    perf_work_fn *work = software_events[index].work;
    if (work == work_migrate && !can_migrate)
        work = NULL;
    struct perf_event_attr attr = perf_try_attr(PERF_TYPE_SOFTWARE, software_events[index].config);
    attr.exclude_kernel = !s->kernel_side;
    struct perf_reading reading;
    int r = perf_try_count(&attr, work ? work : nothing, NULL, &reading);
    if (r < 0) {
        s->refusal = r;
        s->refused_count++;
        append_word(&s->refused, name);
    } else if (!work) {
        append_word(&s->opening, name);
    } else if (reading.value > 0) {
        s->counting_count++;
        append_word(&s->counting, name);
    } else {
        s->silent_count++;
        append_word(&s->silent, name);
    }
}

static bool kernel_side_allowed(void)
{
    struct perf_event_attr attr = perf_try_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
    attr.exclude_kernel = 0;
    CLEANUP(fd_closep) int fd = perf_try_open(&attr, -1);
    return fd >= 0;
}

static void report_software(struct machine *m, const struct software *s)
{
    enum finding_state state = !s->counting_count                    ? FINDING_NO
                               : s->silent_count || s->refused_count ? FINDING_LIMITED
                                                                     : FINDING_YES;
    CLEANUP(strbuf_done) struct strbuf text = {0};
    const struct {
        const char *lead;
        const struct strbuf *list;
    } parts[] = {{"count: ", &s->counting},
                 {"open, not triggered: ", &s->opening},
                 {"stay at zero: ", &s->silent},
                 {"refused: ", &s->refused}};
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++)
        if (parts[i].list->length)
            strbuf_printf(&text, "%s%s%s", text.length ? "; " : "", parts[i].lead,
                          strbuf_text(parts[i].list));
    struct finding *f =
        finding_add(m, "software-events", "software events", state, "%s", strbuf_text(&text));
    finding_value(f, (int64_t)s->counting_count, "events");
    const char *remedy = perf_refusal_remedy(m, s->refusal);
    if (*remedy)
        finding_remedy(m, f, "%s", remedy);
    else if (!s->kernel_side)
        finding_remedy(m, f, "%s", perf_refusal_remedy(m, -EACCES));
}

static void probe_paranoid(struct machine *m, bool kernel_side)
{
    int64_t paranoid = 0;
    bool known = file_read_i64("/proc/sys/kernel/perf_event_paranoid", &paranoid);
    struct perf_event_attr attr = perf_try_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);
    CLEANUP(fd_closep) int user_fd = perf_try_open(&attr, -1);
    if (!known && user_fd < 0) {
        struct finding *f = finding_add(m, "perf-event-paranoid", "perf events", FINDING_NO,
                                        "perf_event_paranoid cannot be read");
        finding_remedy(m, f, "a kernel with CONFIG_PERF_EVENTS and /proc mounted");
        return;
    }
    int code = user_fd < 0 ? user_fd : -EACCES;
    enum finding_state state = kernel_side    ? FINDING_YES
                               : user_fd >= 0 ? FINDING_LIMITED
                                              : FINDING_NO;
    struct finding *f =
        finding_add(m, "perf-event-paranoid", "perf events", state, "perf_event_paranoid %s: %s",
                    known ? machine_text(m, "is %lld", (long long)paranoid) : "cannot be read",
                    kernel_side ? "you can count your processes, including their time in the kernel"
                    : user_fd >= 0 ? "you can count your own processes, in user mode only"
                                   : "no permission");
    if (known)
        finding_value(f, paranoid, "level");
    if (!kernel_side)
        finding_remedy(m, f, "%s", perf_refusal_remedy(m, code));
}

/* Counting a whole processor, all of its processes: what -a and -C need. */
static void probe_system_wide(struct machine *m)
{
    struct perf_event_attr attr = perf_try_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);
    attr.exclude_kernel = 0;
    int fd = perf_try_open_cpu(&attr, sched_getcpu());
    struct finding *f = finding_add(
        m, "system-wide", "whole-system counting", fd >= 0 ? FINDING_YES : FINDING_NO, "%s",
        fd >= 0 ? "a processor can be counted with everything that runs on it"
                : machine_text(m, "refused (%s)", strerror(-fd)));
    if (fd == -EACCES || fd == -EPERM)
        finding_remedy(m, f, "sudo sysctl kernel.perf_event_paranoid=0, or run as root");
    if (fd >= 0)
        close(fd);
}

/* The first addresses of kernel functions read as zero when they are hidden. */
static bool kallsyms_visible(void)
{
    FILE *file = fopen("/proc/kallsyms", "re");
    if (!file)
        return false;
    char line[512];
    bool visible = false;
    for (int i = 0; i < 64 && !visible && fgets(line, sizeof(line), file); i++)
        visible = line[strspn(line, "0")] != ' ';
    fclose(file);
    return visible;
}

static void probe_kptr(struct machine *m)
{
    int64_t restrict_level = 0;
    bool known = file_read_i64("/proc/sys/kernel/kptr_restrict", &restrict_level);
    bool visible = kallsyms_visible();
    struct finding *f =
        finding_add(m, "kptr-restrict", "kernel symbols", visible ? FINDING_YES : FINDING_NO,
                    known ? "kptr_restrict is %lld: addresses in /proc/kallsyms are %s"
                          : "kptr_restrict cannot be read (%lld): /proc/kallsyms is %s",
                    (long long)restrict_level, visible ? "shown" : "hidden from you");
    if (known)
        finding_value(f, restrict_level, "level");
    if (visible)
        return;
    if (access("/proc/kallsyms", R_OK) < 0)
        finding_remedy(m, f, "a kernel with CONFIG_KALLSYMS");
    else if (restrict_level > 0)
        finding_remedy(m, f, "sudo sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1");
    else
        finding_remedy(m, f, "sudo sysctl kernel.perf_event_paranoid=1, or run as root");
}

static void work_spin_longer(void *context)
{
    for (int i = 0; i < 4; i++)
        perf_work_spin(context);
}

/* The timer that samples where there is no PMU. */
static void probe_clock_sampling(struct machine *m)
{
    struct perf_event_attr attr = perf_try_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);
    attr.sample_period = 50000; /* ns */
    attr.sample_type = PERF_SAMPLE_IP;
    struct perf_samples samples = {0};
    int r = perf_try_sample(&attr, work_spin_longer, NULL, &samples);
    int64_t rate = 0;
    bool known = file_read_i64("/proc/sys/kernel/perf_event_max_sample_rate", &rate);
    if (r < 0 || !samples.count) {
        struct finding *f = finding_add(m, "clock-sampling", "timer sampling", FINDING_NO, "%s",
                                        r < 0 ? strerror(-r) : "opens, but no sample arrives");
        if (r == -EPERM)
            finding_remedy(m, f,
                           "ulimit -l unlimited, or sudo sysctl "
                           "kernel.perf_event_mlock_kb=2048");
        else if (*perf_refusal_remedy(m, r))
            finding_remedy(m, f, "%s", perf_refusal_remedy(m, r));
        return;
    }
    struct finding *f =
        finding_add(m, "clock-sampling", "timer sampling", FINDING_YES,
                    "samples on cpu-clock arrive; at most %lld per second", (long long)rate);
    if (known)
        finding_value(f, rate, "Hz");
    if (known && rate < 10000)
        finding_remedy(m, f, "sudo sysctl kernel.perf_event_max_sample_rate=100000");
}

void probe_software(struct machine *m, enum machine_depth depth)
{
    (void)depth;
    CLEANUP(software_done) struct software s = {.kernel_side = kernel_side_allowed()};
    probe_paranoid(m, s.kernel_side);
    for (size_t i = 0; i < ARRAY_COUNT(software_events); i++)
        try_software(&s, i, m->cpu_usable_count > 1);
    report_software(m, &s);
    probe_system_wide(m);
    probe_clock_sampling(m);
    probe_kptr(m);
}
