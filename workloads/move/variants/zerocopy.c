/* SPDX-License-Identifier: MIT */
/*
 * MSG_ZEROCOPY done right: the kernel reads the pages until it says so, hence a message's slot is
 * not touched before its completion.  Completions are read from the error queue in ranges, half a
 * ring at a time, so that they cost a call per hundreds of messages.  Each tells whether the kernel
 * copied after all; over loopback it does, which is what this program is there to show.
 *
 * Follows Documentation/networking/msg_zerocopy.rst.
 */
#include "zerocopy.h"
#include "base/memory.h"
#include "calls.h"
#include "settings.h"
#include "variants.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <linux/errqueue.h> /* after time.h, for musl */

#ifndef SO_EE_CODE_ZEROCOPY_COPIED
#define SO_EE_CODE_ZEROCOPY_COPIED 1
#endif

enum { PINNED_BYTES_MAX = 3 << 20, SLOTS_MIN = 4, SLOTS_MAX = 512, COMPLETION_MS = 10000 };

/* The kernel numbers the sends of a socket from 0.  A message may take several after a short one.
 */
struct zerocopy {
    uint32_t next_id;
    uint32_t outstanding; /* ids without their completion */
    uint32_t id_mask;
    uint32_t *slot_of;  /* by id & id_mask */
    uint32_t *pending;  /* ids under way, by slot */
    struct iovec *rest; /* what is left of a message that went in part */
    int waited_ms;      /* for room that other connections have */
};

/* The connections of an ordinary user share the limit of locked memory. */
static size_t pinned_bytes_max(const struct link *l)
{
    struct rlimit limit;
    if (geteuid() == 0 || getrlimit(RLIMIT_MEMLOCK, &limit) < 0)
        return PINNED_BYTES_MAX;
    rlim_t share = limit.rlim_cur / 4 * 3 / l->settings->threads;
    return share < PINNED_BYTES_MAX ? (size_t)share : PINNED_BYTES_MAX;
}

size_t zerocopy_slots(const struct link *l)
{
    size_t pinned = l->message_bytes + 2 * 4096; /* as the kernel accounts for a send */
    size_t slots = pinned_bytes_max(l) / pinned;
    return slots < SLOTS_MIN ? SLOTS_MIN : slots > SLOTS_MAX ? SLOTS_MAX : slots;
}

int zerocopy_open(struct link *l, enum source_layout layout, struct error *err)
{
    int yes = 1;
    struct zerocopy *z = memory_zalloc(1, sizeof(*z));
    l->state = z;
    if (setsockopt(l->fd, SOL_SOCKET, SO_ZEROCOPY, &yes, sizeof(yes)) < 0)
        return error_errno(err, -errno, "SO_ZEROCOPY is refused for this socket");
    size_t slots = zerocopy_slots(l);
    int r = source_open(l, layout, slots, false, err);
    if (r < 0)
        return r;
    size_t ids = 1;
    while (ids < slots * 4)
        ids *= 2;
    z->id_mask = (uint32_t)ids - 1;
    z->slot_of = memory_zalloc(ids, sizeof(*z->slot_of));
    z->pending = memory_zalloc(slots, sizeof(*z->pending));
    z->rest = memory_zalloc(l->source.fields, sizeof(*z->rest));
    return 0;
}

static void complete(struct link *l, const struct sock_extended_err *e)
{
    struct zerocopy *z = l->state;
    uint32_t low = e->ee_info, high = e->ee_data, count = high - low + 1;
    for (uint32_t id = low; count && z->outstanding; id++, count--) {
        z->pending[z->slot_of[id & z->id_mask]]--;
        z->outstanding--;
        count_add(
            e->ee_code & SO_EE_CODE_ZEROCOPY_COPIED ? &l->counts->refused : &l->counts->granted, 1);
    }
}

