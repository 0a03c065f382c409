/* SPDX-License-Identifier: MIT */
/* Records of tracepoints taken apart, chains by number, and rows of a profile. */
#include "monitors/trace.h"
#include "analysis/sparse.h"
#include "base/memory.h"
#include "monitors/perf_profile.h"
#include "profile/profile.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TYPE = 372 };

/* A sample as the kernel writes it: ip, pid and tid, time, cpu, chain, raw. */
struct bytes {
    _Alignas(8) unsigned char data[512];
    size_t size;
};

static void put(struct bytes *b, const void *value, size_t size)
{
    memcpy(b->data + b->size, value, size);
    b->size += size;
}

static void put_u64(struct bytes *b, uint64_t value)
{
    put(b, &value, sizeof(value));
}

static void put_u32(struct bytes *b, uint32_t value)
{
    put(b, &value, sizeof(value));
}

static const struct perf_event_header *finish(struct bytes *b, uint32_t type, uint16_t misc)
{
    struct perf_event_header head = {.type = type, .misc = misc, .size = (uint16_t)b->size};
    memcpy(b->data, &head, sizeof(head));
    return (const void *)b->data;
}

static void make_sample(struct bytes *b)
{
    *b = (struct bytes){.size = sizeof(struct perf_event_header)};
    put_u64(b, 0xffff800000001000);
    put_u32(b, 70);
    put_u32(b, 71);
    put_u64(b, 123456789);
    put_u64(b, 1);
    put_u64(b, 2);
    put_u64(b, 0xffff800000001000);
    put_u64(b, 0xffff800000002000);
    put_u32(b, 20);
    uint16_t type = TYPE;
    put(b, &type, sizeof(type));
    put(b, "\0\0", 2);
    put_u32(b, 71);
    put_u64(b, (uint64_t)-5);
    put_u32(b, (uint32_t)-7);
}

static void make_trace(struct trace *t, struct event *event)
{
    *t = (struct trace){0};
    *event = (struct event){.attr = {.config = TYPE}};
    t->sources[TRACE_RUN].events = (struct event_list){.items = event, .count = 1};
    t->sources[TRACE_RUN].stacks = true;
}

TEST(a_sample_is_taken_apart)
{
    struct trace t;
    struct event event;
    struct bytes b;
    struct trace_record r;
    make_trace(&t, &event);
    make_sample(&b);
    CHECK(trace_parse(&t, TRACE_RUN, finish(&b, PERF_RECORD_SAMPLE, 0), &r));
    CHECK_INT(r.kind, TRACE_EVENT);
    CHECK_INT(r.tid, 71);
    CHECK_INT(r.time_ns, 123456789);
    CHECK_INT(r.event, 0);
    CHECK_INT(r.chain_count, 2);
    CHECK(r.chain[1] == 0xffff800000002000);
    CHECK_INT(trace_number(&r, &(struct trace_field){.offset = 8, .size = 8}), -5);
    CHECK_INT(trace_number(&r, &(struct trace_field){.offset = 16, .size = 4}), -7);
    CHECK_INT(trace_number(&r, &(struct trace_field){.offset = 17, .size = 4}), 0);
    CHECK_INT(trace_number(&r, &(struct trace_field){.offset = 400, .size = 8}), 0);
}

/* However a record is cut off, nothing behind its end is read, and no other event is taken for
 * ours. */
TEST(what_is_cut_off_means_nothing)
{
    struct trace t;
    struct event event;
    struct bytes b;
    struct trace_record r;
    make_trace(&t, &event);
    make_sample(&b);
    size_t whole = b.size;
    for (size_t size = 0; size < whole - 20 + 2; size++) {
        unsigned char *copy = memory_alloc(size + 8);
        struct perf_event_header head = {.type = PERF_RECORD_SAMPLE, .size = (uint16_t)size};
        memcpy(copy, b.data, size);
        memcpy(copy, &head, sizeof(head));
        CHECK(!trace_parse(&t, TRACE_RUN, (const void *)copy, &r));
        free(copy);
    }
    event.attr.config = TYPE + 1;
    CHECK(!trace_parse(&t, TRACE_RUN, finish(&b, PERF_RECORD_SAMPLE, 0), &r));
    event.attr.config = TYPE;
    uint64_t huge = UINT64_MAX;
    memcpy(b.data + 40, &huge, sizeof(huge)); /* the number of frames */
    CHECK(!trace_parse(&t, TRACE_RUN, finish(&b, PERF_RECORD_SAMPLE, 0), &r));
    CHECK(!trace_parse(&t, TRACE_RUN, finish(&b, PERF_RECORD_LOST, 0), &r));
}

