/* SPDX-License-Identifier: MIT */
/*
 * The floors of assay-vr: a bare UDP ping-pong of 64 bytes between two processes, and a bare write
 * with fdatasync by several processes at once.  No protocol, no checksum.
 *
 *   vr-floor ping blocking|epoll|uring|spin CPU CPU ROUNDS     "p50 p99" in microseconds
 *   vr-floor sync DIR WRITERS ROUNDS                           the same, of 4 KiB
 *   vr-floor memory small|huge MIB      "touch worst copy": the first touch of 4 KiB (mean, and the
 *                                       longest), and a copy of a page somewhere in that memory
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#if HAVE_LIBURING
#include <liburing.h>
#endif

#define BYTES 64

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void print(double *times, int count)
{
    qsort(times, (size_t)count, sizeof(*times), compare);
    printf("%.2f %.2f\n", times[count / 2], times[(int)((double)count * 0.99)]);
}

static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    if (cpu >= 0 && sched_setaffinity(0, sizeof(set), &set))
        die("sched_setaffinity");
}

struct side {
    int fd, epoll_fd;
    enum { BLOCKING, EPOLL, URING, SPIN } how;
#if HAVE_LIBURING
    struct io_uring ring;
    struct io_uring_buf_ring *buffers;
#endif
    char bytes[64 * BYTES];
    char out[BYTES];
};

#if HAVE_LIBURING
static void arm(struct side *s)
{
    struct io_uring_sqe *e = io_uring_get_sqe(&s->ring);
    io_uring_prep_recv_multishot(e, s->fd, NULL, 0, 0);
    e->flags |= IOSQE_BUFFER_SELECT;
    e->user_data = 1;
}

static void open_uring(struct side *s)
{
    struct io_uring_params p = {.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN};
    void *place;
    if (io_uring_queue_init_params(64, &s->ring, &p) < 0)
        die("io_uring");
    if (posix_memalign(&place, 4096, 64 * sizeof(struct io_uring_buf)))
        die("memory");
    s->buffers = place;
    struct io_uring_buf_reg reg = {.ring_addr = (uintptr_t)place, .ring_entries = 64};
    if (io_uring_register_buf_ring(&s->ring, &reg, 0))
        die("provided buffers");
    io_uring_buf_ring_init(s->buffers);
    for (unsigned i = 0; i < 64; i++)
        io_uring_buf_ring_add(s->buffers, s->bytes + i * BYTES, BYTES, (unsigned short)i, 63,
                              (int)i);
    io_uring_buf_ring_advance(s->buffers, 64);
    arm(s);
}

/* Sends what is queued and waits for one datagram. */
static void turn_uring(struct side *s)
{
    for (;;) {
        struct io_uring_cqe *done;
        if (io_uring_submit_and_wait(&s->ring, 1) < 0 || io_uring_peek_cqe(&s->ring, &done))
            continue;
        unsigned flags = done->flags;
        int result = done->res;
        uint64_t data = done->user_data;
        io_uring_cqe_seen(&s->ring, done);
        if (data != 1)
            continue;
        if (flags & IORING_CQE_F_BUFFER) {
            unsigned index = flags >> IORING_CQE_BUFFER_SHIFT;
            io_uring_buf_ring_add(s->buffers, s->bytes + index * BYTES, BYTES,
                                  (unsigned short)index, 63, 0);
            io_uring_buf_ring_advance(s->buffers, 1);
        }
        if (!(flags & IORING_CQE_F_MORE))
            arm(s);
        if (result >= 0)
            return;
    }
}
#endif

static void transmit(struct side *s)
{
#if HAVE_LIBURING
    if (s->how == URING) {
        struct io_uring_sqe *e = io_uring_get_sqe(&s->ring);
        io_uring_prep_send(e, s->fd, s->out, BYTES, MSG_DONTWAIT);
        e->flags |= IOSQE_CQE_SKIP_SUCCESS;
        e->user_data = 2;
        return;
    }
#endif
    if (send(s->fd, s->out, BYTES, 0) != BYTES)
        die("send");
}

static void receive(struct side *s)
{
    struct epoll_event ready;
#if HAVE_LIBURING
    if (s->how == URING) {
        turn_uring(s);
        return;
    }
#endif
    if (s->how == EPOLL)
        while (epoll_wait(s->epoll_fd, &ready, 1, -1) < 1)
            ;
    int flags = s->how == SPIN ? MSG_DONTWAIT : 0;
    for (unsigned idle = 0; recv(s->fd, s->bytes, BYTES, flags) < 0; idle++) {
        if (errno != EAGAIN && errno != EINTR)
            die("recv");
        if (idle % 4 == 3)
            sched_yield();
    }
}

static void open_side(struct side *s, const char *how)
{
    s->how = strcmp(how, "epoll") == 0   ? EPOLL
             : strcmp(how, "uring") == 0 ? URING
             : strcmp(how, "spin") == 0  ? SPIN
                                         : BLOCKING;
    if (s->how == EPOLL) {
        struct epoll_event event = {.events = EPOLLIN};
        s->epoll_fd = epoll_create1(0);
        if (s->epoll_fd < 0 || epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->fd, &event))
            die("epoll");
    }
