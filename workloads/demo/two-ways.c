/* SPDX-License-Identifier: MIT */
/*
 * two-ways write|writev [MESSAGES]: the same messages through a socket in two ways.
 *
 * A message is eight fields of 64 bytes that do not lie side by side in memory.  One way hands each
 * field to the kernel with a write() of its own, the other gives all eight to one writev().  A
 * thread at the other end reads and checks everything.  Which way is faster, by how much, and what
 * it costs is for `assay ab` to tell: ./dev demo.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { FIELDS = 8, FIELD_BYTES = 64, MESSAGE_BYTES = FIELDS * FIELD_BYTES };

/* Fields with a gap behind each, as in a record of a larger structure. */
struct record {
    struct {
        unsigned char bytes[FIELD_BYTES];
        unsigned char not_sent[FIELD_BYTES];
    } fields[FIELDS];
};

struct reader {
    int fd;
    uint64_t byte_count, sum;
    int error;
};

static void die(const char *what, int code)
{
    fprintf(stderr, "two-ways: %s: %s\n", what, strerror(code));
    exit(1);
}

static void *read_all(void *argument)
{
    struct reader *r = argument;
    unsigned char bytes[65536];
    for (;;) {
        ssize_t got = read(r->fd, bytes, sizeof(bytes));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            r->error = errno;
        if (got <= 0)
            return NULL;
        for (ssize_t i = 0; i < got; i++)
            r->sum += bytes[i];
        r->byte_count += (uint64_t)got;
    }
}

static uint64_t fill(struct record *record)
{
    uint64_t sum = 0;
    for (int i = 0; i < FIELDS; i++)
        for (int j = 0; j < FIELD_BYTES; j++) {
            record->fields[i].bytes[j] = (unsigned char)(31 * i + 7 * j);
            sum += record->fields[i].bytes[j];
        }
    return sum;
}

/* A stream socket that blocks takes all or fails, unless a signal comes; none does here. */
static void send_by_write(int fd, const struct record *record)
{
    for (int i = 0; i < FIELDS; i++)
        if (write(fd, record->fields[i].bytes, FIELD_BYTES) != FIELD_BYTES)
            die("write", errno);
}

static void send_by_writev(int fd, const struct record *record)
{
    struct iovec parts[FIELDS];
    for (int i = 0; i < FIELDS; i++)
        parts[i] = (struct iovec){(void *)record->fields[i].bytes, FIELD_BYTES};
    if (writev(fd, parts, FIELDS) != MESSAGE_BYTES)
        die("writev", errno);
}

static double now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* To assay's descriptor for metrics, or to standard output for people. */
static void report(const char *name, double value, const char *unit)
{
    const char *number = getenv("ASSAY_METRICS_FD");
    dprintf(number ? atoi(number) : STDOUT_FILENO, "assay.metric %s %.9g %s\n", name, value, unit);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    long count = argc > 2 ? atol(argv[2]) : 10000;
    void (*send_message)(int fd, const struct record *record) =
        strcmp(way, "write") == 0    ? send_by_write
        : strcmp(way, "writev") == 0 ? send_by_writev
                                     : NULL;
    if (!send_message || count < 1) {
        fputs("usage: two-ways write|writev [MESSAGES]\n", stderr);
        return 2;
    }
    static struct record record;
    uint64_t sum = fill(&record);
    int ends[2];
    pthread_t thread;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
        die("socketpair", errno);
    struct reader reader = {.fd = ends[1]};
    int code = pthread_create(&thread, NULL, read_all, &reader);
    if (code)
        die("pthread_create", code);
    double start = now_seconds();
    for (long i = 0; i < count; i++)
        send_message(ends[0], &record);
    close(ends[0]);
    pthread_join(thread, NULL);
    double seconds = now_seconds() - start;
    if (reader.error)
        die("read", reader.error);
    if (reader.byte_count != (uint64_t)count * MESSAGE_BYTES ||
        reader.sum != (uint64_t)count * sum) {
        fputs("two-ways: what arrived is not what was sent\n", stderr);
        return 1;
    }
    report("messages_per_second", (double)count / seconds, "msg/s");
    return 0;
}
