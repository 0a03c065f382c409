/* SPDX-License-Identifier: MIT */
/* io_uring: whether rings can be made, which operations and modes this kernel has, and whether
 * buffer rings, multishot receive and zero-copy send work when they are used. */
#include "base/fd.h"
#include "base/memory.h"
#include "machine/probe.h"
#include "machine/uring.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define BUFFER_COUNT 4
#define BUFFER_BYTES 64
#define BUFFER_GROUP 7

static int try_nop(struct uring *u)
{
    struct io_uring_sqe entry = {.opcode = IORING_OP_NOP, .user_data = 42};
    struct io_uring_cqe done;
    int r = uring_submit(u, &entry);
    if (r == 0)
        r = uring_wait(u, &done);
    return r < 0 ? r : done.user_data == 42 ? done.res : -EIO;
}

struct opcodes {
    size_t known, supported;
    bool send_zc;
};

static struct opcodes count_opcodes(const struct uring *u)
{
    struct opcodes o = {0};
    size_t size = sizeof(struct io_uring_probe) + 256 * sizeof(struct io_uring_probe_op);
    CLEANUP(memory_freep) struct io_uring_probe *probe = memory_zalloc(1, size);
    if (uring_register(u, IORING_REGISTER_PROBE, probe, 256) < 0)
        return o;
    o.known = (size_t)probe->last_op + 1;
    for (size_t i = 0; i < probe->ops_len; i++) {
        bool supported = probe->ops[i].flags & IO_URING_OP_SUPPORTED;
        o.supported += supported;
        o.send_zc |= supported && probe->ops[i].op == IORING_OP_SEND_ZC;
    }
    return o;
}

static bool try_mode(uint32_t flags)
{
    struct uring u = {0};
    if (uring_open(&u, 4, flags) < 0)
        return false;
    bool works = try_nop(&u) == 0;
    uring_done(&u);
    return works;
}

/* A ring of buffers that the kernel takes from as data arrives, in pages of its own. */
static struct io_uring_buf_ring *add_buffer_ring(struct uring *u, size_t size)
{
    char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return NULL;
    struct io_uring_buf_reg description = {.ring_addr = (uint64_t)(uintptr_t)pages,
                                           .ring_entries = BUFFER_COUNT,
                                           .bgid = BUFFER_GROUP};
    if (uring_register(u, IORING_REGISTER_PBUF_RING, &description, 1) < 0) {
        munmap(pages, size);
        return NULL;
    }
    struct io_uring_buf_ring *ring = (void *)pages;
    struct io_uring_buf *buffers = (void *)pages;
    for (uint16_t i = 0; i < BUFFER_COUNT; i++) {
        char *bytes = pages + size / 2 + (size_t)i * BUFFER_BYTES;
        buffers[i].addr = (uint64_t)(uintptr_t)bytes;
        buffers[i].len = BUFFER_BYTES;
        buffers[i].bid = i;
    }
    /* Pairs with the kernel's acquire of the tail before it takes a buffer. */
    __atomic_store_n(&ring->tail, (uint16_t)BUFFER_COUNT, __ATOMIC_RELEASE);
    return ring;
}

/* One receive that serves two messages, each into a buffer that the kernel chose. */
static bool try_multishot(struct uring *u)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) < 0)
        return false;
    struct io_uring_sqe entry = {.opcode = IORING_OP_RECV,
                                 .fd = pair[0],
                                 .flags = IOSQE_BUFFER_SELECT,
                                 .ioprio = IORING_RECV_MULTISHOT,
                                 .buf_group = BUFFER_GROUP};
    bool works = uring_submit(u, &entry) == 0;
    for (int i = 0; i < 2 && works; i++) {
        struct io_uring_cqe done;
        works = write(pair[1], "x", 1) == 1 && uring_wait(u, &done) == 0 && done.res == 1 &&
                (done.flags & IORING_CQE_F_BUFFER) && (done.flags & IORING_CQE_F_MORE);
    }
    close(pair[0]);
    close(pair[1]);
    return works;
}

/* Sends one datagram to ourselves: a result, and later word that the memory is free again.  0 or a
 * negative errno; -ENETDOWN when there is no loopback to send through. */
