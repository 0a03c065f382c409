/* SPDX-License-Identifier: MIT */
/* Streams and compressed blocks, synthesised; features through the writer and back. */
#include "config.h"
#include "sampler/pack.h"
#include "sampler/perfdata.h"
#include "synthetic.h"
#include "test.h"

#include <pthread.h>
#if HAVE_LIBZSTD
#include <zstd.h>
#endif

static const uint64_t one_id[] = {7};

static struct perf_event_attr simple_attr(void)
{
    return (struct perf_event_attr){
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof(struct perf_event_attr),
        .sample_period = 1000,
        .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
        .sample_id_all = 1,
    };
}

static struct perfdata_writer_event simple_event(void)
{
    return (struct perfdata_writer_event){
        .attr = simple_attr(), .name = "cpu-clock", .ids = one_id, .id_count = 1};
}

static void put_sample(struct strbuf *out, uint64_t ip, uint64_t time_ns)
{
    PUT_WORDS(out, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, ip, pair(10, 11), time_ns);
}

/* The start of a stream with one event. */
static void put_stream_head(struct strbuf *out)
{
    CLEANUP(strbuf_done) struct strbuf body = {0};
    struct perf_event_attr attr = simple_attr();
    perfdata_put_u64(out, PERFDATA_MAGIC);
    perfdata_put_u64(out, PERFDATA_PIPE_HEADER_SIZE);
    strbuf_append(&body, (const char *)&attr, sizeof(attr));
    perfdata_put_u64(&body, 7);
    put_record(out, PERFDATA_HEADER_ATTR, 0, body.data, body.length);
}

static void put_feature(struct strbuf *out, uint64_t bit, const char *text)
{
    CLEANUP(strbuf_done) struct strbuf body = {0};
    perfdata_put_u64(&body, bit);
    perfdata_put_string(&body, text);
    put_record(out, PERFDATA_HEADER_FEATURE, 0, body.data, body.length);
}

/* Writes into the pipe from another thread, a few bytes at a time. */
struct feeder {
    int fd;
    const struct strbuf *bytes;
    size_t step;
};

static void *feed(void *context)
{
    struct feeder *f = context;
    for (size_t at = 0; at < f->bytes->length; at += f->step) {
        size_t left = f->bytes->length - at;
        if (fd_write_all(f->fd, f->bytes->data + at, left < f->step ? left : f->step) < 0)
            break;
    }
    close(f->fd);
    return NULL;
}

TEST(a_pipe_is_read_whatever_its_portions)
{
    CLEANUP(strbuf_done) struct strbuf bytes = {0};
    put_stream_head(&bytes);
    for (uint64_t i = 1; i <= 500; i++) {
        put_sample(&bytes, i, 1000 - i);
        if (i % 100 == 0)
            put_record(&bytes, PERFDATA_FINISHED_ROUND, 0, "", 0);
    }
    put_feature(&bytes, PERFDATA_FEATURE_OSRELEASE, "6.1.0");
    for (size_t step = 7; step < 70000; step *= 13) {
        int fds[2];
        pthread_t thread;
        CHECK_INT(pipe(fds), 0);
        CLEANUP(fd_closep) int fd = fds[0];
        struct feeder f = {fds[1], &bytes, step};
        pthread_create(&thread, NULL, feed, &f);
        CLEANUP(freep) struct perfdata *p = open_reader(fd, NULL);
        struct perfdata_record r;
        uint64_t count = 0;
        while (perfdata_next(p, &r, NULL) > 0)
            count++;
        CHECK_INT(count, 500);
        CHECK(perfdata_info(p)->is_pipe);
        CHECK_STR(perfdata_info(p)->os_release, "6.1.0");
        CHECK(!perfdata_trouble(p));
        pthread_join(thread, NULL);
    }
}

