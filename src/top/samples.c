/* SPDX-License-Identifier: MIT */
/* The CPUs sampled for `assay top`: see samples.h. */
#include "top/samples.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "counters/online.h"
#include "sampler/synthesize.h"
#include "top/samples_internal.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#define RING_BYTES ((size_t)128 << 10)
#define RING_BYTES_LATER ((size_t)16 << 10)
#define CHAIN_OUTER 8 /* of the kernel's functions, the outermost: the entry of a call is one */

int samples_open(struct samples *s, const struct samples_spec *spec, struct recent *window,
                 struct error *err)
{
    *s = (struct samples){.spec = *spec, .window = window};
    idtable_init(&s->known_table, 8);
    idtable_init(&s->address_table, 10);
    idtable_init(&s->function_table, 10);
    s->symbols = symbols_new(&(struct symbols_options){.thread_count = 1, .no_debuginfod = true});
    s->processes = processes_new(s->symbols);
    s->wall_clock_ns = clock_read_ns(CLOCK_REALTIME);
    s->record_clock_ns = clock_now_ns();
    int r = online_cpus(&s->cpus, &s->cpu_count, err);
    if (r < 0 || spec->whom == SAMPLES_PROCESSES)
        return r;
    return samples_add_tasks(s, NULL, 0, err);
}

void samples_close(struct samples *s)
{
    for (size_t i = 0; i < s->part_count; i++)
        sampling_done(&s->parts[i]);
    for (size_t i = 0; i < s->chunk_count; i++) {
        strbuf_done(&s->chunks[i].tracking);
        strbuf_done(&s->chunks[i].samples);
    }
    s->has_dropped |= s->chunk_count;
    s->part_count = s->chunk_count = s->kept_bytes = 0;
    s->lost = 0;
}

void samples_done(struct samples *s)
{
    samples_close(s);
    processes_free(s->processes);
    symbols_free(s->symbols);
    mapped_files_done(&s->files);
    idtable_done(&s->known_table);
    idtable_done(&s->address_table);
    idtable_done(&s->function_table);
    strbuf_done(&s->records);
    strbuf_done(&s->past);
    strbuf_done(&s->notes);
    free(s->chunks);
    free(s->order);
    free(s->known);
    free(s->addresses);
    free(s->functions);
    free(s->cpus);
    *s = (struct samples){0};
}

int samples_add_tasks(struct samples *s, const pid_t *tasks, size_t count, struct error *err)
{
    CLEANUP(event_list_done) struct event_list events = {0};
    if (s->part_count == SAMPLES_PARTS_MAX)
        return error_set(err, -E2BIG, "too many processes came that nobody followed");
    int r = event_list_parse(&events, "cpu-clock", err);
    if (r < 0)
        return r;
    bool whole_cpus = s->spec.whom != SAMPLES_PROCESSES;
    /* As long as one event on the machine asks for build-ids, the kernel writes them into the maps
     * of all recordings, also of those that did not ask and may fail on them (perf of Linux 6.1);
     * this one may be open for days. */
    struct sampling_spec spec = {
        .events = &events,
        .no_build_ids = true,
        .frequency_hz = s->spec.frequency_hz,
        .stacks = SAMPLING_FRAME_POINTERS,
        .kernel_stacks = true,
        .no_idle = true,
        .whole_cpus = whole_cpus,
        .in_cgroup = s->spec.whom == SAMPLES_CGROUP,
        .cgroup_fd = s->spec.cgroup_fd,
        .beside_others = true, /* every part's records look the same in a file */
        .tasks = tasks,
        .task_count = count,
        .cpus = s->cpus,
        .cpu_count = s->cpu_count,
        .ring_bytes = s->part_count ? RING_BYTES_LATER : RING_BYTES,
    };
    struct sampling *part = &s->parts[s->part_count];
    r = sampling_open(part, &spec, err);
    if (r < 0)
        return r;
    part->events[0].event = NULL; /* the list ends here */
    part->rings.files = &s->files;
    if (!s->part_count)
        strbuf_puts(&s->notes, strbuf_text(&part->notes));
    s->part_count++;
    return sampling_enable(part, err);
}

