/* SPDX-License-Identifier: MIT */
/*
 * The variant interface: one way of moving messages, one table entry.
 *
 * A variant is a `const struct variant` in the file of its family, listed in variants.c.  The frame
 * makes the connections, starts a sender and a receiver process with one thread and one link each
 * per connection, and reads the published counters of every link while the variant's run() loops.
 * So a loop holds nothing but the calls that are studied and link_count().
 *
 * Life of a link: open() in the thread that will run it, run() until it returns, close().  All
 * three are called by one thread.  open() may allocate, register and refuse; run() must not
 * allocate.
 *
 *   sender:    while (link_going(l)) { source_fill(l, slot); send…; link_count(l, 1, bytes, 1); }
 *              run() may return before the kernel let go of the last buffers; close() waits for
 * that. receiver:  while (link_going(l)) { recv…; 0: return 0; link_seen(l, data, got);
 *              link_count(l, 0, got, 1); }
 *              The end is the sender's: end of file, or l->stop where a transport has none (UDP).
 *
 * The same run() serves the proofs (prove.c), which set l->limit.
 */
#ifndef ASSAY_MOVE_VARIANT_H
#define ASSAY_MOVE_VARIANT_H

#include "base/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* Bits, as a variant takes several. */
enum transport {
    TRANSPORT_TCP = 1 << 0,
    TRANSPORT_UNIX = 1 << 1, /* a stream socket */
    TRANSPORT_UDP = 1 << 2,
    TRANSPORT_PIPE = 1 << 3,
    TRANSPORT_SHM = 1 << 4,  /* no descriptor at all: l->shared */
    TRANSPORT_VETH = 1 << 5, /* TCP between two network namespaces */
    TRANSPORT_NONE = 1 << 6, /* a variant that is alone */
};
#define TRANSPORT_STREAMS_TCP (TRANSPORT_TCP | TRANSPORT_VETH)
#define TRANSPORT_STREAM_SOCKETS (TRANSPORT_STREAMS_TCP | TRANSPORT_UNIX)
#define TRANSPORT_SOCKETS (TRANSPORT_STREAM_SOCKETS | TRANSPORT_UDP)

enum role {
    ROLE_SEND,
    ROLE_RECEIVE,
    ROLE_ALONE, /* no partner: run() moves the messages by itself and is measured itself */
};

/* How the bytes of one message are copied on one side. */
enum copies {
    COPIES_NONE,        /* handed over by reference */
    COPIES_ONE,         /* copied once, within the call */
    COPIES_TWO,         /* gathered in user space, then copied within the call */
    COPIES_IF_REFUSED,  /* by reference if granted, else copied later: completions tell */
    COPIES_SOME,        /* depends on what arrived: the proofs tell */
    COPIES_NOT_MY_SIDE, /* the variant is of the other side */
};

/* What a variant says of itself; --prove holds it against what happened. */
struct claim {
    enum copies send, receive;
    const char *words; /* where they happen, in one line */
};

/* Written by a link's own thread, read by the controller while it runs.  All are totals. */
struct counts {
    _Atomic uint64_t messages; /* receivers of streams leave this 0: bytes / size */
    _Atomic uint64_t bytes;
    _Atomic uint64_t calls;   /* system calls that the variant made */
    _Atomic uint64_t granted; /* zero-copy sends that the kernel reports as not copied */
    _Atomic uint64_t refused; /* zero-copy sends that it reports as copied after all */
    _Atomic uint64_t waits;   /* had to wait for a buffer or for ENOBUFS to pass */
    _Atomic uint64_t lost;    /* datagrams missing in the sequence (--verify) */
} __attribute__((aligned(128)));

/* The sender's messages in memory: `slots` of them, filled once and, with --verify, again for each
 * message.  Between run() and close() the kernel may read any slot that was sent. */
enum source_layout {
    SOURCE_PACKED,  /* back to back: n messages from slot i on are one piece of memory */
    SOURCE_ALIGNED, /* each message starts on a page */
    SOURCE_HUGE,    /* packed, in huge pages where the kernel gives them */
    SOURCE_FIELDS,  /* each message in settings->fields pieces that do not touch */
    SOURCE_PIECES,  /* the same in settings->pieces pieces */
};

struct source {
    char *base; /* all of it, for painting */
    size_t bytes;
    size_t slots, stride; /* of SOURCE_PACKED and SOURCE_ALIGNED */
    size_t fields;        /* pieces of one message: 1 but for SOURCE_FIELDS and _PIECES */
    struct iovec *pieces; /* slots × fields */
    bool is_huge;         /* begins and ends on huge pages */
    int file_fd;          /* a memfd of the same memory when asked for, else -1 */
    char *scratch;        /* where source_fill builds a message */
};

