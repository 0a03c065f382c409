/* SPDX-License-Identifier: MIT */
/* The capability record: complete, valid, and without a trace left on the process. */
#include "base/fd.h"
#include "base/memory.h"
#include "machine/machine.h"
#include "test.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *const ids[] = {"pmu",
                                  "pmu-sampling",
                                  "precise-ip",
                                  "branch-stack",
                                  "hardware-trace",
                                  "perf-event-paranoid",
                                  "software-events",
                                  "system-wide",
                                  "clock-sampling",
                                  "kptr-restrict",
                                  "tracepoints",
                                  "uprobes",
                                  "kprobes",
                                  "breakpoints",
                                  "ebpf",
                                  "btf",
                                  "io-uring",
                                  "libc-frames",
                                  "libc-debuginfo",
                                  "kernel-debuginfo",
                                  "virtual",
                                  "steal",
                                  "smt",
                                  "turbo",
                                  "governor",
                                  "clock",
                                  "aslr",
                                  "thp",
                                  "numa",
                                  "psi",
                                  "tcp-congestion",
                                  "mitigations",
                                  "rights",
                                  "container",
                                  "cgroups",
                                  "cpu-quota",
                                  "memlock",
                                  "open-files",
                                  "realtime",
                                  "ptrace",
                                  "perf",
                                  "valgrind",
                                  "qemu"};

TEST(every_finding_is_there_once_and_says_something)
{
    struct machine m;
    machine_probe(&m, MACHINE_QUICK);
    for (size_t i = 0; i < ARRAY_COUNT(ids); i++)
        if (!machine_find(&m, ids[i]))
            test_fail(__FILE__, __LINE__, "no finding '%s'", ids[i]);
    CHECK(machine_find(&m, "nothing") == NULL);
    for (size_t i = 0; i < m.finding_count; i++) {
        const struct finding *f = &m.findings[i];
        CHECK(f->group && *f->group);
        CHECK(f->what && *f->what);
        CHECK(f->detail && *f->detail);
        CHECK(!f->remedy || *f->remedy);
        CHECK(!f->has_value || f->unit);
        CHECK(machine_find(&m, f->id) == f);
    }
    machine_done(&m);
}

TEST(who_it_is)
{
    struct machine m;
    machine_probe(&m, MACHINE_QUICK);
    CHECK(*m.kernel_release && *m.arch && *m.cpu_model);
    CHECK(m.cpu_count >= 1 && m.cpu_usable_count >= 1);
    CHECK(m.cpu_usable_count <= m.cpu_count);
    CHECK(m.memory_bytes > 1 << 20);
    CHECK_INT(m.page_bytes, sysconf(_SC_PAGESIZE));
    machine_done(&m);
}

static size_t open_descriptors(void)
{
    size_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

static size_t mapping_count(void)
{
    CLEANUP(strbuf_done) struct strbuf maps = {0};
    size_t count = 0;
    file_read("/proc/self/maps", &maps, NULL);
    for (size_t i = 0; i < maps.length; i++)
        count += maps.data[i] == '\n';
    return count;
}

TEST(nothing_stays_behind)
{
    struct machine m;
    cpu_set_t before, after;
    machine_probe(&m, MACHINE_FULL);
    machine_done(&m);
    size_t descriptors = open_descriptors(), mappings = mapping_count();
    sched_getaffinity(0, sizeof(before), &before);
    for (int i = 0; i < 3; i++) {
        machine_probe(&m, i ? MACHINE_QUICK : MACHINE_FULL);
        machine_done(&m);
    }
    sched_getaffinity(0, sizeof(after), &after);
    CHECK_INT(open_descriptors(), descriptors);
    /* The allocator may take a mapping or two of its own. */
    CHECK(mapping_count() <= mappings + 3);
    CHECK(CPU_EQUAL(&before, &after));
    CHECK_INT(sched_getscheduler(0), SCHED_OTHER);
}

TEST(states_have_names)
{
    CHECK_STR(finding_state_name(FINDING_YES), "yes");
    CHECK_STR(finding_state_name(FINDING_NO), "no");
    CHECK_STR(finding_state_name(FINDING_LIMITED), "limited");
    CHECK_STR(finding_state_name(FINDING_UNKNOWN), "unknown");
}

/* A made-up machine, whose record is known to the letter. */
TEST(the_record_to_the_letter)
{
    struct finding findings[] = {
        {.group = "g",
         .id = "pmu",
         .what = "counters",
         .state = FINDING_YES,
         .detail = "4 \"at once\"",
         .has_value = true,
         .value = 4,
         .unit = "counters"},
        {.group = "g",
         .id = "turbo",
         .what = "turbo",
         .state = FINDING_UNKNOWN,
         .detail = "?",
         .remedy = "none",
         .is_assumed = true},
    };
    struct machine m = {.kernel_release = "6.1",
                        .arch = "riscv64",
                        .distribution = "",
                        .cpu_vendor = "",
                        .cpu_model = "M\xff",
                        .cpu_count = 2,
                        .findings = findings,
                        .finding_count = 2,
                        .probe_ns = 5};
    CLEANUP(strbuf_done) struct strbuf out = {0};
    struct json j = {.out = &out, .compact = true};
    machine_write_json(&m, &j, NULL);
    CHECK_STR(strbuf_text(&out),
              "{\"kernel_release\":\"6.1\",\"arch\":\"riscv64\",\"distribution\":\"\","
              "\"cpu_vendor\":\"\",\"cpu_model\":\"M\\ufffd\",\"cpu_count\":2,"
              "\"cpu_usable_count\":null,\"core_count\":null,\"memory_bytes\":null,"
              "\"page_bytes\":null,\"l1d_bytes\":null,\"l2_bytes\":null,\"l3_bytes\":null,"
              "\"cache_line_bytes\":null,\"root\":false,\"findings\":["
              "{\"id\":\"pmu\",\"state\":\"yes\",\"value\":4,\"unit\":\"counters\","
              "\"what\":\"counters\",\"detail\":\"4 \\\"at once\\\"\"},"
              "{\"id\":\"turbo\",\"state\":\"unknown\",\"assumed\":true,\"what\":\"turbo\","
              "\"detail\":\"?\",\"remedy\":\"none\"}],\"probe_ns\":5}\n");
}
