/* SPDX-License-Identifier: MIT */
/* Events opened for sampling: see sampling.h. */
#include "sampler/sampling.h"
#include "base/fd.h"
#include "base/memory.h"
#include "counters/counters.h"
#include "counters/explain.h"
#include "counters/filter.h"
#include "sampler/offcpu.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>

#define FORMAT_LOST (1U << 4)
#define RING_BYTES_DEFAULT ((size_t)512 << 10)
#define RING_BYTES_STACKS ((size_t)4 << 20)
#define RINGS_BYTES_MAX ((size_t)256 << 20) /* of all CPUs, by default */

uint64_t sampling_frequency_max(void)
{
    int64_t rate;
    return file_read_i64("/proc/sys/kernel/perf_event_max_sample_rate", &rate) && rate > 0
               ? (uint64_t)rate
               : UINT64_MAX;
}

/* The registers to copy for unwinding on this kind of machine; 0 when none is known. */
static uint64_t user_registers(void)
{
#if defined(__x86_64__)
    return 0xff0fff; /* ax to ss and r8 to r15: without ds, es, fs, gs */
#elif defined(__aarch64__)
    return (1ULL << 33) - 1; /* x0 to x30, sp, pc */
#elif defined(__riscv)
    return 0xffffffff; /* pc, x1 to x31 */
#else
    return 0;
#endif
}

/* Whether the kernel opens an event that counts nothing with these attributes. */
static bool is_accepted(struct perf_event_attr attr)
{
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_DUMMY;
    attr.size = sizeof(attr);
    attr.exclude_kernel = 1;
    attr.disabled = 1;
    CLEANUP(fd_closep) int fd = counters_open_raw(&attr, 0, -1, -1, 0);
    return fd >= 0;
}

static void ask_kernel(struct sampling_kernel *k)
{
    k->has_lost_count = is_accepted((struct perf_event_attr){.read_format = FORMAT_LOST});
    k->has_build_id = is_accepted((struct perf_event_attr){.mmap2 = 1, .mmap = 1, .build_id = 1});
    k->has_ksymbol = is_accepted((struct perf_event_attr){.ksymbol = 1, .bpf_event = 1});
    k->has_clock =
        is_accepted((struct perf_event_attr){.use_clockid = 1, .clockid = CLOCK_MONOTONIC});
}

/* Whether cycles can be counted here: an event that opens is no proof. */
static bool has_cycles(void)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE,
                                   .size = sizeof(attr),
                                   .config = PERF_COUNT_HW_CPU_CYCLES,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
    CLEANUP(fd_closep) int fd = counters_open_raw(&attr, 0, -1, -1, 0);
    if (fd < 0)
        return false;
    for (volatile unsigned i = 0; i < 100000; i++)
        ;
    uint64_t count = 0;
    return read(fd, &count, sizeof(count)) == sizeof(count) && count > 0;
}

static int choose_events(struct sampling *s, const struct sampling_spec *spec,
                         const struct event_list **ret_list, struct error *err)
{
    *ret_list = spec->events;
    if (spec->events && spec->events->count)
        return 0;
    *ret_list = &s->own_events;
    if (has_cycles())
        return event_list_parse(&s->own_events, "cycles:P", err);
    strbuf_puts(&s->notes, "no hardware PMU: sampling cpu-clock, the time on the CPU\n");
    return event_list_parse(&s->own_events, "cpu-clock", err);
}

/* Events that happen one by one and are few: each is a sample unless the user says otherwise. */
static bool is_discrete(const struct event *e)
{
    return e->attr.type == PERF_TYPE_TRACEPOINT || e->attr.type == PERF_TYPE_BREAKPOINT ||
           e->probe_target;
}

static void set_rate(struct perf_event_attr *attr, const struct event *e,
                     const struct sampling_spec *spec)
{
    if (spec->period || (is_discrete(e) && !spec->frequency_hz)) {
        attr->sample_period = spec->period ? spec->period : 1;
        return;
    }
    uint64_t max_hz = sampling_frequency_max();
    attr->freq = 1;
    attr->sample_freq = spec->frequency_hz ? spec->frequency_hz : SAMPLING_FREQUENCY_DEFAULT;
    if (!spec->frequency_hz && attr->sample_freq > max_hz)
        attr->sample_freq = max_hz;
    attr->sample_type |= PERF_SAMPLE_PERIOD;
}

