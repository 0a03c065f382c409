/* SPDX-License-Identifier: MIT */
/*
 * Reading a recording into a profile.  Records come in the order of their times; those that say
 * what lies where go to the address spaces, those that name threads to the tasks, and each sample
 * becomes one more in its cell.
 */
#include "profile/load.h"
#include "base/memory.h"
#include "profile/feed.h"
#include "profile/fields.h"
#include "sampler/offcpu.h"
#include "symbols/portable.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define PROGRESS_EVERY 4096 /* records */

struct loader {
    struct profile *profile;
    struct perfdata *reader;
    struct processes *processes;
    struct chain_builder chain;
    struct feed feed;
    struct offcpu *offcpu;
    struct wakings wakings;
    uint32_t waker;           /* of the wait that is added: as in struct profile */
    struct idtable build_ids; /* by file name, into the reader's list */
    size_t build_id_count;
    uint32_t *event_numbers; /* of the reader's events in the profile */
    size_t known_events, event_number_capacity;
    bool *event_passes; /* by number in the profile: the filter's answer */
    size_t event_capacity;
    uint64_t time_from_ns, time_to_ns;
    bool has_first;
    uint32_t preempted_event; /* number of the event for time that threads were runnable */
    const char *kernel_symbol;
    uint64_t kernel_symbol_address;
    uint64_t records;
};

/* An event's weights count nanoseconds. */
static bool counts_time(const struct perf_event_attr *attr)
{
    return attr->type == PERF_TYPE_SOFTWARE &&
           (attr->config == PERF_COUNT_SW_CPU_CLOCK || attr->config == PERF_COUNT_SW_TASK_CLOCK);
}

static bool has_callers(const struct perf_event_attr *attr)
{
    return (attr->sample_type & (PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_STACK_USER)) ||
           (attr->branch_sample_type & PERF_SAMPLE_BRANCH_CALL_STACK);
}

static void add_event(struct loader *l, const char *name, const struct perf_event_attr *attr,
                      bool is_off_cpu)
{
    struct profile *p = l->profile;
    l->event_passes = memory_grow(l->event_passes, &l->event_capacity, p->event_count + 1,
                                  sizeof(*l->event_passes));
    l->event_passes[p->event_count] = name_filter_match(&p->options.filter.events, name);
    ARRAY_PUSH(p->events, p->event_count, p->event_capacity) = (struct profile_event){
        .name = arena_strdup(&p->arena, name),
        .is_time = is_off_cpu || counts_time(attr),
        .is_off_cpu = is_off_cpu,
        .has_callers = has_callers(attr),
        .user_only = attr->exclude_kernel,
        .is_tracepoint = attr->type == PERF_TYPE_TRACEPOINT,
        .tracepoint_id = attr->config,
        .is_fixed_period = !attr->freq,
        .period = attr->freq ? 0 : attr->sample_period,
        .frequency_hz = attr->freq ? attr->sample_freq : 0,
    };
}

/* Takes over the events that the reader knows by now: all at once in a file, one by one in a pipe.
 */
static void sync_events(struct loader *l)
{
    for (; l->known_events < perfdata_event_count(l->reader); l->known_events++) {
        const struct perfdata_event *e = perfdata_event(l->reader, l->known_events);
        bool is_off_cpu = offcpu_is_event(e);
        l->event_numbers = memory_grow(l->event_numbers, &l->event_number_capacity,
                                       l->known_events + 1, sizeof(*l->event_numbers));
        l->event_numbers[l->known_events] = (uint32_t)l->profile->event_count;
        add_event(l, e->name, &e->attr, is_off_cpu);
        wakings_find(&l->wakings, l->reader, e);
        if (!is_off_cpu || l->offcpu)
            continue;
        l->offcpu = offcpu_new();
        l->preempted_event = (uint32_t)l->profile->event_count;
        add_event(l, OFFCPU_EVENT_NAME ":preempted", &e->attr, true);
    }
}

/* The profile's number of the reader's event. */
static uint32_t event_number(struct loader *l, const struct perfdata_event *event, uint16_t misc)
{
    if (offcpu_is_event(event) && (misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT))
        return l->preempted_event;
    return l->event_numbers[event->index];
}

static bool number_listed(const uint32_t *list, size_t count, uint32_t number)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == number)
            return true;
    return count == 0;
}

static bool cpu_listed(const struct profile_filter *f, uint32_t cpu)
{
    for (size_t i = 0; i < f->cpu_count; i++)
        if ((uint32_t)f->cpus[i] == cpu)
            return true;
    return f->cpu_count == 0;
}

