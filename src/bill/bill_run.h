/* SPDX-License-Identifier: MIT */
/*
 * Runs a command for its bill: rounds of one run as it is and one that is traced.
 */
#ifndef ASSAY_BILL_BILL_RUN_H
#define ASSAY_BILL_BILL_RUN_H

#include "base/strings.h"
#include "bill/bill.h"
#include "run/command.h"

struct bill_settings {
    const struct command *command;
    uint64_t rounds;       /* 0: chosen by the length of a run */
    uint64_t frequency_hz; /* 0: chosen by the length of a run */
    uint64_t timeout_ns;
    const char *output; /* of the command, as --output takes it */
    const char *folder; /* for recordings */
    bool with_calls;    /* bill_trace: also system calls */
    /* Called before each run; what: "measuring", "tracing". */
    void (*progress)(void *context, const char *what, uint64_t round, uint64_t count);
    void *context;
};

struct bill_doubts {
    uint64_t lost, records;   /* records that did not fit, and those that did */
    uint64_t unseen, strange; /* see struct timeline */
    bool is_full;
    bool sampled_calls;  /* too many system calls to trace: their times are by samples */
    struct strbuf notes; /* lines for the user */
    /* Without permission to trace there are no lines, only what the kernel tells everybody: */
    bool is_denied;
    struct bill_estimate user, system;                  /* CPU time of all threads and processes */
    double major_faults, switches_own, switches_forced; /* means of a run */
};

/* One traced run, as a timeline with its profile.  Leaves no file. */
int bill_trace(const struct bill_settings *settings, struct timeline *ret_timeline,
               struct profile **ret_profile, struct error *err);

int bill_run(struct bill *b, struct bill_doubts *doubts, const struct bill_settings *settings,
             struct error *err);
void bill_doubts_done(struct bill_doubts *d);

#endif
