/* SPDX-License-Identifier: MIT */
/*
 * What `assay trace` prints: system calls with their arguments, results and durations, and other
 * tracepoints with their fields, a line for each, in the order in which they end; or a table of the
 * calls.  Records come from live/follow.h.
 */
#ifndef ASSAY_LIVE_TRACING_H
#define ASSAY_LIVE_TRACING_H

#include "live/calls.h"
#include "live/durations.h"
#include "live/follow.h"
#include "live/peek.h"
#include "live/peek_code.h"
#include "tracepoints/format.h"

#include <stdio.h>

struct tracing_options {
    bool calls;                /* system calls */
    const char *only;          /* these of them, separated by commas; NULL for all */
    const char *events;        /* other tracepoints, as -e takes them; NULL for none */
    const char *filter;        /* of them */
    bool faults, waits, wakes; /* page faults, waits, and who ended them */
    bool summary, json, times;
};

struct tracing_thread {
    uint32_t pid, tid;
    struct call call;
    uint64_t entered_ns; /* 0 outside of a call */
    bool has_called;
    uint64_t left_ns; /* 0 on a CPU */
    bool was_preempted;
    uint32_t waker_pid;         /* 0 when no thread ended it */
    bool by_interrupt;          /* a timer or a device did */
    struct peek_record *peeked; /* what was read, the oldest first */
};

struct tracing {
    struct tracing_options options;
    FILE *out;
    struct strbuf text;
    struct calls *names;
    struct peek peek;
    struct strbuf event_list, call_filter;
    struct strbuf note; /* for the user: what could not be had */
    size_t first_event; /* the user's events begin here */
    struct tp_format *formats;
    size_t format_count;
    const struct tp_field *fault_address, *fault_code, *wake_pid, *wake_flags;
    struct trace_field enter_id, enter_args, exit_id, exit_ret;
    size_t fault_event, wake_event;
    struct tracing_thread *threads;
    size_t thread_count, thread_capacity;
    struct idtable table;
    struct tracing_sum {
        struct durations times;
        uint64_t count, errors;
    } * sums; /* by call */
    size_t sum_capacity;
    uint64_t start_ns, lines;
    uint32_t own_pid, first_tid;
    bool has_several, is_broken; /* nobody reads what is printed */
};

/* Says in spec->trace what is to be followed. */
int tracing_plan(struct tracing *t, const struct tracing_options *o, struct trace_spec *spec,
                 struct error *err);
/* After follow_start: looks up the fields, and lets memory be read where that is allowed. */
int tracing_prepare(struct tracing *t, struct follow *f, struct error *err);
/* The trace_fn, and follow_spec.pause. */
void tracing_take(void *context, const struct trace_record *record);
void tracing_pause(void *context);
/* What never returned, the table, and the last lines. */
void tracing_finish(struct tracing *t, const struct follow *f);
void tracing_done(struct tracing *t);

/* For tracing_text.c. */
void tracing_spill(struct tracing *t);
void tracing_put_unfinished(struct tracing *t);

#endif