static void set_stacks(struct perf_event_attr *attr, const struct sampling_spec *spec)
{
    if (spec->stacks == SAMPLING_NO_STACKS)
        return;
    attr->sample_type |= PERF_SAMPLE_CALLCHAIN;
    attr->exclude_callchain_user = spec->kernel_stacks;
    if (spec->stacks == SAMPLING_DWARF) {
        attr->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
        attr->sample_regs_user = user_registers();
        attr->sample_stack_user = spec->stack_bytes;
        attr->exclude_callchain_user = 1;
    }
}

/* What every event of this recording has. */
static void set_common(struct perf_event_attr *attr, const struct sampling *s,
                       const struct sampling_spec *spec)
{
    attr->size = sizeof(*attr);
    attr->sample_type |= PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
    if (s->event_count > 1 || spec->beside_others)
        attr->sample_type |= PERF_SAMPLE_IDENTIFIER;
    attr->sample_id_all = 1;
    attr->read_format = PERF_FORMAT_ID | (s->kernel.has_lost_count ? FORMAT_LOST : 0);
    attr->inherit = !spec->whole_cpus;
    attr->disabled = spec->on_exec || spec->whole_cpus;
    attr->enable_on_exec = spec->on_exec;
    attr->exclude_idle = spec->no_idle;
    if (s->kernel.has_clock) {
        attr->use_clockid = 1;
        attr->clockid = CLOCK_MONOTONIC;
    }
}

/* Maps, names and lives of processes. */
static void set_tracking(struct perf_event_attr *attr, const struct sampling_kernel *kernel,
                         const struct sampling_spec *spec)
{
    attr->mmap = attr->mmap2 = attr->comm = attr->comm_exec = attr->task = 1;
    attr->build_id = kernel->has_build_id && !spec->no_build_ids;
    attr->ksymbol = attr->bpf_event = kernel->has_ksymbol && !attr->exclude_kernel;
}

static void prepare(struct sampling *s, const struct sampling_spec *spec,
                    const struct event_list *list)
{
    bool has_dummy = spec->whole_cpus && !spec->no_tracking;
    s->event_count = list->count + spec->off_cpu + has_dummy;
    s->events = memory_zalloc(s->event_count, sizeof(*s->events));
    for (size_t i = 0; i < list->count; i++) {
        struct sampling_event *e = &s->events[i];
        e->event = &list->items[i];
        e->name = memory_strdup(e->event->name);
        e->attr = e->event->attr;
        set_common(&e->attr, s, spec);
        set_rate(&e->attr, e->event, spec);
        set_stacks(&e->attr, spec);
        if (e->attr.type == PERF_TYPE_TRACEPOINT)
            e->attr.sample_type |= PERF_SAMPLE_RAW;
        if (e->attr.type == PERF_TYPE_HARDWARE && !e->event->has_modifier)
            e->attr.exclude_guest = 1;
    }
    size_t next = list->count;
    if (spec->off_cpu) {
        struct sampling_event *e = &s->events[next++];
        e->name = memory_strdup(OFFCPU_EVENT_NAME);
        e->attr = (struct perf_event_attr){.type = PERF_TYPE_SOFTWARE,
                                           .config = PERF_COUNT_SW_CONTEXT_SWITCHES,
                                           .sample_period = 1,
                                           .context_switch = 1};
        set_common(&e->attr, s, spec);
        set_stacks(&e->attr, spec);
    }
    if (has_dummy) {
        /* Maps must not be missed while those that are there already are listed. */
        struct sampling_event *e = &s->events[next];
        e->name = memory_strdup("dummy");
        e->attr = (struct perf_event_attr){
            .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY, .sample_period = 1};
        set_common(&e->attr, s, spec);
        e->attr.disabled = 0;
        set_tracking(&e->attr, &s->kernel, spec);
    } else if (!spec->no_tracking) {
        set_tracking(&s->events[0].attr, &s->kernel, spec);
    }
    s->events[0].attr.context_switch |= spec->switches;
}

