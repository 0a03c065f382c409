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
