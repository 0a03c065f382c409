/* SPDX-License-Identifier: MIT */
/* Waits worked out from synthesised records. */
#include "sampler/offcpu.h"
#include "synthetic.h"
#include "test.h"

static const struct perfdata_event event = {
    .attr = {.type = PERF_TYPE_SOFTWARE,
             .config = PERF_COUNT_SW_CONTEXT_SWITCHES,
             .context_switch = 1},
    .name = OFFCPU_EVENT_NAME,
};
static const struct perfdata_event other_event = {.name = "cpu-clock"};

static struct perfdata_record leaving(uint32_t tid, uint64_t time_ns, const uint64_t *chain,
                                      size_t count)
{
    struct perfdata_record r = {
        .type = PERF_RECORD_SAMPLE, .event = &event, .pid = 1, .tid = tid, .time_ns = time_ns};
    r.sample.callchain = chain;
    r.sample.callchain_count = count;
    return r;
}

static struct perfdata_record switched(uint32_t tid, uint64_t time_ns, bool is_out, bool preempted)
{
    struct perfdata_record r = {
        .type = PERF_RECORD_SWITCH, .event = &event, .pid = 1, .tid = tid, .time_ns = time_ns};
    r.context_switch.is_out = is_out;
    r.context_switch.is_preempted = preempted;
    return r;
}

static void put_task(struct offcpu *o, uint32_t type, uint32_t tid)
{
    struct perfdata_record r = {.type = type}, wait;
    r.task.tid = tid;
    CHECK_INT(offcpu_feed(o, &r, &wait), OFFCPU_PASS);
}

TEST(a_wait_lasts_from_leaving_to_returning)
{
    struct offcpu *o = offcpu_new();
    uint64_t chain[] = {PERF_CONTEXT_USER, 0x10, 0x20};
    struct perfdata_record r = leaving(5, 1000, chain, 3), wait;
    CHECK_INT(offcpu_feed(o, &r, &wait), OFFCPU_HELD);
    chain[1] = 0xdead; /* the reader's buffer is used again */
    r = switched(5, 1010, true, false);
    CHECK_INT(offcpu_feed(o, &r, &wait), OFFCPU_HELD);
    r = switched(5, 4000, false, false);
    CHECK_INT(offcpu_feed(o, &r, &wait), OFFCPU_WAIT);
    CHECK_INT(wait.type, PERF_RECORD_SAMPLE);
    CHECK_INT(wait.time_ns, 1000);
    CHECK_INT(wait.sample.period, 3000);
    CHECK_INT(wait.sample.callchain_count, 3);
    CHECK_INT(wait.sample.callchain[1], 0x10);
    CHECK(!(wait.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT));
    CHECK(!offcpu_flush(o, &wait));
    offcpu_free(o);
}

TEST(a_thread_that_was_preempted_is_told_apart)
{
    struct offcpu *o = offcpu_new();
    struct perfdata_record r = leaving(5, 1000, NULL, 0), wait;
    offcpu_feed(o, &r, &wait);
    r = switched(5, 1010, true, true);
    offcpu_feed(o, &r, &wait);
    r = switched(5, 1500, false, false);
    CHECK_INT(offcpu_feed(o, &r, &wait), OFFCPU_WAIT);
    CHECK(wait.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
    offcpu_free(o);
}

TEST(a_thread_that_was_woken_is_only_ready)
{
    struct offcpu *o = offcpu_new();
    struct perfdata_record wait, r = leaving(7, 1000, NULL, 0);
    offcpu_feed(o, &r, &wait);
    r = switched(7, 1001, true, false);
    offcpu_feed(o, &r, &wait);
    CHECK(!offcpu_wake(o, 8, 3000, &wait));
    CHECK(offcpu_wake(o, 7, 5000, &wait));
    CHECK_INT(wait.time_ns, 1000);
    CHECK_INT(wait.sample.period, 4000);
    CHECK(!(wait.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT));
    CHECK(!offcpu_wake(o, 7, 5500, &wait)); /* it does not wait any more */
    r = switched(7, 9000, false, false);
    CHECK_INT(offcpu_feed(o, &r, &wait), OFFCPU_WAIT);
    CHECK_INT(wait.time_ns, 5000);
    CHECK_INT(wait.sample.period, 4000);
    CHECK(wait.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
    CHECK(!offcpu_wake(o, 7, 9500, &wait)); /* it runs */
    offcpu_free(o);
}

TEST(waits_without_an_end_are_cut_off_and_the_dead_wait_for_nothing)
{
    struct offcpu *o = offcpu_new();
    struct perfdata_record wait;
    for (uint32_t tid = 1; tid <= 1000; tid++) {
        struct perfdata_record r = leaving(tid, 1000 + tid, NULL, 0);
        CHECK_INT(offcpu_feed(o, &r, &wait), OFFCPU_HELD);
    }
    put_task(o, PERF_RECORD_EXIT, 7);
    struct perfdata_record r = leaving(7, 2500, NULL, 0); /* its last switch */
    offcpu_feed(o, &r, &wait);
    r = (struct perfdata_record){
        .type = PERF_RECORD_SAMPLE, .event = &other_event, .tid = 1, .time_ns = 3000};
    CHECK_INT(offcpu_feed(o, &r, &wait), OFFCPU_PASS);
    uint64_t count = 0, total_ns = 0;
    while (offcpu_flush(o, &wait)) {
        CHECK(wait.tid != 7);
        CHECK_INT(wait.time_ns + wait.sample.period, 3000);
        total_ns += wait.sample.period;
        count++;
    }
    CHECK_INT(count, 999);
    CHECK_INT(offcpu_losses(o)->unended, 999);
    CHECK_INT(total_ns, 2000 * 999 - (1000 * 1001 / 2 - 7));
    offcpu_free(o);
}

TEST(the_first_turn_of_a_new_thread_ends_no_wait)
{
    struct offcpu *o = offcpu_new();
    struct perfdata_record r = switched(5, 10, false, false), wait;
    CHECK_INT(offcpu_feed(o, &r, &wait), OFFCPU_HELD);
    CHECK_INT(offcpu_losses(o)->without_start, 1);
    put_task(o, PERF_RECORD_FORK, 6);
    r = switched(6, 20, false, false);
    CHECK_INT(offcpu_feed(o, &r, &wait), OFFCPU_HELD);
    CHECK_INT(offcpu_losses(o)->without_start, 1);
    offcpu_free(o);
}
