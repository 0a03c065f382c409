/* SPDX-License-Identifier: MIT */
/*
 * What this host is, what can be measured on it, and what would have to change to measure more.
 *
 * machine_probe fills a list of findings, each from a trial: an event that opens is no proof that
 * it counts, so whatever can be tried cheaply is tried and its count looked at.  Every result file
 * that assay writes carries this list (machine_write_json), and `assay doctor` prints it.
 *
 *   struct machine m;
 *   machine_probe(&m, MACHINE_QUICK);
 *   machine_write_json(&m, &j, "machine");
 *   machine_done(&m);
 */
#ifndef ASSAY_MACHINE_MACHINE_H
#define ASSAY_MACHINE_MACHINE_H

#include "base/arena.h"
#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum machine_depth {
    MACHINE_QUICK, /* some ten milliseconds: for the record in a result file */
    MACHINE_FULL,  /* starts other programs for their versions, and tries the slower trials */
};

/* Whether the thing is there, or switched on.  LIMITED: in part, or for others but not for you. */
enum finding_state { FINDING_UNKNOWN, FINDING_NO, FINDING_LIMITED, FINDING_YES };

struct finding {
    const char *group; /* a heading for several findings */
    const char *id;    /* stable, for programs: "pmu" */
    const char *what;  /* for people: "hardware counters" */
    enum finding_state state;
    const char *detail; /* what was seen, one sentence at most */
    const char *remedy; /* what to change, an exact command where there is one; NULL for nothing */
    bool is_assumed;    /* from what the kernel says and your rights, not from a trial */
    bool has_value;     /* the number behind the detail, where one number tells it */
    int64_t value;
    const char *unit; /* of the value: "counters", "bytes", … */
};

struct machine {
    /* Who this is.  A text that could not be found is "". */
    const char *kernel_release, *arch, *distribution, *distribution_id;
    const char *cpu_vendor, *cpu_model;
    size_t cpu_count;        /* online */
    size_t cpu_usable_count; /* that this process may use */
    size_t core_count;       /* physical ones; 0 when not known */
    uint64_t memory_bytes, page_bytes;
    uint64_t l1d_bytes, l2_bytes, l3_bytes, cache_line_bytes; /* 0 when not known */
    bool in_user_namespace; /* where root and capabilities mean nothing to the kernel's tools */
    bool is_root;           /* of the machine, not of a namespace */
    uint64_t capabilities;  /* effective ones, a bit for each; none in a user namespace */

    struct finding *findings;
    size_t finding_count, finding_capacity;
    uint64_t probe_ns; /* how long the probing took */
    struct arena arena;
};

/* Looks at everything.  Never fails: what cannot be found out is a finding of its own.  Leaves the
 * machine as it was and no descriptor open; moves the calling thread between processors for a
 * moment.  Not thread-safe with itself. */
void machine_probe(struct machine *m, enum machine_depth depth);
void machine_done(struct machine *m);

/* The time that the hypervisor gave to others while processors here were wanted, since boot and
 * over all processors; a difference tells how much a measurement lost.  False when not known. */
bool machine_steal_ns(uint64_t *ret_steal_ns);

/* The finding of that id, NULL when there is none. */
const struct finding *machine_find(const struct machine *m, const char *id);
/* "yes", "no", "limited", "unknown". */
const char *finding_state_name(enum finding_state state);

/* The capability record: one object with the identity and an array of findings. */
void machine_write_json(const struct machine *m, struct json *j, const char *key);

#endif
