/* SPDX-License-Identifier: MIT */
/*
 * Viewstamped replication (Liskov and Cowling, "Viewstamped Replication Revisited", 2012) with its
 * published errors corrected, as a pure function: vr_step(replica, event, update).  No clock, no
 * socket, no disk and no randomness inside: time, messages and finished writes come as events, and
 * what is to be sent and written leaves in the update.  docs/VR.md tells the design; the rules are
 * named where they are kept.
 *
 * Rules of safety:
 *  1 An entry is acknowledged when it is on this replica's disk, and counts as committed when f + 1
 *    of 2f + 1 replicas acknowledged it in the present view.
 *  2 A replica leaves a view when f + 1 replicas want to; before it says so by do_view_change, the
 *    new view is on its disk.
 *  3 The log of a new view is that of the greatest last normal view, and among those the longest.
 *    The last normal view is kept on disk, not guessed from entries.
 *  4 A replica is normal in a view when its disk holds the whole log with which that view began,
 *    and where that log ended; nothing of an older log is cut before the new one has arrived.
 *  5 A restarted primary never goes on in its old view.
 *  6 A replica that cannot be sure of its log takes part in nothing until a primary has answered a
 *    question that it asked after its restart, and its whole log has arrived; that it is in this
 *    state is on its disk before anything there is written over.
 *  7 A disk has a voice in an epoch only if the epoch's group names its incarnation, which is drawn
 *    when it is formatted.  The first group is agreed by all of its members while all are new.
 *  8 An epoch ends with the entry that names the next group: no entry follows it before it is
 *    executed.  A replica has a voice in an epoch when the whole log with which it began is on its
 *    disk; who is no longer in the group keeps that log until a quorum of the new group has it.
 *  9 Who starts asks the others what they know of it; then the start is counted on disk, and told
 * to the others, who keep the count; nobody has a voice before.  A disk that the others know better
 * than it knows itself is an old copy: it takes another incarnation.
 */
#ifndef ASSAY_VR_CORE_H
#define ASSAY_VR_CORE_H

#include "vr/core/service.h"
#include "vr/core/sessions.h"
#include "vr/core/wire.h"

struct vr_config {
    uint32_t cluster;
    uint8_t replica_count, index; /* how many the group had at the beginning: 0 to count - 1 */
    bool joins;                   /* formatted to be added to a group; not one of its founders */
    bool in_memory;               /* entries are not written; only the view is */
    uint32_t slots, checkpoint_every;
    uint32_t pipeline;    /* batches in flight */
    uint32_t batch_bytes; /* of requests in one entry at most; a multiple of 8 */
    uint32_t sessions, kv_capacity;
    uint32_t page_bytes; /* of the state, on disk */
    uint64_t heartbeat_ns, timeout_ns;
};

/* What a replica must know after a crash, besides entries and checkpoint: the superblock. */
struct vr_durable {
    uint64_t view, log_view;
    uint64_t view_op, view_checksum;          /* where the log of log_view began to grow */
    uint64_t checkpoint_op, checkpoint_entry; /* op and checksum of the entry at the checkpoint */
    uint64_t checkpoint_size, checkpoint_checksum; /* in pages; sum of their sums */
    uint32_t fresh;                                /* enum vr_fresh */
    uint32_t uncertain;   /* 1: the log was lost and has not been brought back whole */
    uint32_t closed;      /* 1: the log of log_view ends at view_op; another is taking its place */
    uint32_t incarnation; /* of this disk: drawn when it was formatted; 0: it has none */
    uint32_t starts;      /* how often it was started and had a voice */
    uint32_t known_starts[VR_NODES_MAX]; /* how often each other was, as far as it knows */
    struct vr_group group;               /* of view's epoch */
};

enum vr_fresh {
    VR_FRESH_NO,
    VR_FRESH_FOUNDED, /* one of the founders, and never started */
    VR_FRESH_NEW,     /* formatted: who the founders are is not agreed yet */
    VR_FRESH_AGREED,  /* has agreed to the incarnations in the group; perhaps others have not */
};

/* VR_RETIRED: not, or no longer, in the group.  VR_NEW: formatted, and not yet one of its founders:
 * the others may be, with the disk that was here before. */
enum vr_state { VR_NORMAL, VR_VIEW_CHANGE, VR_RECOVERING, VR_RETIRED, VR_NEW };

enum vr_event_kind {
    VR_EVENT_MESSAGE, /* header and body; vr_open_packet and vr_body_valid have passed them */
    VR_EVENT_WRITTEN, /* a write of an earlier update has ended */
    VR_EVENT_TURN,    /* no more events for now: time passes, batches leave */
};

enum vr_write_kind { VR_WRITE_ENTRY, VR_WRITE_DURABLE, VR_WRITE_PAGE };

