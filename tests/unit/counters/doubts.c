/* SPDX-License-Identifier: MIT */
/* What a measurement cannot mean: each doubt arises where it must, and not beside it. */
#include "counters/doubts.h"
#include "base/memory.h"
#include "base/strings.h"
#include "test.h"

#include <signal.h>

enum { EVENTS = 3, RUNS = 4 };

/* task-clock, cycles and faults in some runs of one second; half of it on a CPU. */
struct made {
    struct event_list events;
    struct measurement m;
    struct counter_value values[RUNS][EVENTS];
    struct measured_run runs[RUNS];
    char *why[EVENTS];
    bool user_only[EVENTS], accounted[EVENTS];
    struct doubt_context context;
    struct doubt_list doubts;
};

static void make(struct made *d)
{
    struct error err = {0};
    *d = (struct made){0};
    CHECK_INT(event_list_parse(&d->events, "task-clock,cycles,faults", &err), 0);
    for (size_t i = 0; i < RUNS; i++) {
        for (size_t e = 0; e < EVENTS; e++)
            d->values[i][e] = (struct counter_value){
                .raw = e ? 1000 : 500000000, .enabled_ns = 1000000000, .running_ns = 1000000000};
        d->runs[i] = (struct measured_run){
            .values = d->values[i], .wall_ns = 1000000000, .has_command = true};
    }
    d->m = (struct measurement){.event_count = EVENTS,
                                .why = d->why,
                                .user_only = d->user_only,
                                .accounted = d->accounted,
                                .runs = d->runs,
                                .run_count = RUNS};
    d->context = (struct doubt_context){.events = &d->events, .m = &d->m, .cpu_count = 2};
}

static void made_done(struct made *d)
{
    event_list_done(&d->events);
    doubt_list_done(&d->doubts);
}

/* The text of a doubt, or "". */
static const char *look(struct made *d, const char *id)
{
    doubt_list_done(&d->doubts);
    doubts_find(&d->doubts, &d->context);
    for (size_t i = 0; i < d->doubts.count; i++)
        if (str_eq(d->doubts.items[i].id, id))
            return d->doubts.items[i].text;
    return "";
}

TEST(a_good_measurement_is_not_doubted)
{
    CLEANUP(made_done) struct made d;
    make(&d);
    CHECK_STR(look(&d, "none"), "");
    CHECK_INT(d.doubts.count, 0);
}

TEST(events_missing_for_one_reason_are_one_sentence)
{
    CLEANUP(made_done) struct made d;
    make(&d);
    d.why[1] = "no PMU";
    d.why[2] = "no PMU";
    CHECK_STR(look(&d, "not-supported"), "<not supported> cycles, faults: no PMU.");
    CHECK_INT(d.doubts.count, 1);
    d.context.can_simulate = true;
    CHECK_CONTAINS(look(&d, "simulate"), "--sim");
    d.why[1] = NULL; /* no hardware event is missing: nothing to simulate */
    CHECK_STR(look(&d, "simulate"), "");
    d.why[1] = "another reason";
    look(&d, "");
    CHECK_INT(d.doubts.count, 3);
}

TEST(what_was_counted_in_part_is_named)
{
    CLEANUP(made_done) struct made d;
    make(&d);
    d.user_only[1] = true;
    CHECK_CONTAINS(look(&d, "user-only"), "cycles: counted in user mode only");
    d.accounted[2] = true;
    CHECK_CONTAINS(look(&d, "accounted"), "faults");
}

TEST(without_runs_only_the_events_are_looked_at)
{
    CLEANUP(made_done) struct made d;
    make(&d);
    d.m.run_count = 0;
    d.why[1] = "no PMU";
    CHECK_CONTAINS(look(&d, "not-supported"), "cycles");
    CHECK_INT(d.doubts.count, 1);
}

TEST(a_counter_that_stands_still_is_noticed)
{
    CLEANUP(made_done) struct made d;
    make(&d);
    for (size_t i = 0; i < RUNS; i++)
        d.values[i][1].raw = 0;
    CHECK_CONTAINS(look(&d, "standing-counter"), "cycles: the counter ran but stayed at 0");
    d.values[2][1].raw = 1; /* one run that counted is enough */
    CHECK_STR(look(&d, "standing-counter"), "");
    d.values[2][1].raw = 0;
    d.why[1] = "no PMU";
    CHECK_STR(look(&d, "standing-counter"), "");
    /* No faults at all are possible. */
    for (size_t i = 0; i < RUNS; i++)
        d.values[i][2].raw = 0;
    CHECK_STR(look(&d, "standing-counter"), "");
}