static bool time_passes(struct loader *l, uint64_t time_ns)
{
    const struct profile_filter *f = &l->profile->options.filter;
    if (!f->has_time)
        return true;
    if (f->time_is_relative && !l->has_first) {
        l->time_from_ns = time_ns + f->time_from_ns;
        l->time_to_ns = f->time_to_ns == UINT64_MAX ? UINT64_MAX : time_ns + f->time_to_ns;
    }
    l->has_first = true;
    return time_ns >= l->time_from_ns && time_ns <= l->time_to_ns;
}

static bool sample_passes(struct loader *l, const struct perfdata_record *r, uint32_t event)
{
    const struct profile_filter *f = &l->profile->options.filter;
    return time_passes(l, r->time_ns) && l->event_passes[event] && cpu_listed(f, r->cpu) &&
           number_listed(f->pids, f->pid_count, r->pid) &&
           number_listed(f->tids, f->tid_count, r->tid);
}

static void add_sample(struct loader *l, const struct perfdata_record *r)
{
    struct profile *p = l->profile;
    if (!r->event)
        return;
    uint32_t event_index = event_number(l, r->event, r->misc);
    if (!sample_passes(l, r, event_index))
        return;
    uint64_t weight = r->sample.period;
    struct stack_sample sample = {
        .task = tasks_current(&p->tasks, r->pid, r->tid),
        .event = event_index,
        .cpu = p->options.with_cpus ? r->cpu : STACK_ANY_CPU,
        .weight = weight,
    };
    feed_add(&l->feed, r, &sample);
    if (p->options.with_wakers)
        ARRAY_PUSH(p->wakers, p->waker_count, p->waker_capacity) = l->waker;
    if (p->options.with_fields)
        profile_fields_keep(p, r);
    struct profile_event *event = &p->events[event_index];
    event->samples++;
    event->weight += weight;
    event->weight_squares += (double)weight * (double)weight;
    if (r->time_ns && (!p->first_ns || r->time_ns < p->first_ns))
        p->first_ns = r->time_ns;
    if (r->time_ns > p->last_ns)
        p->last_ns = r->time_ns;
}

static uint64_t build_id_hash(const void *items, uint32_t id)
{
    return hash_string(((const struct perfdata_build_id *)items)[id].filename);
}

/* The build-id that the file's table has for a path. */
static struct build_id listed_build_id(struct loader *l, const char *path)
{
    size_t count;
    const struct perfdata_build_id *list = perfdata_build_ids(l->reader, &count);
    uint32_t slot, id;
    for (; l->build_id_count < count; l->build_id_count++) {
        IDTABLE_EACH(&l->build_ids, hash_string(list[l->build_id_count].filename), slot, id);
        idtable_put(&l->build_ids, slot, (uint32_t)l->build_id_count);
        if (idtable_is_crowded(&l->build_ids))
            idtable_grow(&l->build_ids, build_id_hash, list);
    }
    IDTABLE_EACH(&l->build_ids, hash_string(path), slot, id)
    if (strcmp(list[id].filename, path) == 0)
        return build_id_from_bytes(list[id].id, list[id].size);
    return (struct build_id){0};
}

/* "[kernel.kallsyms]_text" says where the kernel was. */
static void add_kernel_map(struct loader *l, const struct perfdata_mmap *m)
{
    const char *bracket = strchr(m->filename, ']');
    if (l->kernel_symbol || !str_has_prefix(m->filename, "[kernel.kallsyms]") || !bracket[1])
        return;
    l->kernel_symbol = arena_strdup(&l->profile->arena, bracket + 1);
    l->kernel_symbol_address = m->page_offset;
}

static void add_map(struct loader *l, const struct perfdata_record *r)
{
    const struct perfdata_mmap *m = &r->mmap;
    uint16_t mode = r->misc & PERF_RECORD_MISC_CPUMODE_MASK;
    if (mode == PERF_RECORD_MISC_KERNEL) {
        add_kernel_map(l, m);
        return;
    }
    if (!(m->prot & PROT_EXEC) ||
        (mode != PERF_RECORD_MISC_USER && mode != PERF_RECORD_MISC_CPUMODE_UNKNOWN))
        return;
    struct process_map map = {
        .start = m->start,
        .length = m->size,
        .offset = m->page_offset,
        .path = m->filename,
        .build_id = m->build_id_size ? build_id_from_bytes(m->build_id, m->build_id_size)
                                     : listed_build_id(l, m->filename),
        .inode = m->inode,
        .dev_major = m->major,
        .dev_minor = m->minor,
        .time_ns = r->time_ns,
    };
    processes_map(l->processes, (pid_t)m->pid, &map);
    const char *slash = strrchr(m->filename, '/');
    chain_space_changed(&l->chain, m->pid, str_has_prefix(slash ? slash + 1 : "", "jit-"));
}

