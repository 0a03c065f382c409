/* SPDX-License-Identifier: MIT */
/* Counting: see counters.h. */
#include "counters/counters.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/strings.h"
#include "counters/accounting.h"
#include "counters/explain.h"
#include "counters/filter.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

int counters_open_raw(struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd,
                      unsigned long flags)
{
    long fd = syscall(SYS_perf_event_open, attr, pid, cpu, group_fd, flags | PERF_FLAG_FD_CLOEXEC);
    return fd < 0 ? -errno : (int)fd;
}

/* Switches and migrations happen in the kernel: counted in user mode only, they are always 0. */
static bool lives_in_kernel(const struct event *e)
{
    return e->attr.type == PERF_TYPE_SOFTWARE &&
           (e->attr.config == PERF_COUNT_SW_CONTEXT_SWITCHES ||
            e->attr.config == PERF_COUNT_SW_CPU_MIGRATIONS ||
            e->attr.config == PERF_COUNT_SW_CGROUP_SWITCHES);
}

/* The kernel's clock events pass over exclude_kernel: they count all of the task's time. */
static bool counts_all_modes(const struct event *e)
{
    return e->attr.type == PERF_TYPE_SOFTWARE && (e->attr.config == PERF_COUNT_SW_TASK_CLOCK ||
                                                  e->attr.config == PERF_COUNT_SW_CPU_CLOCK);
}

static bool may_drop_kernel(const struct counter *item, const struct counter_target *target)
{
    const struct event *e = item->event;
    return !item->restricted && !e->has_modifier && !lives_in_kernel(e) &&
           e->attr.type != PERF_TYPE_TRACEPOINT && target->kind != TARGET_CPUS &&
           target->kind != TARGET_CGROUP;
}

/* The thread, CPU and flags of one entity of the target. */
static void place(const struct counter_target *target, size_t entity, pid_t *ret_pid, int *ret_cpu,
                  unsigned long *ret_flags)
{
    *ret_flags = 0;
    switch (target->kind) {
    case TARGET_CHILDREN:
        *ret_pid = 0;
        *ret_cpu = -1;
        break;
    case TARGET_TASKS:
        *ret_pid = target->tasks[entity];
        *ret_cpu = -1;
        break;
    case TARGET_CPUS:
        *ret_pid = -1;
        *ret_cpu = target->cpus[entity];
        break;
    case TARGET_CGROUP:
        *ret_pid = target->cgroup_fd;
        *ret_cpu = target->cpus[entity];
        *ret_flags = PERF_FLAG_PID_CGROUP;
        break;
    }
}

static bool is_inherited(const struct counter_target *target)
{
    bool by_task = target->kind == TARGET_CHILDREN || target->kind == TARGET_TASKS;
    return by_task && !target->no_inherit;
}

static struct perf_event_attr make_attr(const struct counter *item,
                                        const struct counter_target *target, bool is_leader)
{
    struct perf_event_attr attr = item->attr;
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    attr.inherit = is_inherited(target);
    bool on_exec = target->kind == TARGET_CHILDREN || target->start_on_exec;
    /* A member of a group runs when its leader runs, so only leaders wait. */
    if (is_leader) {
        attr.disabled = on_exec || target->start_paused;
        attr.enable_on_exec = on_exec;
    }
    if (item->restricted) {
        attr.exclude_kernel = 1;
        attr.exclude_hv = 1;
    }
    return attr;
}

static bool is_opened(const struct counter *item)
{
    return !item->why && !item->accounted;
}

/* The index of the group's leader, the first of its events that is counted; the event's own where
 * it is that, or in no group. */
static size_t leader_of(const struct counters *c, size_t index)
{
    unsigned group = c->items[index].event->group;
    for (size_t i = 0; group && i < index; i++)
        if (c->items[i].event->group == group && is_opened(&c->items[i]))
            return i;
    return index;
}