TEST(bytes_behind_a_record_are_passed_over)
{
    CLEANUP(strbuf_done) struct strbuf bytes = {0}, block = {0};
    strbuf_pad(&block, 't', 100000);
    put_stream_head(&bytes);
    uint32_t tracing_size = 100000;
    put_record(&bytes, PERFDATA_HEADER_TRACING_DATA, 0, &tracing_size, 4); /* twelve bytes */
    strbuf_append(&bytes, block.data, block.length);
    put_sample(&bytes, 1, 1);
    const uint64_t aux[5] = {600000};
    put_record(&bytes, PERFDATA_AUXTRACE, 0, aux, sizeof(aux));
    for (unsigned i = 0; i < 6; i++)
        strbuf_append(&bytes, block.data, block.length);
    put_sample(&bytes, 2, 2);
    CLEANUP(fd_closep) int fd = make_raw(bytes.data, bytes.length);
    CLEANUP(freep) struct perfdata *p = open_reader(fd, NULL);
    struct perfdata_record r;
    CHECK_INT(perfdata_next(p, &r, NULL), 1);
    CHECK_INT(r.sample.ip, 1);
    CHECK_INT(perfdata_next(p, &r, NULL), 1);
    CHECK_INT(r.sample.ip, 2);
    CHECK_INT(perfdata_next(p, &r, NULL), 0);
    CHECK_INT(perfdata_losses(p)->aux, 1);
    size_t size = 0;
    const char *kept = perfdata_feature(p, PERFDATA_FEATURE_TRACING_DATA, &size);
    CHECK_INT(size, 100000);
    CHECK(kept && kept[99999] == 't');
    CHECK(!perfdata_trouble(p));
}

TEST(a_block_that_is_cut_short_is_told)
{
    CLEANUP(strbuf_done) struct strbuf bytes = {0};
    put_stream_head(&bytes);
    const uint64_t aux[5] = {UINT64_MAX};
    put_record(&bytes, PERFDATA_AUXTRACE, 0, aux, sizeof(aux));
    put_sample(&bytes, 2, 2);
    CLEANUP(fd_closep) int fd = make_raw(bytes.data, bytes.length);
    CLEANUP(freep) struct perfdata *p = open_reader(fd, NULL);
    struct perfdata_record r;
    CHECK_INT(perfdata_next(p, &r, NULL), 0);
    CHECK_CONTAINS(perfdata_trouble(p), "ends inside a block");
}

TEST(names_come_with_the_stream)
{
    CLEANUP(strbuf_done) struct strbuf bytes = {0}, body = {0};
    put_stream_head(&bytes);
    perfdata_put_u64(&body, PERFDATA_UPDATE_NAME);
    perfdata_put_u64(&body, 7);
    strbuf_append(&body, "my-event", 9);
    put_record(&bytes, PERFDATA_EVENT_UPDATE, 0, body.data, body.length);
    put_sample(&bytes, 1, 1);
    CLEANUP(fd_closep) int fd = make_raw(bytes.data, bytes.length);
    CLEANUP(freep) struct perfdata *p = open_reader(fd, NULL);
    struct perfdata_record r;
    CHECK_INT(perfdata_next(p, &r, NULL), 1);
    CHECK_STR(r.event->name, "my-event");
}

