/* SPDX-License-Identifier: MIT */
#include "bill/whatif.h"
#include "base/memory.h"
#include "test.h"

/* Two threads of the command, and pieces that are written down by hand, in microseconds. */
struct scene {
    struct bill b;
    struct timeline t;
    bool is_meant[64];
};

static void begin(struct scene *s)
{
    bill_init(&s->b);
    timeline_init(&s->t);
    timeline_begin(&s->t, 10, "main", 0);
}

static void feed(struct scene *s, struct timeline_event e, uint64_t us)
{
    e.time_ns = us * 1000;
    timeline_feed(&s->t, &e);
}

static void change(struct scene *s, uint64_t us, uint32_t cpu, uint32_t from, int64_t state,
                   uint32_t to)
{
    struct timeline_event e = {.kind = TIMELINE_SWITCH, .cpu = cpu, .tid = from};
    e.change.next = to;
    e.change.previous_state = state;
    e.change.previous_name = e.change.next_name = "other";
    e.change.stack = TIMELINE_NONE;
    feed(s, e, us);
}

static void call(struct scene *s, uint64_t us, uint32_t tid, int64_t number)
{
    struct timeline_event e = {.kind = number < 0 ? TIMELINE_LEAVE : TIMELINE_ENTER, .tid = tid};
    if (number >= 0)
        e.enter.number = number;
    feed(s, e, us);
}

static void wake(struct scene *s, uint64_t us, uint32_t by, uint32_t target)
{
    struct timeline_event e = {.kind = TIMELINE_WAKING, .tid = by};
    e.waking.target = target;
    feed(s, e, us);
}

static void spawn(struct scene *s, uint64_t us, uint32_t by, uint32_t child)
{
    struct timeline_event e = {.kind = TIMELINE_FORK, .tid = by};
    e.fork.child_pid = 10;
    e.fork.child_tid = child;
    feed(s, e, us);
}

/* Main makes a worker, both work in calls of their own (1 and 20), main waits for the worker. */
static void fork_and_join(struct scene *s, uint64_t main_us, uint64_t worker_us)
{
    begin(s);
    wake(s, 1, 99, 10);
    change(s, 2, 0, 99, 1, 10);
    spawn(s, 10, 10, 11);
    change(s, 10, 1, 0, 0, 11);
    call(s, 11, 10, 1);
    call(s, 11, 11, 20);
    uint64_t main_end = 11 + main_us, worker_end = 11 + worker_us;
    if (main_end < worker_end) {
        call(s, main_end, 10, -1);
        change(s, main_end + 1, 0, 10, 1, 0);
        call(s, worker_end, 11, -1);
        wake(s, worker_end + 1, 11, 10);
        change(s, worker_end + 2, 0, 0, 0, 10);
        change(s, worker_end + 3, 1, 11, 0x10, 0);
    } else {
        call(s, worker_end, 11, -1);
        change(s, worker_end + 1, 1, 11, 0x10, 0);
        call(s, main_end, 10, -1);
    }
    uint64_t end = (main_end > worker_end ? main_end : worker_end) + 10;
    change(s, end, 0, 10, 0x10, 0);
    timeline_finish(&s->t, end * 1000);
    bill_add_run(&s->b, &s->t, NULL, NULL, 0);
    bill_sum(&s->b);
}

static void mean_items(struct scene *s, const char *what)
{
    CHECK(s->b.item_count <= ARRAY_COUNT(s->is_meant));
    for (size_t i = 0; i < s->b.item_count; i++)
        s->is_meant[i] = strcmp(s->b.items[i].what, what) == 0;
}

static double gain_us(const struct scene *s, double scale, bool hands_over)
{
    static const bool nothing[64];
    return (whatif_replay(&s->b.runs[0], nothing, 1, hands_over) -
            whatif_replay(&s->b.runs[0], s->is_meant, scale, hands_over)) /
           1000;
}

TEST(the_lines_add_up_to_the_wall_time)
{
    struct scene s = {0};
    fork_and_join(&s, 100, 500);
    double sum = 0;
    for (size_t i = 0; i < s.b.line_count; i++)
        sum += s.b.lines[i].ns[0];
    CHECK_NEAR(sum, (double)s.b.runs[0].wall_ns, 1);
    CHECK_NEAR(s.b.sum.mean, 521000, 1);
    bill_done(&s.b);
}

TEST(a_replay_without_a_change_takes_as_long)
{
    static const bool nothing[64];
    struct scene s = {0};
    fork_and_join(&s, 100, 500);
    for (int model = 0; model < 2; model++)
        CHECK_NEAR(whatif_replay(&s.b.runs[0], nothing, 1, model), 521000, 10);
    bill_done(&s.b);
}

TEST(what_the_rest_waits_for_gains_until_something_else_is_longest)
{
    struct scene s = {0};
    fork_and_join(&s, 100, 500);
    mean_items(&s, "writev"); /* the worker's */
    for (int model = 0; model < 2; model++) {
        CHECK_NEAR(gain_us(&s, 0.5, model), 250, 5);
        CHECK_NEAR(gain_us(&s, 0, model), 400, 5); /* then main's 100 are the longest */
    }
    bill_done(&s.b);
}

/* One thread works for 400 us and tells another to stop, which looks every 50 us. */
static void work_beside_a_watcher(struct scene *s)
{
    begin(s);
    wake(s, 1, 99, 10);
    change(s, 2, 0, 99, 1, 10);
    spawn(s, 10, 10, 11);
    spawn(s, 10, 10, 12);
    change(s, 10, 1, 0, 0, 11);
    change(s, 11, 0, 10, 1, 12); /* main waits for the working one */
    call(s, 11, 12, 1);
    for (uint64_t us = 20; us < 450; us += 50) {
        call(s, us, 11, 230);
        change(s, us, 1, 11, 1, 0);
        if (us == 370) {
            call(s, 411, 12, -1);
            change(s, 412, 0, 12, 1, 0);
        }
        struct timeline_event e = {.kind = TIMELINE_WAKING, .waking = {.target = 11, .flags = 8}};
        feed(s, e, us + 48);
        change(s, us + 48, 1, 0, 0, 11);
        call(s, us + 49, 11, -1);
    }
    wake(s, 475, 11, 12);
    change(s, 476, 0, 0, 0, 12);
    change(s, 477, 1, 11, 0x10, 0);
    wake(s, 478, 12, 10);
    change(s, 479, 0, 12, 0x10, 10);
    change(s, 480, 0, 10, 0x10, 0);
    timeline_finish(&s->t, 480000);
    bill_add_run(&s->b, &s->t, NULL, NULL, 0);
    bill_sum(&s->b);
}

TEST(the_gain_beside_a_watcher_is_between_nothing_and_all)
{
    static const bool nothing[64];
    struct scene s = {0};
    work_beside_a_watcher(&s);
    for (int model = 0; model < 2; model++)
        CHECK_NEAR(whatif_replay(&s.b.runs[0], nothing, 1, model), 480000, 3000);
    mean_items(&s, "write");
    CHECK_NEAR(gain_us(&s, 0, false), 0, 5);
    CHECK_NEAR(gain_us(&s, 0, true), 400, 5);
    bill_done(&s.b);
}

TEST(what_nobody_waits_for_gains_nothing)
{
    struct scene s = {0};
    fork_and_join(&s, 100, 500);
    mean_items(&s, "write"); /* main's, while the worker takes longer */
    CHECK_NEAR(gain_us(&s, 0, false), 0, 1);
    bill_done(&s.b);
}
