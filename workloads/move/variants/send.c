/* SPDX-License-Identifier: MIT */
/*
 * Plain sends: the kernel copies within the call, so one buffer serves for ever.
 *
 * What is compared here is calls, not copies: each of these is copied once by the kernel, copy-send
 * once more in user space.
 */
#include "calls.h"
#include "settings.h"
#include "variants.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* The rest of a piece that a call took only in part. */
static int send_rest(struct link *l, const char *at, size_t left, struct error *err)
{
    while (left) {
        ssize_t r = call_write(l->fd, at, left);
        if (r < 0 && errno != EINTR)
            return link_failed(l, "send", -errno, err);
        if (r > 0) {
            at += r;
            left -= (size_t)r;
        }
        count_add(&l->counts->calls, 1);
    }
    return 0;
}

static int short_send(struct link *l, const char *at, size_t bytes, ssize_t r, struct error *err)
{
    if (r < 0 && errno != EINTR)
        return link_failed(l, "send", -errno, err);
    size_t done = r > 0 ? (size_t)r : 0;
    return send_rest(l, at + done, bytes - done, err);
}

/* A pipe knows no send(). */
static int run_write(struct link *l, size_t bytes, uint64_t messages, struct error *err)
{
    const char *buffer = l->source.base;
    while (link_going(l)) {
        for (uint64_t i = 0; i < messages; i++)
            source_fill(l, i);
        ssize_t r = call_write(l->fd, buffer, bytes);
        if (r != (ssize_t)bytes) {
            int code = short_send(l, buffer, bytes, r, err);
            if (code)
                return code;
        }
        link_count(l, messages, bytes, 1);
    }
    return 0;
}

static int run_sends(struct link *l, uint64_t messages, struct error *err)
{
    const char *buffer = l->source.base;
    const size_t bytes = messages * l->message_bytes;
    if (l->transport == TRANSPORT_PIPE)
        return run_write(l, bytes, messages, err);
    while (link_going(l)) {
        for (uint64_t i = 0; i < messages; i++)
            source_fill(l, i);
        ssize_t r = call_send(l->fd, buffer, bytes, 0);
        if (__builtin_expect(r != (ssize_t)bytes, 0)) {
            int code = short_send(l, buffer, bytes, r, err);
            if (code)
                return code;
        }
        link_count(l, messages, bytes, 1);
    }
    return 0;
}

static int open_packed(struct link *l, struct error *err)
{
    return source_open(l, SOURCE_PACKED, 1, false, err);
}

static int open_batch(struct link *l, struct error *err)
{
    return source_open(l, SOURCE_PACKED, l->settings->batch, false, err);
}

static int open_fields(struct link *l, struct error *err)
{
    return source_open(l, SOURCE_FIELDS, 1, false, err);
}

static int close_source(struct link *l, struct error *err)
{
    (void)err;
    source_close(l);
    return 0;
}

static int run_send(struct link *l, struct error *err)
{
    return run_sends(l, 1, err);
}

/* TCP sends whole segments only while it is corked: without it a small one goes out whenever
 * nothing is on its way, and on loopback the answer to the last one is there at once. */
static int set_cork(struct link *l, int on, struct error *err)
{
    if (setsockopt(l->fd, IPPROTO_TCP, TCP_CORK, &on, sizeof(on)) < 0)
        return link_failed(l, "TCP_CORK", -errno, err);
    return 0;
}

static int open_corked(struct link *l, struct error *err)
{
    int r = open_packed(l, err);
    return r ? r : set_cork(l, 1, err);
}

static int run_corked(struct link *l, struct error *err)
{
    int r = run_sends(l, 1, err);
    return r ? r : set_cork(l, 0, err); /* what is left of a segment goes out now */
}

static int run_batch_send(struct link *l, struct error *err)
{
    return run_sends(l, l->settings->batch, err);
}

static int run_send8(struct link *l, struct error *err)
{
    const struct iovec *pieces = source_pieces(l, 0);
    const size_t fields = l->source.fields;
    const bool pipe = l->transport == TRANSPORT_PIPE;
    while (link_going(l)) {
        source_fill(l, 0);
        for (size_t f = 0; f < fields; f++) {
            ssize_t r = pipe ? call_write(l->fd, pieces[f].iov_base, pieces[f].iov_len)
                             : call_send(l->fd, pieces[f].iov_base, pieces[f].iov_len, 0);
            if (__builtin_expect(r != (ssize_t)pieces[f].iov_len, 0)) {
                int code = short_send(l, pieces[f].iov_base, pieces[f].iov_len, r, err);
                if (code)
                    return code;
            }
        }
        link_count(l, 1, l->message_bytes, fields);
    }
    return 0;
}