TEST(what_the_writer_says_of_a_recording_is_read_back)
{
    char folder[] = "/tmp/assay-writer-XXXXXX";
    CHECK(mkdtemp(folder) != NULL);
    CLEANUP(memory_freep) char *path = memory_printf("%s/perf.data", folder);
    CLEANUP(memory_freep) char *old = memory_printf("%s/perf.data.old", folder);
    struct perfdata_writer_event e = simple_event();
    e.name = "cycles:u";
    struct error err;
    for (unsigned round = 0; round < 2; round++) {
        struct perfdata_writer w;
        CHECK_INT(perfdata_writer_open(&w, path, &e, 1, &err), 0);
        struct strbuf records = {0};
        put_sample(&records, 5, 50);
        CHECK_INT(perfdata_writer_append(&w, records.data, records.length, &err), 0);
        strbuf_done(&records);
        /* Not in the order of their bits. */
        perfdata_put_string(perfdata_writer_feature(&w, PERFDATA_FEATURE_ASSAY), "{\"a\":1}");
        struct strbuf *words = perfdata_writer_feature(&w, PERFDATA_FEATURE_CMDLINE);
        perfdata_put_u32(words, 2);
        perfdata_put_string(words, "assay");
        perfdata_put_string(words, "record");
        perfdata_put_event_desc(perfdata_writer_feature(&w, PERFDATA_FEATURE_EVENT_DESC), &e, 1);
        perfdata_put_build_id(perfdata_writer_feature(&w, PERFDATA_FEATURE_BUILD_ID),
                              PERF_RECORD_MISC_USER, (const uint8_t *)"12345678", 8, "/bin/x");
        perfdata_put_string(perfdata_writer_feature(&w, PERFDATA_FEATURE_CPUDESC), "a CPU");
        CHECK_INT(perfdata_writer_finish(&w, &err), 0);
        perfdata_writer_done(&w);
    }
    CHECK_INT(access(old, F_OK), 0);
    struct perfdata *p = NULL;
    CHECK_INT(perfdata_open(&p, path, NULL, &err), 0);
    const struct perfdata_info *info = perfdata_info(p);
    CHECK(info->is_complete);
    CHECK_STR(info->assay_json, "{\"a\":1}");
    CHECK_INT(info->command_line_count, 2);
    CHECK_STR(info->command_line[1], "record");
    CHECK_STR(info->cpu_description, "a CPU");
    CHECK(!info->hostname);
    CHECK_STR(perfdata_event(p, 0)->name, "cycles:u");
    size_t count;
    const struct perfdata_build_id *ids = perfdata_build_ids(p, &count);
    CHECK_INT(count, 1);
    CHECK_INT(ids[0].size, 8);
    CHECK_STR(ids[0].filename, "/bin/x");
    struct perfdata_record r;
    CHECK_INT(perfdata_next(p, &r, &err), 1);
    CHECK_INT(r.sample.ip, 5);
    CHECK_INT(perfdata_next(p, &r, &err), 0);
    perfdata_free(p);
    unlink(path);
    unlink(old);
    rmdir(folder);
}

#if HAVE_LIBZSTD

/* Samples with a raw part of bytes that do not compress. */
static void put_noise(struct strbuf *out, size_t record_size, uint64_t time_ns)
{
    static uint64_t state = 88172645463325252ULL;
    struct perf_event_header head = {.type = PERF_RECORD_SAMPLE, .size = (uint16_t)record_size};
    strbuf_append(out, (const char *)&head, sizeof(head));
    perfdata_put_u64(out, 0x1234);
    perfdata_put_u64(out, pair(1, 1));
    perfdata_put_u64(out, time_ns);
    size_t raw_size = record_size - 32 - 4;
    perfdata_put_u32(out, (uint32_t)raw_size);
    for (size_t i = 0; i < raw_size; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        strbuf_putc(out, (char)state);
    }
}

static struct perfdata_writer_event raw_event(void)
{
    struct perfdata_writer_event e = simple_event();
    e.attr.sample_type |= PERF_SAMPLE_RAW;
    return e;
}

static uint64_t count_samples(const struct strbuf *records, const char **ret_trouble)
{
    static char words[256];
    struct perfdata_writer_event e = raw_event();
    CLEANUP(fd_closep) int fd = make_file(&e, 1, records);
    CLEANUP(freep) struct perfdata *p = open_reader(fd, NULL);
    struct perfdata_record r;
    uint64_t count = 0;
    while (perfdata_next(p, &r, NULL) > 0)
        if (r.type == PERF_RECORD_SAMPLE && r.sample.ip == 0x1234 && r.time_ns == count + 1)
            count++;
    snprintf(words, sizeof(words), "%s", perfdata_trouble(p) ? perfdata_trouble(p) : "");
    *ret_trouble = words;
    return count;
}

