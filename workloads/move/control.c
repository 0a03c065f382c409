/* SPDX-License-Identifier: MIT */
/* Messages between the sides: a head of three little-endian words, then the payload. */
#include "control.h"
#include "base/clock.h"
#include "base/fd.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define MAGIC 0x45564f4dU /* "MOVE" */

struct head {
    uint32_t magic, kind, length;
};

int control_send(int fd, enum control_kind kind, const void *payload, size_t length,
                 struct error *err)
{
    assert(length <= CONTROL_PAYLOAD_MAX);
    unsigned char bytes[sizeof(struct head) + CONTROL_PAYLOAD_MAX];
    struct head head = {htole32(MAGIC), htole32(kind), htole32((uint32_t)length)};
    memcpy(bytes, &head, sizeof(head));
    if (length)
        memcpy(bytes + sizeof(head), payload, length);
    size_t done = 0, all = sizeof(head) + length;
    while (done < all) {
        ssize_t r = send(fd, bytes + done, all - done, MSG_NOSIGNAL);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return error_errno(err, -errno, "telling the other side");
        done += (size_t)r;
    }
    return 0;
}

static int receive_exactly(int fd, void *to, size_t length, uint64_t deadline_ns, struct error *err)
{
    size_t done = 0;
    while (done < length) {
        uint64_t now = clock_now_ns();
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int ready = now >= deadline_ns
                        ? 0
                        : poll(&p, 1, (int)((deadline_ns - now + NS_PER_MS - 1) / NS_PER_MS));
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready == 0)
            return error_set(err, -ETIMEDOUT, "the other side does not answer");
        ssize_t r = recv(fd, (char *)to + done, length - done, 0);
        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            return error_set(err, -EPIPE, "the other side is gone");
        done += (size_t)r;
    }
    return 0;
}

int control_receive(int fd, struct control_message *m, int timeout_ms, struct error *err)
{
    struct head head;
    uint64_t deadline_ns = clock_now_ns() + (uint64_t)timeout_ms * NS_PER_MS;
    int r = receive_exactly(fd, &head, sizeof(head), deadline_ns, err);
    if (r < 0)
        return r;
    m->kind = (enum control_kind)le32toh(head.kind);
    m->length = le32toh(head.length);
    if (le32toh(head.magic) != MAGIC || m->length > CONTROL_PAYLOAD_MAX)
        return error_set(err, -EPROTO, "the other side is not this version of assay-move");
    return receive_exactly(fd, m->payload, m->length, deadline_ns, err);
}

int control_failure(const struct control_message *m, struct error *err)
{
    return error_set(err, -ECANCELED, "%.*s", (int)m->length, (const char *)m->payload);
}

int control_expect(int fd, enum control_kind kind, void *ret_payload, size_t length, int timeout_ms,
                   struct error *err)
{
    struct control_message m;
    int r = control_receive(fd, &m, timeout_ms, err);
    if (r < 0)
        return r;
    if (m.kind == CONTROL_FAILED)
        return control_failure(&m, err);
    if (m.kind != kind || m.length != length)
        return error_set(err, -EPROTO,
                         "the other side sent %d where %d was expected; is it a different version "
                         "of assay-move?",
                         m.kind, kind);
    if (length)
        memcpy(ret_payload, m.payload, length);
    return 0;
}

int control_send_numbers(int fd, enum control_kind kind, const uint64_t *numbers, size_t count,
                         struct error *err)
{
    uint64_t wire[CONTROL_PAYLOAD_MAX / 8];
    assert(count <= sizeof(wire) / sizeof(wire[0]));
    for (size_t i = 0; i < count; i++)
        wire[i] = htole64(numbers[i]);
    return control_send(fd, kind, wire, count * 8, err);
}

int control_expect_numbers(int fd, enum control_kind kind, uint64_t *ret_numbers, size_t count,
                           int timeout_ms, struct error *err)
{
    uint64_t wire[CONTROL_PAYLOAD_MAX / 8];
    assert(count <= sizeof(wire) / sizeof(wire[0]));
    int r = control_expect(fd, kind, wire, count * 8, timeout_ms, err);
    for (size_t i = 0; r == 0 && i < count; i++)
        ret_numbers[i] = le64toh(wire[i]);
    return r;
}