TEST(switches_say_who_and_when)
{
    struct trace t;
    struct event event;
    struct trace_record r;
    make_trace(&t, &event);
    struct bytes b = {.size = sizeof(struct perf_event_header)};
    put_u32(&b, 70);
    put_u32(&b, 72);
    put_u64(&b, 99);
    CHECK(trace_parse(&t, TRACE_RUN, finish(&b, PERF_RECORD_SWITCH, 0), &r));
    CHECK_INT(r.kind, TRACE_ARRIVES);
    CHECK_INT(r.tid, 72);
    CHECK_INT(r.time_ns, 99);
    CHECK(trace_parse(&t, TRACE_RUN, finish(&b, PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT),
                      &r));
    CHECK_INT(r.kind, TRACE_LEAVES);
}

TEST(chains_are_interned)
{
    struct chains c;
    chains_init(&c);
    const uint64_t marked[] = {PERF_CONTEXT_KERNEL, 1, 2, 3}, plain[] = {1, 2, 3}, other[] = {1, 2};
    uint32_t empty = chains_intern(&c, NULL, 0);
    CHECK_INT(chains_intern(&c, marked, 1), empty);
    uint32_t first = chains_intern(&c, marked, 4);
    CHECK_INT(chains_intern(&c, plain, 3), first); /* marks are no frames */
    CHECK(chains_intern(&c, other, 2) != first);
    for (uint64_t i = 0; i < 5000; i++) {
        uint64_t chain[] = {i, i + 1, i * 7};
        uint32_t id = chains_intern(&c, chain, 3);
        CHECK_INT(chains_intern(&c, chain, 3), id);
    }
    CHECK_INT(chains_intern(&c, plain, 3), first);
    chains_clear(&c);
    CHECK_INT(c.count, 0);
    CHECK_INT(chains_intern(&c, other, 2), 0);
    chains_done(&c);
    char *const names[] = {(char *)"a", (char *)"b", (char *)"a"};
    CHECK_INT(chains_first(names, 2), 0);
    CHECK_INT(chains_first(names, 1), 1);
}

struct found {
    struct {
        char name[128];
        double value;
    } rows[64];
    size_t count;
};

static void find(void *context, const char *name, double value, const char *unit)
{
    struct found *f = context;
    (void)unit;
    snprintf(f->rows[f->count].name, sizeof(f->rows[0].name), "%s", name);
    f->rows[f->count++].value = value;
}

static double row(const struct found *f, const char *name)
{
    for (size_t i = 0; i < f->count; i++)
        if (str_eq(f->rows[i].name, name))
            return f->rows[i].value;
    return -1;
}

static uint32_t frame(struct calls *c, const char *name)
{
    ARRAY_PUSH(c->symbols, c->symbol_count, c->symbol_capacity) =
        (struct profile_symbol){.name = name};
    return calls_frame(c, (uint32_t)c->symbol_count - 1, 0, false);
}

