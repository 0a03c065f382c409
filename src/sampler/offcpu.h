/* SPDX-License-Identifier: MIT */
/*
 * Time off the CPU, computed while reading.
 *
 * `assay record --off-cpu` opens an event named "off-cpu": the software event context-switches with
 * a period of one, call chains, and SWITCH records.  Its sample is taken in the thread that leaves
 * the CPU, where it leaves; the SWITCH record behind it tells whether the thread was preempted
 * (still runnable) or waits; the SWITCH record of its return ends the wait.  So nothing but records
 * that every perf reads is in the file, and the length of each wait is worked out here:
 *
 *   struct offcpu *o = offcpu_new();
 *   while ((got = perfdata_next(p, &r, &err)) > 0) {
 *       switch (offcpu_feed(o, &r, &wait)) {
 *       case OFFCPU_HELD: continue;             // no sample of its own
 *       case OFFCPU_WAIT: add(&wait); continue; // wait.sample.period is nanoseconds
 *       case OFFCPU_PASS: break;
 *       }
 *       …
 *   }
 *   …                                           // where wake-ups were recorded, too:
 *   if (offcpu_wake(o, tid, time_ns, &wait))    // the wait ends here; then it is only ready
 *       add(&wait);
 *   while (offcpu_flush(o, &wait))              // threads that still wait at the end
 *       add(&wait);
 */
#ifndef ASSAY_SAMPLER_OFFCPU_H
#define ASSAY_SAMPLER_OFFCPU_H

#include "sampler/perfdata.h"

#define OFFCPU_EVENT_NAME "off-cpu"

struct offcpu;

enum offcpu_verdict {
    OFFCPU_PASS, /* the record has nothing to do with it */
    OFFCPU_HELD, /* taken in: a thread left the CPU, or a switch that ends no wait */
    OFFCPU_WAIT, /* a wait has ended and *ret_wait is filled */
};

/*
 * A wait is given as a record of type SAMPLE: event, pid, tid, cpu, time_ns and the stack are those
 * of the moment when the thread left; sample.period is how long it was away, in nanoseconds;
 * misc has PERF_RECORD_MISC_SWITCH_OUT_PREEMPT when it was preempted.  Pointers in it stay valid
 * until the next call.
 */
struct offcpu *offcpu_new(void);
void offcpu_free(struct offcpu *o);
enum offcpu_verdict offcpu_feed(struct offcpu *o, const struct perfdata_record *record,
                                struct perfdata_record *ret_wait);
/* Somebody wakes the thread: its wait is over, and what follows until it runs is time in which it
 * was ready, given like that of a preempted one.  True when *ret_wait is filled. */
bool offcpu_wake(struct offcpu *o, uint32_t tid, uint64_t time_ns,
                 struct perfdata_record *ret_wait);
/* Gives the waits that had no end when the recording stopped, cut off there; false when none is
 * left. */
bool offcpu_flush(struct offcpu *o, struct perfdata_record *ret_wait);

/* Whether the event is one of these. */
bool offcpu_is_event(const struct perfdata_event *event);

struct offcpu_losses {
    uint64_t waits;         /* given */
    uint64_t unended;       /* cut off by the end of the recording, from offcpu_flush */
    uint64_t without_start; /* returns of threads whose leaving was lost or before the recording */
};
const struct offcpu_losses *offcpu_losses(const struct offcpu *o);

#endif
