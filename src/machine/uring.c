/* SPDX-License-Identifier: MIT */
/* The smallest ring: see uring.h. */
#include "machine/uring.h"
#include "base/clock.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WAIT_NS (NS_PER_S / 2)

static int map_rings(struct uring *u, const struct io_uring_params *p)
{
    size_t sq_size = p->sq_off.array + p->sq_entries * sizeof(uint32_t);
    size_t cq_size = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
    u->ring_size = sq_size > cq_size ? sq_size : cq_size;
    u->entry_size = p->sq_entries * sizeof(struct io_uring_sqe);
    u->ring_map = mmap(NULL, u->ring_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, u->fd,
                       IORING_OFF_SQ_RING);
    if (u->ring_map == MAP_FAILED)
        return -errno;
    u->entry_map = mmap(NULL, u->entry_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                        u->fd, IORING_OFF_SQES);
    if (u->entry_map == MAP_FAILED) {
        int code = -errno;
        munmap(u->ring_map, u->ring_size);
        return code;
    }
    char *ring = u->ring_map;
    u->sq_head = (uint32_t *)(ring + p->sq_off.head);
    u->sq_tail = (uint32_t *)(ring + p->sq_off.tail);
    u->sq_mask = (uint32_t *)(ring + p->sq_off.ring_mask);
    u->sq_array = (uint32_t *)(ring + p->sq_off.array);
    u->cq_head = (uint32_t *)(ring + p->cq_off.head);
    u->cq_tail = (uint32_t *)(ring + p->cq_off.tail);
    u->cq_mask = (uint32_t *)(ring + p->cq_off.ring_mask);
    u->completions = (struct io_uring_cqe *)(ring + p->cq_off.cqes);
    u->entries = u->entry_map;
    return 0;
}

int uring_open(struct uring *u, unsigned entry_count, uint32_t flags)
{
    struct io_uring_params p = {.flags = flags};
    if (flags & IORING_SETUP_SQPOLL)
        p.sq_thread_idle = 1;
    long fd = syscall(SYS_io_uring_setup, entry_count, &p);
    if (fd < 0)
        return -errno;
    *u =
        (struct uring){.fd = (int)fd, .features = p.features, .polls = flags & IORING_SETUP_SQPOLL};
    /* Kernels before 5.4 map the two rings apart; they are too old for any use here. */
    int r = p.features & IORING_FEAT_SINGLE_MMAP ? map_rings(u, &p) : -EOPNOTSUPP;
    if (r < 0)
        close(u->fd);
    return r;
}

void uring_done(struct uring *u)
{
    munmap(u->ring_map, u->ring_size);
    munmap(u->entry_map, u->entry_size);
    close(u->fd);
}

int uring_submit(struct uring *u, const struct io_uring_sqe *entry)
{
    uint32_t tail = *u->sq_tail, index = tail & *u->sq_mask;
    u->entries[index] = *entry;
    u->sq_array[index] = index;
    /* Pairs with the kernel's acquire of the tail before it reads the entry. */
    __atomic_store_n(u->sq_tail, tail + 1, __ATOMIC_RELEASE);
    unsigned flags = u->polls ? IORING_ENTER_SQ_WAKEUP : 0;
    long r = syscall(SYS_io_uring_enter, u->fd, 1, 0, flags, NULL, 0);
    return r < 0 ? -errno : r == 1 ? 0 : -EIO;
}

/* Lets the kernel work until something completed or the time is over. */
static int wait_in_kernel(struct uring *u, uint64_t left_ns)
{
    struct __kernel_timespec left = {.tv_sec = (long long)(left_ns / NS_PER_S),
                                     .tv_nsec = (long long)(left_ns % NS_PER_S)};
    struct io_uring_getevents_arg argument = {.ts = (uint64_t)(uintptr_t)&left};
    long r = syscall(SYS_io_uring_enter, u->fd, 0, 1, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG,
                     &argument, sizeof(argument));
    return r < 0 && errno != EINTR ? -errno : 0;
}

int uring_wait(struct uring *u, struct io_uring_cqe *ret_completion)
{
    uint64_t deadline_ns = clock_now_ns() + WAIT_NS;
    for (;;) {
        uint32_t head = *u->cq_head;
        /* Pairs with the kernel's release of the tail after it wrote the completion. */
        if (head != __atomic_load_n(u->cq_tail, __ATOMIC_ACQUIRE)) {
            *ret_completion = u->completions[head & *u->cq_mask];
            /* Pairs with the kernel's acquire before it writes into this place again. */
            __atomic_store_n(u->cq_head, head + 1, __ATOMIC_RELEASE);
            return 0;
        }
        uint64_t now_ns = clock_now_ns();
        if (now_ns >= deadline_ns)
            return -ETIME;
        int r = wait_in_kernel(u, deadline_ns - now_ns);
        if (r < 0)
            return r;
    }
}

int uring_register(const struct uring *u, unsigned opcode, void *argument, unsigned count)
{
    long r = syscall(SYS_io_uring_register, u->fd, opcode, argument, count);
    return r < 0 ? -errno : 0;
}