/* Opens one event for one entity; *ret_gone says that the entity is not there any more. */
static int open_one(struct counters *c, size_t index, size_t entity,
                    const struct counter_target *target, bool *ret_gone, struct error *err)
{
    struct counter *item = &c->items[index];
    size_t leader = leader_of(c, index);
    bool grouped = leader != index;
    int group_fd = grouped ? c->items[leader].fds[entity] : -1, cpu = -1, fd;
    pid_t pid = 0;
    unsigned long flags = 0;
    *ret_gone = grouped && group_fd < 0;
    if (*ret_gone)
        return 0;
    place(target, entity, &pid, &cpu, &flags);
    for (;;) {
        struct perf_event_attr attr = make_attr(item, target, !grouped);
        fd = counters_open_raw(&attr, pid, cpu, group_fd, flags);
        if ((fd != -EACCES && fd != -EPERM) || !may_drop_kernel(item, target))
            break;
        item->restricted = true;
    }
    if (fd >= 0) {
        item->user_only = item->restricted && !counts_all_modes(item->event);
        item->fds[entity] = fd;
        return filter_apply(item->event, fd, err);
    }
    struct explain_context context = {.systemwide = target->kind == TARGET_CPUS ||
                                                    target->kind == TARGET_CGROUP,
                                      .grouped = item->event->group != 0};
    enum refusal refusal = explain_refusal(fd);
    CLEANUP(strbuf_done) struct strbuf why = {0};
    explain_perf_open(&why, item->event, &context, fd);
    *ret_gone = refusal == REFUSAL_GONE;
    if (*ret_gone)
        return 0;
    bool refused = refusal == REFUSAL_PERMISSION || fd == -ENOSYS;
    item->accounted = refused && target->may_account && accounting_has(item->event);
    if (item->accounted)
        return 0;
    /* Where nothing may be counted, what the kernel keeps anyway is better than nothing. */
    bool skip = refusal == REFUSAL_NOT_SUPPORTED ||
                (refused && target->may_account && explain_is_closed()) ||
                (refusal == REFUSAL_PERMISSION && lives_in_kernel(item->event) &&
                 target->kind != TARGET_CPUS && target->kind != TARGET_CGROUP);
    if (!skip)
        return error_set(err, fd, "%s: %s", item->event->name, strbuf_text(&why));
    item->why = memory_strdup(strbuf_text(&why));
    return 0;
}

static void close_item(struct counter *item, size_t entity_count)
{
    for (size_t entity = 0; entity < entity_count; entity++)
        fd_closep(&item->fds[entity]);
}

static int open_event(struct counters *c, size_t index, const struct counter_target *target,
                      size_t *ret_opened, struct error *err)
{
    struct counter *item = &c->items[index];
    int r = 0;
    if (item->event->probe_target && is_inherited(target))
        r = dynamic_define(&item->dynamic, item->event, &item->attr, err);
    if (r < 0)
        return error_wrap(err, r, "%s", item->event->name);
    for (size_t entity = 0; entity < c->entity_count; entity++) {
        bool gone;
        r = open_one(c, index, entity, target, &gone, err);
        if (r < 0)
            return r;
        if (!is_opened(item)) {
            close_item(item, c->entity_count);
            return 0;
        }
        *ret_opened += !gone;
    }
    return 0;
}

/* Whether the kernel keeps the event with those of the CPU's PMU, which before Linux 6.2 are
 * apart from all others. */
static bool lives_in_pmu(const struct event *e)
{
    switch (e->attr.type) {
    case PERF_TYPE_SOFTWARE:
    case PERF_TYPE_TRACEPOINT:
    case PERF_TYPE_BREAKPOINT:
        return false;
    default:
        return !e->probe_target;
    }
}

static int open_guard(struct perf_event_attr attr, int *ret_fd, struct error *err)
{
    attr.disabled = 1;
    attr.enable_on_exec = attr.inherit = attr.pinned = attr.exclusive = 0;
    int fd = counters_open_raw(&attr, 0, -1, -1, 0);
    if (fd < 0)
        return error_errno(err, fd, "opening the guard event");
    *ret_fd = fd;
    return 0;
}

static int open_guards(struct counters *c, const struct counter_target *target, struct error *err)
{
    struct perf_event_attr dummy = {.size = sizeof(dummy),
                                    .type = PERF_TYPE_SOFTWARE,
                                    .config = PERF_COUNT_SW_DUMMY,
                                    .exclude_kernel = 1,
                                    .exclude_hv = 1};
    int r = open_guard(dummy, &c->guard_fds[0], err);
    for (size_t i = 0; i < c->count && r == 0; i++)
        if (is_opened(&c->items[i]) && lives_in_pmu(c->items[i].event))
            return open_guard(make_attr(&c->items[i], target, true), &c->guard_fds[1], err);
    return r;
}

int counters_open(struct counters *c, const struct event_list *list,
                  const struct counter_target *target, struct error *err)
{
    *c = (struct counters){.count = list->count, .guard_fds = {-1, -1}};
    c->entity_count = target->kind == TARGET_CHILDREN ? 1
                      : target->kind == TARGET_TASKS  ? target->task_count
                                                      : target->cpu_count;
    c->items = memory_zalloc(c->count, sizeof(*c->items));
    for (size_t i = 0; i < c->count; i++) {
        c->items[i].event = &list->items[i];
        c->items[i].attr = list->items[i].attr;
        c->items[i].fds = memory_alloc(c->entity_count * sizeof(int));
        for (size_t entity = 0; entity < c->entity_count; entity++)
            c->items[i].fds[entity] = -1;
    }
    int r = 0;
    size_t opened = 0, supported = 0, accounted = 0;
    for (size_t i = 0; i < c->count && r == 0; i++) {
        r = open_event(c, i, target, &opened, err);
        supported += is_opened(&c->items[i]);
        accounted += c->items[i].accounted;
    }
    if (r == 0 && c->count && !supported && !accounted && target->may_account &&
        explain_is_closed())
        r = error_set(err, -EACCES, "%s: %s", c->items[0].event->name, c->items[0].why);
    if (r == 0 && target->kind == TARGET_CHILDREN && supported)
        r = open_guards(c, target, err);
    if (r == 0 && supported && !opened)
        r = error_set(err, -ESRCH, "nothing left to count: the process has ended");
    if (r < 0)
        counters_done(c);
    return r;
}