#define VR_PAGE_TRAILER_BYTES 32u /* what the disk's format puts behind a page */
#define VR_PAGES_OUT_MAX 64u      /* writes of pages under way at once */

struct vr_write {
    enum vr_write_kind kind;
    struct vr_entry entry;     /* of VR_WRITE_ENTRY */
    struct vr_durable durable; /* of VR_WRITE_DURABLE */
    /* Of VR_WRITE_PAGE: which, in which of its two places, of the checkpoint at which op; index is
     * the core's own. */
    uint32_t page, area, index;
    uint64_t page_op;
    const void *bytes; /* the requests, the page: to be copied before the next step */
    size_t size;
};

struct vr_event {
    enum vr_event_kind kind;
    uint64_t now_ns; /* never goes back */
    const struct vr_header *header;
    const void *body;
    const struct vr_write *write; /* kind and, of an entry, its head */
    bool failed;                  /* the write did not succeed and is to be tried again */
};

#define VR_TO_CLIENT 0xff
#define VR_BATCH_COUNT_MAX 256
#define VR_UPDATE_MESSAGES 1024
#define VR_UPDATE_WRITES 64

struct vr_message {
    uint8_t to; /* a replica or VR_TO_CLIENT: then header.client says which */
    struct vr_header header;
    const void *first, *second; /* the body's pieces: valid until the next vr_step */
    uint32_t first_size, second_size;
};

struct vr_update {
    uint32_t message_count, write_count;
    struct vr_message messages[VR_UPDATE_MESSAGES + 1]; /* the last is for what does not fit */
    struct vr_write writes[VR_UPDATE_WRITES];
    size_t scratch_used;
    unsigned char scratch[1 << 19]; /* bodies made for this update */
};

struct vr_slot {
    struct vr_entry entry;
    bool has_body, durable, writing;
    uint64_t writing_checksum;
};

/* Heads of the log's end that travel in view changes: more than can be uncommitted. */
#define VR_HEADS_MAX 80

struct vr_log_end { /* one do_view_change or start_view, as received */
    bool there;
    uint64_t log_view, op, commit, checkpoint_op, checksum;
    uint32_t count;
    struct vr_entry heads[VR_HEADS_MAX];
};

struct vr_snapshot { /* a state, by its op; size: in pages, 0: none */
    uint64_t op, entry_checksum, checksum, size;
    uint64_t view; /* of who sent it */
};

struct vr_arrived_page {
    uint32_t page;
    uint64_t sum;
    unsigned char *content;
};

struct vr_wanted_page {
    uint32_t page;
    uint64_t sum;
};

struct vr_arriving { /* a state of another replica, as far as it has come: transfer.c */
    struct vr_snapshot state;
    struct vr_arrived_page *pages;
    uint32_t page_count, page_capacity, *place; /* place: by page, 1 + index in pages */
    uint64_t *groups;                           /* its sums of groups */
    uint64_t *deltas, delta; /* by how much what has come changes this replica's own */
    uint32_t group_got, group_next;
    struct vr_wanted_page *wanted;
    uint32_t wanted_count, wanted_capacity;
    struct vr_state_wish wish; /* under way */
    uint64_t wish_sums[VR_WISHES_MAX];
    uint32_t missing; /* a bit for each that has not come */
    bool complete;
};

struct vr_counters {
    uint64_t log_steps; /* entries looked at one after the other */
    uint64_t executed, batches, view_changes, state_transfers, entries_repaired, forks_refused;
    uint64_t dropped[VR_DROP_COUNT];
};

/* Called when an entry is executed: for oracles. */
struct vr_observer {
    void (*executed)(void *context, const struct vr_entry *entry, const void *requests);
    void *context;
};

struct vr_replica {
    struct vr_config config;
    enum vr_state state;
    uint64_t now_ns, nonce;

    uint64_t view, log_view, view_op, view_checksum;
    bool closed;
    struct vr_group group;    /* of view's epoch */
    struct vr_group executed; /* of the epoch that the executed log has reached: replicated state */
    uint8_t order[VR_NODES_MAX], member_count; /* the members of group */
    uint64_t fence_op; /* primary: an entry that may end the epoch; nothing follows before it ran */
    uint32_t started;  /* who is known to have the log with which the epoch began */
    struct vr_durable durable, writing; /* what is on disk; what is being written there */
    bool durable_writing;
    bool uncertain; /* no part in votes until a log is whole again: rule 6 */
    uint32_t incarnation, fresh;
    struct {
        enum vr_hello_phase { VR_HELLO_ASKS, VR_HELLO_COUNTS, VR_HELLO_DONE } phase;
        uint32_t heard; /* who has answered in this phase */
        uint64_t begun_ns, due_ns;
        struct vr_hello own;
    } hello;
    uint32_t known_starts[VR_NODES_MAX];
    struct {
        uint64_t view, op;
    } promised[VR_NODES_MAX]; /* what each other is known to have promised */
    bool is_old_copy;         /* this disk holds less than it has promised */
    uint32_t agreed; /* who of the first group has agreed to the founders that this one agreed to */