/* Probes that children inherit are defined as tracepoints: see counters/dynamic.h. */
static int define_probes(struct sampling *s, struct error *err)
{
    for (size_t i = 0; i < s->event_count; i++) {
        struct sampling_event *e = &s->events[i];
        if (!e->event || !e->event->probe_target || !e->attr.inherit)
            continue;
        int r = dynamic_define(&e->dynamic, e->event, &e->attr, err);
        if (r < 0)
            return error_wrap(err, r, "%s", e->name);
        e->attr.sample_type |= PERF_SAMPLE_RAW;
    }
    return 0;
}

static int refuse(const struct sampling_event *e, const struct sampling_spec *spec, int code,
                  struct error *err)
{
    bool is_denied = explain_refusal(code) == REFUSAL_PERMISSION;
    if (!e->event && is_denied)
        return error_set(
            err, code,
            "%s: no permission to sample the kernel's side of context switches; run as root, with "
            "CAP_PERFMON, or run: sudo sysctl kernel.perf_event_paranoid=%d (now %d)",
            e->name, spec->whole_cpus ? 0 : 1, explain_paranoid());
    static const struct event unnamed = {.name = NULL};
    CLEANUP(strbuf_done) struct strbuf why = {0};
    struct explain_context context = {.systemwide = spec->whole_cpus,
                                      .grouped = e->event && e->event->group};
    if (code == -EOPNOTSUPP && e->event && e->attr.type != PERF_TYPE_SOFTWARE)
        strbuf_puts(&why, "it can be counted ('assay stat') but not sampled on this machine");
    else
        explain_perf_open(&why, e->event ? e->event : &unnamed, &context, code);
    if (!is_denied && e->attr.type == PERF_TYPE_HARDWARE && !has_cycles())
        strbuf_puts(&why, "; cpu-clock can be sampled without one");
    return error_set(err, code, "%s: %s", e->name, strbuf_text(&why));
}

/* Leaves out something that the kernel or the permissions refuse; false when nothing is left. */
static bool give_way(struct sampling *s, struct sampling_event *e, const struct sampling_spec *spec,
                     int code)
{
    bool is_denied = explain_refusal(code) == REFUSAL_PERMISSION;
    if (!is_denied && e->attr.precise_ip) {
        e->attr.precise_ip--;
        return true;
    }
    if (!is_denied || spec->whole_cpus || e->attr.exclude_kernel || !e->event ||
        e->event->has_modifier || e->attr.type == PERF_TYPE_TRACEPOINT)
        return false;
    e->attr.exclude_kernel = e->attr.exclude_hv = 1;
    e->attr.exclude_callchain_kernel = 1;
    e->attr.ksymbol = e->attr.bpf_event = 0;
    e->user_only = true;
    char *name = memory_printf("%s:u", e->name);
    free(e->name);
    e->name = name;
    strbuf_printf(&s->notes,
                  "%s: user mode only: no permission to sample the kernel; run as root, with "
                  "CAP_PERFMON, or run: sudo sysctl kernel.perf_event_paranoid=1 (now %d)\n",
                  e->name, explain_paranoid());
    return true;
}

/* The descriptor of the group's leader at the same place, -1 for an event alone. */
static int group_fd(const struct sampling *s, size_t index, size_t place)
{
    const struct event *e = s->events[index].event;
    if (!e || !e->group)
        return -1;
    for (size_t i = 0; i < index; i++)
        if (s->events[i].event && s->events[i].event->group == e->group)
            return s->events[i].fds[place];
    return -1;
}