static int control(struct counters *c, unsigned long request, struct error *err)
{
    for (size_t i = 0; i < c->count; i++)
        for (size_t entity = 0; entity < c->entity_count; entity++)
            if (c->items[i].fds[entity] >= 0 && ioctl(c->items[i].fds[entity], request, 0) < 0)
                return error_errno(err, -errno, "%s: turning the counter on or off",
                                   c->items[i].event->name);
    return 0;
}

int counters_enable(struct counters *c, struct error *err)
{
    return control(c, PERF_EVENT_IOC_ENABLE, err);
}

int counters_disable(struct counters *c, struct error *err)
{
    return control(c, PERF_EVENT_IOC_DISABLE, err);
}

static int read_one(const struct counter *item, int fd, struct counter_value *v, struct error *err)
{
    uint64_t values[3];
    ssize_t got = read(fd, values, sizeof(values));
    /* A pinned event that could not keep its counter reads as end of file, and what it counted
     * before is lost. */
    if (got == 0) {
        v->failed = true;
        return 0;
    }
    if (got != sizeof(values))
        return error_errno(err, got < 0 ? -errno : -EIO, "reading %s", item->event->name);
    v->raw += values[0];
    v->enabled_ns += values[1];
    v->running_ns += values[2];
    return 0;
}

/* Adds what one event counted for one entity.  Its group's times are the leader's, which was read
 * before: `times` has them. */
static int add_value(const struct counters *c, size_t index, size_t entity,
                     struct counter_value *times, struct counter_value *sum, struct error *err)
{
    const struct counter *item = &c->items[index];
    size_t leader = leader_of(c, index);
    struct counter_value one = {0};
    int r = item->fds[entity] < 0 ? 0 : read_one(item, item->fds[entity], &one, err);
    if (r < 0 || item->fds[entity] < 0)
        return r;
    if (leader == index)
        times[index] = one;
    sum->raw += one.raw;
    sum->enabled_ns += times[leader].enabled_ns;
    sum->running_ns += times[leader].running_ns;
    sum->failed |= one.failed || times[leader].failed;
    return 0;
}

static int read_entities(const struct counters *c, size_t first, size_t end,
                         struct counter_value *values, struct error *err)
{
    CLEANUP(memory_freep)
    struct counter_value *times = memory_zalloc(c->count + 1, sizeof(*times));
    memset(values, 0, c->count * sizeof(*values));
    for (size_t entity = first; entity < end; entity++)
        for (size_t i = 0; i < c->count; i++) {
            int r = add_value(c, i, entity, times, &values[i], err);
            if (r < 0)
                return r;
        }
    return 0;
}

int counters_read_entity(const struct counters *c, size_t entity, struct counter_value *values,
                         struct error *err)
{
    return read_entities(c, entity, entity + 1, values, err);
}

int counters_read(const struct counters *c, struct counter_value *values, struct error *err)
{
    return read_entities(c, 0, c->entity_count, values, err);
}

void counters_done(struct counters *c)
{
    /* Members first: closing a leader would dissolve its group. */
    for (size_t i = c->count; i-- > 0;) {
        close_item(&c->items[i], c->entity_count);
        dynamic_done(&c->items[i].dynamic);
        free(c->items[i].fds);
        free(c->items[i].why);
    }
    free(c->items);
    fd_closep(&c->guard_fds[0]);
    fd_closep(&c->guard_fds[1]);
    *c = (struct counters){.guard_fds = {-1, -1}};
}

double counter_scaled(const struct counter_value *v)
{
    if (v->running_ns == 0 || v->running_ns >= v->enabled_ns)
        return (double)v->raw;
    return (double)v->raw * ((double)v->enabled_ns / (double)v->running_ns);
}

struct counter_value counter_difference(const struct counter_value *late,
                                        const struct counter_value *early)
{
    if (late->failed)
        return (struct counter_value){.failed = true};
    return (struct counter_value){.raw = late->raw - early->raw,
                                  .enabled_ns = late->enabled_ns - early->enabled_ns,
                                  .running_ns = late->running_ns - early->running_ns};
}
