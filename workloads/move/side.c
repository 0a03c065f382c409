/* SPDX-License-Identifier: MIT */
/* The controller of one side: connects, sets the marks or follows them, and reports. */
#include "side.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "check.h"
#include "control.h"
#include "veth.h"
#include "wire_settings.h"
#include "workers.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/random.h>

enum {
    GREETING_MS = 5000, /* for a stranger's first words: others wait meanwhile */
    ANSWER_MS = 20000,  /* for a step that the other side takes at once, on a busy machine */
    CONNECT_MS = 10000, /* for one connection */
    DRAIN_MS = 30000,   /* for what is still under way at the end */
    FLOW_MS = 5000,     /* for the first message of a window */
};

struct controller {
    struct side *side;
    const struct settings *s;
    struct workers workers;
    uint64_t peer_pid;
    uint64_t nonce;
    bool connected; /* the sender has said so */
    uint16_t ports[THREADS_MAX];
};

/* READY: the nonce, then the ports: one for TCP, one for each connection for UDP. */
enum { READY_NUMBERS = 1 + THREADS_MAX };
static_assert(READY_NUMBERS * 8 <= CONTROL_PAYLOAD_MAX, "READY fits a message");
static_assert(sizeof(struct side_result) <= CONTROL_PAYLOAD_MAX, "RESULT fits a message");

/* What a data connection says first, so that a stranger's is told apart. */
struct preface {
    uint64_t nonce, index;
};

static int greet(int fd, uint64_t *pid, int timeout_ms, struct error *err)
{
    *pid = (uint64_t)getpid();
    int r = control_send_numbers(fd, CONTROL_HELLO, pid, 1, err);
    return r ? r : control_expect_numbers(fd, CONTROL_HELLO, pid, 1, timeout_ms, err);
}

int side_greet(int control_fd, struct error *err)
{
    uint64_t pid;
    return greet(control_fd, &pid, GREETING_MS, err);
}

static int hello(struct controller *c, struct error *err)
{
    uint64_t pid = 0;
    int r = greet(c->side->control_fd, &pid, ANSWER_MS, err);
    c->peer_pid = c->side->remote ? 0 : pid;
    return r;
}

static void use_wires(struct controller *c)
{
    struct wire *wires = c->side->wires;
    for (size_t i = 0; wires && i < c->s->threads; i++) {
        int *mine = c->side->sender ? &wires[i].send_fd : &wires[i].receive_fd;
        int *others = c->side->sender ? &wires[i].receive_fd : &wires[i].send_fd;
        c->workers.list[i].link.fd = *mine;
        c->workers.list[i].link.shared = wires[i].shared;
        c->workers.list[i].link.peer_pid = (int)c->peer_pid;
        *mine = -1;
        fd_closep(others);
    }
}

static bool by_socket(const struct settings *s)
{
    return s->transport & (TRANSPORT_STREAMS_TCP | TRANSPORT_UDP);
}

/* The next event: 1 with a message, 0 at the deadline, or a failure of either side. */
static int await(struct controller *c, uint64_t deadline_ns, struct control_message *m,
                 struct error *err)
{
    for (;;) {
        uint64_t now = clock_now_ns();
        if (now >= deadline_ns)
            return 0;
        struct pollfd fds[2] = {{.fd = c->side->control_fd, .events = POLLIN},
                                {.fd = c->workers.event_fd, .events = POLLIN}};
        struct timespec left = timespec_from_ns(deadline_ns - now);
        if (ppoll(fds, 2, &left, NULL) < 0 && errno != EINTR)
            return error_errno(err, -errno, "poll");
        if (fds[0].revents) {
            int r = control_receive(c->side->control_fd, m, ANSWER_MS, err);
            if (r < 0)
                return r;
            return m->kind == CONTROL_FAILED ? control_failure(m, err) : 1;
        }
        uint64_t events;
        if (fds[1].revents && read(c->workers.event_fd, &events, sizeof(events)) < 0 &&
            errno != EAGAIN)
            return error_errno(err, -errno, "eventfd");
        int r = workers_trouble(&c->workers, err);
        if (r < 0)
            return r;
    }
}