static int open_at(struct sampling *s, const struct sampling_spec *spec, size_t index, pid_t task,
                   int cpu, size_t place, struct error *err)
{
    struct sampling_event *e = &s->events[index];
    e->fds[place] = -1;
    int leader = group_fd(s, index, place);
    for (;;) {
        struct perf_event_attr attr = e->attr;
        if (leader >= 0)
            attr.disabled = attr.enable_on_exec = 0; /* members follow their leader */
        int fd = counters_open_raw(&attr, spec->in_cgroup ? spec->cgroup_fd : task, cpu, leader,
                                   spec->in_cgroup ? PERF_FLAG_PID_CGROUP : 0);
        if (fd >= 0) {
            uint64_t id;
            e->fds[place] = fd;
            if (ioctl(fd, PERF_EVENT_IOC_ID, &id) == 0)
                e->ids[e->id_count++] = id;
            return filter_apply(e->event, fd, err);
        }
        /* A thread that has ended, a CPU that went offline. */
        if (fd == -ESRCH || (fd == -ENODEV && s->rings.count))
            return 0;
        if (!give_way(s, e, spec, fd))
            return refuse(e, spec, fd, err);
    }
}

/* All events of one task on one CPU; the CPU's first one gets the ring. */
static int open_place(struct sampling *s, const struct sampling_spec *spec, pid_t task, int cpu,
                      size_t place, int *ring_fd, size_t ring_bytes, struct error *err)
{
    for (size_t i = 0; i < s->event_count; i++) {
        int r = open_at(s, spec, i, task, cpu, place, err);
        if (r < 0)
            return r;
        int fd = s->events[i].fds[place];
        if (fd < 0)
            continue;
        if (*ring_fd < 0) {
            r = rings_add(&s->rings, fd, ring_bytes, err);
            if (r < 0)
                return r;
            *ring_fd = fd;
        } else if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, *ring_fd) < 0) {
            return error_errno(err, -errno, "%s: sharing a buffer", s->events[i].name);
        }
    }
    return 0;
}

static size_t choose_ring_bytes(const struct sampling_spec *spec)
{
    if (spec->ring_bytes)
        return spec->ring_bytes;
    size_t size = spec->stacks != SAMPLING_DWARF                     ? RING_BYTES_DEFAULT
                  : spec->stack_bytes > SAMPLING_STACK_BYTES_DEFAULT ? SAMPLING_RING_BYTES_LONG
                                                                     : RING_BYTES_STACKS;
    while (size > RING_BYTES_DEFAULT && size * spec->cpu_count > RINGS_BYTES_MAX)
        size /= 2;
    return size;
}

static int check(const struct sampling_spec *spec, struct error *err)
{
    uint64_t max_hz = sampling_frequency_max();
    if (spec->frequency_hz > max_hz)
        return error_set(err, -EINVAL,
                         "%" PRIu64
                         " samples per second is more than the kernel allows now (%" PRIu64
                         "); use a lower rate with -F, or run: sudo sysctl "
                         "kernel.perf_event_max_sample_rate=%" PRIu64,
                         spec->frequency_hz, max_hz, spec->frequency_hz);
    for (size_t i = 0; spec->off_cpu && spec->events && i < spec->events->count; i++) {
        const struct perf_event_attr *attr = &spec->events->items[i].attr;
        if (attr->type == PERF_TYPE_SOFTWARE && attr->config == PERF_COUNT_SW_CONTEXT_SWITCHES)
            return error_set(err, -EINVAL,
                             "--off-cpu samples context switches itself: leave out -e %s",
                             spec->events->items[i].name);
    }
    if (spec->stacks == SAMPLING_DWARF && !sampling_can_copy_stacks())
        return error_set(
            err, -ENOTSUP,
            "DWARF call graphs are not supported on this architecture; use --call-graph fp");
    return 0;
}

size_t sampling_ring_bytes_least(const struct sampling *s)
{
    size_t smallest = s->rings.items[0].size;
    for (size_t i = 1; i < s->rings.count; i++)
        if (s->rings.items[i].size < smallest)
            smallest = s->rings.items[i].size;
    return smallest;
}

bool sampling_can_copy_stacks(void)
{
    return user_registers() != 0;
}

