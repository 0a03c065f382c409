/* SPDX-License-Identifier: MIT */
/*
 * eBPF, by the raw system call: a program that adds one to a number in a map is loaded, attached to
 * a tracepoint and hit; the report says how far that went.  And BTF, the kernel's description of
 * its own types, which portable programs need.
 */
#include "base/fd.h"
#include "base/memory.h"
#include "machine/perf_try.h"
#include "machine/probe.h"
#include "machine/tracefs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define BTF_MAGIC 0xeb9f

static int bpf_call(enum bpf_cmd command, union bpf_attr *attr)
{
    long r = syscall(SYS_bpf, command, attr, sizeof(*attr));
    return r < 0 ? -errno : (int)r;
}

static int new_map(void)
{
    union bpf_attr attr = {
        .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 8, .max_entries = 1};
    return bpf_call(BPF_MAP_CREATE, &attr);
}

static int map_value(int map_fd, uint64_t *ret_value)
{
    uint32_t key = 0;
    union bpf_attr attr = {.map_fd = (uint32_t)map_fd,
                           .key = (uint64_t)(uintptr_t)&key,
                           .value = (uint64_t)(uintptr_t)ret_value};
    return bpf_call(BPF_MAP_LOOKUP_ELEM, &attr);
}

static int load(enum bpf_prog_type type, const struct bpf_insn *code, size_t count)
{
    union bpf_attr attr = {.prog_type = type,
                           .insns = (uint64_t)(uintptr_t)code,
                           .insn_cnt = (uint32_t)count,
                           .license = (uint64_t)(uintptr_t) "Dual MIT/GPL"};
    return bpf_call(BPF_PROG_LOAD, &attr);
}

/* return 0; */
static int load_empty(enum bpf_prog_type type)
{
    const struct bpf_insn code[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
        {.code = BPF_JMP | BPF_EXIT},
    };
    return load(type, code, ARRAY_COUNT(code));
}

/* uint64_t *value = map_lookup(map, &(uint32_t){0}); if (value) ++*value, atomically; return 0; */
static int load_counting(enum bpf_prog_type type, int map_fd)
{
    /* BPF_K and BPF_IMM, the constant operands, are 0 and left out. */
    const struct bpf_insn code[] = {
        {.code = BPF_ST | BPF_MEM | BPF_W, .dst_reg = BPF_REG_10, .off = -4},
        {.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_2, .src_reg = BPF_REG_10},
        {.code = BPF_ALU64 | BPF_ADD, .dst_reg = BPF_REG_2, .imm = -4},
        {.code = BPF_LD | BPF_DW,
         .dst_reg = BPF_REG_1,
         .src_reg = BPF_PSEUDO_MAP_FD,
         .imm = map_fd},
        {0}, /* the second half of the 64-bit constant */
        {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_map_lookup_elem},
        {.code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = BPF_REG_0, .off = 2},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_1, .imm = 1},
        {.code = BPF_STX | BPF_ATOMIC | BPF_DW,
         .dst_reg = BPF_REG_0,
         .src_reg = BPF_REG_1,
         .imm = BPF_ADD},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
        {.code = BPF_JMP | BPF_EXIT},
    };
    return load(type, code, ARRAY_COUNT(code));
}

/* How far the trial went, and where it stopped. */
struct bpf_trial {
    const char *step; /* what failed; NULL when all went well */
    int code;
    bool at_tracefs; /* it was the tracing folder that stopped it */
    uint64_t hits;
};

static struct bpf_trial failed(const char *step, int code)
{
    return (struct bpf_trial){.step = step, .code = code};
}