TEST(packed_records_are_unpacked)
{
    struct error err;
    struct packer packer;
    CHECK_INT(packer_init(&packer, 1, &err), 0);
    CLEANUP(strbuf_done) struct strbuf records = {0};
    for (uint64_t i = 1; i <= 400; i++) {
        struct strbuf plain = {0};
        put_noise(&plain, 2000 + 8 * (i % 50), i);
        /* Records run over from one block into the next. */
        size_t half = plain.length / 2;
        CHECK_INT(packer_add(&packer, plain.data, half, &records, &err), 0);
        CHECK_INT(packer_add(&packer, plain.data + half, plain.length - half, &records, &err), 0);
        strbuf_done(&plain);
    }
    packer_done(&packer);
    const char *trouble;
    CHECK_INT(count_samples(&records, &trouble), 400);
    CHECK_STR(trouble, "");
}

TEST(a_damaged_block_is_told)
{
    struct error err;
    struct packer packer;
    CHECK_INT(packer_init(&packer, 1, &err), 0);
    CLEANUP(strbuf_done) struct strbuf plain = {0}, records = {0};
    put_noise(&plain, 2000, 1);
    CHECK_INT(packer_add(&packer, plain.data, plain.length, &records, &err), 0);
    packer_done(&packer);
    memset(records.data + 8, 0xff, 6);
    const char *trouble;
    CHECK_INT(count_samples(&records, &trouble), 0);
    CHECK_CONTAINS(trouble, "compressed block is damaged");
}

/* perf 6.16 and later: see mend_compressed2 in perfdata_window.c. */
TEST(a_compressed2_record_with_a_size_of_zero_is_mended)
{
    CLEANUP(strbuf_done) struct strbuf plain = {0}, records = {0};
    static unsigned char packed[70000];
    put_noise(&plain, 65504, 1);
    size_t size = ZSTD_compress(packed, sizeof(packed), plain.data, plain.length, 1);
    CHECK(size > 65512 && size <= 65519);
    struct perf_event_header head = {.type = PERFDATA_COMPRESSED2, .size = 0};
    strbuf_append(&records, (const char *)&head, sizeof(head));
    perfdata_put_u64(&records, size);
    strbuf_append(&records, (const char *)packed, size);
    /* What follows has no padding before it. */
    struct perf_event_header round = {.type = PERFDATA_FINISHED_ROUND, .size = sizeof(round)};
    strbuf_append(&records, (const char *)&round, sizeof(round));
    struct strbuf more = {0};
    put_noise(&more, 2000, 2);
    strbuf_append(&records, more.data, more.length);
    strbuf_done(&more);
    const char *trouble;
    CHECK_INT(count_samples(&records, &trouble), 2);
    CHECK_STR(trouble, "");
}

TEST(a_compressed2_record_that_runs_over_into_others_is_mended)
{
    CLEANUP(strbuf_done) struct strbuf plain = {0}, records = {0};
    static unsigned char packed[200000];
    for (uint64_t i = 1; i <= 3; i++)
        put_noise(&plain, 50000, i);
    size_t size = ZSTD_compress(packed, sizeof(packed), plain.data, plain.length, 1);
    const size_t most = 65519;
    CHECK(size > 2 * most && size < 3 * most);
    uint64_t total = 3 * 16 + size;
    for (size_t at = 0; at < size; at += most) {
        size_t part = size - at < most ? size - at : most;
        struct perf_event_header head = {.type = PERFDATA_COMPRESSED2};
        head.size = (uint16_t)(at ? part + 16 : (total + 7) & ~7ULL);
        strbuf_append(&records, (const char *)&head, sizeof(head));
        perfdata_put_u64(&records, at ? 0x4242424242 : total - 16);
        strbuf_append(&records, (const char *)packed + at, part);
    }
    const char *trouble;
    CHECK_INT(count_samples(&records, &trouble), 3);
    CHECK_STR(trouble, "");
}

#endif
