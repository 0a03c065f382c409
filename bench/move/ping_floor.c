/* SPDX-License-Identifier: MIT */
/*
 * ping-floor KIND SIZE SECONDS: the bare loop of blocking calls under which no round trip between
 * two processes can be: send() and recv() (read() and write() for pipes) and a clock around them,
 * as netperf's TCP_RR makes them.  KIND is tcp, udp, unix or pipe.  Prints the median and the 99th
 * percentile in µs.  What assay-move --ping needs more time than this for, it wastes.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { TIMES_MAX = 4 << 20 };

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

/* Two connected sockets of loopback. */
static void connect_pair(int type, int fds[2])
{
    struct sockaddr_in at[2];
    socklen_t length = sizeof(at[0]);
    for (int i = 0; i < 2; i++) {
        at[i] =
            (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        fds[i] = socket(AF_INET, type, 0);
        if (fds[i] < 0 || bind(fds[i], (struct sockaddr *)&at[i], length) < 0 ||
            getsockname(fds[i], (struct sockaddr *)&at[i], &length) < 0)
            die("socket");
    }
    if (type == SOCK_STREAM && listen(fds[1], 1) < 0)
        die("listen");
    if (connect(fds[0], (struct sockaddr *)&at[1], length) < 0)
        die("connect");
    if (type == SOCK_DGRAM && connect(fds[1], (struct sockaddr *)&at[0], length) < 0)
        die("connect");
    int yes = 1;
    if (type == SOCK_STREAM) {
        fds[1] = accept(fds[1], NULL, NULL);
        setsockopt(fds[0], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
        setsockopt(fds[1], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    }
}

/* ends[0] is who asks: where it reads, where it writes. */
static void open_ends(const char *kind, int ends[2][2])
{
    int there[2], back[2];
    if (strcmp(kind, "pipe") == 0) {
        if (pipe(there) < 0 || pipe(back) < 0)
            die("pipe");
        ends[0][0] = back[0], ends[0][1] = there[1];
        ends[1][0] = there[0], ends[1][1] = back[1];
        return;
    }
    if (strcmp(kind, "unix") == 0) {
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, there) < 0)
            die("socketpair");
    } else {
        connect_pair(strcmp(kind, "udp") == 0 ? SOCK_DGRAM : SOCK_STREAM, there);
    }
    for (int i = 0; i < 2; i++)
        ends[i][0] = ends[i][1] = there[i];
}

static void get(int fd, char *to, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t got = read(fd, to + done, size - done);
        if (got <= 0)
            exit(0);
        done += (size_t)got;
    }
}

static void put(int fd, const char *from, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t put = write(fd, from + done, size - done);
        if (put <= 0)
            exit(0);
        done += (size_t)put;
    }
}

static int by_size(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fputs("usage: ping-floor tcp|udp|unix|pipe SIZE SECONDS\n", stderr);
        return 2;
    }
    size_t size = (size_t)atol(argv[2]), count = 0;
    int ends[2][2];
    char *message = calloc(1, size);
    float *times = malloc(TIMES_MAX * sizeof(*times));
    open_ends(argv[1], ends);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            get(ends[1][0], message, size);
            put(ends[1][1], message, size);
        }
    }
    double start_us = now_us(), from_us = start_us + 2e5, end_us = from_us + atof(argv[3]) * 1e6;
    for (double at_us = start_us; at_us < end_us && count < TIMES_MAX;) {
        put(ends[0][1], message, size);
        get(ends[0][0], message, size);
        double back_us = now_us();
        if (at_us >= from_us)
            times[count++] = (float)(back_us - at_us);
        at_us = back_us;
    }
    kill(pid, SIGKILL);
    qsort(times, count, sizeof(*times), by_size);
    if (count == 0)
        return 1;
    printf("%.3f %.3f\n", (double)times[count / 2], (double)times[count * 99 / 100]);
    return 0;
}
