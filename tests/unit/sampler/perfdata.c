/* SPDX-License-Identifier: MIT */
/* The reader on synthesised files: every field of a sample, every kind of record, order, damage. */
#include "sampler/perfdata.h"
#include "synthetic.h"
#include "test.h"

#include <errno.h>

#define TYPE_SIMPLE (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME)

static const uint64_t one_id[] = {7};

static struct perfdata_writer_event simple_event(void)
{
    return (struct perfdata_writer_event){
        .attr = {.type = PERF_TYPE_SOFTWARE,
                 .size = sizeof(struct perf_event_attr),
                 .sample_period = 1000,
                 .sample_type = TYPE_SIMPLE,
                 .sample_id_all = 1},
        .name = "cpu-clock",
        .ids = one_id,
        .id_count = 1,
    };
}

static void put_sample(struct strbuf *out, uint64_t ip, uint64_t time_ns)
{
    PUT_WORDS(out, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, ip, pair(10, 11), time_ns);
}

#define FINISHED_ROUND(out) put_record((out), PERFDATA_FINISHED_ROUND, 0, "", 0)

/* All 25 bits.  The words say which field they are. */
static struct perf_event_attr full_attr(void)
{
    return (struct perf_event_attr){
        .type = PERF_TYPE_RAW,
        .size = sizeof(struct perf_event_attr),
        .sample_type = PERF_SAMPLE_MAX - 1,
        .sample_id_all = 1,
        .read_format = PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED,
        .branch_sample_type = PERF_SAMPLE_BRANCH_HW_INDEX,
        .sample_regs_user = 0x5,
        .sample_regs_intr = 0x3,
    };
}

static void put_full_sample(struct strbuf *out)
{
    struct strbuf body = {0};
    const uint64_t first[] = {
        7,            /* identifier */
        0x1000,       /* ip */
        pair(10, 11), /* pid, tid */
        5000,         /* time */
        0xadd4,       /* addr */
        7,            /* id */
        70,           /* stream id */
        pair(3, 0),   /* cpu */
        123,          /* period */
        900,
        901,
        7, /* read: value, enabled, id */
        3,
        PERF_CONTEXT_USER,
        0x1000,
        0x2000, /* chain */
    };
    strbuf_append(&body, (const char *)first, sizeof(first));
    perfdata_put_u32(&body, 12); /* raw: its size and 12 bytes */
    strbuf_append(&body, "raw-raw-raw!", 12);
    const uint64_t second[] = {
        1,
        44,
        0xf0,
        0x70,
        0, /* branches: count, index, from, to, flags */
        PERF_SAMPLE_REGS_ABI_64,
        0xa0,
        0xa2, /* user registers */
        16,
        0x5a5a,
        0x6b6b,
        8, /* stack, of which 8 bytes are real */
        55,
        56,
        57, /* weight, data source, transaction */
        PERF_SAMPLE_REGS_ABI_64,
        0xb0,
        0xb1, /* registers at the interrupt */
        58,
        59,
        60,
        61, /* physical, cgroup, data page, code page */
        8,
        0x62, /* aux */
    };
    strbuf_append(&body, (const char *)second, sizeof(second));
    put_record(out, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL, body.data, body.length);
    strbuf_done(&body);
}