static int wait_until(struct controller *c, uint64_t deadline_ns, struct error *err)
{
    struct control_message m;
    int r = await(c, deadline_ns, &m, err);
    return r <= 0 ? r : error_set(err, -EPROTO, "the other side sent %d out of turn", m.kind);
}

static void take_mark(struct controller *c, uint64_t number)
{
    struct side_result *result = c->side->result;
    if (number == 2)
        trace_start(&c->workers.trace);
    workers_snapshot(&c->workers, &result->marks[number]);
    if (number == 2) {
        result->calls_traced = c->workers.trace.calls;
        result->copies_traced = c->workers.trace.copies;
    }
}

/* A window closes only when something has passed: on a crowded machine a short one may lie wholly
 * between two turns of the workers.  Its true length is measured in any case. */
static void await_flow(struct controller *c, uint64_t number)
{
    if (number % 2 == 0)
        return;
    uint64_t before = c->side->result->marks[number - 1].messages;
    uint64_t limit_ns = clock_now_ns() + FLOW_MS * NS_PER_MS;
    struct snapshot now = {0};
    for (;;) {
        workers_snapshot(&c->workers, &now);
        if (now.messages > before || clock_now_ns() > limit_ns ||
            atomic_load(&c->workers.ended) > 0)
            return;
        poll(NULL, 0, 5);
    }
}

/* The receiver's mark: the sender takes its own as soon as it hears of it. */
static int mark(struct controller *c, uint64_t number, struct error *err)
{
    int r = 0;
    await_flow(c, number);
    if (c->side->control_fd >= 0)
        r = control_send_numbers(c->side->control_fd, CONTROL_MARK, &number, 1, err);
    take_mark(c, number);
    return r;
}

static uint64_t traced_ns(const struct settings *s)
{
    uint64_t ns = s->seconds_ns / 5;
    return ns < 50 * NS_PER_MS ? 50 * NS_PER_MS : ns > 300 * NS_PER_MS ? 300 * NS_PER_MS : ns;
}

static int conduct(struct controller *c, struct error *err)
{
    const struct settings *s = c->s;
    uint64_t at_ns = clock_now_ns() + s->warmup_ns;
    int r = wait_until(c, at_ns, err);
    r = r ? r : mark(c, 0, err);
    r = r ? r : wait_until(c, c->side->result->marks[0].t_ns + s->seconds_ns, err);
    r = r ? r : mark(c, 1, err);
    if (s->no_trace)
        return r;
    r = r ? r : mark(c, 2, err);
    r = r ? r : wait_until(c, clock_now_ns() + traced_ns(s), err);
    return r ? r : mark(c, 3, err);
}

static void finish_result(struct controller *c)
{
    struct side_result *result = c->side->result;
    cpu_set_t set;
    workers_snapshot(&c->workers, &result->end);
    result->tcp = result->marks[1].segments > 0;
    for (size_t i = 0; i < c->workers.count; i++)
        if (c->workers.list[i].link.check)
            result->verified += c->workers.list[i].link.check->verified;
    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        result->cpus = (uint64_t)CPU_COUNT(&set);
}

/* Sender. */

