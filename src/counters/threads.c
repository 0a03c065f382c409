/* SPDX-License-Identifier: MIT */
/* Counts of every thread that a command starts: see threads.h. */
#include "counters/threads.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/strings.h"
#include "counters/explain.h"
#include "counters/online.h"

#include <errno.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define RING_PAGES 64u /* of data, for each CPU: about 3,000 records */

struct measured_thread *measurement_thread(struct measurement *m, pid_t pid, pid_t tid)
{
    for (size_t i = m->thread_count; i-- > 0;)
        if (m->threads[i].tid == tid && m->threads[i].pid == pid)
            return &m->threads[i];
    struct measured_thread *thread = &ARRAY_PUSH(m->threads, m->thread_count, m->thread_capacity);
    *thread = (struct measured_thread){.pid = pid, .tid = tid};
    thread->values = memory_zalloc(m->event_count, sizeof(*thread->values));
    return thread;
}

static int open_column(struct thread_counters *t, size_t slot, struct perf_event_attr attr, int cpu)
{
    attr.disabled = 1;
    attr.enable_on_exec = 1;
    attr.inherit = 1;
    attr.inherit_stat = 1;
    attr.read_format =
        PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID;
    int fd = counters_open_raw(&attr, 0, cpu, -1, 0);
    if (fd < 0)
        return fd;
    t->fds[slot] = fd;
    return ioctl(fd, PERF_EVENT_IOC_ID, &t->ids[slot]) < 0 ? -errno : 0;
}

/* The dummy of a CPU, which also has the ring. */
static int open_dummy(struct thread_counters *t, size_t index, int cpu, struct error *err)
{
    struct perf_event_attr attr = {.size = sizeof(attr),
                                   .type = PERF_TYPE_SOFTWARE,
                                   .config = PERF_COUNT_SW_DUMMY,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1,
                                   .comm = 1,
                                   .task = 1};
    size_t slot = index * t->column_count;
    int r = open_column(t, slot, attr, cpu);
    if (r < 0)
        return error_errno(err, r, "per-thread counts on CPU %d", cpu);
    void *ring = mmap(NULL, t->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, t->fds[slot], 0);
    if (ring == MAP_FAILED)
        return error_errno(err, -errno,
                           "per-thread counts need a ring of %zu kB per CPU; raise "
                           "kernel.perf_event_mlock_kb",
                           t->ring_bytes >> 10);
    t->rings[index] = ring;
    return 0;
}

static int open_event(struct thread_counters *t, size_t index, size_t event, int cpu,
                      struct error *err)
{
    const struct event *e = t->counters->items[event].event;
    struct perf_event_attr attr = t->counters->items[event].attr;
    if (t->into->restricted[event]) {
        attr.exclude_kernel = 1;
        attr.exclude_hv = 1;
    }
    size_t slot = index * t->column_count + 1 + event;
    int r = open_column(t, slot, attr, cpu);
    if (r < 0) {
        struct explain_context context = {0};
        CLEANUP(strbuf_done) struct strbuf why = {0};
        explain_perf_open(&why, e, &context, r);
        return error_set(err, r, "%s: %s", e->name, strbuf_text(&why));
    }
    if (ioctl(t->fds[slot], PERF_EVENT_IOC_SET_OUTPUT, t->fds[index * t->column_count]) < 0)
        return error_errno(err, -errno, "per-thread counts of %s", e->name);
    return 0;
}

static int open_cpu(struct thread_counters *t, size_t index, int cpu, struct error *err)
{
    int r = open_dummy(t, index, cpu, err);
    for (size_t event = 0; event < t->counters->count && r == 0; event++)
        if (!t->into->why[event])
            r = open_event(t, index, event, cpu, err);
    return r;
}

/* Ends a child, to see whether the kernel writes its counts.  The events are not enabled, so
 * nothing is counted by it. */
static int check_kernel(struct thread_counters *t, struct error *err)
{
    pid_t pid = fork();
    if (pid < 0)
        return error_errno(err, -errno, "fork");
    if (pid == 0)
        _exit(0);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    struct measurement *into = t->into;
    struct measurement trial = {.event_count = into->event_count, .why = into->why};
    t->into = &trial;
    thread_counters_drain(t);
    t->into = into;
    bool told = trial.thread_count > 0;
    for (size_t i = 0; i < trial.thread_count; i++)
        free(trial.threads[i].values);
    free(trial.threads);
    return told ? 0
                : error_set(err, -EOPNOTSUPP,
                            "per-thread counts: this kernel does not report a thread's counts when "
                            "it ends (6.1 does not, 6.18 does); count the command as a whole, or "
                            "its threads with -p while they run");
}