#if HAVE_LIBURING
    if (s->how == URING)
        open_uring(s);
#else
    if (s->how == URING) {
        fprintf(stderr, "built without liburing\n");
        exit(77);
    }
#endif
}

static int ping(char **argv)
{
    const char *how = argv[2];
    int cpus[2] = {atoi(argv[3]), atoi(argv[4])}, rounds = atoi(argv[5]);
    struct side sides[2] = {0};
    struct sockaddr_in addresses[2];
    for (int i = 0; i < 2; i++) {
        socklen_t size = sizeof(addresses[i]);
        addresses[i] =
            (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        sides[i].fd = socket(AF_INET, SOCK_DGRAM, 0);
        if (sides[i].fd < 0 || bind(sides[i].fd, (struct sockaddr *)&addresses[i], size) ||
            getsockname(sides[i].fd, (struct sockaddr *)&addresses[i], &size))
            die("socket");
    }
    for (int i = 0; i < 2; i++)
        if (connect(sides[i].fd, (struct sockaddr *)&addresses[1 - i], sizeof(addresses[0])))
            die("connect");
    pid_t other = fork();
    int me = other == 0;
    pin(cpus[me]);
    open_side(&sides[me], how);
    if (me)
        for (;;) {
            receive(&sides[1]);
            transmit(&sides[1]);
        }
    double *times = malloc((size_t)rounds * sizeof(*times));
    for (int i = -rounds / 10; i < rounds; i++) {
        double begun = now_us();
        transmit(&sides[0]);
        receive(&sides[0]);
        if (i >= 0)
            times[i] = now_us() - begun;
    }
    kill(other, SIGKILL);
    wait(NULL);
    print(times, rounds);
    free(times);
    return 0;
}

static int writer(const char *folder, int number, int rounds, double *times)
{
    char path[4096];
    void *bytes = NULL;
    snprintf(path, sizeof(path), "%s/floor-%d", folder, number);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || posix_memalign(&bytes, 4096, 1 << 20))
        die(path);
    memset(bytes, 1, 1 << 20);
    if (pwrite(fd, bytes, 1 << 20, 0) != 1 << 20 || fsync(fd))
        die(path);
    for (int i = 0; i < rounds; i++) {
        double begun = now_us();
        if (pwrite(fd, bytes, 4096, i % 256 * 4096) != 4096 || fdatasync(fd))
            die(path);
        times[i] = now_us() - begun;
    }
    unlink(path);
    free(bytes);
    return 0;
}

static int sync_floor(char **argv)
{
    int writers = atoi(argv[3]), rounds = atoi(argv[4]);
    double *times = malloc((size_t)(rounds + rounds / 4) * sizeof(*times));
    pid_t others[16] = {0};
    for (int i = 1; i < writers && i < 16; i++) {
        others[i] = fork();
        if (others[i] == 0) {
            signal(SIGTERM, SIG_DFL);
            _exit(writer(argv[2], i, rounds + rounds / 4, times));
        }
    }
    writer(argv[2], 0, rounds, times);
    for (int i = 1; i < writers && i < 16; i++)
        waitpid(others[i], NULL, 0);
    print(times, rounds);
    free(times);
    return 0;
}

#define PAGE ((size_t)4096)
#define HUGE ((size_t)2 << 20)
#define COPIES 100000

static int memory_floor(char **argv)
{
    size_t bytes = (size_t)atoi(argv[3]) << 20, pages = bytes / PAGE;
    unsigned char *memory = mmap(NULL, bytes + HUGE, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    unsigned char *copies = malloc(1024 * PAGE);
    if (memory == MAP_FAILED || !copies || !pages)
        die("memory");
    memory += HUGE - (uintptr_t)memory % HUGE;
    madvise(memory, bytes, strcmp(argv[2], "huge") == 0 ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    memset(copies, 1, 1024 * PAGE);
    double begun = now_us(), worst = 0;
    for (size_t i = 0; i < pages; i++) {
        double before = now_us();
        memory[i * PAGE] = 1;
        double took = now_us() - before;
        worst = took > worst ? took : worst;
    }
    double touch = (now_us() - begun) / (double)pages;
    uint64_t random = 88172645463325252;
    begun = now_us();
    for (unsigned i = 0; i < COPIES; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        memcpy(copies + i % 1024 * PAGE, memory + random % pages * PAGE, PAGE);
    }
    printf("%.2f %.0f %.2f\n", touch, worst, (now_us() - begun) / COPIES);
    free(copies);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "memory") == 0)
        return memory_floor(argv);
    if (argc == 6 && strcmp(argv[1], "ping") == 0)
        return ping(argv);
    if (argc == 5 && strcmp(argv[1], "sync") == 0)
        return sync_floor(argv);
    fprintf(stderr, "usage: vr-floor ping blocking|epoll|uring|spin CPU CPU ROUNDS\n"
                    "       vr-floor sync DIR WRITERS ROUNDS\n"
                    "       vr-floor memory small|huge MIB\n");
    return 2;
}