static int open_copy_send(struct link *l, struct error *err)
{
    int r = open_fields(l, err);
    if (r < 0)
        return r;
    l->state = aligned_alloc(4096, (l->message_bytes + 4095) / 4096 * 4096);
    return l->state ? 0 : error_set(err, -ENOMEM, "no memory for a message");
}

static int close_copy_send(struct link *l, struct error *err)
{
    free(l->state);
    l->state = NULL;
    return close_source(l, err);
}

static int run_copy_send(struct link *l, struct error *err)
{
    const struct iovec *pieces = source_pieces(l, 0);
    const size_t fields = l->source.fields, bytes = l->message_bytes;
    const bool pipe = l->transport == TRANSPORT_PIPE;
    char *gathered = l->state;
    while (link_going(l)) {
        source_fill(l, 0);
        char *to = gathered;
        for (size_t f = 0; f < fields; f++) {
            memcpy(to, pieces[f].iov_base, pieces[f].iov_len);
            to += pieces[f].iov_len;
        }
        ssize_t r =
            pipe ? call_write(l->fd, gathered, bytes) : call_send(l->fd, gathered, bytes, 0);
        if (__builtin_expect(r != (ssize_t)bytes, 0)) {
            int code = short_send(l, gathered, bytes, r, err);
            if (code)
                return code;
        }
        link_count(l, 1, bytes, 1);
    }
    return 0;
}

/* What a gathering call left over, piece by piece. */
static int short_sendmsg(struct link *l, const struct iovec *pieces, size_t count, ssize_t r,
                         struct error *err)
{
    if (r < 0 && errno != EINTR)
        return link_failed(l, "sendmsg", -errno, err);
    size_t done = r > 0 ? (size_t)r : 0;
    for (size_t i = 0; i < count; i++) {
        size_t skip = done < pieces[i].iov_len ? done : pieces[i].iov_len;
        done -= skip;
        int code =
            send_rest(l, (const char *)pieces[i].iov_base + skip, pieces[i].iov_len - skip, err);
        if (code)
            return code;
    }
    return 0;
}

static int run_gathers(struct link *l, uint64_t messages, struct error *err)
{
    struct iovec *pieces = source_pieces(l, 0);
    const size_t count = l->source.fields * messages, bytes = l->message_bytes * messages;
    const bool pipe = l->transport == TRANSPORT_PIPE;
    const struct msghdr header = {.msg_iov = pieces, .msg_iovlen = count};
    while (link_going(l)) {
        for (uint64_t i = 0; i < messages; i++)
            source_fill(l, i);
        ssize_t r = pipe ? call_writev(l->fd, pieces, count) : call_sendmsg(l->fd, &header, 0);
        if (__builtin_expect(r != (ssize_t)bytes, 0)) {
            int code = short_sendmsg(l, pieces, count, r, err);
            if (code)
                return code;
        }
        link_count(l, messages, bytes, 1);
    }
    return 0;
}

static int run_sendmsg(struct link *l, struct error *err)
{
    return run_gathers(l, 1, err);
}

static int open_batch_sendmsg(struct link *l, struct error *err)
{
    const struct settings *s = l->settings;
    if (s->batch * s->fields > IOV_MAX)
        return error_set(err, -EINVAL,
                         "%llu messages of %llu fields exceed the %d pieces of one sendmsg; use a "
                         "smaller --batch or fewer --fields",
                         (unsigned long long)s->batch, (unsigned long long)s->fields, IOV_MAX);
    return source_open(l, SOURCE_FIELDS, s->batch, false, err);
}

