/* SPDX-License-Identifier: MIT */
/*
 * floor CALL SIZE RECEIVE-SIZE STREAMS SECONDS CC: the bare loop of the calls that assay-move
 * makes.
 *
 * CALL is send, send-late (the receiver is woken when RECEIVE-SIZE bytes are there), corked-late
 * (besides, the sender has set TCP_CORK) or memcpy.  A sender and a receiver process with a thread
 * for each connection do nothing but send() and recv(); the receiver's first thread looks at the
 * received bytes after a warm-up and again at the end. Prints Gbit/s.  What assay-move needs more
 * time than this for, it wastes.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STREAMS_MAX = 64, WARMUP_MS = 200 };

struct stream {
    _Alignas(128) _Atomic uint64_t bytes;
    int fd;
    size_t size;
};

static struct stream streams[STREAMS_MAX];
static int is_late, is_corked;

static void die(const char *what)
{
    fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void *buffer_of(size_t size)
{
    void *buffer = NULL;
    if (posix_memalign(&buffer, 4096, size))
        die("memory");
    memset(buffer, 'x', size);
    return buffer;
}

static void *send_loop(void *argument)
{
    struct stream *s = argument;
    char *buffer = buffer_of(s->size);
    unshare(
        CLONE_FILES); /* a table of descriptors of its own: no reference is taken in each call */
    for (;;)
        if (send(s->fd, buffer, s->size, MSG_NOSIGNAL) <= 0)
            return NULL;
}

static void *receive_loop(void *argument)
{
    struct stream *s = argument;
    char *buffer = buffer_of(s->size);
    unshare(
        CLONE_FILES); /* a table of descriptors of its own: no reference is taken in each call */
    int bytes = (int)s->size;
    if (is_late && setsockopt(s->fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes)) < 0)
        die("SO_RCVLOWAT");
    for (;;) {
        ssize_t got = recv(s->fd, buffer, s->size, 0);
        if (got <= 0)
            return NULL;
        __atomic_store_n((uint64_t *)&s->bytes, s->bytes + (uint64_t)got, __ATOMIC_RELAXED);
    }
}

static double now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void pause_seconds(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&t, &t) < 0 && errno == EINTR)
        continue;
}

static void start_all(int count, size_t size, void *(*loop)(void *))
{
    for (int i = 0; i < count; i++) {
        pthread_t thread;
        streams[i].size = size;
        if (pthread_create(&thread, NULL, loop, &streams[i]))
            die("pthread_create");
    }
}

static uint64_t received(int count)
{
    uint64_t sum = 0;
    for (int i = 0; i < count; i++)
        sum += streams[i].bytes;
    return sum;
}

static void send_all(struct sockaddr_in *to, int count, size_t size, const char *cc)
{
    for (int i = 0; i < count; i++) {
        streams[i].fd = socket(AF_INET, SOCK_STREAM, 0);
        if (setsockopt(streams[i].fd, IPPROTO_TCP, TCP_CONGESTION, cc, (socklen_t)strlen(cc)) < 0)
            die(cc);
        if (connect(streams[i].fd, (struct sockaddr *)to, sizeof(*to)) < 0)
            die("connect");
        if (is_corked &&
            setsockopt(streams[i].fd, IPPROTO_TCP, TCP_CORK, &is_corked, sizeof(is_corked)) < 0)
            die("TCP_CORK");
    }
    start_all(count, size, send_loop);
    for (;;)
        pause();
}

static double measure_sockets(int count, size_t size, size_t receive, double seconds,
                              const char *cc)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(to);
    int listening = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listening, (struct sockaddr *)&to, length) < 0 || listen(listening, count) < 0 ||
        getsockname(listening, (struct sockaddr *)&to, &length) < 0)
        die("listen");
    pid_t sender = fork();
    if (sender == 0)
        send_all(&to, count, size, cc);
    for (int i = 0; i < count; i++)
        if ((streams[i].fd = accept(listening, NULL, NULL)) < 0)
            die("accept");
    start_all(count, receive, receive_loop);
    pause_seconds(WARMUP_MS / 1000.0);
    double start = now_seconds();
    uint64_t before = received(count);
    pause_seconds(seconds);
    double rate = (double)(received(count) - before) / (now_seconds() - start);
    kill(sender, SIGKILL);
    waitpid(sender, NULL, 0);
    return rate;
}

/* One buffer into another, both in the nearest cache that holds them. */
static double measure_memcpy(size_t size, double seconds)
{
    char *from = buffer_of(size), *to = buffer_of(size);
    uint64_t bytes = 0;
    double start = now_seconds(), end = start;
    do {
        for (int i = 0; i < 256; i++) {
            memcpy(to, from, size);
            __asm__ volatile("" : : "r"(to), "r"(from) : "memory");
        }
        bytes += 256 * size;
        end = now_seconds();
    } while (end - start < seconds);
    return (double)bytes / (end - start);
}

int main(int argc, char **argv)
{
    if (argc != 7) {
        fputs(
            "usage: floor send|send-late|corked-late|memcpy SIZE RECEIVE-SIZE STREAMS SECONDS CC\n",
            stderr);
        return 2;
    }
    size_t size = (size_t)atol(argv[2]), receive = (size_t)atol(argv[3]);
    int count = atoi(argv[4]);
    double seconds = atof(argv[5]);
    if (size < 1 || receive < 1 || count < 1 || count > STREAMS_MAX)
        return 2;
    is_corked = strcmp(argv[1], "corked-late") == 0;
    is_late = is_corked || strcmp(argv[1], "send-late") == 0;
    double rate = strcmp(argv[1], "memcpy") == 0
                      ? measure_memcpy(size, seconds)
                      : measure_sockets(count, size, receive, seconds, argv[6]);
    printf("%.6f\n", rate * 8 / 1e9);
    return 0;
}
