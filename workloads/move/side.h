/* SPDX-License-Identifier: MIT */
/*
 * One side of a run, in a process of its own: its threads, the marks, and what it counted.
 *
 * The controller (this process' main thread) sleeps while the workers run and takes a snapshot at
 * each mark.  Marks 0 and 1 bound the measured time.  Between marks 2 and 3 system calls and copies
 * are traced, which costs time and is therefore kept out of what is measured.
 */
#ifndef ASSAY_MOVE_SIDE_H
#define ASSAY_MOVE_SIDE_H

#include "link.h"
#include "settings.h"

enum { MARKS = 4 };

/* Numbers only: both travel as arrays of 64-bit words. */
struct snapshot {
    uint64_t t_ns, cpu_ns, user_ns, system_ns;
    uint64_t switches, switches_involuntary;
    uint64_t messages, bytes, calls, granted, refused, waits, lost;
    uint64_t segments, segment_bytes, retransmits;
    uint64_t traced_calls, copied_bytes, copy_calls;
};

struct side_result {
    struct snapshot marks[MARKS];
    struct snapshot end;    /* after everything was drained */
    uint64_t calls_traced;  /* 1: traced_calls counts; else the variant's own count is all */
    uint64_t copies_traced; /* 1: copied_bytes counts */
    uint64_t tcp;           /* 1: segments and retransmits count */
    uint64_t verified;      /* messages whose content was checked */
    uint64_t cpus;          /* that this side may use */
};

struct side {
    const struct settings *settings;
    bool sender;
    int control_fd;             /* -1 when alone */
    int other_control_fd;       /* the other side's end, to be closed here; -1 for none */
    int listen_fd;              /* the receiver's between hosts, else -1 */
    bool remote;                /* the other side is on another host */
    struct endpoint peer;       /* the sender's between hosts */
    struct wire *wires;         /* NULL between hosts */
    struct side_result *result; /* own */
    struct side_result *other;  /* of the other side, when it was told */
};

/* The listening host's first words, before it knows the settings. */
int side_greet(int control_fd, struct error *err);
/* Does it all; what goes wrong is told to the other side, too. */
int side_run(struct side *side, struct error *err);

#endif