TEST(every_field_of_a_sample_is_found)
{
    struct perfdata_writer_event e = {
        .attr = full_attr(), .name = "all", .ids = one_id, .id_count = 1};
    CLEANUP(strbuf_done) struct strbuf records = {0};
    put_full_sample(&records);
    CLEANUP(fd_closep) int fd = make_file(&e, 1, &records);
    CLEANUP(freep) struct perfdata *p = open_reader(fd, NULL);
    struct perfdata_record r;
    CHECK_INT(perfdata_next(p, &r, NULL), 1);
    CHECK_INT(r.type, PERF_RECORD_SAMPLE);
    CHECK_INT(r.misc, PERF_RECORD_MISC_KERNEL);
    CHECK_STR(r.event->name, "all");
    CHECK_INT(r.id, 7);
    CHECK_INT(r.pid, 10);
    CHECK_INT(r.tid, 11);
    CHECK_INT(r.time_ns, 5000);
    CHECK_INT(r.stream_id, 70);
    CHECK_INT(r.cpu, 3);
    const struct perfdata_sample *s = &r.sample;
    CHECK_INT(s->ip, 0x1000);
    CHECK_INT(s->addr, 0xadd4);
    CHECK_INT(s->period, 900); /* PERF_SAMPLE_READ: how far the count came */
    CHECK_INT(s->read.count, 1);
    CHECK_INT(s->read.time_enabled_ns, 901);
    CHECK_INT(perfdata_read_value(&s->read, 0).value, 900);
    CHECK_INT(perfdata_read_value(&s->read, 0).id, 7);
    CHECK_INT(s->callchain_count, 3);
    CHECK_INT(s->callchain[2], 0x2000);
    CHECK_INT(s->raw_size, 12);
    CHECK(memcmp(s->raw, "raw-raw-raw!", 12) == 0);
    CHECK_INT(s->branch_count, 1);
    CHECK_INT(s->branch_hw_index, 44);
    CHECK_INT(s->branches[0].to, 0x70);
    CHECK_INT(s->user_regs[1], 0xa2);
    CHECK_INT(s->user_stack_size, 8);
    CHECK_INT(*(const uint64_t *)s->user_stack, 0x5a5a);
    CHECK_INT(s->weight, 55);
    CHECK_INT(s->data_src, 56);
    CHECK_INT(s->transaction, 57);
    CHECK_INT(s->intr_regs[1], 0xb1);
    CHECK_INT(s->phys_addr, 58);
    CHECK_INT(s->cgroup_id, 59);
    CHECK_INT(s->data_page_size, 60);
    CHECK_INT(s->code_page_size, 61);
    CHECK_INT(s->aux_size, 8);
    CHECK_INT(*(const uint64_t *)s->aux, 0x62);
    CHECK_INT(perfdata_next(p, &r, NULL), 0);
    CHECK(!perfdata_trouble(p));
}

TEST(a_sample_that_is_too_short_is_counted_and_passed_over)
{
    struct perfdata_writer_event e = {
        .attr = full_attr(), .name = "all", .ids = one_id, .id_count = 1};
    CLEANUP(strbuf_done) struct strbuf whole = {0};
    put_full_sample(&whole);
    for (uint16_t size = 8; size < whole.length; size = (uint16_t)(size + 8)) {
        CLEANUP(strbuf_done) struct strbuf records = {0};
        strbuf_append(&records, whole.data, size);
        memcpy(records.data + offsetof(struct perf_event_header, size), &size, sizeof(size));
        strbuf_append(&records, whole.data, whole.length);
        CLEANUP(fd_closep) int fd = make_file(&e, 1, &records);
        CLEANUP(freep) struct perfdata *p = open_reader(fd, NULL);
        struct perfdata_record r;
        CHECK_INT(perfdata_next(p, &r, NULL), 1);
        CHECK_INT(r.sample.code_page_size, 61);
        CHECK_INT(perfdata_next(p, &r, NULL), 0);
        CHECK_INT(perfdata_losses(p)->malformed, 1);
    }
}

TEST(lengths_inside_a_sample_are_not_trusted)
{
    /* Each word of a sample in turn becomes huge: it must not reach over the record. */
    struct perfdata_writer_event e = {
        .attr = full_attr(), .name = "all", .ids = one_id, .id_count = 1};
    CLEANUP(strbuf_done) struct strbuf whole = {0};
    put_full_sample(&whole);
    static const uint64_t huge[] = {UINT64_MAX, UINT64_MAX / 8, 1ULL << 61, 65536, 0x100000001};
    for (size_t at = 8; at + 8 <= whole.length; at += 8)
        for (size_t i = 0; i < ARRAY_COUNT(huge); i++) {
            CLEANUP(strbuf_done) struct strbuf records = {0};
            strbuf_append(&records, whole.data, whole.length);
            memcpy(records.data + at, &huge[i], 8);
            CLEANUP(fd_closep) int fd = make_file(&e, 1, &records);
            CLEANUP(freep) struct perfdata *p = open_reader(fd, NULL);
            struct perfdata_record r;
            uint64_t given = 0;
            while (perfdata_next(p, &r, NULL) > 0)
                given++;
            CHECK_INT(given + perfdata_losses(p)->malformed, 1);
        }
}

