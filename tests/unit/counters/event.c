/* SPDX-License-Identifier: MIT */
#include "counters/event.h"
#include "base/memory.h"
#include "base/strings.h"
#include "counters/catalogue.h"
#include "counters/pmu.h"
#include "test.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <unistd.h>

static struct event_list list;
static struct error err;

static int parse(const char *text)
{
    event_list_done(&list);
    err.message[0] = '\0';
    return event_list_parse(&list, text, &err);
}

TEST(names_and_aliases)
{
    CHECK_INT(parse("cycles,cs,faults,L1-dcache-load-misses"), 0);
    CHECK_INT(list.count, 4);
    CHECK_INT(list.items[0].attr.type, PERF_TYPE_HARDWARE);
    CHECK_INT(list.items[1].attr.config, PERF_COUNT_SW_CONTEXT_SWITCHES);
    CHECK_STR(list.items[2].name, "faults");
    CHECK_INT(list.items[3].attr.type, PERF_TYPE_HW_CACHE);
    CHECK_INT(list.items[3].attr.config, 0x10000);
    CHECK_INT(parse("LLC-store-misses"), 0);
    CHECK_INT(list.items[0].attr.config, 0x10102);
}

TEST(modifiers)
{
    CHECK_INT(parse("cycles:u,instructions:k,cycles:ukpp,branches"), 0);
    CHECK(!list.items[0].attr.exclude_user && list.items[0].attr.exclude_kernel);
    CHECK(list.items[1].attr.exclude_user && !list.items[1].attr.exclude_kernel);
    CHECK(!list.items[2].attr.exclude_user && !list.items[2].attr.exclude_kernel);
    CHECK_INT(list.items[2].attr.precise_ip, 2);
    CHECK(!list.items[3].has_modifier);
    CHECK_STR(list.items[0].name, "cycles:u");
    CHECK_INT(parse("cycles:pppp"), -EINVAL);
}

TEST(raw_events)
{
    CHECK_INT(parse("r1a8,rC0:u"), 0);
    CHECK_INT(list.items[0].attr.type, PERF_TYPE_RAW);
    CHECK_INT(list.items[0].attr.config, 0x1a8);
    CHECK_INT(list.items[1].attr.config, 0xc0);
    CHECK(list.items[1].attr.exclude_kernel);
}

TEST(groups)
{
    CHECK_INT(parse("faults,{cycles,instructions}:u,cs,{branches,branch-misses}"), 0);
    CHECK_INT(list.count, 6);
    CHECK_INT(list.items[0].group, 0);
    CHECK_INT(list.items[1].group, 1);
    CHECK_INT(list.items[2].group, 1);
    CHECK(list.items[2].attr.exclude_kernel);
    CHECK_INT(list.items[3].group, 0);
    CHECK_INT(list.items[4].group, 2);
    CHECK(!list.items[4].attr.exclude_kernel);
    CHECK_INT(parse("{cycles,instructions"), -EINVAL);
    CHECK_CONTAINS(err.message, "unclosed");
    CHECK_INT(list.count, 0);
    CHECK_INT(parse("{cycles}{faults}"), -EINVAL);
    CHECK_INT(parse("cycles}"), -EINVAL);
}

TEST(breakpoints)
{
    CHECK_INT(parse("mem:0x601040/8:w:u,mem:0x1000:x"), 0);
    CHECK_INT(list.items[0].attr.type, PERF_TYPE_BREAKPOINT);
    CHECK_INT(list.items[0].attr.bp_addr, 0x601040);
    CHECK_INT(list.items[0].attr.bp_len, 8);
    CHECK_INT(list.items[0].attr.bp_type, HW_BREAKPOINT_W);
    CHECK(list.items[0].attr.exclude_kernel);
    CHECK_INT(list.items[1].attr.bp_type, HW_BREAKPOINT_X);
    CHECK_INT(parse("mem:zzz"), -EINVAL);
    CHECK_INT(parse("mem:0x1000/3:r"), -EINVAL);
    CHECK_INT(parse("mem:0x1000:q"), -EINVAL);
    CHECK_INT(parse("mem:0x1000:rwx"), -EINVAL);
}

