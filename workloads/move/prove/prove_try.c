/* SPDX-License-Identifier: MIT */
/*
 * One message, looked at closely.  Both ends of a connection are in this process and this thread:
 * the sender runs until its call returns, its memory is painted over, and only then the receiver
 * reads.  Nothing here depends on time.
 */
#include "base/fd.h"
#include "base/memory.h"
#include "check.h"
#include "copies_bpf.h"
#include "link.h"
#include "prove.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

struct pair {
    struct settings settings;
    struct wire *wires;
    struct link send, receive;
    struct counts send_counts, receive_counts;
    atomic_bool stop;
    struct copies_bpf *bpf;
    int traced; /* 0: counting, else why not */
    struct error why;
};

static int connect_tcp(struct pair *p, struct error *err)
{
    struct endpoint at;
    int r = endpoint_parse("127.0.0.1:0", true, &at, err);
    CLEANUP(fd_closep) int listening = r ? -1 : link_listen(&p->settings, &at, err);
    if (listening < 0)
        return r ? r : listening;
    at.length = sizeof(at.address);
    getsockname(listening, (struct sockaddr *)&at.address, &at.length);
    p->send.fd = link_connect(&p->settings, &at, SOCK_STREAM, 5000, err);
    if (p->send.fd < 0)
        return p->send.fd;
    p->receive.fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
    return p->receive.fd < 0 ? error_errno(err, -errno, "accept") : 0;
}

static int connect_udp(struct pair *p, struct error *err)
{
    struct endpoint at;
    int r = endpoint_parse("127.0.0.1:0", true, &at, err);
    p->receive.fd = r ? r : link_bind_udp(&p->settings, &at, err);
    if (p->receive.fd < 0)
        return p->receive.fd;
    at.length = sizeof(at.address);
    getsockname(p->receive.fd, (struct sockaddr *)&at.address, &at.length);
    p->send.fd = link_connect(&p->settings, &at, SOCK_DGRAM, 5000, err);
    return p->send.fd < 0 ? p->send.fd : 0;
}

static int pair_open(struct pair *p, struct error *err)
{
    const struct settings *s = &p->settings;
    const struct link blank = {.settings = s,
                               .transport = s->transport,
                               .fd = -1,
                               .peer_pid = getpid(),
                               .message_bytes = s->size,
                               .stop = &p->stop,
                               .source = {.file_fd = -1}};
    p->send = p->receive = blank;
    p->send.counts = &p->send_counts;
    p->receive.counts = &p->receive_counts;
    p->receive.check = check_new(&p->receive, false);
    int r = s->transport == TRANSPORT_NONE ? 0 : wires_new(s, &p->wires, err);
    if (r == 0 && p->wires) {
        p->send.fd = p->wires[0].send_fd;
        p->receive.fd = p->wires[0].receive_fd;
        p->wires[0].send_fd = p->wires[0].receive_fd = -1;
        p->send.shared = p->receive.shared = p->wires[0].shared;
    }
    if (r == 0 && s->transport == TRANSPORT_TCP)
        r = connect_tcp(p, err);
    if (r == 0 && s->transport == TRANSPORT_UDP)
        r = connect_udp(p, err);
    return r;
}

static void pair_close(struct pair *p)
{
    fd_closep(&p->send.fd);
    fd_closep(&p->receive.fd);
    check_free(p->receive.check);
    wires_free(&p->settings, p->wires);
}

__attribute__((format(printf, 3, 4))) static void found(struct evidence *e, enum finding finding,
                                                        const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    e->finding = finding;
    vsnprintf(e->words, sizeof(e->words), format, arguments);
    va_end(arguments);
}

/* From here on, so that what was done before is not counted. */
static void start_counting(struct pair *p)
{
    if (p->traced == 0)
        p->traced = copies_bpf_start(p->bpf, &p->why);
}

/* A page or more that a socket gets by reference: the sender that is known not to copy. */
struct spliced {
    unsigned char *memory;
    size_t bytes;
};

static int splice_into(int fd, struct spliced *s, struct error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_errno(err, -errno, "a pipe");
    struct iovec all = {s->memory, s->bytes};
    ssize_t in = vmsplice(ends[1], &all, 1, 0), out = 0;
    if (in == (ssize_t)s->bytes)
        out = splice(ends[0], NULL, fd, NULL, s->bytes, 0);
    int r =
        out == (ssize_t)s->bytes ? 0 : error_errno(err, -errno, "splicing pages into the socket");
    close(ends[0]);
    close(ends[1]);
    return r;
}

__attribute__((format(printf, 2, 3))) static void cell(struct evidence *e, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(e->cell, sizeof(e->cell), format, arguments);
    va_end(arguments);
}