TEST(records_come_in_the_order_of_time)
{
    struct perfdata_writer_event e = simple_event();
    CLEANUP(strbuf_done) struct strbuf records = {0};
    /* Two CPUs in three rounds; in each round the second CPU's ring overlaps the first's. */
    static const uint64_t rings[3][2][3] = {
        {{10, 30, 50}, {20, 25, 60}}, {{55, 70, 90}, {65, 66, 67}}, {{95, 96, 97}, {91, 92, 99}}};
    for (size_t round = 0; round < 3; round++) {
        for (size_t cpu = 0; cpu < 2; cpu++)
            for (size_t i = 0; i < 3; i++)
                put_sample(&records, i, rings[round][cpu][i]);
        FINISHED_ROUND(&records);
    }
    CLEANUP(fd_closep) int fd = make_file(&e, 1, &records);
    CLEANUP(freep) struct perfdata *p = open_reader(fd, NULL);
    struct perfdata_record r;
    uint64_t last_ns = 0, count = 0;
    while (perfdata_next(p, &r, NULL) > 0) {
        CHECK(r.time_ns >= last_ns);
        last_ns = r.time_ns;
        count++;
    }
    CHECK_INT(count, 18);
    CHECK_INT(perfdata_losses(p)->out_of_order, 0);

    /* And as they lie in the file when that is wanted. */
    CLEANUP(freep)
    struct perfdata *q = open_reader(fd, &(struct perfdata_options){.unordered = true});
    for (size_t i = 0; i < 3; i++)
        CHECK_INT(perfdata_next(q, &r, NULL), 1);
    CHECK_INT(r.time_ns, 50);
    CHECK_INT(perfdata_next(q, &r, NULL), 1);
    CHECK_INT(r.time_ns, 20);
}

TEST(records_of_equal_time_keep_their_order)
{
    struct perfdata_writer_event e = simple_event();
    CLEANUP(strbuf_done) struct strbuf records = {0};
    for (uint64_t i = 0; i < 100; i++)
        put_sample(&records, i, 1000 + i / 10);
    CLEANUP(fd_closep) int fd = make_file(&e, 1, &records);
    CLEANUP(freep) struct perfdata *p = open_reader(fd, NULL);
    struct perfdata_record r;
    for (uint64_t i = 0; i < 100; i++) {
        CHECK_INT(perfdata_next(p, &r, NULL), 1);
        CHECK_INT(r.sample.ip, i);
    }
}

TEST(a_file_without_marks_is_read_in_bounded_memory)
{
    /* Falling times over more than the queue may hold: all come, and the late ones are counted. */
    struct perfdata_writer_event e = simple_event();
    CLEANUP(strbuf_done) struct strbuf records = {0};
    const uint64_t count = 100000;
    for (uint64_t i = 0; i < count; i++)
        put_sample(&records, i, 10000000 - i);
    CLEANUP(fd_closep) int fd = make_file(&e, 1, &records);
    CLEANUP(freep)
    struct perfdata *p = open_reader(fd, &(struct perfdata_options){.queue_bytes_max = 1});
    struct perfdata_record r;
    uint64_t given = 0;
    while (perfdata_next(p, &r, NULL) > 0)
        given++;
    CHECK_INT(given, count);
    CHECK(perfdata_losses(p)->out_of_order > 0);
}