static int connect_all(struct controller *c, struct error *err)
{
    uint64_t ready[READY_NUMBERS];
    struct endpoint to = c->side->peer;
    int r = control_expect_numbers(c->side->control_fd, CONTROL_READY, ready, READY_NUMBERS,
                                   ANSWER_MS, err);
    if (r < 0 || !by_socket(c->s))
        return r;
    if (c->s->transport == TRANSPORT_VETH)
        r = endpoint_parse(VETH_RECEIVER_ADDRESS ":0", false, &to, err);
    else if (!c->side->remote)
        r = endpoint_parse("127.0.0.1:0", false, &to, err);
    bool udp = c->s->transport == TRANSPORT_UDP;
    for (uint64_t i = 0; r == 0 && i < c->s->threads; i++) {
        endpoint_set_port(&to, (uint16_t)ready[1 + (udp ? i : 0)]);
        int fd = link_connect(c->s, &to, udp ? SOCK_DGRAM : SOCK_STREAM, CONNECT_MS, err);
        if (fd < 0)
            return error_wrap(err, fd, "connection %llu", (unsigned long long)i);
        c->workers.list[i].link.fd = fd;
        struct preface preface = {htole64(ready[0]), htole64(i)};
        if (!udp && send(fd, &preface, sizeof(preface), MSG_NOSIGNAL) != sizeof(preface))
            r = error_errno(err, -errno, "connection %llu: greeting the receiver",
                            (unsigned long long)i);
    }
    return r;
}

static int follow_marks(struct controller *c, struct error *err)
{
    uint64_t limit_ns = clock_now_ns() + c->s->warmup_ns + c->s->seconds_ns + 60 * NS_PER_S;
    struct control_message m;
    for (;;) {
        int r = await(c, limit_ns, &m, err);
        if (r < 0)
            return r;
        if (r == 0)
            return error_set(err, -ETIMEDOUT, "the receiver does not finish the run");
        if (m.kind == CONTROL_STOP)
            return 0;
        uint64_t number = UINT64_MAX;
        if (m.kind == CONTROL_MARK && m.length == 8)
            memcpy(&number, m.payload, 8);
        number = le64toh(number);
        if (number >= MARKS)
            return error_set(err, -EPROTO, "the receiver sent %d out of turn", m.kind);
        await_flow(c, number);
        take_mark(c, number);
    }
}

static int sender_body(struct controller *c, struct error *err)
{
    struct side *side = c->side;
    int r = hello(c, err);
    if (r == 0 && side->remote)
        r = wire_settings_send(side->control_fd, c->s, err);
    if (r == 0 && c->s->transport == TRANSPORT_VETH)
        r = veth_create((int)c->peer_pid, err);
    if (r == 0 && c->s->transport == TRANSPORT_VETH)
        r = control_send(side->control_fd, CONTROL_VETH, NULL, 0, err);
    use_wires(c);
    r = r ? r : connect_all(c, err);
    r = r ? r : workers_open(&c->workers, err);
    r = r ? r : control_send(side->control_fd, CONTROL_CONNECTED, NULL, 0, err);
    r = r ? r : control_expect(side->control_fd, CONTROL_GO, NULL, 0, ANSWER_MS, err);
    if (r < 0)
        return r;
    workers_go(&c->workers);
    r = follow_marks(c, err);
    atomic_store(&c->workers.expected, true);
    atomic_store(&c->workers.stop, true);
    r = r ? r : workers_join(&c->workers, DRAIN_MS, err);
    if (r < 0)
        return r;
    finish_result(c);
    r = control_send_numbers(side->control_fd, CONTROL_RESULT, (const uint64_t *)side->result,
                             sizeof(*side->result) / 8, err);
    return r ? r
             : control_expect_numbers(side->control_fd, CONTROL_RESULT, (uint64_t *)side->other,
                                      sizeof(*side->other) / 8, DRAIN_MS, err);
}

/* Receiver. */

static int open_ports(struct controller *c, struct error *err)
{
    const char *address =
        c->s->transport == TRANSPORT_VETH ? VETH_RECEIVER_ADDRESS ":0" : "127.0.0.1:0";
    struct endpoint at;
    int r = endpoint_parse(address, true, &at, err);
    if (r < 0)
        return r;
    if (c->side->remote) { /* where the sender has reached this host */
        at.length = sizeof(at.address);
        if (getsockname(c->side->control_fd, (struct sockaddr *)&at.address, &at.length) < 0)
            return error_errno(err, -errno, "the control connection");
        endpoint_set_port(&at, 0);
    }
    bool udp = c->s->transport == TRANSPORT_UDP;
    for (size_t i = 0; i < (udp ? c->s->threads : 1); i++) {
        int fd = !udp && c->side->listen_fd >= 0 ? c->side->listen_fd
                 : udp                           ? link_bind_udp(c->s, &at, err)
                                                 : link_listen(c->s, &at, err);
        if (fd < 0)
            return fd;
        struct endpoint own = {.length = sizeof(own.address)};
        getsockname(fd, (struct sockaddr *)&own.address, &own.length);
        c->ports[i] = endpoint_port(&own);
        if (udp)
            c->workers.list[i].link.fd = fd;
        else
            c->side->listen_fd = fd;
    }
    return 0;
}

