/* SPDX-License-Identifier: MIT */
/*
 * Planted bugs: each breaks one safety rule, so that the simulator can be seen to find it.  They
 * exist only in a build with VR_PLANTED (the test program assay-vr-planted); elsewhere PLANTED()
 * is false and the compiler removes it.
 */
#ifndef ASSAY_VR_PLANTED_H
#define ASSAY_VR_PLANTED_H

enum vr_planted {
    PLANTED_NONE,
    PLANTED_ENTRY_VIEW_AS_LOG_VIEW, /* do_view_change names the last entry's view (specpaxos) */
    PLANTED_LONGEST_LOG,            /* the longest log wins, whatever its last normal view */
    PLANTED_VIEW_NOT_KEPT,          /* do_view_change goes out before the view is on disk */
    PLANTED_ACK_EARLY,              /* prepare_ok before the entry is on disk */
    PLANTED_SMALL_QUORUM,           /* one acknowledgement too few commits */
    PLANTED_PRIMARY_RESUMES,        /* a restarted primary goes on in its old view */
    PLANTED_LOG_VIEW_EARLY,         /* a view counts as normal before its log has arrived */
    PLANTED_TAIL_KEPT,              /* what a start_view cut off comes back after a restart */
    PLANTED_HEADERS_IGNORED,        /* a damaged entry counts as never written */
    PLANTED_ANY_START_VIEW,         /* recovery takes a start_view that was not asked for */
    PLANTED_DROP_BEFORE_STATE,      /* state transfer cuts the log before the state is there */
    PLANTED_TWICE,                  /* a request that stands in the log twice runs twice */
    PLANTED_SESSION_UNCHECKED,      /* an evicted client's old request runs in its new session */
    PLANTED_EVICT_BY_LOCAL,         /* sessions are evicted by what one replica happens to know */
    PLANTED_LOCAL_READ,             /* the primary answers reads from its own state */
    PLANTED_EXECUTE_EARLY,          /* the primary answers before a quorum has the entry */
    PLANTED_HALF_RECOVERED,         /* a replica votes while its lost log is still arriving */
    PLANTED_NO_FENCE,               /* entries follow the one that ends an epoch */
    PLANTED_JOINER_VOTES,           /* who joins votes before it has the log of the epoch */
    PLANTED_LEAVE_EARLY,            /* who leaves takes the log along before the new group has it */
    PLANTED_STALE_ACKS,             /* acknowledgements of an older view count in the new one */
    PLANTED_FEW_LOGS,               /* a view begins with one log too few */
    PLANTED_DOUBT_FORGOTTEN,        /* that the log is in doubt is not on disk */
    PLANTED_JOINS_ANY_EPOCH,        /* who comes back with an empty disk joins its old epoch */
    PLANTED_SLOTS_REUSED,           /* entries are written over before the checkpoint is on disk */
    PLANTED_CHECKPOINT_EARLY,       /* a checkpoint counts before the superblock names it */
    PLANTED_CHECKSUM_UNCHECKED,     /* damaged packets are obeyed */
    PLANTED_HEAD_LATER,             /* a start leaves an entry without its second copy */
    PLANTED_COPY_TRUSTED,           /* an old copy of a disk votes as if it were the disk */
    PLANTED_SAFETY_END,
    /* Other known errors, which stop the service where it could go on, or are not of the core, or
     * end the program at once.  Scenarios notice them (tests/integration/vr.py). */
    PLANTED_LAST_PREPARE_ONLY = PLANTED_SAFETY_END, /* of what is missing only the last is sent */
    PLANTED_ALWAYS_RECOVERS,    /* a restart asks others, though its log is whole */
    PLANTED_ONE_WISH,           /* one replica's wish ends a view */
    PLANTED_FRAGMENTS_IN_ORDER, /* fragments that come in another order are lost */
    PLANTED_LOG_NEVER_CUT,      /* no checkpoint ever makes room in the log */
    PLANTED_LOOP_COPY,          /* the chosen log is a copy that the loop has destroyed */
    PLANTED_FRESH_STARTS,       /* who finds no superblock starts as if it had promised nothing */
    PLANTED_MEMORY_TRUSTED,     /* who lost its memory takes the empty log for its own */
    PLANTED_ANY_REPLY,          /* a client takes a reply that is not to its request */
    PLANTED_PLACES_MOVED,       /* replies go to whoever said the request last */
    PLANTED_NARROW_COUNTERS,    /* operations are counted in 32 bits */
    PLANTED_SILENT_REFUSAL,     /* a request that no entry can hold gets no answer */
    PLANTED_CHECKPOINT_MISSED,  /* a checkpoint that had to wait is not taken later */
    PLANTED_CLOSED_EARLY,       /* a log is closed on disk before it is there */
    PLANTED_CLOSED_FORGOTTEN,   /* that the log was closed is forgotten at a restart */
    PLANTED_NO_SYNC,            /* a sync is told as done, and the kernel never heard of it */
    PLANTED_NO_DSYNC,           /* the same for a write that is to be durable when it ends */
    PLANTED_RENUMBERED,         /* a client's request that is sent again has another number */
    PLANTED_INSTALL_DEAF,       /* who takes over a log does not hear what is committed of it */
    PLANTED_COUNT,
};

extern const char *const vr_planted_names[PLANTED_COUNT];

#ifdef VR_PLANTED
extern enum vr_planted vr_planted;
#define PLANTED(name) (vr_planted == PLANTED_##name)
#else
#define PLANTED(name) 0
#endif

#endif
