/* SPDX-License-Identifier: MIT */
/* The figure beside a count: what it is taken over, and when there is none. */
#include "counters/derived.h"
#include "base/memory.h"
#include "base/strings.h"
#include "test.h"

#include <math.h>

static void parse(struct event_list *list, const char *text)
{
    struct error err = {0};
    if (event_list_parse(list, text, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.message);
}

static struct derived figure(const char *events, const double *values, size_t index, double wall_ns)
{
    CLEANUP(event_list_done) struct event_list list = {0};
    parse(&list, events);
    return derived_figure(&list, values, index, wall_ns);
}

TEST(a_clock_is_cpus_of_the_elapsed_time)
{
    struct derived d = figure("task-clock", (double[]){3e9}, 0, 2e9);
    CHECK_NEAR(d.value, 1.5, 1e-12);
    CHECK_STR(d.text, "CPUs utilized");
    CHECK(!d.is_percent);
    CHECK_STR(figure("task-clock", (double[]){3e9}, 0, 0).text, "");
    CHECK_STR(figure("cpu-clock", (double[]){1e9}, 0, 1e9).text, "CPUs utilized");
}

TEST(cycles_are_a_frequency_and_instructions_are_per_cycle)
{
    const double values[] = {2e9, 6e9, 9e9};
    struct derived ghz = figure("task-clock,cycles,instructions", values, 1, 1e9);
    CHECK_NEAR(ghz.value, 3, 1e-12);
    CHECK_STR(ghz.text, "GHz");
    struct derived ipc = figure("task-clock,cycles,instructions", values, 2, 1e9);
    CHECK_NEAR(ipc.value, 1.5, 1e-12);
    CHECK_STR(ipc.text, "insn per cycle");
    /* No clock: no frequency.  No cycles: a rate. */
    CHECK_STR(figure("cycles", (double[]){6e9}, 0, 1e9).text, "");
    struct derived rate = figure("task-clock,instructions", (double[]){2e9, 9e9}, 1, 1e9);
    CHECK_NEAR(rate.value, 4.5, 1e-12);
    CHECK_STR(rate.text, "G/sec");
}

TEST(misses_are_a_share_of_their_accesses)
{
    const double values[] = {1e9, 400, 100};
    struct derived branches = figure("task-clock,branches,branch-misses", values, 2, 1e9);
    CHECK_NEAR(branches.value, 25, 1e-12);
    CHECK(branches.is_percent);
    CHECK_STR(branches.text, "of all branches");
    CHECK_STR(figure("task-clock,cache-references,cache-misses", values, 2, 1e9).text,
              "of all cache refs");
    struct derived loads =
        figure("task-clock,L1-dcache-loads,L1-dcache-load-misses", values, 2, 1e9);
    CHECK_NEAR(loads.value, 25, 1e-12);
    CHECK_STR(loads.text, "of all L1-dcache accesses");
    CHECK_NEAR(figure("cycles,stalled-cycles-frontend", (double[]){200, 50}, 1, 1e9).value, 25,
               1e-12);
}

TEST(nothing_is_said_about_a_share_of_nothing)
{
    /* Accesses were counted and there were none: no share, and no rate in its place either. */
    const double none[] = {1e9, 0, 0};
    CHECK_STR(figure("task-clock,branches,branch-misses", none, 2, 1e9).text, "");
    /* Accesses were not counted: a rate. */
    const double unknown[] = {1e9, NAN, 5000};
    struct derived d = figure("task-clock,branches,branch-misses", unknown, 2, 1e9);
    CHECK_STR(d.text, "K/sec");
    CHECK_NEAR(d.value, 5, 1e-12);
    CHECK_STR(figure("task-clock,branches,branch-misses", unknown, 1, 1e9).text, "");
}

TEST(partners_count_in_the_same_modes)
{
    /* User cycles say nothing about the kernel's instructions. */
    const double values[] = {1e9, 6e9, 9e9};
    CHECK_STR(figure("task-clock,cycles:u,instructions:k", values, 2, 1e9).text, "G/sec");
    CHECK_STR(figure("task-clock:u,cycles:u,instructions:u", values, 2, 1e9).text,
              "insn per cycle");
}

TEST(rates_have_a_prefix_that_fits)
{
    static const struct {
        double count, value;
        const char *text;
    } cases[] = {{999, 999, "/sec"}, {1000, 1, "K/sec"},   {999e3, 999, "K/sec"},
                 {1e6, 1, "M/sec"},  {25e8, 2.5, "G/sec"}, {0, 0, "/sec"}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct derived d = figure("task-clock,faults", (double[]){1e9, cases[i].count}, 1, 5e9);
        CHECK_NEAR(d.value, cases[i].value, 1e-9);
        CHECK_STR(d.text, cases[i].text);
    }
    CHECK_STR(figure("task-clock,faults", (double[]){0, 5}, 1, 5e9).text, "");
    CHECK_STR(figure("faults", (double[]){5}, 0, 5e9).text, "");
}

TEST(an_event_with_a_unit_has_no_rate)
{
    CLEANUP(event_list_done) struct event_list list = {0};
    parse(&list, "task-clock,r1a8");
    CHECK_STR(derived_figure(&list, (double[]){1e9, 3}, 1, 1e9).text, "/sec");
    strcpy(list.items[1].unit, "Joules");
    CHECK_STR(derived_figure(&list, (double[]){1e9, 3}, 1, 1e9).text, "");
}
