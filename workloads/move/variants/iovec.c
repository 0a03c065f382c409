/* SPDX-License-Identifier: MIT */
/*
 * The no-copy question: a message of --pieces buffers of --size bytes each, which lie apart, is
 * handed over as a list of addresses.  Each variant is another call that takes such a list; what
 * the kernel then does with the bytes is what differs, and what --prove shows.
 *
 * A call takes IOV_MAX pieces at most and may take fewer bytes than were given: `struct rest` is
 * what is left of a message.
 */
#include "base/fd.h"
#include "base/memory.h"
#include "base/portable.h"
#include "config.h"
#include "settings.h"
#include "shm_ring.h"
#include "variants.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#define LOOK_MS 50

/* Pieces that are still to go; the first may be cut, in a copy of the list. */
struct rest {
    struct iovec *pieces;
    size_t count;
    struct iovec *own; /* room for a cut list */
};

static inline int rest_count(const struct rest *r)
{
    return (int)(r->count < IOV_MAX ? r->count : IOV_MAX);
}

static void rest_skip(struct rest *r, size_t done)
{
    while (r->count && done >= r->pieces->iov_len) {
        done -= r->pieces->iov_len;
        r->pieces++;
        r->count--;
    }
    if (!done)
        return;
    /* Never cut the source's own list: the next message needs it whole. */
    if (r->pieces < r->own || r->pieces >= r->own + r->count) {
        memmove(r->own, r->pieces, r->count * sizeof(*r->pieces));
        r->pieces = r->own;
    }
    r->pieces->iov_base = (char *)r->pieces->iov_base + done;
    r->pieces->iov_len -= done;
}

/* Sends some of the rest: bytes taken or a negative errno. */
typedef ssize_t send_some(struct link *l, const struct rest *r);

struct pieces_sender {
    struct iovec *own;
    size_t slot;
    void *more; /* the variant's */
};

static int open_pieces(struct link *l, size_t slots, struct error *err)
{
    int r = source_open(l, SOURCE_PIECES, slots, false, err);
    if (r < 0)
        return r;
    struct pieces_sender *s = memory_zalloc(1, sizeof(*s));
    s->own = memory_zalloc(l->source.fields, sizeof(*s->own));
    l->state = s;
    return 0;
}

static int open_one(struct link *l, struct error *err)
{
    return open_pieces(l, 1, err);
}

static int close_pieces(struct link *l, struct error *err)
{
    (void)err;
    struct pieces_sender *s = l->state;
    if (s)
        free(s->own);
    free(s);
    l->state = NULL;
    source_close(l);
    return 0;
}

static size_t next_slot(struct link *l)
{
    struct pieces_sender *s = l->state;
    size_t slot = s->slot;
    if (++s->slot == l->source.slots)
        s->slot = 0;
    source_fill(l, slot);
    return slot;
}

static int run_pieces(struct link *l, send_some *some, const char *call, struct error *err)
{
    struct pieces_sender *s = l->state;
    while (link_going(l)) {
        struct rest rest = {
            .pieces = source_pieces(l, next_slot(l)), .count = l->source.fields, .own = s->own};
        uint64_t calls = 0;
        while (rest.count) {
            ssize_t r = some(l, &rest);
            calls++;
            if (r < 0 && r != -EINTR && r != -EAGAIN)
                return link_failed(l, call, (int)r, err);
            if (r > 0)
                rest_skip(&rest, (size_t)r);
        }
        link_count(l, 1, l->message_bytes, calls);
    }
    return 0;
}

static ssize_t result(ssize_t r)
{
    return r < 0 ? -errno : r;
}

static ssize_t some_write(struct link *l, const struct rest *r)
{
    return result(write(l->fd, r->pieces->iov_base, r->pieces->iov_len));
}

static ssize_t some_writev(struct link *l, const struct rest *r)
{
    return result(writev(l->fd, r->pieces, rest_count(r)));
}

static ssize_t some_vmsplice(struct link *l, const struct rest *r)
{
    return result(vmsplice(l->fd, r->pieces, (size_t)rest_count(r), 0));
}

static int run_write(struct link *l, struct error *err)
{
    return run_pieces(l, some_write, "write", err);
}