/* One connection that knows the nonce takes its place; another is closed. */
static void admit(struct controller *c, int fd, size_t *admitted)
{
    struct preface preface = {0};
    struct timeval limit = {.tv_sec = 5}, none = {0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    ssize_t got = recv(fd, &preface, sizeof(preface), MSG_WAITALL);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none));
    uint64_t index = le64toh(preface.index);
    if (got != sizeof(preface) || le64toh(preface.nonce) != c->nonce || index >= c->s->threads ||
        c->workers.list[index].link.fd >= 0) {
        close(fd);
        return;
    }
    c->workers.list[index].link.fd = fd;
    (*admitted)++;
}

static int accept_all(struct controller *c, struct error *err)
{
    uint64_t deadline_ns = clock_now_ns() + (uint64_t)CONNECT_MS * NS_PER_MS * 2;
    for (size_t admitted = 0; admitted < c->s->threads;) {
        struct pollfd fds[2] = {{.fd = c->side->listen_fd, .events = POLLIN},
                                {.fd = c->connected ? -1 : c->side->control_fd, .events = POLLIN}};
        if (clock_now_ns() > deadline_ns)
            return error_set(err, -ETIMEDOUT, "only %zu of %llu connections arrived", admitted,
                             (unsigned long long)c->s->threads);
        int ready = poll(fds, 2, 1000);
        if (ready > 0 && fds[0].revents) {
            int fd = accept4(c->side->listen_fd, NULL, NULL, SOCK_CLOEXEC);
            if (fd < 0 && errno != EINTR && errno != ECONNABORTED && errno != EAGAIN)
                return error_errno(err, -errno, "accepting connection %zu", admitted);
            if (fd >= 0)
                admit(c, fd, &admitted);
        } else if (ready > 0 && fds[1].revents) {
            /* CONNECTED may overtake the last connections; anything else is a failure. */
            int r = control_expect(c->side->control_fd, CONTROL_CONNECTED, NULL, 0, 1000, err);
            if (r < 0)
                return r;
            c->connected = true;
        }
    }
    return 0;
}

static int receiver_listens(struct controller *c, struct error *err)
{
    uint64_t ready[READY_NUMBERS] = {0};
    int r = 0;
    if (getrandom(&c->nonce, sizeof(c->nonce), 0) != sizeof(c->nonce))
        return error_errno(err, -errno, "getrandom");
    if (by_socket(c->s))
        r = open_ports(c, err);
    ready[0] = c->nonce;
    for (size_t i = 0; i < THREADS_MAX; i++)
        ready[1 + i] = c->ports[i];
    r = r ? r : control_send_numbers(c->side->control_fd, CONTROL_READY, ready, READY_NUMBERS, err);
    if (r == 0 && c->s->transport & TRANSPORT_STREAMS_TCP)
        r = accept_all(c, err);
    if (!c->side->remote)
        fd_closep(&c->side->listen_fd);
    return r;
}