TEST(samples_are_told_apart_by_their_ids)
{
    static const uint64_t ids[2][2] = {{100, 101}, {200, 201}};
    struct perfdata_writer_event events[2] = {simple_event(), simple_event()};
    for (size_t i = 0; i < 2; i++) {
        events[i].attr.sample_type |= PERF_SAMPLE_IDENTIFIER;
        events[i].ids = ids[i];
        events[i].id_count = 2;
    }
    events[1].name = "page-faults";
    events[1].attr.sample_type |= PERF_SAMPLE_ADDR; /* behind the time: ids and times still agree */
    CLEANUP(strbuf_done) struct strbuf records = {0};
    PUT_WORDS(&records, PERF_RECORD_SAMPLE, 0, 101, 0x1, pair(1, 1), 10);
    PUT_WORDS(&records, PERF_RECORD_SAMPLE, 0, 200, 0x2, pair(1, 1), 20, 0xabc);
    PUT_WORDS(&records, PERF_RECORD_SAMPLE, 0, 999, 0x3, pair(1, 1), 30);
    CLEANUP(fd_closep) int fd = make_file(events, 2, &records);
    CLEANUP(freep) struct perfdata *p = open_reader(fd, NULL);
    struct perfdata_record r;
    CHECK_INT(perfdata_next(p, &r, NULL), 1);
    CHECK_STR(r.event->name, "cpu-clock");
    CHECK_INT(perfdata_next(p, &r, NULL), 1);
    CHECK_STR(r.event->name, "page-faults");
    CHECK_INT(r.sample.addr, 0xabc);
    CHECK_INT(perfdata_next(p, &r, NULL), 0);
    CHECK_INT(perfdata_losses(p)->unmatched, 1);
    CHECK_INT(perfdata_event(p, 1)->id_count, 2);
    CHECK_INT(perfdata_event(p, 1)->ids[1], 201);
}

/* The zeros of pid, tid and time that end a record that was there before the recording. */
static void put_with_id(struct strbuf *out, uint32_t type, uint16_t misc, const struct strbuf *body,
                        uint64_t time_ns)
{
    CLEANUP(strbuf_done) struct strbuf all = {0};
    strbuf_append(&all, body->data, body->length);
    strbuf_pad(&all, '\0', -all.length & 7);
    perfdata_put_u64(&all, pair(10, 11));
    perfdata_put_u64(&all, time_ns);
    put_record(out, type, misc, all.data, all.length);
}

/* Linux sets the flag for everybody when one recording has build IDs. */
TEST(a_device_that_is_flagged_as_a_build_id_is_a_device)
{
    struct perfdata_writer_event e = simple_event();
    const uint64_t map[] = {pair(10, 11), 0x400000, 0x1000, 0x2000};
    const uint32_t majors[] = {8, 254, 259};
    CLEANUP(strbuf_done) struct strbuf records = {0};
    for (size_t i = 0; i < ARRAY_COUNT(majors); i++) {
        const uint64_t inode[] = {pair(majors[i], 1), 4242, 5};
        CLEANUP(strbuf_done) struct strbuf body = {0};
        strbuf_append(&body, (const char *)map, sizeof(map));
        strbuf_append(&body, (const char *)inode, sizeof(inode));
        perfdata_put_u64(&body, pair(5, 2));
        strbuf_append(&body, "/bin/a", 7);
        put_with_id(&records, PERF_RECORD_MMAP2,
                    PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID, &body, 1);
    }
    CLEANUP(fd_closep) int fd = make_file(&e, 1, &records);
    CLEANUP(freep) struct perfdata *p = open_reader(fd, NULL);
    struct perfdata_record r;
    for (size_t i = 0; i < ARRAY_COUNT(majors); i++) {
        CHECK_INT(perfdata_next(p, &r, NULL), 1);
        CHECK_INT(r.mmap.build_id_size, 0);
        CHECK_INT(r.mmap.major, majors[i]);
        CHECK_INT(r.mmap.inode, 4242);
    }
}