    uint64_t op, durable_op, commit, commit_max;
    uint32_t holes; /* entries up to op of which only the head is known */
    struct vr_slot *slots;
    unsigned char *bodies;

    struct vr_sessions sessions;
    struct vr_service *service;
    struct vr_pages pages; /* all of the replicated state */
    unsigned char *copies; /* by page: which of its two places the newest checkpoint uses */
    /* Pages of which the other place holds something of a checkpoint that was never finished: the
     * next one writes them, too, or a later one could be taken for it. */
    uint32_t *unfinished, unfinished_count;
    /* The newest checkpoint, one that is being written, and a state that is arriving. */
    struct vr_snapshot newest, pending;
    bool pending_there, pending_adopt;
    uint32_t pending_next, pending_out;
    uint32_t pending_again[VR_PAGES_OUT_MAX], pending_again_count;
    struct vr_arriving arriving;

    /* Primary. */
    unsigned char *queue;
    uint32_t queue_size, queue_count;
    uint64_t ok_op[VR_NODES_MAX], heard_ns[VR_NODES_MAX];
    uint64_t heartbeat_due_ns;
    bool ok_owed; /* backup: tell the primary what is durable */
    bool retry_writes;

    /* View change. */
    uint64_t wanted[VR_NODES_MAX]; /* the view that each replica wants to start */
    uint64_t primary_heard_ns, change_begun_ns, resend_due_ns;
    uint32_t change_failures;
    bool dvc_sent;
    struct vr_log_end ends[VR_NODES_MAX];
    /* Taking over the log of a view: from where, up to where, how far it is known to agree. */
    struct {
        bool active;
        uint8_t source;
        uint64_t log_view; /* the view whose log it is */
        uint64_t matched;
        struct vr_log_end end;
    } install;
    uint64_t fetch_due_ns, fetch_upto;
    /* State transfer. */
    bool arriving_active;
    uint8_t arriving_from;
    uint64_t state_due_ns, view_asked_ns;

    struct vr_counters counters;
    struct vr_observer observer;
};

/* What is read from disk at a start. */
struct vr_image {
    struct vr_durable durable;
    bool uncertain; /* entries that were acknowledged may be lost */
    /* The newest checkpoint's pages, as far as they could be read, and their places; the replica
     * takes them. */
    bool has_checkpoint;
    struct vr_pages *pages;
    unsigned char *copies;
    uint32_t *unfinished, unfinished_count; /* pages with something of a later checkpoint */
    uint32_t count; /* entries from the checkpoint on; flags say which have a body */
    const struct vr_entry *entries;
    const void *(*body)(const struct vr_image *image, uint32_t index);
    void *context;
};

void vr_config_default(struct vr_config *config);
/* How many pages the state may have. */
uint32_t vr_state_pages(const struct vr_config *config);

/* Takes all memory that the replica will ever use.  nonce differs at each start. */
struct vr_replica *vr_replica_new(const struct vr_config *config, struct vr_image *image,
                                  uint64_t nonce, uint64_t now_ns);
void vr_replica_free(struct vr_replica *r);

/* Appends to the update, which the caller empties (message_count, write_count, scratch_used)
 * after it was acted on. */
void vr_step(struct vr_replica *r, const struct vr_event *event, struct vr_update *update);

/* When the next VR_EVENT_TURN is due at the latest. */
uint64_t vr_deadline_ns(const struct vr_replica *r);

bool vr_is_primary(const struct vr_replica *r);
/* Who leads a view of the present epoch; no replica while the group is not known. */
uint8_t vr_primary(const struct vr_replica *r, uint64_t view);
/* Whether a replica that is no longer in the group may be switched off, and its disk wiped. */
bool vr_may_leave(const struct vr_replica *r);
void vr_status_fill(const struct vr_replica *r, struct vr_status *status);
uint64_t vr_genesis_checksum(uint32_t cluster);

/*
 * The prepare that would be next, for a host that acknowledges it before the replica has seen it
 * (net/io_xdp.h): only in memory, and only while nothing but prepares of this view stands between
 * this moment and the acknowledgement.  The promise is then the host's: it must hand the entry to
 * vr_step before any other event.
 */
struct vr_expected {
    uint64_t view, op, last_op; /* ops from op to last_op have room */
    uint64_t parent;            /* checksum of the entry before op */
    uint64_t commit;
    uint8_t primary;
};
bool vr_expects(const struct vr_replica *r, struct vr_expected *ret_expected);
uint64_t vr_op(const struct vr_replica *r); /* the last of its log */

#endif