struct settings; /* settings.h */
struct check;    /* check.h */

struct link {
    const struct settings *settings;
    unsigned index;           /* of the connection, from 0 */
    enum transport transport; /* one bit */
    int fd;                   /* socket or pipe end of this side; -1 for SHM and NONE */
    void *shared;             /* variant->shared_bytes seen by both sides, zeroed; else NULL */
    int peer_pid;             /* the other process; 0 when on another host or none */
    size_t message_bytes;
    uint64_t limit; /* stop after: messages (senders, alone), bytes (receivers) */
    const atomic_bool *stop;
    struct counts *counts;
    struct source source;
    struct check *check; /* receivers: NULL unless somebody wants to see the bytes */
    uint64_t sequence;   /* senders: of the next message that source_fill makes */
    bool fill;           /* senders: source_fill has work to do */
    bool by_message;     /* receivers count messages themselves (UDP) */
    void *state;         /* the variant's own */
};

struct variant {
    const char *name;
    const char *summary; /* for --list */
    enum role role;
    unsigned transports; /* bits of enum transport */
    struct claim claim;
    bool plain;    /* calls on the link's own descriptor and on no other */
    bool batches;  /* takes --batch: that many messages per call or submission */
    bool fields;   /* takes --fields */
    bool pieces;   /* takes --pieces: a message is that many buffers of --size bytes */
    bool untraced; /* receive sides that copy past skb_copy_datagram_iovec */
    bool hidden;   /* breaks the rules on purpose: not in --list, not in --prove */
    /* The receive variant that must stand opposite; NULL for any that takes the transport. */
    const char *partner;
    /* Variants that are alone: where the bytes of the last message arrived; NULL when nowhere. */
    const void *(*arrived)(struct link *l);
    size_t (*shared_bytes)(const struct settings *settings); /* of l->shared; NULL for none */
    /* All may fail: 0 or a negative errno with words.  open and close may be NULL. */
    int (*open)(struct link *l, struct error *err);
    int (*run)(struct link *l, struct error *err);
    int (*close)(struct link *l, struct error *err); /* also called after a failed open or run */
};

/* variants.c: all of them; ends with NULL. */
extern const struct variant *const variants[];
const struct variant *variant_find(const char *name); /* NULL when there is none */

/* For the loops. */

static inline void count_add(_Atomic uint64_t *counter, uint64_t more)
{
    /* One writer: a plain add, published for the controller's relaxed reads. */
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more,
                          memory_order_relaxed);
}

static inline uint64_t count_read(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static inline void link_count(struct link *l, uint64_t messages, uint64_t bytes, uint64_t calls)
{
    count_add(&l->counts->messages, messages);
    count_add(&l->counts->bytes, bytes);
    count_add(&l->counts->calls, calls);
}

/* Senders and variants that are alone. */
static inline bool link_going(const struct link *l)
{
    return !atomic_load_explicit(l->stop, memory_order_relaxed) &&
           count_read(&l->counts->messages) < l->limit;
}

/* Receivers: they go on until the end of file; stop counts only where there is none. */
static inline bool link_wants(const struct link *l)
{
    return count_read(&l->counts->bytes) < l->limit;
}

/* source.c: makes the memory of the messages, touched and filled.  with_file makes it a memfd. */
int source_open(struct link *l, enum source_layout layout, size_t slots, bool with_file,
                struct error *err);
void source_close(struct link *l);
void source_fill_slot(struct link *l, size_t slot);
/* Every byte of every message becomes `byte`: the aliasing test's brush. */
void source_paint(struct link *l, unsigned char byte);

static inline struct iovec *source_pieces(struct link *l, size_t slot)
{
    return l->source.pieces + slot * l->source.fields;
}

/* Makes the next message in the slot, which the kernel must not be reading any more.  Without
 * --verify the slots keep what they have and this is one predictable branch. */
static inline void source_fill(struct link *l, size_t slot)
{
    if (__builtin_expect(l->fill, 0))
        source_fill_slot(l, slot);
}

/* check.c */
int check_bytes(struct check *check, struct link *l, const void *data, size_t bytes,
                struct error *err);

/* Receivers show every piece of data once, in order, where it lies. */
static inline int link_seen(struct link *l, const void *data, size_t bytes, struct error *err)
{
    return __builtin_expect(l->check != NULL, 0) ? check_bytes(l->check, l, data, bytes, err) : 0;
}

/* link.c: words for a failed call on the link's descriptor: a peer that is gone, a limit that is
 * met.  code is a negative errno. */
int link_failed(const struct link *l, const char *call, int code, struct error *err);
/* Waits until the descriptor is writable or has something in its error queue. */
int link_wait(const struct link *l, short events, int timeout_ms);

#endif