TEST(the_other_records_are_taken_apart)
{
    struct perfdata_writer_event e = simple_event();
    CLEANUP(strbuf_done) struct strbuf records = {0}, body = {0};
    const uint64_t map[] = {pair(10, 11), 0x400000, 0x1000, 0x2000};
    const uint64_t inode[] = {pair(8, 1), 4242, 5};
    strbuf_append(&body, (const char *)map, sizeof(map));
    strbuf_append(&body, (const char *)inode, sizeof(inode));
    perfdata_put_u64(&body, pair(5, 2));
    strbuf_append(&body, "/bin/a", 7);
    put_with_id(&records, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, &body, 1);

    strbuf_clear(&body);
    strbuf_append(&body, (const char *)map, sizeof(map));
    strbuf_append(&body, "\x14\0\0\0build-id-of-20-bytes", 24);
    perfdata_put_u64(&body, pair(5, 2));
    strbuf_append(&body, "/bin/b", 7);
    put_with_id(&records, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID,
                &body, 2);

    strbuf_clear(&body);
    perfdata_put_u64(&body, pair(10, 12));
    strbuf_append(&body, "worker", 7);
    put_with_id(&records, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, &body, 3);

    strbuf_clear(&body);
    const uint64_t fork[] = {pair(20, 10), pair(21, 11), 4};
    strbuf_append(&body, (const char *)fork, sizeof(fork));
    put_with_id(&records, PERF_RECORD_FORK, 0, &body, 4);

    strbuf_clear(&body);
    perfdata_put_u64(&body, 7);
    perfdata_put_u64(&body, 99);
    put_with_id(&records, PERF_RECORD_LOST, 0, &body, 5);

    strbuf_clear(&body);
    put_with_id(&records, PERF_RECORD_SWITCH,
                PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT, &body, 6);

    perfdata_put_u64(&body, pair(77, 78));
    put_with_id(&records, PERF_RECORD_SWITCH_CPU_WIDE, 0, &body, 7);

    strbuf_clear(&body);
    const uint64_t namespaces[] = {pair(10, 11), 2, 1, 2, 3, 4};
    strbuf_append(&body, (const char *)namespaces, sizeof(namespaces));
    put_with_id(&records, PERF_RECORD_NAMESPACES, 0, &body, 8);

    strbuf_clear(&body);
    perfdata_put_u64(&body, 0xffffffffa0000000);
    perfdata_put_u64(&body, pair(64, PERF_RECORD_KSYMBOL_TYPE_BPF));
    strbuf_append(&body, "bpf_prog_x", 11);
    put_with_id(&records, PERF_RECORD_KSYMBOL, 0, &body, 9);

    strbuf_clear(&body);
    perfdata_put_u64(&body, 0xffffffff81000000);
    perfdata_put_u32(&body, 2 | 3 << 16);
    strbuf_append(&body, "12345", 5);
    put_with_id(&records, PERF_RECORD_TEXT_POKE, 0, &body, 10);

    strbuf_clear(&body);
    perfdata_put_u64(&body, 17);
    strbuf_append(&body, "/user.slice", 12);
    put_with_id(&records, PERF_RECORD_CGROUP, 0, &body, 11);

    CLEANUP(fd_closep) int fd = make_file(&e, 1, &records);
    CLEANUP(freep) struct perfdata *p = open_reader(fd, NULL);
    struct perfdata_record r;
    perfdata_next(p, &r, NULL);
    CHECK_STR(r.mmap.filename, "/bin/a");
    CHECK_INT(r.mmap.start, 0x400000);
    CHECK_INT(r.mmap.inode, 4242);
    CHECK_INT(r.mmap.prot, 5);
    CHECK_INT(r.time_ns, 1);
    CHECK_INT(r.pid, 10);
    perfdata_next(p, &r, NULL);
    CHECK_STR(r.mmap.filename, "/bin/b");
    CHECK_INT(r.mmap.build_id_size, 20);
    CHECK(memcmp(r.mmap.build_id, "build-id-of-20-bytes", 20) == 0);
    perfdata_next(p, &r, NULL);
    CHECK_STR(r.comm.comm, "worker");
    CHECK(r.comm.is_exec);
    CHECK_INT(r.comm.tid, 12);
    perfdata_next(p, &r, NULL);
    CHECK_INT(r.task.pid, 20);
    CHECK_INT(r.task.ptid, 11);
    perfdata_next(p, &r, NULL);
    CHECK_INT(r.lost.count, 99);
    perfdata_next(p, &r, NULL);
    CHECK(r.context_switch.is_out && r.context_switch.is_preempted);
    perfdata_next(p, &r, NULL);
    CHECK(!r.context_switch.is_out);
    CHECK_INT(r.context_switch.other_tid, 78);
    perfdata_next(p, &r, NULL);
    CHECK_INT(r.namespaces.count, 2);
    CHECK_INT(r.namespaces.items[1].inode, 4);
    perfdata_next(p, &r, NULL);
    CHECK_STR(r.ksymbol.name, "bpf_prog_x");
    CHECK_INT(r.ksymbol.type, PERF_RECORD_KSYMBOL_TYPE_BPF);
    perfdata_next(p, &r, NULL);
    CHECK_INT(r.text_poke.old_size, 2);
    CHECK(memcmp(r.text_poke.bytes, "12345", 5) == 0);
    perfdata_next(p, &r, NULL);
    CHECK_STR(r.cgroup.path, "/user.slice");
    CHECK_INT(perfdata_next(p, &r, NULL), 0);
    CHECK_INT(perfdata_losses(p)->lost_records, 99);
    CHECK_INT(perfdata_losses(p)->malformed, 0);
}

