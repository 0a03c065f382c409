/* SPDX-License-Identifier: MIT */
/* Reading what arguments point to: see peek.h.  The programs are put together here, instruction by
 * instruction, so that neither a compiler nor a library is needed to run them. */
#include "live/peek.h"
#include "base/fd.h"
#include "base/memory.h"
#include "counters/counters.h"
#include "counters/online.h"
#include "live/peek_code.h"
#include "machine/tracefs.h"
#include "tracepoints/format.h"

#include <errno.h>
#include <linux/bpf.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define RING_BYTES ((size_t)1 << 20)
#define INITIAL_PID_NAMESPACE 0xEFFFFFFCU /* PROC_PID_INIT_INO */

static int bpf_call(enum bpf_cmd command, union bpf_attr *attr)
{
    long r = syscall(SYS_bpf, command, attr, sizeof(*attr));
    return r < 0 ? -errno : (int)r;
}

static int new_map(enum bpf_map_type type, uint32_t value_size, uint32_t count)
{
    union bpf_attr attr = {
        .map_type = type, .key_size = 4, .value_size = value_size, .max_entries = count};
    return bpf_call(BPF_MAP_CREATE, &attr);
}

static int set_value(int map_fd, uint32_t key, uint32_t value)
{
    union bpf_attr attr = {.map_fd = (uint32_t)map_fd,
                           .key = (uint64_t)(uintptr_t)&key,
                           .value = (uint64_t)(uintptr_t)&value};
    return bpf_call(BPF_MAP_UPDATE_ELEM, &attr);
}

static int load(const struct peek_code *code)
{
    union bpf_attr attr = {.prog_type = BPF_PROG_TYPE_TRACEPOINT,
                           .insns = (uint64_t)(uintptr_t)code->items,
                           .insn_cnt = (uint32_t)code->count,
                           .license = (uint64_t)(uintptr_t) "Dual MIT/GPL"};
    return bpf_call(BPF_PROG_LOAD, &attr);
}

/* A program attached to a tracepoint runs whether or not the event that carries it is enabled. */
static int attach(int program_fd, uint64_t id)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT,
                                   .size = sizeof(attr),
                                   .config = id,
                                   .disabled = 1,
                                   .sample_period = 1};
    int *cpus;
    size_t count;
    int r = online_cpus(&cpus, &count, NULL);
    int fd = r < 0 ? r : counters_open_raw(&attr, -1, cpus[0], -1, 0);
    if (r == 0)
        free(cpus);
    if (fd >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_BPF, program_fd) < 0) {
        r = -errno;
        close(fd);
        return r;
    }
    return fd;
}

static int open_rings(struct peek *p, struct error *err)
{
    int *cpus;
    size_t count;
    int r = online_cpus(&cpus, &count, err);
    if (r < 0)
        return r;
    p->ring_fds = memory_zalloc(count, sizeof(*p->ring_fds));
    p->rings.time_offset = -1;
    for (size_t i = 0; r == 0 && i < count; i++) {
        struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                       .size = sizeof(attr),
                                       .config = PERF_COUNT_SW_BPF_OUTPUT,
                                       .sample_type =
                                           PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW,
                                       .sample_period = 1,
                                       .use_clockid = 1,
                                       .clockid = CLOCK_MONOTONIC};
        int fd = counters_open_raw(&attr, -1, cpus[i], -1, 0);
        if (fd < 0) {
            r = error_errno(err, fd, "opening a buffer for eBPF");
            break;
        }
        p->ring_fds[p->ring_count++] = fd;
        r = rings_add(&p->rings, fd, RING_BYTES, err);
        if (r == 0) {
            int code = set_value(p->output_fd, (uint32_t)cpus[i], (uint32_t)fd);
            r = code < 0 ? error_errno(err, code, "connecting a buffer to eBPF") : 0;
        }
    }
    free(cpus);
    return r;
}

static int make_maps(struct peek *p)
{
    long cpus = sysconf(_SC_NPROCESSORS_CONF);
    p->followed_fd = new_map(BPF_MAP_TYPE_LRU_HASH, 4, 65536);
    p->shapes_fd = new_map(BPF_MAP_TYPE_ARRAY, 4, PEEK_NUMBERS);
    p->buffer_fd = new_map(BPF_MAP_TYPE_PERCPU_ARRAY, sizeof(struct peek_output), 1);
    p->output_fd = new_map(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, (uint32_t)(cpus > 0 ? cpus : 1));
    p->pending_fd = new_map(BPF_MAP_TYPE_LRU_HASH, sizeof(struct peek_pending), 16384);
    if (p->pending_fd < 0)
        return p->pending_fd;
    if (p->followed_fd < 0)
        return p->followed_fd;
    if (p->shapes_fd < 0)
        return p->shapes_fd;
    return p->buffer_fd < 0 ? p->buffer_fd : p->output_fd < 0 ? p->output_fd : 0;
}

static int start_program(struct peek *p, unsigned number, struct peek_code *code, uint64_t event)
{
    p->programs[number] = load(code);
    code->count = 0;
    p->events[number] =
        p->programs[number] < 0 ? p->programs[number] : attach(p->programs[number], event);
    return p->events[number] < 0 ? p->events[number] : 0;
}

