/* SPDX-License-Identifier: MIT */
/*
 * What stands in a packet.  A header of 64 bytes at fixed offsets, little-endian, so that a program
 * in the kernel can read it, then a body.  The header's checksum covers the rest of the header with
 * the body's checksum in it; it is keyed, so a stranger's packet fails it.
 *
 * A message that does not fit a datagram travels as fragments: packets of type VR_FRAGMENT whose
 * bodies are pieces of the whole encoded message, in any order.
 */
#ifndef ASSAY_VR_WIRE_H
#define ASSAY_VR_WIRE_H

#include "vr/core/hash.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VR_MAGIC 0x5256
#define VR_VERSION 5
#define VR_REPLICAS_MAX 7            /* in one group */
#define VR_OP_MAX ((1ULL << 48) - 1) /* nine years at a million a second */
#define VR_NODES_MAX 16 /* numbers of replicas that were, are or will be in the group */

/* A view's number holds the epoch in its upper bits: a later epoch is a later view. */
#define VR_EPOCH_SHIFT 40
static inline uint64_t vr_epoch_of(uint64_t view)
{
    return view >> VR_EPOCH_SHIFT;
}
static inline uint64_t vr_number_of(uint64_t view)
{
    return view & ((1ULL << VR_EPOCH_SHIFT) - 1);
}

enum vr_type {
    VR_REQUEST = 1,       /* op session, number, client */
    VR_REPLY,             /* op of execution, number, client */
    VR_PREPARE,           /* op, commit, parent; body: entry head and requests */
    VR_PREPARE_OK,        /* op: all up to it are on this replica's disk */
    VR_COMMIT,            /* heartbeat: op, commit */
    VR_START_VIEW_CHANGE, /* view that is wanted */
    VR_DO_VIEW_CHANGE,    /* op, commit; body: last normal view and heads */
    VR_START_VIEW,        /* op, commit, nonce; body as do_view_change */
    VR_GET_VIEW,          /* nonce */
    VR_GET_PREPARE,       /* from op to commit */
    VR_GET_STATE,         /* op of the checkpoint; body: vr_state_wish */
    VR_STATE_CHUNK,       /* op of the checkpoint; body: vr_state_head, bytes */
    VR_EVICTION,          /* op: session, client: there is no such session (any more) */
    VR_FRAGMENT,          /* view: index << 32 | count, op: id, commit: size of the whole */
    VR_STATUS,            /* asks for VR_STATUS_REPLY; nonce comes back */
    VR_STATUS_REPLY,      /* body: vr_status */
    VR_EPOCH,             /* view: the epoch's first; body: vr_group */
    VR_FOUND,             /* of a member of the first group; body: vr_founding */
    VR_HELLO,             /* nonce; body: vr_hello: who starts asks what is remembered of it */
    VR_TYPE_END,
};

enum vr_flag {
    VR_FLAG_REPAIR = 1,   /* a prepare that was asked for */
    VR_FLAG_ENTERED = 2,  /* start_view_change of a replica that has left its view */
    VR_FLAG_JOIN = 4,     /* asked by who has not yet the log with which its epoch began */
    VR_FLAG_HAS = 8,      /* epoch: the sender has that log; found: it has agreed to these;
                           * hello: the answer */
    VR_FLAG_STARTED = 16, /* epoch: the sender has it on disk, and is of the epoch's group;
                           * found: the sender is one of the founders, and the group stands;
                           * hello: the start counts, and is to be remembered */
};

struct vr_header {
    uint16_t magic;
    uint8_t version, type;
    uint8_t flags, replica; /* of clients' packets and of those to them, flags are a vr_role */
    uint16_t epoch;
    uint64_t checksum; /* of bytes 16 to 63, and of the 8 before this field */
    uint64_t body_checksum;
    uint32_t cluster, size; /* size of the body */
    uint64_t view, op;
    union {
        uint64_t commit, number;
    };
    union {
        uint64_t parent, client, nonce;
    };
};
static_assert(sizeof(struct vr_header) == 64, "the header is 64 bytes on the wire");
static_assert(offsetof(struct vr_header, view) == 32, "offsets are part of the format");

/* One entry of the log as it stands on the wire, on disk and in memory: a batch of requests. */
struct vr_entry {
    uint64_t op, view; /* the view in which it was made */
    uint64_t parent;   /* checksum of the entry before */
    uint64_t body_checksum;
    uint32_t size, count; /* bytes and number of the requests */
    uint64_t checksum;    /* of all before it: names the entry and, by parent, all before */
    uint32_t flags, zero;
    uint64_t reserved;
};
static_assert(sizeof(struct vr_entry) == 64, "entry heads are 64 bytes on disk and wire");
#define VR_ENTRY_HAS_BODY 1u /* in do_view_change: the sender has the requests, too */

uint64_t vr_entry_checksum(const struct vr_entry *entry);
/* Whether the head is whole and, when body is not NULL, the body is the head's. */
bool vr_entry_valid(const struct vr_entry *entry, const void *body);