TEST(a_name_without_an_end_is_passed_over)
{
    struct perfdata_writer_event e = simple_event();
    CLEANUP(strbuf_done) struct strbuf records = {0}, body = {0};
    perfdata_put_u64(&body, pair(10, 12));
    strbuf_append(&body, "eight-by", 8);
    put_with_id(&records, PERF_RECORD_COMM, 0, &body, 3);
    CLEANUP(fd_closep) int fd = make_file(&e, 1, &records);
    CLEANUP(freep) struct perfdata *p = open_reader(fd, NULL);
    struct perfdata_record r;
    CHECK_INT(perfdata_next(p, &r, NULL), 0);
    CHECK_INT(perfdata_losses(p)->malformed, 1);
}

TEST(unknown_records_are_counted_and_what_lies_askew_is_read)
{
    struct perfdata_writer_event e = simple_event();
    CLEANUP(strbuf_done) struct strbuf records = {0};
    for (uint64_t i = 1; i <= 1000; i++) {
        put_record(&records, i % 2 ? 60 : 1000, 0, "xyz", 3); /* eleven bytes */
        put_sample(&records, i, i);
    }
    CLEANUP(fd_closep) int fd = make_file(&e, 1, &records);
    CLEANUP(freep) struct perfdata *p = open_reader(fd, NULL);
    struct perfdata_record r;
    for (uint64_t i = 1; i <= 1000; i++) {
        CHECK_INT(perfdata_next(p, &r, NULL), 1);
        CHECK_INT(r.sample.ip, i);
    }
    CHECK_INT(perfdata_next(p, &r, NULL), 0);
    CHECK_INT(perfdata_losses(p)->unknown, 1000);
}

static int try_open(const void *bytes, size_t size, struct error *err)
{
    CLEANUP(fd_closep) int fd = make_raw(bytes, size);
    struct perfdata *p = NULL;
    int r = perfdata_open_fd(&p, fd, "x.data", NULL, err);
    perfdata_free(p);
    return r;
}

TEST(what_is_no_perf_data_is_refused_with_words)
{
    struct error err;
    uint64_t head[13] = {0};
    CHECK(try_open("", 0, &err) < 0);
    CHECK_CONTAINS(err.message, "empty");
    CHECK(try_open("PERFILE2", 8, &err) < 0);
    CHECK_CONTAINS(err.message, "too short");
    CHECK(try_open("#!/bin/sh\necho hello, hello\n", 28, &err) < 0);
    CHECK_CONTAINS(err.message, "x.data is not a perf.data file");
    memcpy(head, "2ELIFREP", 8);
    CHECK(try_open(head, sizeof(head), &err) < 0);
    CHECK_CONTAINS(err.message, "big-endian");
    memcpy(head, "PERFFILE", 8);
    CHECK(try_open(head, sizeof(head), &err) < 0);
    CHECK_CONTAINS(err.message, "before Linux 2.6.36");
    memcpy(head, "PERFILE2", 8);
    CHECK(try_open(head, sizeof(head), &err) < 0);
    CHECK_CONTAINS(err.message, "damaged");
    struct perfdata *p;
    CHECK_INT(perfdata_open(&p, "/nonexistent/perf.data", NULL, &err), -ENOENT);
    CHECK_CONTAINS(err.message, "assay record");
}