static void judge_completions(const struct pair *p, struct evidence *e)
{
    uint64_t granted = count_read(&p->send_counts.granted);
    uint64_t refused = count_read(&p->send_counts.refused);
    if (granted + refused == 0)
        found(e, FOUND_NOTHING, "none: zero-copy was not requested");
    else if (!granted)
        found(e, FOUND_COPY, "%llu of %llu copied", (unsigned long long)refused,
              (unsigned long long)refused);
    else
        found(e, refused ? FOUND_BOTH : FOUND_NO_COPY, "%llu of %llu granted",
              (unsigned long long)granted, (unsigned long long)(granted + refused));
    if (granted + refused)
        cell(e, "%llu/%llu copied", (unsigned long long)refused,
             (unsigned long long)(granted + refused));
}

/* What arrived of a message that was 'A' in the call and 'B' afterwards. */
static void judge_arrived(const struct check *c, struct evidence *e)
{
    unsigned long long a = c->painted['A'], b = c->painted['B'];
    if (!a && !b)
        found(e, FOUND_NOTHING, "none of it was seen");
    else if (!b)
        found(e, FOUND_COPY, "overwritten after the call, the old bytes arrive");
    else if (!a)
        found(e, FOUND_NO_COPY, "overwritten after the call, the new bytes arrive");
    else
        found(e, FOUND_BOTH, "%llu old and %llu new bytes arrive", a, b);
    if (a || b)
        cell(e, "%s", !b ? "old bytes" : !a ? "new bytes" : "both");
}

static void judge_bpf(const struct copies_bpf_counts *counts, const struct pair *p, bool receiver,
                      struct evidence *e)
{
    unsigned long long moved =
        receiver ? count_read(&p->receive_counts.bytes) : count_read(&p->send_counts.bytes);
    if (!(p->settings.transport & TRANSPORT_STREAM_SOCKETS))
        found(e, FOUND_NOTHING, "no tracepoint on this path");
    else if (!receiver)
        found(e, FOUND_NOTHING, "no tracepoint counts a send's copies; %llu of %llu bytes sent",
              (unsigned long long)counts->sent_bytes, moved);
    else if (counts->copied_bytes == 0)
        found(e, FOUND_NO_COPY, "0 of %llu bytes copied", moved);
    else
        found(e, counts->copied_bytes >= moved ? FOUND_COPY : FOUND_BOTH,
              "%llu of %llu bytes copied", (unsigned long long)counts->copied_bytes, moved);
    if (e->finding != FOUND_NOTHING)
        cell(e, "%.4g %% copied", 100 * (double)counts->copied_bytes / (double)moved);
}

static int close_variant(const struct variant *v, struct link *l, struct error *err)
{
    return v->close ? v->close(l, err) : 0;
}

/* A sender: paint, send, paint over, receive. */
static int try_send(struct pair *p, struct proof *proof, struct error *err)
{
    const struct variant *v = p->settings.send, *other = p->settings.receive;
    start_counting(p);
    int r = v->open ? v->open(&p->send, err) : 0;
    if (r == 0 && other && other->open)
        r = other->open(&p->receive, err);
    bool painted = r == 0 && p->send.source.base;
    if (painted)
        source_paint(&p->send, 'A');
    p->send.limit = 1;
    r = r ? r : v->run(&p->send, err);
    if (r == 0 && painted)
        source_paint(&p->send, 'B');
    p->receive.limit = count_read(&p->send_counts.bytes);
    if (r == 0 && other)
        r = other->run(&p->receive, err);
    struct evidence *e = &proof->ways[WAY_ALIASING];
    const void *arrived = r == 0 && v->arrived ? v->arrived(&p->send) : NULL;
    if (arrived) {
        check_bytes(p->receive.check, &p->receive, arrived, p->send.message_bytes, err);
        judge_arrived(p->receive.check, e);
    } else if (r == 0 && !other)
        found(e, FOUND_NOTHING, "there is no receiver");
    else if (r == 0 && !painted)
        found(e, FOUND_NOTHING, "the variant uses its own memory");
    else if (r == 0)
        judge_arrived(p->receive.check, e);
    struct error ignored;
    if (other)
        close_variant(other, &p->receive, &ignored);
    int closed = close_variant(v, &p->send, r ? &ignored : err);
    r = r ? r : closed;
    judge_completions(p, &proof->ways[WAY_COMPLETIONS]);
    return r;
}

/* The control: what is spliced and overwritten before anybody reads must arrive overwritten, else
 * the pages are copied on their way, and nothing can be learned about the receiver. */
