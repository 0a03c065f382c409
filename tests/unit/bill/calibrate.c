/* SPDX-License-Identifier: MIT */
/* The lines of a bill add up to the runs without tracing, and a sleep stays as long as it was. */
#include "base/memory.h"
#include "bill/bill.h"
#include "test.h"

#include <string.h>

#define MS 1e6

enum { RUNS = 3 };

/* Runs in which the command ran, slept and was ready for so long. */
static void begin(struct bill *b, double ran, double slept, double ready, double traced_cpu)
{
    static const struct {
        enum bill_part part;
        const char *what;
    } items[] = {{BILL_USER, "work"}, {BILL_SLEEP, "nanosleep"}, {BILL_READY, "others"}};
    const double times[] = {ran, slept, ready};
    bill_init(b);
    b->runs = memory_zalloc(RUNS, sizeof(*b->runs));
    b->run_count = b->run_capacity = RUNS;
    for (size_t i = 0; i < ARRAY_COUNT(items); i++) {
        uint32_t id = bill_item(b, items[i].part, "command", items[i].what, NULL);
        for (size_t r = 0; r < RUNS; r++)
            b->items[id].ns[r] = times[i] * MS;
    }
    for (size_t r = 0; r < RUNS; r++) {
        b->runs[r].wall_ns = (uint64_t)((ran + slept + ready) * MS);
        b->runs[r].cpu_ns = traced_cpu * MS;
    }
}

static void untraced(struct bill *b, double wall, double cpu)
{
    for (size_t r = 0; r < RUNS; r++)
        bill_add_wall(b, wall * MS, cpu * MS);
    bill_sum(b);
}

static double part(const struct bill *b, enum bill_part part)
{
    return b->parts[part].mean / MS;
}

TEST(running_is_brought_to_the_cpu_time_without_tracing)
{
    struct bill b;
    begin(&b, 80, 100, 0, 80);
    untraced(&b, 160, 60);
    CHECK_NEAR(part(&b, BILL_USER), 60, 1e-6);
    CHECK_NEAR(part(&b, BILL_SLEEP), 100, 1e-6);
    CHECK_NEAR(b.sum.mean, b.wall.mean, 1);
    CHECK_NEAR(b.cpu_scale, 0.75, 1e-9);
    CHECK_NEAR(bill_line_scale(&b, 0), 1, 1e-9); /* the sleep, which is the largest */
    CHECK_NEAR(bill_line_scale(&b, 1), 0.75, 1e-9);
    bill_done(&b);
}

TEST(what_the_machine_did_is_taken_from_waiting_for_a_cpu)
{
    struct bill b;
    begin(&b, 60, 100, 50, 60);
    untraced(&b, 170, 60);
    CHECK_NEAR(part(&b, BILL_USER), 60, 1e-6);
    CHECK_NEAR(part(&b, BILL_SLEEP), 100, 1e-6);
    CHECK_NEAR(part(&b, BILL_READY), 10, 1e-6);
    CHECK_NEAR(b.sum.mean, b.wall.mean, 1);
    bill_done(&b);
}

TEST(a_sleep_does_not_shrink)
{
    struct bill b;
    begin(&b, 60, 100, 0, 60);
    untraced(&b, 130, 60);
    CHECK_NEAR(part(&b, BILL_SLEEP), 100, 1e-6);
    CHECK_NEAR(part(&b, BILL_USER), 30, 1e-6);
    bill_done(&b);
}

TEST(what_nobody_saw_is_unattributed)
{
    struct bill b;
    begin(&b, 60, 100, 0, 60);
    untraced(&b, 200, 60);
    CHECK_NEAR(part(&b, BILL_UNKNOWN), 40, 1e-6);
    CHECK_NEAR(b.unseen_ns, 40 * MS, 1);
    CHECK_NEAR(b.sum.mean, b.wall.mean, 1);
    bill_done(&b);
}

TEST(a_small_difference_is_left_alone)
{
    struct bill b;
    begin(&b, 60, 100, 4, 60);
    untraced(&b, 161, 60);
    CHECK_NEAR(part(&b, BILL_READY), 4, 1e-6);
    CHECK(b.unseen_ns == 0);
    bill_done(&b);
}