static int run_writev(struct link *l, struct error *err)
{
    return run_pieces(l, some_writev, "writev", err);
}

/* The pipe holds the pages themselves, so a buffer is free again only when the pipe cannot hold it
 * any more. */
static int open_vmsplice(struct link *l, struct error *err)
{
    int pipe_bytes = fcntl(l->fd, F_GETPIPE_SZ);
    size_t slots = 1;
    if (l->fill)
        slots = (size_t)(pipe_bytes > 0 ? pipe_bytes : 1 << 20) / l->message_bytes + 2;
    return open_pieces(l, slots, err);
}

static int run_vmsplice(struct link *l, struct error *err)
{
    return run_pieces(l, some_vmsplice, "vmsplice", err);
}

/* Into a file in memory and back, by the same process. */
struct file_copy {
    struct iovec *back; /* as many pieces elsewhere */
    char *memory;
    char *gathered; /* for the proofs */
    int fd;
};

static int open_file(struct link *l, struct error *err)
{
    int r = open_pieces(l, 1, err);
    if (r < 0)
        return r;
    struct pieces_sender *s = l->state;
    struct file_copy *f = memory_zalloc(1, sizeof(*f));
    f->fd = -1;
    s->more = f;
    f->memory = memory_zalloc(1, l->source.bytes);
    f->gathered = memory_zalloc(1, l->message_bytes);
    f->back = memory_zalloc(l->source.fields, sizeof(*f->back));
    for (size_t i = 0; i < l->source.fields; i++) {
        struct iovec *piece = source_pieces(l, 0) + i;
        f->back[i] =
            (struct iovec){f->memory + ((char *)piece->iov_base - l->source.base), piece->iov_len};
    }
    f->fd = memfd_create("assay-move-pieces", MFD_CLOEXEC);
    if (f->fd < 0 || ftruncate(f->fd, (off_t)l->message_bytes) < 0)
        return error_errno(err, -errno, "a file in memory of %zu bytes", l->message_bytes);
    return 0;
}

/* Where the pieces lie is not where the next begins: they are gathered first. */
static const void *file_arrived(struct link *l)
{
    struct pieces_sender *s = l->state;
    const struct file_copy *f = s->more;
    char *to = f->gathered;
    for (size_t i = 0; i < l->source.fields; i++) {
        memcpy(to, f->back[i].iov_base, f->back[i].iov_len);
        to += f->back[i].iov_len;
    }
    return f->gathered;
}

static int close_file(struct link *l, struct error *err)
{
    struct pieces_sender *s = l->state;
    struct file_copy *f = s ? s->more : NULL;
    if (f) {
        fd_closep(&f->fd);
        free(f->back);
        free(f->memory);
        free(f->gathered);
    }
    free(f);
    return close_pieces(l, err);
}

static int whole(struct link *l, struct rest rest, int fd, bool into, uint64_t *calls,
                 struct error *err)
{
    off_t at = 0;
    while (rest.count) {
        ssize_t r = into ? pwritev2(fd, rest.pieces, rest_count(&rest), at, 0)
                         : preadv2(fd, rest.pieces, rest_count(&rest), at, 0);
        ++*calls;
        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            return link_failed(l, into ? "pwritev2" : "preadv2", r < 0 ? -errno : -EIO, err);
        at += r;
        rest_skip(&rest, (size_t)r);
    }
    return 0;
}

static int run_file(struct link *l, struct error *err)
{
    struct pieces_sender *s = l->state;
    const struct file_copy *f = s->more;
    const size_t count = l->source.fields;
    while (link_going(l)) {
        uint64_t calls = 0;
        struct rest out = {.pieces = source_pieces(l, next_slot(l)), .count = count, .own = s->own};
        int r = whole(l, out, f->fd, true, &calls, err);
        struct rest back = {.pieces = f->back, .count = count, .own = s->own};
        r = r ? r : whole(l, back, f->fd, false, &calls, err);
        if (r)
            return r;
        link_count(l, 1, l->message_bytes, calls);
    }
    return 0;
}