size_t samples_poll_count(const struct samples *s)
{
    size_t count = 0;
    for (size_t i = 0; i < s->part_count; i++)
        count += s->parts[i].rings.count;
    return count;
}

void samples_poll(const struct samples *s, struct pollfd *polls)
{
    for (size_t i = 0, at = 0; i < s->part_count; i++)
        for (size_t k = 0; k < s->parts[i].rings.count; k++)
            polls[at++] = (struct pollfd){.fd = s->parts[i].rings.items[k].fd, .events = POLLIN};
}

static uint64_t known_hash(const void *items, uint32_t id)
{
    return hash_mix(((const struct samples_process *)items)[id].pid, 0);
}

static struct samples_process *find_process(struct samples *s, uint32_t pid)
{
    uint32_t slot, id;
    IDTABLE_EACH(&s->known_table, hash_mix(pid, 0), slot, id)
    if (s->known[id].pid == pid)
        return &s->known[id];
    id = (uint32_t)s->known_count;
    ARRAY_PUSH(s->known, s->known_count, s->known_capacity) = (struct samples_process){.pid = pid};
    idtable_put(&s->known_table, slot, id);
    if (idtable_is_crowded(&s->known_table))
        idtable_grow(&s->known_table, known_hash, s->known);
    return &s->known[id];
}

/* Reads the maps of a process that was there before it was followed. */
static void meet(struct samples *s, uint32_t pid)
{
    struct samples_process *p = find_process(s, pid);
    if (p->is_known || !pid || pid == UINT32_MAX)
        return;
    p->is_known = true;
    size_t from = s->past.length;
    struct synthesis synthesis = {
        .out = &s->past, .sample_id_size = RECORD_TAIL_BYTES, .files = &s->files};
    synthesize_process(&synthesis, (pid_t)pid);
    for (size_t at = from; at + sizeof(struct perf_event_header) <= s->past.length;) {
        const struct perf_event_header *head = (const void *)(s->past.data + at);
        samples_track(s, head, 0);
        at += head->size;
    }
}

static void track_map(struct samples *s, const struct perf_event_header *head, uint64_t time_ns)
{
    const struct record_mmap2 *m = (const void *)head;
    const char *name = (const char *)(m + 1);
    if (head->size <= sizeof(*m) || !memchr(name, '\0', head->size - sizeof(*m)) ||
        !(m->prot & PROT_EXEC) || m->pid == UINT32_MAX)
        return;
    if (time_ns)
        meet(s, m->pid);
    struct process_map map = {.start = m->start,
                              .length = m->size,
                              .offset = m->offset,
                              .path = name,
                              .time_ns = time_ns};
    if (head->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
        if (m->id.size <= sizeof(m->id.bytes))
            map.build_id = build_id_from_bytes(m->id.bytes, m->id.size);
    } else {
        map.inode = m->inode.number;
        map.dev_major = m->inode.major;
        map.dev_minor = m->inode.minor;
    }
    processes_map(s->processes, (pid_t)m->pid, &map);
}

static void track_comm(struct samples *s, const struct perf_event_header *head)
{
    const struct record_comm *c = (const void *)head;
    const char *name = (const char *)(c + 1);
    if (head->size <= sizeof(*c) || !memchr(name, '\0', head->size - sizeof(*c)))
        return;
    uint32_t thread = recent_thread(s->window, c->pid, c->tid, name);
    recent_name_thread(s->window, thread, name);
    if (!(head->misc & PERF_RECORD_MISC_COMM_EXEC))
        return;
    processes_exec(s->processes, (pid_t)c->pid);
    find_process(s, c->pid)->is_known = true;
}