/* main calls work, which calls itself once; of 1000 samples one is in a function of its own. */
TEST(shares_of_a_profile)
{
    struct profile p = {0};
    struct found f = {0};
    calls_init(&p.calls);
    uint32_t main_frame = frame(&p.calls, "main"), work = frame(&p.calls, "work");
    uint32_t rare = frame(&p.calls, "rare"), nameless = frame(&p.calls, NULL);
    uint32_t in_main = calls_push(&p.calls, 0, main_frame);
    uint32_t in_work = calls_push(&p.calls, in_main, work);
    uint32_t in_again = calls_push(&p.calls, in_work, work);
    calls_add(&p.calls, in_main, 0, 0, 0, 249, 249);
    calls_add(&p.calls, in_work, 0, 0, 0, 250, 250);
    calls_add(&p.calls, in_again, 0, 0, 0, 250, 250);
    calls_add(&p.calls, calls_push(&p.calls, in_main, rare), 0, 0, 0, 1, 1);
    calls_add(&p.calls, calls_push(&p.calls, 0, nameless), 0, 0, 0, 250, 250);
    perf_profile_give(&p, find, &f);
    CHECK_NEAR(row(&f, "perf-profile.samples"), 1000, 0);
    CHECK_NEAR(row(&f, "perf-profile.self.cycles-pp.work"), 50, 1e-9);
    CHECK_NEAR(row(&f, "perf-profile.children.cycles-pp.work"), 50, 1e-9); /* not 75 */
    CHECK_NEAR(row(&f, "perf-profile.children.cycles-pp.main"), 75, 1e-9);
    CHECK_NEAR(row(&f, "perf-profile.calltrace.cycles-pp.main"), 75, 1e-9);
    CHECK_NEAR(row(&f, "perf-profile.calltrace.cycles-pp.work.main"), 50, 1e-9);
    CHECK_NEAR(row(&f, "perf-profile.calltrace.cycles-pp.work.work.main"), 25, 1e-9);
    CHECK_NEAR(row(&f, "perf-profile.self.cycles-pp.[unknown]"), 25, 1e-9);
    CHECK_NEAR(row(&f, "perf-profile.self.cycles-pp.rare"), 0.1, 1e-9);
    CHECK_NEAR(row(&f, "perf-profile.calltrace.cycles-pp.rare.main"), -1, 0); /* below 0.5 % */
    calls_done(&p.calls);
}

/* The same work, seen from _start, from main only, and from below a function without a name. */
TEST(outer_frames_do_not_split_a_chain)
{
    struct profile p = {0};
    struct found f = {0};
    calls_init(&p.calls);
    uint32_t start = frame(&p.calls, "_start"), libc = frame(&p.calls, "__libc_start_main_impl");
    uint32_t main_frame = frame(&p.calls, "main"), work = frame(&p.calls, "work");
    uint32_t nameless = frame(&p.calls, NULL), thread = frame(&p.calls, "worker");
    uint32_t begin = frame(&p.calls, "start_thread"), clone = frame(&p.calls, "clone3");
    uint32_t whole = calls_push(
        &p.calls, calls_push(&p.calls, calls_push(&p.calls, 0, start), libc), main_frame);
    uint32_t shorter = calls_push(&p.calls, 0, main_frame);
    uint32_t odd = calls_push(&p.calls, calls_push(&p.calls, 0, nameless), main_frame);
    calls_add(&p.calls, calls_push(&p.calls, whole, work), 0, 0, 0, 500, 500);
    calls_add(&p.calls, calls_push(&p.calls, shorter, work), 0, 0, 0, 70, 70);
    calls_add(&p.calls, calls_push(&p.calls, odd, work), 0, 0, 0, 4, 4);
    uint32_t in_thread =
        calls_push(&p.calls, calls_push(&p.calls, calls_push(&p.calls, 0, clone), begin), thread);
    calls_add(&p.calls, in_thread, 0, 0, 0, 400, 400);
    calls_add(&p.calls, calls_push(&p.calls, 0, thread), 0, 0, 0, 26, 26);
    perf_profile_give(&p, find, &f);
    CHECK_NEAR(row(&f, "perf-profile.calltrace.cycles-pp.work.main"), 57.4, 1e-9);
    CHECK_NEAR(row(&f, "perf-profile.calltrace.cycles-pp.main"), 57.4, 1e-9);
    CHECK_NEAR(row(&f, "perf-profile.calltrace.cycles-pp.worker"), 42.6, 1e-9);
    CHECK_NEAR(row(&f, "perf-profile.children.cycles-pp._start"), 50, 1e-9);
    CHECK_NEAR(row(&f, "perf-profile.calltrace.cycles-pp.work.main.__libc_start_main_impl._start"),
               -1, 0);
    calls_done(&p.calls);
}

TEST(what_absence_means)
{
    CHECK_STR(sparse_marker("syscalls.count.read"), "syscalls.lost");
    CHECK_STR(sparse_marker("perf-profile.self.cycles-pp.f"), "perf-profile.samples");
    CHECK(!sparse_marker("syscalls.avg.us.read"));
    CHECK(!sparse_marker("perf-sched.wait_time.avg.ms.f"));
    CHECK(!sparse_marker("vmstat.system.cs"));
}
