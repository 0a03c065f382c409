/* SPDX-License-Identifier: MIT */
#include "vm/frames.h"
#include "base/memory.h"
#include "test.h"

#include <errno.h>
#include <sys/wait.h>

TEST(frames_are_found_however_the_bytes_come)
{
    CLEANUP(strbuf_done) struct strbuf stream = {0};
    vm_frame_put(&stream, "ready", "", "6.1.0", 5);
    vm_frame_put(&stream, "out", "", "a\nb\0c", 5);
    vm_frame_put(&stream, "put", "0644", "", 0);
    for (size_t step = 1; step <= stream.length; step++) {
        CLEANUP(vm_frames_done) struct vm_frames f = {0};
        struct vm_frame frame;
        struct error err;
        unsigned found = 0;
        for (size_t at = 0; at < stream.length; at += step) {
            size_t left = stream.length - at;
            vm_frames_add(&f, stream.data + at, left < step ? left : step);
            while (vm_frames_next(&f, &frame, &err) == 1) {
                static const char *const kinds[] = {"ready", "out", "put"};
                static const size_t lengths[] = {5, 5, 0};
                CHECK_STR(frame.kind, kinds[found]);
                CHECK_INT(frame.length, lengths[found]);
                if (found == 1)
                    CHECK(memcmp(frame.payload, "a\nb\0c", 5) == 0);
                if (found == 2)
                    CHECK_INT(frame.word, 0644);
                found++;
            }
        }
        CHECK_INT(found, 3);
    }
}

TEST(what_is_no_frame_is_an_error)
{
    static const char *const bad[] = {"\n", "exit\n", "exit x\n", "9 9\n", "exit 99999999999\n"};
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        CLEANUP(vm_frames_done) struct vm_frames f = {0};
        struct vm_frame frame;
        struct error err;
        vm_frames_add(&f, bad[i], strlen(bad[i]));
        CHECK_INT(vm_frames_next(&f, &frame, &err), -EPROTO);
    }
    CLEANUP(vm_frames_done) struct vm_frames f = {0};
    struct vm_frame frame;
    struct error err;
    for (int i = 0; i < 40; i++)
        vm_frames_add(&f, "Kernel panic", 12); /* no line end: not waited for without end */
    CHECK_INT(vm_frames_next(&f, &frame, &err), -EPROTO);
    CHECK(strstr(err.message, "Kernel panic") != NULL);
}

TEST(counts_come_back_as_they_went)
{
    CLEANUP(strbuf_done) struct strbuf text = {0};
    struct counter_value value = {.raw = 215825521, .enabled_ns = 7, .running_ns = 6};
    vm_counts_put(&text, "instructions:u", NULL, &value);
    vm_counts_put(&text, "cache-misses", "no such event here", NULL);
    CLEANUP(vm_counts_done) struct vm_counts counts = {0};
    CHECK(vm_counts_parse(text.data, text.length, &counts));
    CHECK_INT(counts.count, 2);
    const struct vm_count *found = vm_counts_find(&counts, "instructions:u");
    CHECK(found && !found->why);
    CHECK_INT(found->value.raw, 215825521);
    CHECK_INT(found->value.enabled_ns, 7);
    CHECK_INT(found->value.running_ns, 6);
    found = vm_counts_find(&counts, "cache-misses");
    CHECK(found && found->why);
    CHECK_STR(found->why, "no such event here");
    CHECK(vm_counts_find(&counts, "cycles") == NULL);
}

TEST(counts_that_make_no_sense_are_refused)
{
    static const char *const bad[] = {"x", "1 2 3\tname", "-\tname", "1 2 3 x\tname", "a b c d\tn"};
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        CLEANUP(vm_counts_done) struct vm_counts counts = {0};
        CHECK(!vm_counts_parse(bad[i], strlen(bad[i]), &counts));
    }
}

TEST(usage_comes_back_as_it_went)
{
    struct rusage usage = {.ru_utime = {1, 500000},
                           .ru_stime = {0, 250},
                           .ru_maxrss = 840,
                           .ru_minflt = 159,
                           .ru_majflt = 1,
                           .ru_nvcsw = 10,
                           .ru_nivcsw = 117};
    CLEANUP(strbuf_done) struct strbuf text = {0};
    struct vm_usage back = {0};
    vm_usage_put(&text, 42, &usage);
    CHECK(vm_usage_parse(text.data, text.length, &back));
    CHECK_INT(back.wall_ns, 42);
    CHECK_INT(back.user_ns, 1500000000);
    CHECK_INT(back.sys_ns, 250000);
    CHECK_INT(back.rss_kib_max, 840);
    CHECK_INT(back.minor_faults, 159);
    CHECK_INT(back.major_faults, 1);
    CHECK_INT(back.voluntary_switches, 10);
    CHECK_INT(back.involuntary_switches, 117);
    CHECK(!vm_usage_parse("1 2 3", 5, &back));
    CHECK(!vm_usage_parse("1 2 3 4 5 6 7 8 9", 17, &back));
}

TEST(ends_are_understood)
{
    int status = -1;
    CHECK(vm_exit_parse("exit 3", 6, &status) && WIFEXITED(status) && WEXITSTATUS(status) == 3);
    CHECK(vm_exit_parse("signal 9", 8, &status) && WIFSIGNALED(status) && WTERMSIG(status) == 9);
    static const char *const bad[] = {"",        "exit",     "exit -1", "exit 256",
                                      "exit 3x", "signal 0", "x"};
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
        CHECK(!vm_exit_parse(bad[i], strlen(bad[i]), &status));
}
