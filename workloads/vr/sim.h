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

#include "packet.h"
#include "store.h"

#include "base/strings.h"

struct sim_options {
    uint64_t seed;
    uint64_t operations;   /* client operations at least */
    uint32_t view_changes; /* at least */
    bool trace;            /* print every line as it happens */
};

struct sim_result {
    bool failed;
    char reason[512];
    uint64_t operations, view_changes, crashes, packets, lost_packets, state_transfers;
    uint64_t entries_repaired, disk_faults, evictions, recoveries, virtual_ns;
    uint64_t digest; /* of everything that happened: equal for equal seeds */
};

/* Runs one seed.  The trace's end is appended to out when the run fails. */
void sim_run(const struct sim_options *options, struct sim_result *ret_result, struct strbuf *out);

#endif