TEST(a_file_cut_anywhere_gives_what_it_holds_and_says_so)
{
    struct perfdata_writer_event e = simple_event();
    CLEANUP(strbuf_done) struct strbuf records = {0}, whole = {0};
    const uint64_t count = 20;
    for (uint64_t i = 1; i <= count; i++)
        put_sample(&records, i, i);
    CLEANUP(fd_closep) int fd = make_file(&e, 1, &records);
    read_file(fd, &whole);
    uint64_t most = 0;
    for (size_t size = 0; size < whole.length; size++) {
        CLEANUP(fd_closep) int cut_fd = make_raw(whole.data, size);
        struct perfdata *p = NULL;
        struct error err;
        if (perfdata_open_fd(&p, cut_fd, "cut", NULL, &err) < 0) {
            CHECK(err.message[0]);
            CHECK_INT(most, 0);
            continue;
        }
        struct perfdata_record r;
        uint64_t given = 0;
        while (perfdata_next(p, &r, NULL) > 0)
            given++;
        CHECK(given >= most && given <= count);
        most = given;
        CHECK(perfdata_trouble(p) != NULL);
        perfdata_free(p);
    }
    CHECK_INT(most, count);
}

TEST(a_recording_that_was_not_finished_is_read_to_the_end)
{
    struct perfdata_writer_event e = simple_event();
    CLEANUP(strbuf_done) struct strbuf records = {0}, whole = {0};
    put_sample(&records, 1, 1);
    CLEANUP(fd_closep) int fd = make_file(&e, 1, &records);
    read_file(fd, &whole);
    struct perfdata_file_header head;
    memcpy(&head, whole.data, sizeof(head));
    size_t end = (size_t)(head.data.offset + head.data.size);
    head.data.size = 0; /* perf sets the features' bits from the start */
    memcpy(whole.data, &head, sizeof(head));
    CLEANUP(fd_closep) int open_fd = make_raw(whole.data, end);
    CLEANUP(freep) struct perfdata *p = open_reader(open_fd, NULL);
    struct perfdata_record r;
    CHECK_INT(perfdata_next(p, &r, NULL), 1);
    CHECK_INT(perfdata_next(p, &r, NULL), 0);
    CHECK(!perfdata_info(p)->is_complete);
    CHECK_CONTAINS(perfdata_trouble(p), "not finished");
}

TEST(a_record_without_a_size_ends_the_reading_with_words)
{
    struct perfdata_writer_event e = simple_event();
    CLEANUP(strbuf_done) struct strbuf records = {0};
    put_sample(&records, 1, 1);
    strbuf_pad(&records, '\0', 64);
    put_sample(&records, 2, 2);
    CLEANUP(fd_closep) int fd = make_file(&e, 1, &records);
    CLEANUP(freep) struct perfdata *p = open_reader(fd, NULL);
    struct perfdata_record r;
    CHECK_INT(perfdata_next(p, &r, NULL), 1);
    CHECK_INT(perfdata_next(p, &r, NULL), 0);
    CHECK_CONTAINS(perfdata_trouble(p), "damaged at byte");
}

TEST(a_group_counts_for_each_of_its_events)
{
    static const uint64_t ids[2] = {100, 200};
    struct perfdata_writer_event events[2] = {simple_event(), simple_event()};
    events[0].attr.sample_type |= PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_READ;
    events[0].attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
    events[1].attr.sample_type = events[0].attr.sample_type;
    events[1].attr.read_format = events[0].attr.read_format;
    events[0].ids = &ids[0];
    events[1].ids = &ids[1];
    CLEANUP(strbuf_done) struct strbuf records = {0};
    PUT_WORDS(&records, PERF_RECORD_SAMPLE, 0, 100, 0x1, pair(1, 1), 10, 2, 1000, 100, 5, 200);
    PUT_WORDS(&records, PERF_RECORD_SAMPLE, 0, 100, 0x1, pair(1, 1), 20, 2, 3000, 100, 5, 200);
    CLEANUP(fd_closep) int fd = make_file(events, 2, &records);
    CLEANUP(freep) struct perfdata *p = open_reader(fd, NULL);
    static const uint64_t expected[][2] = {{0, 1000}, {1, 5}, {0, 2000}};
    struct perfdata_record r;
    for (size_t i = 0; i < ARRAY_COUNT(expected); i++) {
        CHECK_INT(perfdata_next(p, &r, NULL), 1);
        CHECK_INT(r.event->index, expected[i][0]);
        CHECK_INT(r.sample.period, expected[i][1]);
    }
    CHECK_INT(perfdata_next(p, &r, NULL), 0);
    CHECK_INT(perfdata_losses(p)->samples, 3);
}