static int arrives_by_reference(struct pair *p, struct spliced *s, bool *ret, struct error *err)
{
    memset(s->memory, 'A', s->bytes);
    int r = splice_into(p->send.fd, s, err);
    memset(s->memory, 'B', s->bytes);
    *ret = true;
    for (size_t done = 0; r == 0 && done < s->bytes;) {
        unsigned char bytes[4 * 4096];
        ssize_t got = read(p->receive.fd, bytes, sizeof(bytes));
        if (got <= 0)
            return error_errno(err, got < 0 ? -errno : -EIO, "reading the control message");
        *ret &= bytes[0] == 'B' && bytes[got - 1] == 'B';
        done += (size_t)got;
    }
    return r;
}

/* Pages that the kernel copies once into pages of nobody else, which alone can be mapped. */
static int send_zerocopy(int fd, const struct spliced *s, struct error *err)
{
    int yes = 1;
    if (setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &yes, sizeof(yes)) < 0 ||
        send(fd, s->memory, s->bytes, MSG_ZEROCOPY) != (ssize_t)s->bytes)
        return error_errno(err, -errno, "sending with MSG_ZEROCOPY");
    return 0;
}

/* A receiver that maps: how much it mapped, and whether the rest was all that was copied. */
static void judge_mapped(const struct pair *p, struct evidence *e)
{
    unsigned long long mapped = count_read(&p->receive_counts.granted);
    unsigned long long all = mapped + count_read(&p->receive_counts.refused);
    if (all == 0) {
        found(e, FOUND_NOTHING, "a receiver has none");
        return;
    }
    found(e,
          mapped == all ? FOUND_NO_COPY
          : mapped      ? FOUND_BOTH
                        : FOUND_COPY,
          "the kernel mapped %llu of %llu bytes", mapped, all);
    cell(e, "%.3g %% mapped", 100 * (double)mapped / (double)all);
}

/* A receiver: pages arrive by reference, and are painted over when the program has them. */
static int try_receive(struct pair *p, struct proof *proof, struct error *err)
{
    const struct variant *v = p->settings.receive;
    struct spliced s = {.bytes = 4 * 4096};
    void *at = mmap(NULL, s.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return error_errno(err, -errno, "mmap");
    s.memory = at;
    bool by_reference = false, maps = v->claim.receive == COPIES_SOME;
    int r = maps ? 0 : arrives_by_reference(p, &s, &by_reference, err);
    memset(s.memory, 'A', s.bytes);
    start_counting(p);
    struct evidence *e = &proof->ways[WAY_ALIASING];
    r = r ? r : v->open ? v->open(&p->receive, err) : 0;
    r = r ? r : maps ? send_zerocopy(p->send.fd, &s, err) : splice_into(p->send.fd, &s, err);
    p->receive.limit = s.bytes;
    r = r ? r : v->run(&p->receive, err);
    const struct check *c = p->receive.check;
    if (r == 0) {
        memset(s.memory, 'B', s.bytes);
        if (!by_reference)
            found(e, FOUND_NOTHING, "pages are copied on the way: nothing to learn from this");
        else if (!c->view)
            found(e, FOUND_NO_COPY, "not a byte reached the program");
        else if (*(const volatile unsigned char *)c->view == 'B')
            found(e, FOUND_NO_COPY, "the program reads the sender's own page");
        else
            found(e, FOUND_COPY,
                  "the sender's page is overwritten, the program keeps the old bytes");
        if (by_reference)
            cell(e, "%s",
                 !c->view                   ? "no byte seen"
                 : e->finding == FOUND_COPY ? "old bytes"
                                            : "same page");
    }
    struct error ignored;
    close_variant(v, &p->receive, &ignored);
    judge_mapped(p, &proof->ways[WAY_COMPLETIONS]);
    munmap(at, s.bytes);
    return r;
}

int prove_try(const struct settings *s, struct proof *proof, const bool wanted[WAYS],
              struct error *err)
{
    struct pair p = {.settings = *s};
    bool receiver = proof->variant->role == ROLE_RECEIVE;
    p.traced = wanted[WAY_BPF] ? copies_bpf_open(&p.bpf, getpid(), true, &p.why) : -ECANCELED;
    int r = pair_open(&p, err);
    if (r == 0)
        r = receiver ? try_receive(&p, proof, err) : try_send(&p, proof, err);
    if (r == 0 && p.traced == 0) {
        struct copies_bpf_counts counts = copies_bpf_read(p.bpf);
        judge_bpf(&counts, &p, receiver, &proof->ways[WAY_BPF]);
    } else if (p.traced < 0)
        found(&proof->ways[WAY_BPF], FOUND_NOTHING, "%.100s",
              wanted[WAY_BPF] ? p.why.message : "not requested");
    copies_bpf_close(p.bpf);
    pair_close(&p);
    for (int way = 0; way < WAY_BPF; way++)
        if (!wanted[way])
            found(&proof->ways[way], FOUND_NOTHING, "not requested");
    return r;
}
