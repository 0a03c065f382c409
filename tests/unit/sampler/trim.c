/* SPDX-License-Identifier: MIT */
#include "sampler/trim.h"
#include "base/memory.h"
#include "sampler/stacks.h"
#include "sampler/tracing_data.h"
#include "test.h"

#include <stdio.h>

#define TYPE                                                                             \
    (PERF_SAMPLE_IP | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | \
     PERF_SAMPLE_STACK_USER)

static void put(struct strbuf *b, uint64_t word)
{
    strbuf_append(b, (const char *)&word, sizeof(word));
}

/* A sample with a chain of two, two registers and a stack of 32 bytes, of which `used` are there;
 * `room` 0: a kernel thread's, without registers. */
static void make_sample(struct strbuf *b, uint64_t room, uint64_t used)
{
    struct perf_event_header head = {.type = PERF_RECORD_SAMPLE};
    strbuf_clear(b);
    put(b, 0);
    put(b, 0x1000);
    put(b, 77);
    put(b, 2);
    put(b, 0x1000);
    put(b, 0x2000);
    put(b, room ? 2 : 0);
    for (uint64_t i = 0; i < (room ? 2 : 0); i++)
        put(b, 0xaa + i);
    put(b, room);
    for (uint64_t i = 0; i < room / 8; i++)
        put(b, 0x100 + i);
    if (room)
        put(b, used);
    head.size = (uint16_t)b->length;
    memcpy(b->data, &head, sizeof(head));
}

static uint64_t word(const struct strbuf *b, size_t index)
{
    uint64_t value;
    memcpy(&value, b->data + 8 * index, sizeof(value));
    return value;
}

TEST(only_what_was_copied_of_a_stack_is_kept)
{
    CLEANUP(strbuf_done) struct strbuf sample = {0}, out = {0};
    struct trim_totals totals = {0};
    make_sample(&sample, 32, 13);
    CHECK(trim_sample(&out, sample.data, TYPE, 3, &totals));
    struct perf_event_header head;
    memcpy(&head, out.data, sizeof(head));
    CHECK_INT(head.size, out.length);
    CHECK_INT(out.length, sample.length - 16);
    CHECK(memcmp(out.data + 8, sample.data + 8, 64) == 0);
    CHECK_INT(word(&out, 9), 16); /* a multiple of eight */
    CHECK_INT(word(&out, 11), 0x101);
    CHECK_INT(word(&out, 12), 13);
    CHECK_INT(totals.stacks, 1);
    CHECK_INT(totals.cut, 0);
    CHECK_INT(totals.bytes_max, 13);
}

TEST(a_stack_that_fills_its_room_is_left_and_counted_as_cut)
{
    CLEANUP(strbuf_done) struct strbuf sample = {0}, out = {0};
    struct trim_totals totals = {0};
    make_sample(&sample, 32, 32);
    CHECK(!trim_sample(&out, sample.data, TYPE, 3, &totals));
    CHECK_INT(out.length, 0);
    CHECK_INT(totals.cut, 1);
}

TEST(a_stack_of_nothing_loses_its_room)
{
    CLEANUP(strbuf_done) struct strbuf sample = {0}, out = {0};
    struct trim_totals totals = {0};
    make_sample(&sample, 32, 0);
    CHECK(trim_sample(&out, sample.data, TYPE, 3, &totals));
    CHECK_INT(out.length, 80);
    CHECK_INT(word(&out, 9), 0);
    CHECK_INT(totals.stacks, 0);
    make_sample(&sample, 0, 0);
    strbuf_clear(&out);
    CHECK(!trim_sample(&out, sample.data, TYPE, 3, &totals));
    struct stack_place place;
    CHECK(stack_place_find(&place, sample.data, TYPE, 3));
    CHECK_INT(place.chain, 24);
    CHECK_INT(place.chain_end, 48);
    CHECK_INT(place.registers, 48);
    CHECK_INT(place.end, sample.length);
}

TEST(records_that_contradict_themselves_are_left_alone)
{
    CLEANUP(strbuf_done) struct strbuf sample = {0};
    struct stack_place place;
    make_sample(&sample, 32, 33);
    CHECK(!stack_place_find(&place, sample.data, TYPE, 3));
    make_sample(&sample, 32, 8);
    CHECK(!stack_place_find(&place, sample.data, TYPE | PERF_SAMPLE_READ, 3));
    CHECK(!stack_place_find(&place, sample.data, TYPE & ~(uint64_t)PERF_SAMPLE_STACK_USER, 3));
    CHECK(!stack_place_find(&place, sample.data, TYPE, UINT64_MAX));
    for (uint16_t size = 8; size < sample.length; size = (uint16_t)(size + 8)) {
        struct perf_event_header head = {.type = PERF_RECORD_SAMPLE, .size = size};
        memcpy(sample.data, &head, sizeof(head));
        CHECK(!stack_place_find(&place, sample.data, TYPE, 3));
    }
}

TEST(copies_are_as_long_as_the_rings_allow)
{
    CHECK_INT(stacks_copy_bytes(999, (size_t)16 << 20), SAMPLING_STACK_BYTES_MAX);
    CHECK_INT(stacks_copy_bytes(5000, (size_t)16 << 20), 16760);
    CHECK_INT(stacks_copy_bytes(20000, (size_t)16 << 20), SAMPLING_STACK_BYTES_DEFAULT);
    CHECK_INT(stacks_copy_bytes(999, (size_t)512 << 10), SAMPLING_STACK_BYTES_DEFAULT);
}

struct seen {
    size_t count;
    char last[32];
};

static void see(void *context, const char *system, const char *format, size_t length)
{
    struct seen *seen = context;
    seen->count++;
    snprintf(seen->last, sizeof(seen->last), "%s:%.*s", system, (int)length, format);
}

TEST(formats_of_tracepoints_are_found_and_nothing_behind_the_end_is_read)
{
    static const char block[] = "\x17\x08\x44tracing0.6\0\0\x08\0\x10\0\0"
                                "header_page\0\x02\0\0\0\0\0\0\0ab"
                                "header_event\0\0\0\0\0\0\0\0\0"
                                "\x01\0\0\0\x01\0\0\0\0\0\0\0x"
                                "\x01\0\0\0sched\0\x02\0\0\0"
                                "\x03\0\0\0\0\0\0\0one\x03\0\0\0\0\0\0\0two";
    struct seen seen = {0};
    tracing_data_each(block, sizeof(block) - 1, see, &seen);
    CHECK_INT(seen.count, 2);
    CHECK_STR(seen.last, "sched:two");
    for (size_t size = 0; size < sizeof(block) - 1; size++) {
        char *copy = memcpy(malloc(size + 1), block, size);
        seen.count = 0;
        tracing_data_each(copy, size, see, &seen);
        CHECK(seen.count < 2);
        free(copy);
    }
}