/* As perf wrote it before Linux 3.12: short attributes, no sample_id, the id in the middle. */
TEST(a_file_of_an_old_perf_is_read)
{
    enum { ATTR_SIZE = 72, ENTRY_SIZE = ATTR_SIZE + 16, HEAD_SIZE = 104 };
    static const uint64_t ids[2] = {100, 200};
    CLEANUP(strbuf_done) struct strbuf file = {0}, records = {0}, body = {0};
    perfdata_put_u64(&body, pair(10, 11));
    strbuf_append(&body, "old", 4);
    strbuf_pad(&body, '\0', 4);
    put_record(&records, PERF_RECORD_COMM, 0, body.data, body.length);
    PUT_WORDS(&records, PERF_RECORD_SAMPLE, 2, 0x1, pair(10, 11), 20, 200, 5);
    PUT_WORDS(&records, PERF_RECORD_SAMPLE, 2, 0x2, pair(10, 11), 10, 100, 6);
    struct perfdata_file_header head = {
        .magic = PERFDATA_MAGIC,
        .size = HEAD_SIZE,
        .attr_size = ENTRY_SIZE,
        .attrs = {HEAD_SIZE + sizeof(ids), 2 * ENTRY_SIZE},
        .data = {HEAD_SIZE + sizeof(ids) + 2 * ENTRY_SIZE, records.length},
    };
    strbuf_append(&file, (const char *)&head, sizeof(head));
    strbuf_append(&file, (const char *)ids, sizeof(ids));
    for (uint64_t i = 0; i < 2; i++) {
        struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE,
                                       .size = ATTR_SIZE,
                                       .config = i,
                                       .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                                                      PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
                                                      PERF_SAMPLE_PERIOD};
        strbuf_append(&file, (const char *)&attr, ATTR_SIZE);
        perfdata_put_u64(&file, HEAD_SIZE + 8 * i);
        perfdata_put_u64(&file, 8);
    }
    strbuf_append(&file, records.data, records.length);
    CLEANUP(fd_closep) int fd = make_raw(file.data, file.length);
    CLEANUP(freep) struct perfdata *p = open_reader(fd, NULL);
    struct perfdata_record r;
    CHECK_INT(perfdata_next(p, &r, NULL), 1);
    CHECK_STR(r.comm.comm, "old");
    CHECK_INT(perfdata_next(p, &r, NULL), 1);
    CHECK_STR(r.event->name, "cycles");
    CHECK_INT(r.sample.period, 6);
    CHECK_INT(perfdata_next(p, &r, NULL), 1);
    CHECK_STR(r.event->name, "instructions");
    CHECK_INT(r.time_ns, 20);
    CHECK_INT(perfdata_next(p, &r, NULL), 0);
}

TEST(names_are_made_for_attributes_without_one)
{
    char name[64];
    struct perf_event_attr a = {.type = PERF_TYPE_HARDWARE, .exclude_kernel = 1, .precise_ip = 2};
    perfdata_attr_name(&a, name, sizeof(name));
    CHECK_STR(name, "cycles:upp");
    a = (struct perf_event_attr){.type = PERF_TYPE_HW_CACHE, .config = 0x10000};
    perfdata_attr_name(&a, name, sizeof(name));
    CHECK_STR(name, "L1-dcache-load-misses");
    a = (struct perf_event_attr){.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS};
    perfdata_attr_name(&a, name, sizeof(name));
    CHECK_STR(name, "page-faults");
    a = (struct perf_event_attr){.type = PERF_TYPE_RAW, .config = 0x1a8};
    perfdata_attr_name(&a, name, sizeof(name));
    CHECK_STR(name, "r1a8");
}