static int start_programs(struct peek *p, bool everywhere, struct error *err)
{
    uint64_t enter_id, exit_id;
    struct tp_format fork = {0};
    CLEANUP(fd_closep) int events_fd = tracefs_open_events(err);
    if (events_fd < 0)
        return events_fd;
    int r = tracefs_event_id(events_fd, "raw_syscalls", "sys_enter", &enter_id, err);
    if (r == 0)
        r = tracefs_event_id(events_fd, "raw_syscalls", "sys_exit", &exit_id, err);
    if (r == 0)
        r = tp_format_read(&fork, events_fd, "sched", "sched_process_fork", err);
    if (r < 0)
        return r;
    struct peek_maps maps = {p->followed_fd, p->shapes_fd, p->buffer_fd, p->output_fd,
                             p->pending_fd};
    const struct tp_field *child = tp_format_field(&fork, "child_pid");
    struct peek_code code = {0};
    peek_code_enter(&code, &maps, everywhere);
    r = start_program(p, PEEK_ENTER, &code, enter_id);
    if (r == 0) {
        peek_code_exit(&code, &maps);
        r = start_program(p, PEEK_EXIT, &code, exit_id);
    }
    if (r == 0 && !everywhere && child) {
        peek_code_fork(&code, &maps, (int16_t)child->offset);
        r = start_program(p, PEEK_FORK, &code, fork.id);
    }
    peek_code_done(&code);
    tp_format_done(&fork);
    return r < 0 ? error_errno(err, r, "loading an eBPF program") : 0;
}

/* Elsewhere the numbers of threads that eBPF sees are not those that we see. */
static bool sees_all_numbers(void)
{
    struct stat st;
    return stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == INITIAL_PID_NAMESPACE;
}

int peek_open(struct peek *p, const pid_t *threads, size_t count, bool everywhere,
              struct error *err)
{
    *p = (struct peek){.followed_fd = -1,
                       .shapes_fd = -1,
                       .buffer_fd = -1,
                       .output_fd = -1,
                       .pending_fd = -1,
                       .programs = {-1, -1, -1},
                       .events = {-1, -1, -1},
                       .is_open = true};
    if (!everywhere && !sees_all_numbers())
        return error_set(err, -ENOTSUP, "this is a container with process IDs of its own");
    int r = make_maps(p);
    if (r < 0)
        return error_errno(err, r, "creating an eBPF map");
    r = open_rings(p, err);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = set_value(p->followed_fd, (uint32_t)threads[i], 1);
    return r < 0 ? r : start_programs(p, everywhere, err);
}

bool peek_shape_of(const struct call_shape *shape, struct peek_shape *ret)
{
    size_t used = 0;
    *ret = (struct peek_shape){.argument = {UINT8_MAX, UINT8_MAX}};
    for (size_t i = 0; shape && i < CALL_ARGUMENTS && used < PEEK_SLOTS; i++) {
        uint8_t kind = shape->kinds[i];
        if (kind != CALL_PATH && kind != CALL_BYTES && kind != CALL_SOCKADDR &&
            kind != CALL_TIMESPEC)
            continue;
        ret->argument[used] = (uint8_t)i;
        ret->kind[used++] = kind;
    }
    return used;
}

int peek_want(struct peek *p, uint32_t number, const struct peek_shape *shape, struct error *err)
{
    uint32_t packed = 0;
    for (unsigned i = 0; i < PEEK_SLOTS; i++)
        if (shape->argument[i] != UINT8_MAX)
            packed |= (uint32_t)(shape->argument[i] + 1) << 16 * i | (uint32_t)shape->kind[i]
                                                                         << (16 * i + 8);
    int r = number < PEEK_NUMBERS ? set_value(p->shapes_fd, number, packed) : 0;
    return r < 0 ? error_errno(err, r, "filling an eBPF map") : 0;
}

/* pid, tid, time, the length of the rest, and what the program wrote. */
static void take_record(void *context, const struct perf_event_header *head)
{
    struct peek *p = context;
    struct {
        uint32_t pid, tid;
        uint64_t time_ns;
        uint32_t size;
    } __attribute__((packed)) fixed;
    struct peek_output output;
    const unsigned char *at = (const unsigned char *)(head + 1);
    if (head->type != PERF_RECORD_SAMPLE ||
        head->size < sizeof(*head) + sizeof(fixed) + sizeof(output))
        return;
    memcpy(&fixed, at, sizeof(fixed));
    memcpy(&output, at + sizeof(fixed), sizeof(output));
    struct peek_record *r = memory_zalloc(1, sizeof(*r));
    r->time_ns = fixed.time_ns;
    r->tid = fixed.tid;
    r->number = (uint32_t)output.number;
    for (unsigned i = 0; i < PEEK_SLOTS; i++) {
        uint32_t size = output.sizes[i] <= CALL_TEXT_MAX ? output.sizes[i] : CALL_TEXT_MAX;
        memcpy(r->memory[i].bytes, output.bytes[i], size);
        r->memory[i].size = (uint16_t)size;
        r->memory[i].is_cut = size == CALL_TEXT_MAX;
    }
    p->take(p->context, r);
}

void peek_drain(struct peek *p)
{
    if (p->is_open)
        rings_each(&p->rings, take_record, p);
}

void peek_done(struct peek *p)
{
    if (!p->is_open)
        return;
    for (unsigned i = 0; i < PEEK_PROGRAMS; i++) {
        fd_closep(&p->events[i]);
        fd_closep(&p->programs[i]);
    }
    rings_done(&p->rings);
    for (size_t i = 0; i < p->ring_count; i++)
        fd_closep(&p->ring_fds[i]);
    free(p->ring_fds);
    fd_closep(&p->followed_fd);
    fd_closep(&p->shapes_fd);
    fd_closep(&p->buffer_fd);
    fd_closep(&p->output_fd);
    fd_closep(&p->pending_fd);
    *p = (struct peek){0};
}
