/* SPDX-License-Identifier: MIT */
/*
 * A variant that breaks the rule, for the test that --verify catches it: it hands pages over by
 * reference and writes the next message into them at once.
 */
#include "settings.h"
#include "variants.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

static int open_broken(struct link *l, struct error *err)
{
    int yes = 1;
    if (l->transport != TRANSPORT_PIPE &&
        setsockopt(l->fd, SOL_SOCKET, SO_ZEROCOPY, &yes, sizeof(yes)) < 0)
        return error_errno(err, -errno, "SO_ZEROCOPY");
    return source_open(l, SOURCE_ALIGNED, 1, false, err);
}

static int run_broken(struct link *l, struct error *err)
{
    while (link_going(l)) {
        source_fill(l, 0);
        for (size_t done = 0; done < l->message_bytes;) {
            struct iovec rest = {l->source.base + done, l->message_bytes - done};
            const struct msghdr m = {.msg_iov = &rest, .msg_iovlen = 1};
            ssize_t r = l->transport == TRANSPORT_PIPE ? vmsplice(l->fd, &rest, 1, 0)
                                                       : sendmsg(l->fd, &m, MSG_ZEROCOPY);
            if (r < 0 && errno != EINTR && errno != ENOBUFS)
                return link_failed(l, "send", -errno, err);
            done += r > 0 ? (size_t)r : 0;
        }
        link_count(l, 1, l->message_bytes, 1);
    }
    return 0;
}

static int close_broken(struct link *l, struct error *err)
{
    (void)err;
    source_close(l);
    return 0;
}

const struct variant variant_broken = {
    .name = "broken-reuse",
    .summary = "writes into pages that the kernel still reads",
    .role = ROLE_SEND,
    .transports = TRANSPORT_STREAMS_TCP | TRANSPORT_PIPE,
    .claim = {COPIES_IF_REFUSED, COPIES_NOT_MY_SIDE, "none, in violation of the rules"},
    .hidden = true,
    .open = open_broken,
    .run = run_broken,
    .close = close_broken,
};