/* Datagrams stay apart: sendmmsg. */
static int run_sendmmsg(struct link *l, struct error *err)
{
    struct mmsghdr headers[BATCH_MAX];
    const unsigned batch = (unsigned)l->settings->batch;
    memset(headers, 0, sizeof(headers[0]) * batch);
    for (unsigned i = 0; i < batch; i++) {
        headers[i].msg_hdr.msg_iov = source_pieces(l, i);
        headers[i].msg_hdr.msg_iovlen = l->source.fields;
    }
    while (link_going(l)) {
        for (unsigned i = 0; i < batch; i++)
            source_fill(l, i);
        for (unsigned done = 0; done < batch;) {
            int r = sendmmsg(l->fd, headers + done, batch - done, 0);
            if (r < 0 && errno != EINTR)
                return link_failed(l, "sendmmsg", -errno, err);
            unsigned sent = r > 0 ? (unsigned)r : 0;
            done += sent;
            link_count(l, sent, sent * l->message_bytes, 1);
        }
    }
    return 0;
}

static int run_batch_sendmsg(struct link *l, struct error *err)
{
    return l->transport == TRANSPORT_UDP ? run_sendmmsg(l, err)
                                         : run_gathers(l, l->settings->batch, err);
}

const struct variant variant_send = {
    .name = "send",
    .summary = "one contiguous buffer, one send() per message",
    .role = ROLE_SEND,
    .plain = true,
    .transports = TRANSPORT_SOCKETS | TRANSPORT_PIPE,
    .claim = {COPIES_ONE, COPIES_NOT_MY_SIDE, "user to kernel in send()"},
    .open = open_packed,
    .run = run_send,
    .close = close_source,
};

const struct variant variant_send_corked = {
    .name = "send-corked",
    .summary = "one send() per message; TCP sends only whole segments (TCP_CORK)",
    .role = ROLE_SEND,
    .plain = true,
    .transports = TRANSPORT_STREAMS_TCP,
    .claim = {COPIES_ONE, COPIES_NOT_MY_SIDE, "user to kernel in send()"},
    .open = open_corked,
    .run = run_corked,
    .close = close_source,
};

const struct variant variant_send8 = {
    .name = "send8",
    .summary = "a send() for each of --fields fields (the study's A1)",
    .role = ROLE_SEND,
    .plain = true,
    .transports = TRANSPORT_STREAM_SOCKETS | TRANSPORT_PIPE,
    .claim = {COPIES_ONE, COPIES_NOT_MY_SIDE, "user to kernel in send(), a field at a time"},
    .fields = true,
    .open = open_fields,
    .run = run_send8,
    .close = close_source,
};

const struct variant variant_copy_send = {
    .name = "copy-send",
    .summary = "--fields fields gathered by memcpy, one send()",
    .role = ROLE_SEND,
    .plain = true,
    .transports = TRANSPORT_SOCKETS | TRANSPORT_PIPE,
    .claim = {COPIES_TWO, COPIES_NOT_MY_SIDE,
              "memcpy in user space, then user to kernel in send()"},
    .fields = true,
    .open = open_copy_send,
    .run = run_copy_send,
    .close = close_copy_send,
};

const struct variant variant_sendmsg = {
    .name = "sendmsg",
    .summary = "--fields fields by one sendmsg() (the study's A2)",
    .role = ROLE_SEND,
    .plain = true,
    .transports = TRANSPORT_SOCKETS | TRANSPORT_PIPE,
    .claim = {COPIES_ONE, COPIES_NOT_MY_SIDE, "user to kernel in sendmsg(), a field at a time"},
    .fields = true,
    .open = open_fields,
    .run = run_sendmsg,
    .close = close_source,
};

const struct variant variant_batch_send = {
    .name = "batch-send",
    .summary = "--batch messages that lie back to back, one send()",
    .role = ROLE_SEND,
    .plain = true,
    .transports = TRANSPORT_STREAM_SOCKETS | TRANSPORT_PIPE,
    .claim = {COPIES_ONE, COPIES_NOT_MY_SIDE, "user to kernel in send()"},
    .batches = true,
    .open = open_batch,
    .run = run_batch_send,
    .close = close_source,
};

const struct variant variant_batch_sendmsg = {
    .name = "batch-sendmsg",
    .summary = "--batch messages of --fields fields, one sendmsg() (UDP: sendmmsg)",
    .role = ROLE_SEND,
    .plain = true,
    .transports = TRANSPORT_SOCKETS | TRANSPORT_PIPE,
    .claim = {COPIES_ONE, COPIES_NOT_MY_SIDE, "user to kernel in sendmsg(), a field at a time"},
    .batches = true,
    .fields = true,
    .open = open_batch_sendmsg,
    .run = run_batch_sendmsg,
    .close = close_source,
};