static struct bpf_trial try_program(enum machine_depth depth)
{
    CLEANUP(fd_closep) int map_fd = new_map();
    if (map_fd < 0)
        return failed("creating a map", map_fd);
    CLEANUP(fd_closep) int program_fd = load_counting(BPF_PROG_TYPE_TRACEPOINT, map_fd);
    if (program_fd < 0)
        return failed("loading a tracepoint program", program_fd);
    if (depth == MACHINE_QUICK)
        return (struct bpf_trial){0};
    CLEANUP(fd_closep) int events_fd = tracefs_open_events(NULL);
    uint64_t id;
    if (events_fd < 0)
        return (struct bpf_trial){"finding a tracepoint", events_fd, true, 0};
    int r = tracefs_event_id(events_fd, "raw_syscalls", "sys_enter", &id, NULL);
    if (r < 0)
        r = tracefs_event_id(events_fd, "sched", "sched_switch", &id, NULL);
    if (r < 0)
        return (struct bpf_trial){"finding a tracepoint", r, true, 0};
    struct perf_event_attr attr = perf_try_attr(PERF_TYPE_TRACEPOINT, id);
    attr.exclude_kernel = 0;
    CLEANUP(fd_closep) int event_fd = perf_try_open(&attr, -1);
    if (event_fd < 0)
        return failed("opening a tracepoint", event_fd);
    if (ioctl(event_fd, PERF_EVENT_IOC_SET_BPF, program_fd) < 0)
        return failed("attaching to a tracepoint", -errno);
    if (ioctl(event_fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
        return failed("switching the tracepoint on", -errno);
    usleep(1);
    struct bpf_trial trial = {0};
    r = map_value(map_fd, &trial.hits);
    if (r < 0)
        return failed("reading the map", r);
    if (!trial.hits)
        return failed("running: the program was never called", -ENODATA);
    return trial;
}

static void bpf_remedy(struct machine *m, struct finding *f, const struct bpf_trial *trial)
{
    int code = trial->code;
    if (trial->at_tracefs && code != -ENOENT)
        finding_remedy(m, f, "run as root, or run: %s", tracefs_open_command());
    else if (code == -ENOSYS)
        finding_remedy(m, f, "a kernel with CONFIG_BPF_SYSCALL");
    else if (code == -ENOENT)
        finding_remedy(m, f, "a kernel with CONFIG_BPF_EVENTS and tracepoints");
    else if (code == -ENOMEM)
        finding_remedy(m, f, "ulimit -l unlimited");
    else if (m->is_root)
        finding_remedy(m, f,
                       "in a container: --cap-add BPF --cap-add PERFMON --security-opt "
                       "seccomp=unconfined");
    else
        finding_remedy(
            m, f,
            "run as root, or run: sudo setcap cap_bpf,cap_perfmon+ep \"$(command -v assay)\"");
}

static void probe_programs(struct machine *m, enum machine_depth depth)
{
    struct bpf_trial trial = try_program(depth);
    if (!trial.step) {
        struct finding *f =
            finding_add(m, "ebpf", "eBPF", FINDING_YES, "a tracepoint program %s",
                        trial.hits ? "was loaded, attached and ran" : "loads; it was not attached");
        f->is_assumed = !trial.hits;
        return;
    }
    CLEANUP(fd_closep) int filter_fd = load_empty(BPF_PROG_TYPE_SOCKET_FILTER);
    struct finding *f = finding_add(
        m, "ebpf", "eBPF", filter_fd >= 0 ? FINDING_LIMITED : FINDING_NO, "stopped at %s (%s)%s",
        trial.step, strerror(-trial.code), filter_fd >= 0 ? "; socket filters load" : "");
    bpf_remedy(m, f, &trial);
}

static void probe_btf(struct machine *m)
{
    const char *path = "/sys/kernel/btf/vmlinux";
    CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    uint16_t magic = 0;
    struct stat st;
    if (fd >= 0 && fstat(fd, &st) == 0 && read(fd, &magic, sizeof(magic)) == sizeof(magic) &&
        magic == BTF_MAGIC) {
        char size[32];
        struct finding *f = finding_add(m, "btf", "kernel types (BTF)", FINDING_YES, "%s, %s", path,
                                        format_bytes((double)st.st_size, size, sizeof(size)));
        finding_value(f, st.st_size, "bytes");
        return;
    }
    struct finding *f = finding_add(m, "btf", "kernel types (BTF)", FINDING_NO, "%s %s", path,
                                    fd < 0 ? strerror(errno) : "is not in a known format");
    finding_remedy(m, f, "a kernel with CONFIG_DEBUG_INFO_BTF");
}

void probe_bpf(struct machine *m, enum machine_depth depth)
{
    probe_programs(m, depth);
    probe_btf(m);
}