int thread_counters_open(struct thread_counters *t, const struct counters *c, struct measurement *m,
                         struct error *err)
{
    CLEANUP(memory_freep) int *cpus = NULL;
    *t = (struct thread_counters){.counters = c, .column_count = 1 + c->count, .into = m};
    int r = online_cpus(&cpus, &t->cpu_count, err);
    if (r < 0)
        return r;
    size_t slots = t->cpu_count * t->column_count;
    t->ring_bytes = (RING_PAGES + 1) * (size_t)sysconf(_SC_PAGESIZE);
    t->fds = memory_alloc(slots * sizeof(int));
    for (size_t i = 0; i < slots; i++)
        t->fds[i] = -1;
    t->ids = memory_zalloc(slots, sizeof(*t->ids));
    t->rings = memory_zalloc(t->cpu_count, sizeof(*t->rings));
    for (size_t i = 0; i < t->cpu_count && r == 0; i++)
        r = open_cpu(t, i, cpus[i], err);
    if (r == 0)
        r = check_kernel(t, err);
    if (r < 0)
        thread_counters_done(t);
    return r;
}

struct read_record {
    struct perf_event_header header;
    uint32_t pid, tid;
    uint64_t value, enabled_ns, running_ns, id;
};

struct comm_record {
    struct perf_event_header header;
    uint32_t pid, tid;
    char name[16];
};

static void take_read(struct thread_counters *t, const struct read_record *record)
{
    struct measured_thread *thread =
        measurement_thread(t->into, (pid_t)record->pid, (pid_t)record->tid);
    size_t slots = t->cpu_count * t->column_count, slot = 0;
    while (slot < slots && (t->fds[slot] < 0 || t->ids[slot] != record->id))
        slot++;
    if (slot == slots)
        return;
    size_t column = slot % t->column_count;
    if (column > 0) {
        thread->values[column - 1].raw += record->value;
        thread->values[column - 1].running_ns += record->running_ns;
        return;
    }
    for (size_t event = 0; event < t->counters->count; event++)
        if (!t->into->why[event])
            thread->values[event].enabled_ns += record->running_ns;
}

static void take_record(struct thread_counters *t, const void *bytes, size_t size)
{
    const struct perf_event_header *header = bytes;
    if (header->type == PERF_RECORD_READ && size >= sizeof(struct read_record)) {
        take_read(t, bytes);
    } else if (header->type == PERF_RECORD_COMM && size >= sizeof(*header) + 16) {
        const struct comm_record *record = bytes;
        size_t most = size - offsetof(struct comm_record, name);
        struct measured_thread *thread =
            measurement_thread(t->into, (pid_t)record->pid, (pid_t)record->tid);
        snprintf(thread->name, sizeof(thread->name), "%.*s", (int)(most > 16 ? 16 : most),
                 record->name);
    } else if (header->type == PERF_RECORD_FORK && size >= sizeof(*header) + 16) {
        /* A thread starts with its parent's name.  The rings are read one after the other, so the
         * thread's own name may have come already. */
        const uint32_t *ids = (const uint32_t *)(header + 1);
        measurement_thread(t->into, (pid_t)ids[0], (pid_t)ids[2]);
        struct measured_thread *parent = measurement_thread(t->into, (pid_t)ids[1], (pid_t)ids[3]);
        struct measured_thread *child = measurement_thread(t->into, (pid_t)ids[0], (pid_t)ids[2]);
        if (!*child->name)
            memcpy(child->name, parent->name, sizeof(child->name));
    } else if (header->type == PERF_RECORD_LOST && size >= sizeof(*header) + 16) {
        t->into->lost_records += ((const uint64_t *)(header + 1))[1];
    }
}

static void drain_ring(struct thread_counters *t, void *ring)
{
    struct perf_event_mmap_page *page = ring;
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE), data_bytes = t->ring_bytes - page_bytes;
    const char *data = (const char *)ring + page_bytes;
    /* Pairs with the kernel's store of data_head after it wrote the records. */
    uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), tail = page->data_tail;
    _Alignas(8) char copy[1024];
    while (tail < head) {
        size_t at = (size_t)(tail % data_bytes);
        const struct perf_event_header *header = (const void *)(data + at);
        size_t size = header->size; /* headers are 8-byte aligned and never split */
        if (size < sizeof(*header))
            break;
        size_t taken = size < sizeof(copy) ? size : sizeof(copy);
        size_t first = data_bytes - at < taken ? data_bytes - at : taken;
        memcpy(copy, data + at, first);
        memcpy(copy + first, data, taken - first);
        take_record(t, copy, taken);
        tail += size;
    }
    /* Pairs with the kernel's load before it overwrites: we are done reading. */
    __atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
}

void thread_counters_drain(struct thread_counters *t)
{
    for (size_t i = 0; i < t->cpu_count; i++)
        if (t->rings[i])
            drain_ring(t, t->rings[i]);
}

void thread_counters_done(struct thread_counters *t)
{
    for (size_t i = 0; t->rings && i < t->cpu_count; i++)
        if (t->rings[i])
            munmap(t->rings[i], t->ring_bytes);
    for (size_t i = 0; t->fds && i < t->cpu_count * t->column_count; i++)
        fd_closep(&t->fds[i]);
    free(t->rings);
    free(t->fds);
    free(t->ids);
    *t = (struct thread_counters){0};
}