static void add_fork(struct loader *l, const struct perfdata_record *r)
{
    const struct perfdata_task *t = &r->task;
    tasks_fork(&l->profile->tasks, t->pid, t->tid, t->ptid);
    if (t->pid == t->ppid)
        return;
    chain_space_changed(&l->chain, t->pid, false);
    if (r->misc & PERF_RECORD_MISC_FORK_EXEC) /* made by perf for a process that ran already */
        processes_exec(l->processes, (pid_t)t->pid);
    else
        processes_fork(l->processes, (pid_t)t->ppid, (pid_t)t->pid);
}

/* What the samples before it must not see. */
static bool changes_maps(const struct perfdata_record *r)
{
    switch (r->type) {
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
    case PERF_RECORD_COMM:
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
    case PERF_RECORD_KSYMBOL:
        return true;
    default:
        return false;
    }
}

static void add_record(struct loader *l, const struct perfdata_record *r)
{
    if (changes_maps(r))
        feed_drain(&l->feed);
    switch (r->type) {
    case PERF_RECORD_SAMPLE:
        add_sample(l, r);
        break;
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
        add_map(l, r);
        break;
    case PERF_RECORD_COMM:
        tasks_name(&l->profile->tasks, r->comm.pid, r->comm.tid, r->comm.comm);
        if (r->comm.is_exec) {
            processes_exec(l->processes, (pid_t)r->comm.pid);
            chain_space_changed(&l->chain, r->comm.pid, false);
        }
        break;
    case PERF_RECORD_FORK:
        add_fork(l, r);
        break;
    case PERF_RECORD_EXIT:
        if (tasks_exit(&l->profile->tasks, r->task.pid, r->task.tid))
            processes_exit(l->processes, (pid_t)r->task.pid);
        break;
    case PERF_RECORD_KSYMBOL:
        processes_kernel_code(l->processes, r->ksymbol.addr, r->ksymbol.size, r->ksymbol.name,
                              r->ksymbol.flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER);
        chain_kernel_changed(&l->chain);
        break;
    default:
        break;
    }
}

static int resolve_time(struct loader *l, struct error *err)
{
    const struct profile_filter *f = &l->profile->options.filter;
    const struct perfdata_info *info = perfdata_info(l->reader);
    l->time_from_ns = f->time_from_ns;
    l->time_to_ns = f->time_to_ns;
    if (!f->has_time || !f->time_is_part)
        return 0;
    if (info->last_sample_ns <= info->first_sample_ns)
        return error_set(err, -EINVAL,
                         "the file does not say when its first and last sample were taken: give "
                         "the range as +START,+END in seconds instead of percent");
    double length = (double)(info->last_sample_ns - info->first_sample_ns);
    l->time_from_ns = info->first_sample_ns + (uint64_t)(length * f->part_from);
    l->time_to_ns = info->first_sample_ns + (uint64_t)(length * f->part_to);
    return 0;
}

/* Shows a record to whoever asked for all of them. */
static void show_record(struct loader *l, const struct perfdata_record *r)
{
    const struct profile_options *o = &l->profile->options;
    const uint64_t *addresses = NULL;
    size_t count = 0;
    if (!o->each)
        return;
    if (r->type == PERF_RECORD_SAMPLE && r->sample.user_stack_size)
        addresses = chain_unwind(&l->chain, r, &count);
    o->each(o->each_context, l->reader, r, addresses, count);
}

/* A wake-up that was recorded for the waits: it ends one, and is no sample itself. */
static bool take_waking(struct loader *l, const struct perfdata_record *r)
{
    struct perfdata_record wait;
    struct waking waking;
    if (l->profile->options.with_fields || !wakings_read(&l->wakings, r, &waking))
        return false;
    if (offcpu_wake(l->offcpu, waking.target, r->time_ns, &wait)) {
        l->waker = waking.is_by_thread ? tasks_current(&l->profile->tasks, r->pid, r->tid)
                                       : PROFILE_WAKER_INTERRUPT;
        add_sample(l, &wait);
        l->waker = PROFILE_WAKER_UNKNOWN;
    }
    return true;
}