TEST(more_cpu_time_than_cpus_is_impossible)
{
    CLEANUP(made_done) struct made d;
    make(&d);
    for (size_t i = 0; i < RUNS; i++)
        d.values[i][0].raw = 2000000000; /* both CPUs, all the time */
    CHECK_STR(look(&d, "impossible-utilisation"), "");
    for (size_t i = 0; i < RUNS; i++)
        d.values[i][0].raw = 2100000000;
    CHECK_CONTAINS(look(&d, "impossible-utilisation"), "2.1 CPUs utilized is impossible on 2");
}

TEST(short_runs_and_runs_of_the_loader_are_told)
{
    CLEANUP(made_done) struct made d;
    make(&d);
    d.context.startup_cpu_ns = 200000000; /* of 500 ms: 40 % */
    CHECK_CONTAINS(look(&d, "mostly-startup"), "(40 %)");
    CHECK_CONTAINS(look(&d, "mostly-startup"), "nearly as much as the program");
    d.context.startup_cpu_ns = 400000000;
    CHECK_CONTAINS(look(&d, "mostly-startup"), "startup more than the program");
    d.context.startup_cpu_ns = 900000000; /* measured apart, so it may be more than all: 100 % */
    CHECK_CONTAINS(look(&d, "mostly-startup"), "(100 %)");
    d.context.systemwide = true; /* other commands' CPU time: says nothing */
    CHECK_STR(look(&d, "mostly-startup"), "");
    d.context.systemwide = false;
    d.context.startup_cpu_ns = 0;
    for (size_t i = 0; i < RUNS; i++) {
        d.runs[i].wall_ns = 1000000;
        d.values[i][0].raw = 900000;
    }
    CHECK_CONTAINS(look(&d, "too-short"), "A run of 1.00 ms");
}

TEST(each_way_to_end_is_counted_by_itself)
{
    CLEANUP(made_done) struct made d;
    make(&d);
    d.runs[0].status = 3 << 8;
    CHECK_STR(look(&d, "failed"), "1 of 4 runs ended with exit code 3.");
    CHECK_STR(look(&d, "killed"), "");
    d.runs[1].status = SIGSEGV;
    CHECK_CONTAINS(look(&d, "killed"), "1 of 4 runs ended by signal 11");
    CHECK_STR(look(&d, "failed"), "1 of 4 runs ended with exit code 3.");
    d.runs[2].timed_out = true;
    d.runs[2].status = SIGKILL; /* the limit's own signal is no death of the program's */
    CHECK_STR(look(&d, "timed-out"), "1 of 4 runs reached the time limit and were stopped.");
    CHECK_CONTAINS(look(&d, "killed"), "1 of 4 runs");
    d.runs[3].left_behind = true;
    CHECK_CONTAINS(look(&d, "left-behind"), "After 1 of 4 runs");
}

TEST(different_exit_codes_are_not_called_one)
{
    CLEANUP(made_done) struct made d;
    make(&d);
    d.runs[0].status = 3 << 8;
    d.runs[2].status = 5 << 8;
    CHECK_STR(look(&d, "failed"),
              "2 of 4 runs ended with exit codes other than 0, the last with 5.");
}

TEST(an_interruption_is_told_unless_the_command_died_of_it)
{
    CLEANUP(made_done) struct made d;
    make(&d);
    d.m.signal = SIGINT;
    CHECK_CONTAINS(look(&d, "interrupted"), "signal 2");
    d.runs[3].status = SIGINT;
    CHECK_STR(look(&d, "interrupted"), "");
}

TEST(counters_that_were_never_on_are_not_zeros)
{
    CLEANUP(made_done) struct made d;
    make(&d);
    for (size_t i = 0; i < RUNS; i++)
        for (size_t e = 0; e < EVENTS; e++)
            d.values[i][e] = (struct counter_value){0};
    CHECK_CONTAINS(look(&d, "never-enabled"), "all counts are 0");
    for (size_t e = 0; e < EVENTS; e++)
        d.why[e] = "closed"; /* then nothing was to be counted */
    CHECK_STR(look(&d, "never-enabled"), "");
}

TEST(losses_and_steal)
{
    CLEANUP(made_done) struct made d;
    make(&d);
    d.m.lost_records = 1;
    CHECK_CONTAINS(look(&d, "lost-records"), "1 record of an ended thread was lost");
    d.m.lost_records = 2;
    CHECK_CONTAINS(look(&d, "lost-records"), "2 records of ended threads were lost");
    d.m.steal_ns = 80000000; /* 1 % of 4 s on two CPUs: not yet */
    CHECK_STR(look(&d, "steal"), "");
    d.m.steal_ns = 800000000;
    CHECK_CONTAINS(look(&d, "steal"), "took 10.0 %");
}