static void track_task(struct samples *s, const struct perf_event_header *head)
{
    const struct record_task *t = (const void *)head;
    if (head->size < sizeof(*t))
        return;
    if (head->type == PERF_RECORD_EXIT) {
        if (t->pid == t->tid) {
            processes_exit(s->processes, (pid_t)t->pid);
            find_process(s, t->pid)->is_known = false;
        }
        return;
    }
    if (t->pid == t->ppid)
        return; /* a thread */
    meet(s, t->ppid);
    processes_fork(s->processes, (pid_t)t->ppid, (pid_t)t->pid);
    find_process(s, t->pid)->is_known = true;
    if (s->forked)
        s->forked(s->forked_context, t->ppid, t->pid);
}

void samples_track(struct samples *s, const struct perf_event_header *head, uint64_t time_ns)
{
    const struct record_ksymbol *k = (const void *)head;
    switch (head->type) {
    case PERF_RECORD_MMAP2:
        track_map(s, head, time_ns);
        break;
    case PERF_RECORD_COMM:
        track_comm(s, head);
        break;
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
        track_task(s, head);
        break;
    case PERF_RECORD_KSYMBOL:
        if (head->size > sizeof(*k) && memchr(k + 1, '\0', head->size - sizeof(*k)))
            processes_kernel_code(s->processes, k->address, k->size, (const char *)(k + 1),
                                  k->flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER);
        break;
    default:
        break;
    }
}

static uint64_t address_hash(const void *items, uint32_t id)
{
    const struct samples_address *a = (const struct samples_address *)items + id;
    return hash_mix((uintptr_t)a->module, a->address);
}

static uint64_t function_hash(const void *items, uint32_t id)
{
    const struct samples_function *f = (const struct samples_function *)items + id;
    return hash_mix(hash_mix((uintptr_t)f->function, (uintptr_t)f->module), f->is_kernel);
}

/* The symbol of a function, or of an address without one: a row for each would be noise, so those
 * of a binary are one. */
static uint32_t symbol_of(struct samples *s, const struct location *l, const struct function *f,
                          bool is_kernel)
{
    struct samples_function wanted = {
        .function = f, .module = f ? NULL : l->module, .is_kernel = is_kernel};
    uint32_t slot, id;
    IDTABLE_EACH(&s->function_table, function_hash(&wanted, 0), slot, id)
    if (s->functions[id].function == f && s->functions[id].module == wanted.module &&
        s->functions[id].is_kernel == is_kernel)
        return s->functions[id].symbol;
    const struct module *module = f && f->module ? f->module : l->module;
    const char *dso = module ? module_name(module) : is_kernel ? "[kernel]" : "[unknown]";
    char jit[32];
    unsigned pid;
    if (module && sscanf(dso, "perf-%u.map", &pid) == 1) {
        snprintf(jit, sizeof(jit), "[JIT] %u", pid);
        dso = jit;
    }
    wanted.symbol = recent_add_symbol(s->window, f ? f->name : "(no symbol)", dso, is_kernel);
    id = (uint32_t)s->function_count;
    ARRAY_PUSH(s->functions, s->function_count, s->function_capacity) = wanted;
    idtable_put(&s->function_table, slot, id);
    if (idtable_is_crowded(&s->function_table))
        idtable_grow(&s->function_table, function_hash, s->functions);
    return wanted.symbol;
}