static int read_records(struct loader *l, struct error *err)
{
    struct perfdata_record r, wait;
    const struct profile_options *o = &l->profile->options;
    int got;
    while ((got = perfdata_next(l->reader, &r, err)) > 0) {
        if (o->progress && ++l->records % PROGRESS_EVERY == 0) {
            uint64_t done, total;
            perfdata_position(l->reader, &done, &total);
            o->progress(o->progress_context, done, total);
        }
        if (perfdata_event_count(l->reader) != l->known_events)
            sync_events(l);
        show_record(l, &r);
        if (!l->offcpu) {
            add_record(l, &r);
            continue;
        }
        if (take_waking(l, &r))
            continue;
        switch (offcpu_feed(l->offcpu, &r, &wait)) {
        case OFFCPU_PASS:
            add_record(l, &r);
            break;
        case OFFCPU_WAIT:
            add_sample(l, &wait);
            break;
        case OFFCPU_HELD:
            break;
        }
    }
    while (l->offcpu && offcpu_flush(l->offcpu, &wait))
        add_sample(l, &wait);
    return got;
}

static const char *copy(struct profile *p, const char *text)
{
    return text ? arena_strdup(&p->arena, text) : NULL;
}

/* What the file says about itself; complete only at its end when it is a pipe. */
static void keep_info(struct loader *l)
{
    struct profile *p = l->profile;
    const struct perfdata_info *info = perfdata_info(l->reader);
    p->losses = *perfdata_losses(l->reader);
    p->trouble = copy(p, perfdata_trouble(l->reader));
    p->hostname = copy(p, info->hostname);
    p->os_release = copy(p, info->os_release);
    p->version = copy(p, info->version);
    p->arch = copy(p, info->arch);
    p->cpu_description = copy(p, info->cpu_description);
    if (info->has_clock_data) {
        p->clock_wall_ns = info->clock_wall_ns;
        p->clock_ns = info->clock_ns;
    }
    if (info->command_line_count) {
        CLEANUP(strbuf_done) struct strbuf words = {0};
        strbuf_put_command(&words, (char *const *)info->command_line);
        p->command_line = copy(p, strbuf_text(&words));
    }
    if (p->options.with_fields)
        profile_fields_formats(p, l->reader);
    struct build_id kernel = listed_build_id(l, "[kernel.kallsyms]");
    symbols_set_kernel(p->symbols, &kernel, l->kernel_symbol, l->kernel_symbol_address);
}

/* The names that a portable recording brings, before the first of them is looked for. */
static void take_names(struct loader *l)
{
    struct profile *p = l->profile;
    size_t size;
    const void *bytes = perfdata_feature(l->reader, PERFDATA_FEATURE_NAMES, &size);
    if (!bytes || !size)
        return;
    p->names = memory_alloc(size);
    memcpy(p->names, bytes, size);
    symbols_take_portable(p->symbols, p->names, size);
}

static int load(struct loader *l, struct error *err)
{
    struct profile *p = l->profile;
    take_names(l);
    sync_events(l);
    int r = resolve_time(l, err);
    if (r < 0)
        return r;
    chain_init(&l->chain, p, l->processes, perfdata_info(l->reader)->arch);
    feed_start(&l->feed, &l->chain, !p->options.each);
    r = read_records(l, err);
    feed_stop(&l->feed);
    /* A file that ends in the middle of a record gives what it holds. */
    keep_info(l);
    stacks_finish(&p->stacks);
    return r;
}

int profile_load(struct profile **ret_profile, const char *path,
                 const struct profile_options *options, struct error *err)
{
    struct profile *p = memory_zalloc(1, sizeof(*p));
    p->options = *options;
    p->path = memory_strdup(path);
    tasks_init(&p->tasks);
    stacks_init(&p->stacks);
    calls_init(&p->calls);
    struct loader l = {.profile = p, .waker = PROFILE_WAKER_UNKNOWN};
    idtable_init(&l.build_ids, 6);
    enum given_kind kind = given_kind_of(path);
    int r = kind ? profile_take_given(p, kind, err) : perfdata_open(&l.reader, path, NULL, err);
    if (r == 0 && !kind) {
        p->symbols = symbols_new(&p->options.symbols);
        l.processes = processes_new(p->symbols);
        r = load(&l, err);
    }
    chain_done(&l.chain);
    offcpu_free(l.offcpu);
    processes_free(l.processes);
    perfdata_free(l.reader);
    idtable_done(&l.build_ids);
    free(l.event_passes);
    free(l.event_numbers);
    if (r < 0) {
        profile_free(p);
        return r;
    }
    *ret_profile = p;
    return 0;
}
