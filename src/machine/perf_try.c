/* SPDX-License-Identifier: MIT */
/* Small trials with perf_event_open: see perf_try.h. */
#include "machine/perf_try.h"
#include "base/fd.h"
#include "base/memory.h"
#include "machine/probe.h"

#include <errno.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define RING_DATA_PAGES 8

struct perf_event_attr perf_try_attr(uint32_t type, uint64_t config)
{
    return (struct perf_event_attr){
        .type = type,
        .size = sizeof(struct perf_event_attr),
        .config = config,
        .disabled = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
    };
}

int perf_try_open(struct perf_event_attr *attr, int group_fd)
{
    long fd = syscall(SYS_perf_event_open, attr, 0, -1, group_fd, PERF_FLAG_FD_CLOEXEC);
    return fd < 0 ? -errno : (int)fd;
}

int perf_try_open_cpu(struct perf_event_attr *attr, int cpu)
{
    long fd = syscall(SYS_perf_event_open, attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    return fd < 0 ? -errno : (int)fd;
}

bool perf_try_read(int fd, struct perf_reading *ret_reading)
{
    uint64_t values[3];
    if (read(fd, values, sizeof(values)) != (ssize_t)sizeof(values))
        return false;
    *ret_reading =
        (struct perf_reading){.value = values[0], .enabled_ns = values[1], .running_ns = values[2]};
    return true;
}

int perf_try_count(struct perf_event_attr *attr, perf_work_fn *work, void *context,
                   struct perf_reading *ret_reading)
{
    CLEANUP(fd_closep) int fd = perf_try_open(attr, -1);
    if (fd < 0)
        return fd;
    if (ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
        return -errno;
    work(context);
    ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
    return perf_try_read(fd, ret_reading) ? 0 : -EIO;
}

int perf_pmu_type(const char *name)
{
    char path[256];
    int64_t type;
    snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type", name);
    return file_read_i64(path, &type) && type >= 0 && type <= INT32_MAX ? (int)type : -ENOENT;
}

void perf_work_spin(void *context)
{
    (void)context;
    uint32_t state = 1;
    for (unsigned i = 0; i < 100000; i++) {
        state = state * 1664525u + 1013904223u;
        __asm__ volatile("" : "+r"(state));
    }
}

/* Copies bytes out of the ring, which wraps around. */
static void ring_copy(const char *data, size_t size, uint64_t at, void *to, size_t length)
{
    for (size_t i = 0; i < length; i++)
        ((char *)to)[i] = data[(at + i) % size];
}

static void count_samples(const struct perf_event_mmap_page *page, size_t page_bytes,
                          bool has_branches, struct perf_samples *samples)
{
    const char *data = (const char *)page + page_bytes;
    size_t size = RING_DATA_PAGES * page_bytes;
    /* Pairs with the kernel's release of data_head after it wrote the records. */
    uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
    for (uint64_t at = page->data_tail; at < head;) {
        struct perf_event_header header;
        ring_copy(data, size, at, &header, sizeof(header));
        if (header.size < sizeof(header))
            break;
        if (header.type == PERF_RECORD_SAMPLE) {
            samples->count++;
            samples->exact_count += (header.misc & PERF_RECORD_MISC_EXACT_IP) != 0;
            /* The sample is its address, then the number of branches. */
            uint64_t branches = 0;
            if (has_branches && header.size >= sizeof(header) + 16)
                ring_copy(data, size, at + sizeof(header) + 8, &branches, sizeof(branches));
            samples->branch_count += branches;
        }
        at += header.size;
    }
}

int perf_try_sample(struct perf_event_attr *attr, perf_work_fn *work, void *context,
                    struct perf_samples *ret_samples)
{
    CLEANUP(fd_closep) int fd = perf_try_open(attr, -1);
    if (fd < 0)
        return fd;
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    size_t size = (1 + RING_DATA_PAGES) * page_bytes;
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        return -errno;
    int r = ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0 ? -errno : 0;
    if (r == 0) {
        work(context);
        ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
        *ret_samples = (struct perf_samples){0};
        bool has_branches = attr->sample_type & PERF_SAMPLE_BRANCH_STACK;
        count_samples(page, page_bytes, has_branches, ret_samples);
    }
    munmap(page, size);
    return r;
}

const char *perf_refusal_remedy(struct machine *m, int code)
{
    int64_t paranoid = 0;
    if (code == -ENOSYS)
        return "a kernel with CONFIG_PERF_EVENTS";
    if (code != -EACCES && code != -EPERM)
        return "";
    if (!file_read_i64("/proc/sys/kernel/perf_event_paranoid", &paranoid))
        return "a kernel with CONFIG_PERF_EVENTS";
    if (m->is_root || paranoid < 2)
        return "a seccomp filter or missing capability: start the container with --cap-add PERFMON "
               "--security-opt seccomp=unconfined";
    return "sudo sysctl kernel.perf_event_paranoid=1";
}