/* A default that had to shrink is no news unless it became less than what perf takes. */
static void note_small_rings(struct sampling *s, const struct sampling_spec *spec, size_t wanted)
{
    size_t smallest = sampling_ring_bytes_least(s);
    if (!spec->ring_bytes && wanted > RING_BYTES_DEFAULT)
        wanted = RING_BYTES_DEFAULT;
    if (smallest >= wanted)
        return;
    int64_t limit_kb = 0;
    file_read_i64("/proc/sys/kernel/perf_event_mlock_kb", &limit_kb);
    strbuf_printf(&s->notes,
                  "using buffers of %zu KiB instead of %zu KiB for each CPU: the limit on locked "
                  "memory, kernel.perf_event_mlock_kb, is %" PRId64
                  " KiB for each CPU in all your recordings together\n",
                  smallest >> 10, wanted >> 10, limit_kb);
}

static int open_all(struct sampling *s, const struct sampling_spec *spec, struct error *err)
{
    size_t task_count = spec->whole_cpus ? 1 : spec->task_count;
    size_t ring_bytes = choose_ring_bytes(spec);
    s->fd_count = spec->cpu_count * task_count;
    for (size_t i = 0; i < s->event_count; i++) {
        struct sampling_event *e = &s->events[i];
        e->fds = memory_zalloc(s->fd_count, sizeof(*e->fds));
        e->ids = memory_zalloc(s->fd_count, sizeof(*e->ids));
        memset(e->fds, -1, s->fd_count * sizeof(*e->fds));
    }
    for (size_t cpu = 0; cpu < spec->cpu_count; cpu++) {
        int ring_fd = -1;
        for (size_t task = 0; task < task_count; task++) {
            int r = open_place(s, spec, spec->whole_cpus ? -1 : spec->tasks[task], spec->cpus[cpu],
                               cpu * task_count + task, &ring_fd, ring_bytes, err);
            if (r < 0)
                return r;
        }
    }
    if (!s->rings.count)
        return error_set(err, -ESRCH, "nothing left to sample: the process has ended");
    note_small_rings(s, spec, ring_bytes);
    return 0;
}

/* Software events that happen to a task, not to a clock of their own: see struct rings. */
static bool shares_samples(const struct perf_event_attr *attr)
{
    return attr->type == PERF_TYPE_SOFTWARE && attr->config != PERF_COUNT_SW_CPU_CLOCK &&
           attr->config != PERF_COUNT_SW_TASK_CLOCK && attr->config != PERF_COUNT_SW_DUMMY &&
           attr->config != PERF_COUNT_SW_BPF_OUTPUT;
}