static int try_send_zc(struct uring *u)
{
    static char byte[64];
    CLEANUP(fd_closep) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof(address);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) < 0 ||
        connect(fd, (struct sockaddr *)&address, length) < 0 || write(fd, byte, 1) != 1 ||
        recv(fd, byte, 1, MSG_DONTWAIT) != 1)
        return -ENETDOWN;
    struct io_uring_sqe entry = {.opcode = IORING_OP_SEND_ZC,
                                 .fd = fd,
                                 .addr = (uint64_t)(uintptr_t)byte,
                                 .len = sizeof(byte)};
    struct io_uring_cqe sent, freed;
    int r = uring_submit(u, &entry);
    if (r == 0)
        r = uring_wait(u, &sent);
    if (r < 0 || sent.res != sizeof(byte))
        return r < 0 ? r : -EIO;
    char received[sizeof(byte)];
    if (recv(fd, received, sizeof(received), MSG_DONTWAIT) != (ssize_t)sizeof(received))
        return -EIO;
    if (!(sent.flags & IORING_CQE_F_MORE) || uring_wait(u, &freed) < 0)
        return -EIO;
    return freed.flags & IORING_CQE_F_NOTIF ? 0 : -EIO;
}

static void report_refusal(struct machine *m, int code)
{
    int64_t disabled = 0;
    bool by_sysctl = file_read_i64("/proc/sys/kernel/io_uring_disabled", &disabled) && disabled > 0;
    struct finding *f = finding_add(m, "io-uring", "io_uring", FINDING_NO,
                                    by_sysctl ? "%s (io_uring_disabled is %lld)" : "%s",
                                    strerror(-code), (long long)disabled);
    if (by_sysctl)
        finding_remedy(m, f, "sudo sysctl kernel.io_uring_disabled=0");
    else if (code == -ENOSYS)
        finding_remedy(m, f,
                       "a kernel with CONFIG_IO_URING, or a container with --security-opt "
                       "seccomp=unconfined");
    else if (code == -ENOMEM)
        finding_remedy(m, f, "ulimit -l unlimited");
    else if (code == -EPERM || code == -EACCES)
        finding_remedy(m, f,
                       "a seccomp filter refuses it: start the container with "
                       "--security-opt seccomp=unconfined");
}

void probe_uring(struct machine *m, enum machine_depth depth)
{
    (void)depth;
    struct uring u = {0};
    int r = uring_open(&u, 8, 0);
    if (r < 0) {
        report_refusal(m, r);
        return;
    }
    r = try_nop(&u);
    struct opcodes codes = count_opcodes(&u);
    int send_zc = codes.send_zc ? try_send_zc(&u) : -EINVAL;
    struct {
        const char *name;
        bool works;
    } features[] = {
        {"DEFER_TASKRUN with SINGLE_ISSUER",
         try_mode(IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SINGLE_ISSUER)},
        {"SQPOLL", try_mode(IORING_SETUP_SQPOLL)},
        {"buffer rings", false},
        {"multishot receive", false},
        {send_zc == -ENETDOWN ? "send_zc (not tested: loopback is down)" : "send_zc",
         send_zc == 0 || send_zc == -ENETDOWN},
    };
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    struct io_uring_buf_ring *ring = add_buffer_ring(&u, page_bytes);
    features[2].works = ring != NULL;
    features[3].works = ring && try_multishot(&u);
    uring_done(&u);
    if (ring)
        munmap(ring, page_bytes);
    CLEANUP(strbuf_done) struct strbuf has = {0}, lacks = {0};
    for (size_t i = 0; i < ARRAY_COUNT(features); i++) {
        struct strbuf *list = features[i].works ? &has : &lacks;
        strbuf_printf(list, "%s%s", list->length ? ", " : "", features[i].name);
    }
    struct finding *f =
        finding_add(m, "io-uring", "io_uring",
                    r < 0          ? FINDING_NO
                    : lacks.length ? FINDING_LIMITED
                                   : FINDING_YES,
                    "%zu of %zu operations, features 0x%x%s%s%s%s", codes.supported, codes.known,
                    u.features, has.length ? "; works: " : "", strbuf_text(&has),
                    lacks.length ? "; not: " : "", strbuf_text(&lacks));
    finding_value(f, (int64_t)codes.supported, "operations");
    if (lacks.length)
        finding_remedy(m, f, "a newer kernel (6.1 has all of these)");
}