static int receiver_ends(struct controller *c, struct error *err)
{
    struct side *side = c->side;
    atomic_store(&c->workers.expected, true);
    int r = control_send(side->control_fd, CONTROL_STOP, NULL, 0, err);
    struct control_message m;
    if (r == 0) {
        r = await(c, clock_now_ns() + (uint64_t)DRAIN_MS * NS_PER_MS, &m, err);
        if (r == 0)
            r = error_set(err, -ETIMEDOUT, "the sender does not finish");
    }
    if (r > 0 && (m.kind != CONTROL_RESULT || m.length != sizeof(*side->other)))
        r = error_set(err, -EPROTO, "the sender sent %d out of turn", m.kind);
    if (r < 0)
        return r;
    for (size_t i = 0; i < m.length / 8; i++) {
        uint64_t word;
        memcpy(&word, m.payload + 8 * i, 8);
        ((uint64_t *)side->other)[i] = le64toh(word);
    }
    atomic_store(&c->workers.stop, true);
    r = workers_join(&c->workers, DRAIN_MS, err);
    if (r < 0)
        return r;
    finish_result(c);
    if (c->s->transport != TRANSPORT_UDP && side->result->end.bytes != side->other->end.bytes)
        return error_set(err, -EBADMSG, "%llu bytes were sent, but %llu arrived",
                         (unsigned long long)side->other->end.bytes,
                         (unsigned long long)side->result->end.bytes);
    return control_send_numbers(side->control_fd, CONTROL_RESULT, (const uint64_t *)side->result,
                                sizeof(*side->result) / 8, err);
}

static int receiver_body(struct controller *c, struct error *err)
{
    struct side *side = c->side;
    int r = side->remote ? 0 : hello(c, err);
    if (r == 0 && c->s->transport == TRANSPORT_VETH)
        r = control_expect(side->control_fd, CONTROL_VETH, NULL, 0, ANSWER_MS, err);
    if (r == 0 && c->s->transport == TRANSPORT_VETH)
        r = veth_join(err);
    use_wires(c);
    r = r ? r : receiver_listens(c, err);
    r = r ? r : workers_open(&c->workers, err);
    if (r == 0 && !c->connected)
        r = control_expect(side->control_fd, CONTROL_CONNECTED, NULL, 0, ANSWER_MS, err);
    if (r < 0)
        return r;
    workers_go(&c->workers);
    r = control_send(side->control_fd, CONTROL_GO, NULL, 0, err);
    r = r ? r : conduct(c, err);
    return r ? r : receiver_ends(c, err);
}

static int alone_body(struct controller *c, struct error *err)
{
    int r = workers_open(&c->workers, err);
    if (r < 0)
        return r;
    workers_go(&c->workers);
    r = conduct(c, err);
    atomic_store(&c->workers.expected, true);
    atomic_store(&c->workers.stop, true);
    r = r ? r : workers_join(&c->workers, DRAIN_MS, err);
    if (r == 0)
        finish_result(c);
    return r;
}

/* "The other side is gone" is seldom the cause: its own words may be on their way. */
static int ask_for_cause(struct controller *c, int code, struct error *err)
{
    struct control_message m;
    struct error ignored;
    if (c->side->control_fd < 0 || (code != -EPIPE && code != -ECONNRESET))
        return code;
    while (control_receive(c->side->control_fd, &m, 2000, &ignored) == 0)
        if (m.kind == CONTROL_FAILED)
            return control_failure(&m, err);
    return code;
}

int side_run(struct side *side, struct error *err)
{
    struct controller c = {.side = side, .s = side->settings};
    fd_closep(&side->other_control_fd);
    int r = side->settings->transport == TRANSPORT_VETH ? veth_enter(err) : 0;
    r = r ? r : workers_init(&c.workers, side->settings, side->sender, err);
    if (r == 0)
        r = side->control_fd < 0 ? alone_body(&c, err)
            : side->sender       ? sender_body(&c, err)
                                 : receiver_body(&c, err);
    if (r == 0) {
        workers_done(&c.workers);
        return 0;
    }
    r = ask_for_cause(&c, r, err);
    struct error ignored;
    if (side->control_fd >= 0 && r != -ECANCELED)
        control_send(side->control_fd, CONTROL_FAILED, err->message, strlen(err->message),
                     &ignored);
    return r;
}