static int compare_ids(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void prepare_mending(struct sampling *s)
{
    struct rings *r = &s->rings;
    size_t candidates = 0;
    if (s->event_count < 2)
        return; /* all samples are the one event's, whatever their ids */
    r->ids = memory_zalloc(s->event_count * s->fd_count, sizeof(*r->ids));
    for (size_t i = 0; i < s->event_count; i++) {
        const struct sampling_event *e = &s->events[i];
        if (e->id_count)
            memcpy(r->ids + r->id_count, e->ids, e->id_count * sizeof(*r->ids));
        r->id_count += e->id_count;
        if (shares_samples(&e->attr) && e->id_count) {
            candidates++;
            r->mend_id = e->ids[0];
        }
    }
    qsort(r->ids, r->id_count, sizeof(*r->ids), compare_ids);
    if (candidates != 1)
        r->mend_id = 0;
}

static int compare_shapes(const void *a, const void *b)
{
    const struct ring_shape *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Where the copies of stacks stand in the samples: see trim.h. */
static void prepare_trimming(struct sampling *s, bool has_ids)
{
    struct rings *r = &s->rings;
    r->shapes = memory_zalloc(has_ids ? s->event_count * s->fd_count : 1, sizeof(*r->shapes));
    for (size_t i = 0; i < s->event_count; i++) {
        const struct sampling_event *e = &s->events[i];
        for (size_t k = 0; k < (has_ids ? e->id_count : i == 0); k++)
            r->shapes[r->shape_count++] = (struct ring_shape){
                has_ids ? e->ids[k] : 0, e->attr.sample_type, e->attr.sample_regs_user};
    }
    qsort(r->shapes, r->shape_count, sizeof(*r->shapes), compare_shapes);
}

int sampling_open(struct sampling *s, const struct sampling_spec *spec, struct error *err)
{
    *s = (struct sampling){0};
    const struct event_list *list;
    int r = check(spec, err);
    if (r < 0)
        return r;
    ask_kernel(&s->kernel);
    r = choose_events(s, spec, &list, err);
    if (r < 0)
        return r;
    prepare(s, spec, list);
    r = define_probes(s, err);
    if (r == 0)
        r = open_all(s, spec, err);
    if (r < 0) {
        sampling_done(s);
        return r;
    }
    bool has_ids = s->event_count > 1 || spec->beside_others;
    prepare_mending(s);
    if (spec->stacks == SAMPLING_DWARF)
        prepare_trimming(s, has_ids);
    /* IDENTIFIER where there is one, ip, pid and tid stand before the time. */
    s->rings.time_offset = has_ids ? 24 : 16;
    for (size_t i = 0; i < s->event_count; i++)
        s->kernel_sampled |= !s->events[i].attr.exclude_kernel;
    return 0;
}

/* Group members follow their leaders, and what runs already takes no harm. */
static int control(const struct sampling *s, unsigned long request)
{
    int code = 0;
    for (size_t i = 0; i < s->event_count; i++)
        for (size_t k = 0; k < s->fd_count; k++)
            if (s->events[i].fds[k] >= 0 && ioctl(s->events[i].fds[k], request, 0) < 0)
                code = -errno;
    return code;
}

int sampling_enable(struct sampling *s, struct error *err)
{
    int r = control(s, PERF_EVENT_IOC_ENABLE);
    return r < 0 ? error_errno(err, r, "starting the events") : 0;
}

void sampling_disable(struct sampling *s)
{
    control(s, PERF_EVENT_IOC_DISABLE);
}

uint64_t sampling_lost(const struct sampling *s)
{
    uint64_t total = 0;
    for (size_t i = 0; s->kernel.has_lost_count && i < s->event_count; i++)
        for (size_t k = 0; k < s->fd_count; k++) {
            uint64_t values[3]; /* value, id, lost */
            int fd = s->events[i].fds[k];
            if (fd >= 0 && read(fd, values, sizeof(values)) == sizeof(values))
                total += values[2];
        }
    return total;
}

struct ring_totals sampling_totals(const struct sampling *parts, size_t count)
{
    struct ring_totals all = parts[0].rings.totals;
    for (size_t i = 1; i < count; i++) {
        const struct ring_totals *t = &parts[i].rings.totals;
        all.samples += t->samples;
        all.lost += t->lost;
        all.throttled += t->throttled;
        if (!all.first_sample_ns ||
            (t->first_sample_ns && t->first_sample_ns < all.first_sample_ns))
            all.first_sample_ns = t->first_sample_ns;
        if (t->last_sample_ns > all.last_sample_ns)
            all.last_sample_ns = t->last_sample_ns;
    }
    return all;
}

struct trim_totals sampling_stack_totals(const struct sampling *parts, size_t count)
{
    struct trim_totals all = {0};
    for (size_t i = 0; i < count; i++) {
        const struct trim_totals *t = &parts[i].rings.stacks;
        all.stacks += t->stacks;
        all.cut += t->cut;
        if (t->bytes_max > all.bytes_max)
            all.bytes_max = t->bytes_max;
    }
    return all;
}

void sampling_done(struct sampling *s)
{
    rings_done(&s->rings);
    for (size_t i = 0; i < s->event_count; i++) {
        struct sampling_event *e = &s->events[i];
        for (size_t k = 0; e->fds && k < s->fd_count; k++)
            fd_closep(&e->fds[k]);
        dynamic_done(&e->dynamic);
        free(e->fds);
        free(e->ids);
        free(e->name);
    }
    free(s->events);
    event_list_done(&s->own_events);
    strbuf_done(&s->notes);
    *s = (struct sampling){0};
}