/* Reads what the error queue holds: how many completions, or a negative errno. */
static int reap(struct link *l)
{
    struct zerocopy *z = l->state;
    uint32_t before = z->outstanding;
    for (;;) {
        char control[128];
        struct msghdr m = {.msg_control = control, .msg_controllen = sizeof(control)};
        count_add(&l->counts->calls, 1);
        if (recvmsg(l->fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
            return errno == EAGAIN || errno == EINTR ? (int)(before - z->outstanding) : -errno;
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
            struct sock_extended_err e;
            memcpy(&e, CMSG_DATA(c), sizeof(e));
            if (e.ee_origin == SO_EE_ORIGIN_ZEROCOPY)
                complete(l, &e);
        }
        if (!z->outstanding)
            return (int)before;
    }
}

/* Waits for one completion or more. */
static int wait_completion(struct link *l, int timeout_ms, struct error *err)
{
    for (;;) {
        int r = reap(l);
        if (r > 0)
            return 0;
        if (r == 0) {
            count_add(&l->counts->calls, 1);
            r = link_wait(l, 0, timeout_ms); /* POLLERR comes unasked */
            if (r == 0)
                return error_set(err, -ETIMEDOUT, "connection %u: no completion within %d s",
                                 l->index, timeout_ms / 1000);
        }
        if (r < 0)
            return link_failed(l, "the error queue", r, err);
    }
}

/* The message, or what is left of it, in one call; the bytes that went. */
static ssize_t send_pieces(struct link *l, struct iovec *pieces, size_t count, size_t slot)
{
    struct zerocopy *z = l->state;
    const struct msghdr m = {.msg_iov = pieces, .msg_iovlen = count};
    ssize_t r = call_sendmsg(l->fd, &m, MSG_ZEROCOPY);
    count_add(&l->counts->calls, 1);
    if (r < 0)
        return -errno;
    z->slot_of[z->next_id++ & z->id_mask] = (uint32_t)slot;
    z->pending[slot]++;
    z->outstanding++;
    return r;
}

/* No room for another notification: completions make some, this connection's or another's. */
static int make_room(struct link *l, struct error *err)
{
    struct zerocopy *z = l->state;
    if (!z->outstanding) {
        if (l->settings->threads == 1 || z->waited_ms++ == COMPLETION_MS)
            return link_failed(l, "sendmsg with MSG_ZEROCOPY", -ENOBUFS, err);
        usleep(1000);
        return 0;
    }
    z->waited_ms = 0;
    count_add(&l->counts->waits, 1);
    return wait_completion(l, COMPLETION_MS, err);
}

static int send_rest(struct link *l, size_t slot, size_t done, struct error *err)
{
    struct zerocopy *z = l->state;
    while (done < l->message_bytes) {
        const struct iovec *whole = source_pieces(l, slot);
        size_t count = 0, skip = done;
        for (size_t f = 0; f < l->source.fields; f++) {
            if (skip >= whole[f].iov_len) {
                skip -= whole[f].iov_len;
                continue;
            }
            z->rest[count++] =
                (struct iovec){(char *)whole[f].iov_base + skip, whole[f].iov_len - skip};
            skip = 0;
        }
        while (z->outstanding > z->id_mask) {
            int r = make_room(l, err);
            if (r < 0)
                return r;
        }
        ssize_t r = send_pieces(l, z->rest, count, slot);
        if (r == -ENOBUFS)
            r = make_room(l, err);
        if (r < 0 && r != -EINTR)
            return link_failed(l, "sendmsg with MSG_ZEROCOPY", (int)r, err);
        done += r > 0 ? (size_t)r : 0;
    }
    return 0;
}

static int free_slot(struct link *l, size_t slot, struct error *err)
{
    struct zerocopy *z = l->state;
    if (z->pending[slot])
        count_add(&l->counts->waits, 1);
    while (z->pending[slot]) {
        int r = wait_completion(l, COMPLETION_MS, err);
        if (r < 0)
            return r;
    }
    return 0;
}

int zerocopy_run(struct link *l, struct error *err)
{
    struct zerocopy *z = l->state;
    const size_t slots = l->source.slots, fields = l->source.fields;
    const uint32_t reap_at = (uint32_t)slots / 2;
    size_t slot = 0;
    while (link_going(l)) {
        if (z->outstanding >= reap_at && slot % reap_at == 0) {
            int r = reap(l);
            if (r < 0)
                return link_failed(l, "the error queue", r, err);
        }
        if (__builtin_expect(z->pending[slot] != 0, 0)) {
            int r = free_slot(l, slot, err);
            if (r < 0)
                return r;
        }
        source_fill(l, slot);
        ssize_t r = send_pieces(l, source_pieces(l, slot), fields, slot);
        if (__builtin_expect(r != (ssize_t)l->message_bytes, 0)) {
            if (r < 0 && r != -ENOBUFS && r != -EINTR)
                return link_failed(l, "sendmsg with MSG_ZEROCOPY", (int)r, err);
            int code = r == -ENOBUFS ? make_room(l, err) : 0;
            code = code ? code : send_rest(l, slot, r > 0 ? (size_t)r : 0, err);
            if (code < 0)
                return code;
        }
        link_count(l, 1, l->message_bytes, 0);
        slot = slot + 1 == slots ? 0 : slot + 1;
    }
    return 0;
}

int zerocopy_close(struct link *l, struct error *err)
{
    struct zerocopy *z = l->state;
    int r = 0;
    if (!z)
        return 0;
    while (r == 0 && z->outstanding)
        r = wait_completion(l, COMPLETION_MS, err);
    free(z->slot_of);
    free(z->pending);
    free(z->rest);
    free(z);
    l->state = NULL;
    source_close(l);
    return r;
}

static int open_aligned(struct link *l, struct error *err)
{
    return zerocopy_open(l, SOURCE_ALIGNED, err);
}

static int open_fields(struct link *l, struct error *err)
{
    return zerocopy_open(l, SOURCE_FIELDS, err);
}

const struct variant variant_zerocopy = {
    .name = "zerocopy",
    .summary = "MSG_ZEROCOPY from aligned pages, completions reaped, slots not reused early",
    .role = ROLE_SEND,
    .transports = TRANSPORT_STREAMS_TCP | TRANSPORT_UDP,
    .claim = {COPIES_IF_REFUSED, COPIES_NOT_MY_SIDE,
              "none in sendmsg(); where the device needs it, later in the kernel"},
    .open = open_aligned,
    .run = zerocopy_run,
    .close = zerocopy_close,
};

const struct variant variant_zerocopy_fields = {
    .name = "zerocopy-fields",
    .summary = "the same with --fields pieces per message (the study's A3)",
    .role = ROLE_SEND,
    .transports = TRANSPORT_STREAMS_TCP | TRANSPORT_UDP,
    .claim = {COPIES_IF_REFUSED, COPIES_NOT_MY_SIDE,
              "none in sendmsg(); where the device needs it, later in the kernel"},
    .fields = true,
    .open = open_fields,
    .run = zerocopy_run,
    .close = zerocopy_close,
};