static uint32_t name_address(struct samples *s, uint32_t pid, bool is_kernel, uint64_t address,
                             uint64_t time_ns)
{
    struct symbols_request request = {.location = {NULL, address}};
    processes_find(s->processes, (pid_t)pid, is_kernel, address, time_ns, &request.location);
    struct samples_address wanted = {.module = request.location.module,
                                     .address = request.location.module ? request.location.address
                                                                        : is_kernel};
    uint32_t slot, id;
    IDTABLE_EACH(&s->address_table, address_hash(&wanted, 0), slot, id)
    if (s->addresses[id].module == wanted.module && s->addresses[id].address == wanted.address)
        return s->addresses[id].symbol;
    const struct function *f = NULL;
    if (request.location.module) {
        symbols_resolve(s->symbols, &request, 1, SYMBOLS_NAMES);
        f = request.frame_count ? request.frames[request.frame_count - 1].function : NULL;
    }
    wanted.symbol = symbol_of(s, &request.location, f, is_kernel);
    id = (uint32_t)s->address_count;
    ARRAY_PUSH(s->addresses, s->address_count, s->address_capacity) = wanted;
    idtable_put(&s->address_table, slot, id);
    if (idtable_is_crowded(&s->address_table))
        idtable_grow(&s->address_table, address_hash, s->addresses);
    return wanted.symbol;
}

/* The system call that the kernel's functions tell, from the outermost one inwards. */
static uint32_t call_of(struct samples *s, const struct sample_fields *f)
{
    size_t looked_at = 0;
    for (uint64_t i = f->chain_count; i-- > 0 && looked_at < CHAIN_OUTER;) {
        uint64_t address = f->chain[i];
        if (address >= PERF_CONTEXT_MAX)
            continue; /* a mark */
        if (!address_is_kernel(address))
            return WINDOW_NONE;
        looked_at++;
        uint32_t symbol = name_address(s, f->pid, true, i ? address - 1 : address, f->time_ns);
        uint32_t call = s->window->symbols[symbol].call;
        if (call != WINDOW_NONE)
            return call;
    }
    return WINDOW_NONE;
}

static void take_sample(struct samples *s, const struct perf_event_header *head)
{
    struct sample_fields f;
    if (!sample_parse(head, &f))
        return;
    bool is_kernel = (head->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
    if (!is_kernel)
        meet(s, f.pid);
    if (f.time_ns < s->begin_ns)
        return;
    uint32_t thread = recent_thread(s->window, f.pid, f.tid, NULL);
    uint32_t symbol = name_address(s, f.pid, is_kernel, f.ip, f.time_ns);
    recent_add_sample(s->window, thread, symbol, is_kernel ? call_of(s, &f) : WINDOW_NONE,
                      f.period);
    if (!s->first_ns || f.time_ns < s->first_ns)
        s->first_ns = f.time_ns;
    if (f.time_ns > s->last_ns)
        s->last_ns = f.time_ns;
}

static void collect(void *context, const struct perf_event_header *record)
{
    struct samples *s = context;
    ARRAY_PUSH(s->order, s->order_count, s->order_capacity) =
        (struct samples_record){record_time_ns(record), s->records.length};
    strbuf_append(&s->records, (const char *)record, record->size);
}

static int compare_records(const void *left, const void *right)
{
    const struct samples_record *a = left, *b = right;
    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns ? -1 : 1;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

void samples_read(struct samples *s)
{
    uint64_t lost = 0;
    strbuf_clear(&s->records);
    s->order_count = 0;
    for (size_t i = 0; i < s->part_count; i++) {
        rings_each(&s->parts[i].rings, collect, s);
        lost += s->parts[i].rings.totals.lost;
    }
    if (s->order_count)
        qsort(s->order, s->order_count, sizeof(*s->order), compare_records);
    struct samples_chunk chunk = {0};
    for (size_t i = 0; i < s->order_count; i++) {
        const struct perf_event_header *head = (const void *)(s->records.data + s->order[i].offset);
        bool is_sample = head->type == PERF_RECORD_SAMPLE;
        strbuf_append(is_sample ? &chunk.samples : &chunk.tracking, (const char *)head, head->size);
        if (is_sample)
            take_sample(s, head);
        else
            samples_track(s, head, s->order[i].time_ns);
    }
    s->window->intervals[s->window->current].lost += lost - s->lost;
    s->lost = lost;
    samples_keep(s, &chunk);
}