TEST(bad_names_get_near_ones)
{
    CHECK_INT(parse("instrutions"), -ENOENT);
    CHECK_CONTAINS(err.message, "instructions");
    CHECK_INT(parse("cycles,,faults"), -EINVAL);
    CHECK_CONTAINS(err.message, "missing");
    CHECK_INT(parse(""), -EINVAL);
    CHECK_INT(parse("nosuchpmu/config=1/"), -ENOENT);
    CHECK_CONTAINS(err.message, "no PMU 'nosuchpmu'");
    CHECK_INT(parse("software/"), -EINVAL);
    CHECK_INT(parse("/x/"), -EINVAL);
    CHECK_INT(parse("a\033[31mb"), -ENOENT);
    CHECK(!strchr(err.message, '\033'));
}

TEST(formats_spread_bits)
{
    struct perf_event_attr attr = {0};
    CHECK_INT(pmu_format_apply("config:0-7,32-35", 0xabc, &attr, &err), 0);
    CHECK_INT(attr.config, 0xa000000bcLL);
    attr = (struct perf_event_attr){0};
    CHECK_INT(pmu_format_apply("config1:0-63", UINT64_MAX, &attr, &err), 0);
    CHECK(attr.config1 == UINT64_MAX);
    attr = (struct perf_event_attr){0};
    CHECK_INT(pmu_format_apply("config2:5", 1, &attr, &err), 0);
    CHECK_INT(attr.config2, 32);
    CHECK_INT(pmu_format_apply("config:0-7", 256, &attr, &err), -ERANGE);
    CHECK_INT(pmu_format_apply("config9:0-7", 1, &attr, &err), -EINVAL);
    CHECK_INT(pmu_format_apply("config:9-3", 1, &attr, &err), -EINVAL);
    CHECK_INT(pmu_format_apply("config:0-99", 1, &attr, &err), -EINVAL);
}

TEST(config_terms)
{
    uint32_t type;
    if (pmu_type("software", &type, NULL) < 0) {
        test_skip("no /sys/bus/event_source here");
        return;
    }
    CHECK_INT(parse("software/config=2,name=mine/u"), 0);
    CHECK_STR(list.items[0].name, "mine");
    CHECK_INT(list.items[0].attr.config, 2);
    CHECK(list.items[0].attr.exclude_kernel);
    CHECK_INT(parse("software/nothing=2/"), -ENOENT);
    CHECK_INT(parse("software/config=x/"), -EINVAL);
}

TEST(tracepoints)
{
    if (geteuid() != 0) {
        test_skip("tracefs needs root");
        return;
    }
    CHECK_INT(parse("sched:sched_switch"), 0);
    CHECK_INT(list.items[0].attr.type, PERF_TYPE_TRACEPOINT);
    CHECK_INT(parse("sched:sched_process_*:u"), 0);
    CHECK(list.count > 2);
    CHECK_INT(parse("sched:sched_swich"), -ENOENT);
    CHECK_CONTAINS(err.message, "sched_switch");
    CHECK_INT(parse("shced:sched_switch"), -ENOENT);
    CHECK_CONTAINS(err.message, "similar systems: sched");
    CHECK_INT(parse("sched:zzz*"), -ENOENT);
    CHECK_INT(parse("../x:y"), -EINVAL);
}

TEST(probes_name_their_file)
{
    CHECK_INT(parse("uprobe:/nonexistent:main"), -ENOENT);
    CHECK_CONTAINS(err.message, "/nonexistent");
    CHECK_INT(parse("uprobe:main"), -EINVAL);
    uint32_t type;
    if (pmu_type("uprobe", &type, NULL) < 0) {
        test_skip("no uprobes in this kernel");
        return;
    }
    CHECK_INT(parse("uprobe:/proc/self/exe:main"), 0);
    CHECK(list.items[0].attr.config2 > 0);
    CHECK_INT(parse("uprobe:/proc/self/exe:mian"), -ENOENT);
    CHECK_CONTAINS(err.message, "similar names: main");
    CHECK_INT(parse("uprobe:/etc/passwd:main"), -ENOEXEC);
}

TEST(the_list_is_given_back)
{
    event_list_done(&list);
    CHECK_INT(list.count, 0);
}
