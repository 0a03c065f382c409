/* SPDX-License-Identifier: MIT */
/*
 * The deterministic simulator: replicas, clients, network and disks in one process, driven by one
 * seed.  The same seed and build give the same run to the last bit.
 *
 * Faults: packets are lost, doubled, delayed, reordered, corrupted; links break, also in one
 * direction; clocks differ and drift; replicas pause, crash and restart; writes are torn by a
 * crash, fail, get lost or go astray; sectors rot.  Disks of at most f replicas lose or damage what
 * they were given, and never both copies of one head: more than that nobody can survive.
 *
 * Oracle: all replicas execute one history; a model executes it, too, and every reply that a client
 * got is the model's, at a place in the history that respects real time (so the clients' histories
 * are linearizable, with the log as the witness); checkpoints of one op are equal; at the end, when
 * the faults stop, everybody catches up and every request is answered.
 */
#ifndef ASSAY_VR_SIM_H
#define ASSAY_VR_SIM_H

#include "vr/core/packet.h"
#include "vr/disk/store.h"

#include "base/strings.h"

/* What happened, so that a test can say that it did happen. */
enum sim_count {
    SIM_OPERATIONS,
    SIM_VIEWS, /* that began by a view change: a primary became normal in them */
    SIM_EPOCHS,
    SIM_JOINED,          /* replicas that came into the group */
    SIM_WIPED,           /* that had left it, and were given an empty disk */
    SIM_DISKS_LOST,      /* of members, which were formatted again */
    SIM_COPIES_RESTORED, /* old ones of members' disks */
    SIM_COPIES_NOTICED,
    SIM_REPLACED, /* members of which the group then took the new disk */
    SIM_PACKETS,
    SIM_LOST,
    SIM_DOUBLED,
    SIM_REPLAYED, /* long after, at a restart */
    SIM_LATE,
    SIM_REORDERED, /* overtaken by a later one of the same sender */
    SIM_CORRUPTED,
    SIM_PARTITIONS,
    SIM_PARTITIONS_ONE_WAY,
    SIM_PROMISES_TESTED, /* a crash just before a promise is on disk */
    SIM_MEMORIES_TESTED, /* in memory: a crash of who is not behind */
    SIM_PLOTS,           /* begun: sim_plots.c */
    SIM_PAUSES,
    SIM_SKEWED_CLOCKS, /* wrong by one in a hundred or more */
    SIM_CRASHES,
    SIM_RESTARTS,
    SIM_CRASHES_OF_ALL,
    SIM_TORN_WRITES,
    SIM_LOST_WRITES,
    SIM_MISDIRECTED_WRITES,
    SIM_ROTTEN_SECTORS,
    SIM_LOST_TAILS, /* of a log, both copies of every entry */
    SIM_LATE_CHECKPOINTS,
    SIM_FULL_DISKS,
    SIM_UNCERTAIN_STARTS,
    SIM_ENTRIES_REPAIRED,
    SIM_STATES_TRANSFERRED,
    SIM_EVICTIONS,
    SIM_REFUSED, /* requests that no entry can hold */
    SIM_VIRTUAL_MS,
    SIM_COUNTS,
};

struct sim_options {
    uint64_t seed;
    uint64_t operations;   /* client operations at least */
    uint32_t view_changes; /* at least */
    bool trace;            /* print every line as it happens */
    bool keep_lines;       /* keep the last lines, for sim_dump */
};

struct sim_result {
    bool failed;
    char reason[512];
    uint64_t count[SIM_COUNTS];
    uint64_t digest; /* of everything that happened: equal for equal seeds */
};

extern const char *const sim_count_names[SIM_COUNTS];

/* Runs one seed.  The trace's end is appended to out when the run fails. */
/* The last lines of the run that is under way, for who cannot go on. */
void sim_dump(void);
void sim_run(const struct sim_options *options, struct sim_result *ret_result, struct strbuf *out);

#endif