/*
 * process_vm_readv: the receiver reads the sender's memory.  What goes through the shared ring is
 * only which buffer is ready; the list of addresses is in shared memory from the start.
 */
enum { OFFERS = 4 }; /* messages that may be under way; the ring has as many slots */

struct offers {
    _Alignas(4096) int32_t sender_pid;
    uint32_t piece_count;
    struct iovec pieces[]; /* OFFERS × piece_count, addresses in the sender */
};

static size_t offers_bytes(const struct settings *s)
{
    size_t bytes = sizeof(struct offers) + OFFERS * s->pieces * sizeof(struct iovec);
    return (bytes + 4095) / 4096 * 4096;
}

static size_t readv_needs(const struct settings *s)
{
    return offers_bytes(s) + shm_ring_shared_bytes(OFFERS * sizeof(uint64_t), sizeof(uint64_t));
}

static void open_offer_ring(struct link *l, struct shm_ring_end *e, bool is_writer)
{
    shm_ring_open(e, (char *)l->shared + offers_bytes(l->settings), OFFERS * sizeof(uint64_t),
                  sizeof(uint64_t), is_writer);
}

static int open_offer(struct link *l, struct error *err)
{
    int r = open_pieces(l, OFFERS, err);
    if (r < 0)
        return r;
    struct pieces_sender *s = l->state;
    struct offers *o = l->shared;
    struct shm_ring_end *e = memory_zalloc(1, sizeof(*e));
    s->more = e;
    o->sender_pid = getpid();
    o->piece_count = (uint32_t)l->source.fields;
    memcpy(o->pieces, l->source.pieces, OFFERS * l->source.fields * sizeof(struct iovec));
    open_offer_ring(l, e, true);
    return 0;
}

static int run_offer(struct link *l, struct error *err)
{
    struct pieces_sender *s = l->state;
    struct shm_ring_end *e = s->more;
    while (link_going(l)) {
        /* Room in the ring means that the reader is done with the buffer of the same number. */
        uint64_t *to = shm_ring_claim(e, LOOK_MS);
        if (!to && shm_ring_is_closed(e))
            return link_failed(l, "the ring", -EPIPE, err);
        if (!to)
            continue;
        *to = next_slot(l);
        shm_ring_wrote(e);
        shm_ring_flush(e);
        link_count(l, 1, l->message_bytes, 0);
    }
    /* The memory must stay until the last message is read. */
    while (!shm_ring_drained(e, LOOK_MS) && !shm_ring_is_closed(e) && l->limit == UINT64_MAX)
        continue;
    return 0;
}

static int close_offer(struct link *l, struct error *err)
{
    struct pieces_sender *s = l->state;
    struct shm_ring_end *e = s ? s->more : NULL;
    if (e)
        shm_ring_close(e);
    free(e);
    return close_pieces(l, err);
}

struct remote_reader {
    struct shm_ring_end end;
    char *buffer;
};

static int open_remote(struct link *l, struct error *err)
{
    (void)err;
    struct remote_reader *r = memory_zalloc(1, sizeof(*r));
    l->state = r;
    r->buffer = memory_zalloc(1, l->message_bytes);
    open_offer_ring(l, &r->end, false);
    return 0;
}

static int read_remote(struct link *l, const struct offers *o, uint64_t slot, char *to,
                       uint64_t *calls, struct error *err)
{
    const struct iovec *pieces = o->pieces + slot * o->piece_count;
    for (size_t i = 0; i < o->piece_count; i += IOV_MAX) {
        size_t count = o->piece_count - i < IOV_MAX ? o->piece_count - i : IOV_MAX, bytes = 0;
        for (size_t j = 0; j < count; j++)
            bytes += pieces[i + j].iov_len;
        struct iovec into = {to, bytes};
        ssize_t r = process_vm_readv(o->sender_pid, &into, 1, pieces + i, count, 0);
        ++*calls;
        if (r < 0 && errno == EPERM)
            return error_set(err, -EPERM,
                             "process_vm_readv: not allowed to read the sender's memory; it needs "
                             "root, CAP_SYS_PTRACE or kernel.yama.ptrace_scope=0");
        if (r != (ssize_t)bytes)
            return link_failed(l, "process_vm_readv", r < 0 ? -errno : -EFAULT, err);
        to += bytes;
    }
    return 0;
}

