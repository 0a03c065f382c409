/* SPDX-License-Identifier: MIT */
#include "exact/sweep.h"
#include "base/memory.h"
#include "report/exact/sweep.h"
#include "test.h"

#include <stdio.h>

static struct sweep_kernel *named(struct sweep *s, const char *name)
{
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->items[i].name, name) == 0)
            return &s->items[i];
    return NULL;
}

/* One run: so much in read, and the rest in open. */
static void count(struct sweep *s, const char *name, uint64_t kernel, uint64_t in_read)
{
    struct exact_way ways[] = {{(char *)"read", 1, in_read}, {(char *)"open", 1, kernel - in_read}};
    struct exact_named functions[] = {{(char *)"vfs_read", (char *)"[kernel]", in_read},
                                      {(char *)"do_open", (char *)"[kernel]", kernel - in_read}};
    struct exact_counts c = {.user = 1000,
                             .kernel = kernel,
                             .ways = ways,
                             .way_count = 2,
                             .named = functions,
                             .named_count = 2};
    sweep_add(s, name);
    sweep_take(named(s, name), &c);
}

TEST(kernels_come_by_flavour_and_version_and_once)
{
    CLEANUP(sweep_done) struct sweep s = {0};
    static const char *const given[] = {"./b/vmlinuz",
                                        "linux-image-6.12.100+deb12-amd64_6.12.100-1",
                                        "linux-image-6.1.0-56-cloud-amd64_6.1.192-2",
                                        "linux-image-6.1.0-56-amd64_6.1.192-2",
                                        "./a/vmlinuz",
                                        "linux-image-6.1.0-9-amd64_6.1.20-1"};
    static const size_t order[] = {5, 3, 1, 2, 0, 4};
    static const char *const flavours[] = {"", "", "", "cloud", "own", "own"};
    for (size_t i = 0; i < 6; i++)
        CHECK(sweep_add(&s, given[i]));
    CHECK(!sweep_add(&s, given[2]));
    sweep_sort(&s);
    for (size_t i = 0; i < 6; i++) {
        CHECK_STR(s.items[i].name, given[order[i]]);
        CHECK_STR(s.items[i].flavour, flavours[i]);
    }
    CHECK(!sweep_before(&s, 0));
    CHECK(sweep_before(&s, 2) == &s.items[1]);
    CHECK(!sweep_before(&s, 3)); /* the first cloud kernel */
    s.items[1].why = memory_strdup("did not boot");
    CHECK(sweep_before(&s, 2) == &s.items[0]);
}

TEST(a_step_is_more_than_the_runs_differ_by_and_the_threshold)
{
    CLEANUP(sweep_done) struct sweep s = {0};
    struct sweep_step step;
    count(&s, "linux-image-6.1.0-1-amd64_1", 10000, 4000);
    count(&s, "linux-image-6.1.0-2-amd64_1", 10050, 4050);
    count(&s, "linux-image-6.1.0-3-amd64_1", 12000, 6000);
    CHECK(!sweep_step_find(&s, 0, 0.01, &step));
    CHECK(!sweep_step_find(&s, 1, 0.01, &step));
    CHECK(sweep_step_find(&s, 1, 0.001, &step));
    CHECK(sweep_step_find(&s, 2, 0.01, &step));
    CHECK(step.change > 0.194 && step.change < 0.195);
    struct sweep_way *ways = NULL;
    CHECK_INT(sweep_ways(&step, &ways), 1); /* open did not change */
    CHECK_STR(ways[0].name, "read");
    CHECK_INT(ways[0].new - ways[0].base, 1950);
    free(ways);
    count(&s, "linux-image-6.1.0-3-amd64_1", 9900, 4000); /* another run */
    CHECK(!sweep_step_find(&s, 2, 0.01, &step));
}

TEST(a_sweep_tells_what_failed_and_what_changed)
{
    CLEANUP(sweep_done) struct sweep s = {0};
    CLEANUP(strbuf_done) struct strbuf out = {0};
    char *argv[] = {(char *)"prog", NULL};
    count(&s, "linux-image-6.1.0-1-amd64_1", 10000, 4000);
    sweep_add(&s, "linux-image-6.1.0-2-amd64_1");
    s.items[1].why = memory_strdup("no answer of the machine");
    count(&s, "linux-image-6.1.0-3-amd64_1", 15000, 9000);
    struct sweep_view v = {.sweep = &s, .argv = argv, .threshold = 0.01};
    report_sweep_text(&out, &v);
    CHECK(strstr(strbuf_text(&out), "no answer of the machine"));
    CHECK(strstr(strbuf_text(&out), "From linux-image-6.1.0-1-amd64_1 to "
                                    "linux-image-6.1.0-3-amd64_1: +50.00 %"));
    CHECK(strstr(strbuf_text(&out), "+5,000  read\n"));
    CHECK(strstr(strbuf_text(&out), "vfs_read"));
    CHECK(!strstr(strbuf_text(&out), "do_open"));
}