/* A request, in a packet and in a batch; data follow, padded to 8 bytes. */
struct vr_request {
    uint64_t client, session, number;
    uint32_t opcode, size;
};
static_assert(sizeof(struct vr_request) == 32, "requests are part of the format");

static inline size_t vr_request_bytes(uint32_t size)
{
    return sizeof(struct vr_request) + ((size_t)size + 7) / 8 * 8;
}

struct vr_reply {
    uint32_t status, size; /* enum vr_result */
    uint64_t session;      /* in which it ran: a client that began anew waits for another one */
};

/* The body of do_view_change and start_view, before the heads of the log's end. */
struct vr_view_head {
    uint64_t log_view; /* the last view in which the sender was normal: kept on disk */
    uint64_t checkpoint_op, head_checksum;
    uint32_t count, zero;
};

/* An epoch: who is in it, and the entry behind which it began. */
struct vr_group {
    uint64_t first_view;
    uint64_t op, checksum;
    uint32_t members, prior; /* a bit for each replica; prior: of the epoch before */
    /* Which disk each member is: drawn when it was formatted.  The same number with another disk
     * is somebody else, who never promised what the member did. */
    uint32_t incarnations[VR_NODES_MAX];
};

/* Who the founders are, as far as the sender knows: identity.c. */
struct vr_founding {
    uint32_t incarnations[VR_NODES_MAX];
};

/* What a replica found on its disk, or, in the answer, what it is known to have promised. */
struct vr_hello {
    uint32_t incarnation, uncertain;
    uint32_t starts, zero; /* how often this disk was started and had a voice */
    uint64_t view, op;     /* op: the last of its log; the last that it acknowledged in that view */
};

/* The operation VR_OP_RECONFIGURE: another group, if the present epoch is the one that is named. */
struct vr_reconfiguration {
    uint32_t members, epoch;
    uint32_t renew, zero; /* 1: also if the group is that already; a new epoch begins */
    uint32_t incarnations[VR_NODES_MAX];
};
#define VR_GROUP_NONE (1u << 31) /* members of a replica that was formatted to join */

/* What of a state is asked for, and sent. */
enum vr_state_kind {
    VR_STATE_GROUPS = 1, /* sums of groups of pages, from this one on */
    VR_STATE_SUMS,       /* sums of the pages of a group */
    VR_STATE_PAGES,      /* a page */
};
#define VR_WISHES_MAX 32
#define VR_SUMS_IN_CHUNK 500

struct vr_state_wish { /* body of get_state */
    uint32_t kind, count;
    uint32_t items[VR_WISHES_MAX];
};

struct vr_state_head {
    uint64_t entry_checksum, checksum;
    uint64_t view; /* of the sender: what the state holds was committed in it or before */
    uint32_t size; /* pages of the state */
    uint32_t kind, first, count;
};

/* Why a packet was dropped. */
enum vr_drop {
    VR_DROP_NONE,
    VR_DROP_SHORT,
    VR_DROP_MAGIC,
    VR_DROP_VERSION,
    VR_DROP_TYPE,
    VR_DROP_CLUSTER,
    VR_DROP_SIZE,
    VR_DROP_CHECKSUM,
    VR_DROP_SENDER,
    VR_DROP_BODY,  /* the content contradicts the header */
    VR_DROP_STALE, /* of another view or epoch, or too late for what it is about */
    VR_DROP_FRAGMENT,
    VR_DROP_REPLAYED,   /* what it says is known already */
    VR_DROP_PERMISSION, /* its key does not allow it */
    VR_DROP_COUNT,
};
extern const char *const vr_drop_names[VR_DROP_COUNT];
extern const char *const vr_type_names[VR_TYPE_END];

struct vr_status {
    uint32_t members, started;           /* of the group; who is known to have begun its epoch */
    uint32_t incarnation, fresh;         /* of this replica's disk; formatted, not founded */
    uint32_t incarnations[VR_NODES_MAX]; /* of the group's members */
    uint64_t view, log_view, op, durable_op, commit, commit_max, checkpoint_op;
    uint64_t dropped[VR_DROP_COUNT], executed;
    uint32_t state, replica;
    /* Of the host, not of the core. */
    uint64_t packets_sent, packets_received, send_failures, waits, waits_empty, disk_cycles,
        disk_failures, early_acks, strangers; /* strangers: packets from where no replica is */
    uint32_t fell_back, direct; /* not by the transport that was asked for; O_DIRECT */
};

/* Fills magic, version, size and checksums; the body may stand in two pieces. */
void vr_seal(struct vr_header *header, const struct vr_key *key, const void *first,
             size_t first_size, const void *second, size_t second_size);

/* Checks one datagram.  The header is copied out (bytes need no alignment); the body starts 64
 * bytes into the packet. */
enum vr_drop vr_open_packet(const void *packet, size_t size, const struct vr_key *key,
                            uint32_t cluster, struct vr_header *ret_header);

/* Checks that a body is what its type says: lengths inside fit, records are whole. */
bool vr_body_valid(const struct vr_header *header, const void *body);
/* The same for the requests of one batch. */
bool vr_batch_valid(const void *body, uint32_t size, uint32_t count);

#endif