static int run_remote(struct link *l, struct error *err)
{
    struct remote_reader *s = l->state;
    const struct offers *o = l->shared;
    while (link_wants(l)) {
        const uint64_t *slot = shm_ring_peek(&s->end, LOOK_MS);
        if (!slot) {
            if (shm_ring_is_closed(&s->end) || atomic_load_explicit(l->stop, memory_order_relaxed))
                return 0;
            continue;
        }
        uint64_t calls = 0;
        int r = read_remote(l, o, *slot % OFFERS, s->buffer, &calls, err);
        r = r ? r : link_seen(l, s->buffer, l->message_bytes, err);
        if (r)
            return r;
        shm_ring_took(&s->end);
        link_count(l, 0, l->message_bytes, calls);
    }
    return 0;
}

static int close_remote(struct link *l, struct error *err)
{
    (void)err;
    struct remote_reader *r = l->state;
    if (r) {
        if (r->end.shared)
            shm_ring_close(&r->end);
        free(r->buffer);
    }
    free(r);
    l->state = NULL;
    return 0;
}

const struct variant variant_iovec_write = {
    .name = "iovec-write",
    .summary = "--pieces buffers of --size bytes, a write() each",
    .role = ROLE_SEND,
    .transports = TRANSPORT_UNIX | TRANSPORT_PIPE,
    .claim = {COPIES_ONE, COPIES_NOT_MY_SIDE, "user to kernel in write(), a piece at a time"},
    .pieces = true,
    .open = open_one,
    .run = run_write,
    .close = close_pieces,
};

const struct variant variant_iovec_writev = {
    .name = "iovec-writev",
    .summary = "--pieces buffers of --size bytes by writev()",
    .role = ROLE_SEND,
    .transports = TRANSPORT_UNIX | TRANSPORT_PIPE,
    .claim = {COPIES_ONE, COPIES_NOT_MY_SIDE, "user to kernel in writev(): a list saves no copy"},
    .pieces = true,
    .open = open_one,
    .run = run_writev,
    .close = close_pieces,
};

const struct variant variant_iovec_vmsplice = {
    .name = "iovec-vmsplice",
    .summary = "--pieces buffers of --size bytes by vmsplice()",
    .role = ROLE_SEND,
    .transports = TRANSPORT_PIPE,
    .claim = {COPIES_NONE, COPIES_NOT_MY_SIDE, "the pipe holds the sender's own pages"},
    .pieces = true,
    .open = open_vmsplice,
    .run = run_vmsplice,
    .close = close_pieces,
};

const struct variant variant_iovec_pwritev2 = {
    .name = "iovec-pwritev2",
    .summary = "--pieces buffers into a file in memory by pwritev2(), back by preadv2()",
    .role = ROLE_ALONE,
    .transports = TRANSPORT_NONE,
    .claim = {COPIES_ONE, COPIES_ONE, "user to page cache in pwritev2(), back in preadv2()"},
    .pieces = true,
    .open = open_file,
    .run = run_file,
    .arrived = file_arrived,
    .close = close_file,
};

const struct variant variant_iovec_process_vm_readv = {
    .name = "iovec-process-vm-readv",
    .summary = "--pieces buffers that the receiver reads by process_vm_readv()",
    .role = ROLE_SEND,
    .transports = TRANSPORT_SHM,
    .claim = {COPIES_NONE, COPIES_ONE, "one copy from user to user, made by the receiver"},
    .pieces = true,
    .partner = "iovec-vm-receive",
    .shared_bytes = readv_needs,
    .open = open_offer,
    .run = run_offer,
    .close = close_offer,
};

const struct variant variant_iovec_vm_receive = {
    .name = "iovec-vm-receive",
    .summary = "the receive side of iovec-process-vm-readv",
    .role = ROLE_RECEIVE,
    .transports = TRANSPORT_SHM,
    .claim = {COPIES_NOT_MY_SIDE, COPIES_ONE, "from the sender's memory in process_vm_readv()"},
    .open = open_remote,
    .run = run_remote,
    .close = close_remote,
};
