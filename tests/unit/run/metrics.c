/* SPDX-License-Identifier: MIT */
/* What programs report about themselves, right and wrong. */
#include "run/metrics.h"
#include "base/memory.h"
#include "base/strings.h"
#include "test.h"

static void parse(struct metric_list *list, const char *text)
{
    metrics_parse(list, text, strlen(text));
}

TEST(lines_become_metrics)
{
    CLEANUP(metrics_done) struct metric_list list = {0};
    parse(&list, "assay.metric ops 1.5e6 op/s\nassay.metric\tp99_ns\t12\t\r\n\n"
                 "assay.metric last -3 µs");
    CHECK_INT(list.count, 3);
    CHECK_INT(list.refused.line_count, 0);
    CHECK_NEAR(metrics_find(&list, "ops")->value, 1.5e6, 0);
    CHECK_STR(metrics_find(&list, "ops")->unit, "op/s");
    CHECK_STR(metrics_find(&list, "p99_ns")->unit, "");
    CHECK_NEAR(metrics_find(&list, "last")->value, -3, 0);
    CHECK_STR(metrics_find(&list, "last")->unit, "µs");
    CHECK(!metrics_find(&list, "nothing"));
}

TEST(the_kernel_of_an_emulated_machine_has_a_line)
{
    CLEANUP(metrics_done) struct metric_list list = {0};
    parse(&list, "assay.metric vm:instructions 12\nassay.kernel 6.1.0-50-arm64\n");
    CHECK_INT(list.count, 1);
    CHECK_INT(list.refused.line_count, 0);
    CHECK_STR(list.kernel, "6.1.0-50-arm64");
    metrics_clear(&list);
    CHECK_STR(list.kernel, "");
}

TEST(the_last_value_of_a_name_counts)
{
    CLEANUP(metrics_done) struct metric_list list = {0};
    parse(&list, "assay.metric a 1 s\nassay.metric b 2\nassay.metric a 3\n");
    CHECK_INT(list.count, 2);
    CHECK_NEAR(metrics_find(&list, "a")->value, 3, 0);
}

TEST(wrong_lines_are_counted_and_explained)
{
    static const char *const lines[] = {
        "hello",
        "assay.metric",
        "assay.metric a",
        "assay.metric a x",
        "assay.metric a nan",
        "assay.metric a inf",
        "assay.metric a 1e999",
        "assay.metric a 1 s more",
        "assay.metric a 1 \033[31m",
        "assay.metric a 1 aaaaaaaaaaaaaaaa",
        "assay.metric a,b 1",
        "assay.metric \xff 1",
        "assay.metric aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 1",
        "assay.kernel",
        "assay.kernel 6.1 6.2",
        "assay.kernel \033[31m",
    };
    for (size_t i = 0; i < ARRAY_COUNT(lines); i++) {
        CLEANUP(metrics_done) struct metric_list list = {0};
        parse(&list, lines[i]);
        if (list.count || list.refused.line_count != 1 || !list.refused.items[0].why)
            test_fail(__FILE__, __LINE__, "line %zu: %s", i, lines[i]);
        for (const char *c = list.refused.items[0].line; *c; c++)
            CHECK((unsigned char)*c >= 0x20);
    }
}

TEST(hostile_bytes_are_bounded)
{
    CLEANUP(metrics_done) struct metric_list list = {0};
    CLEANUP(strbuf_done) struct strbuf text = {0};
    strbuf_pad(&text, '\0', 1000);
    strbuf_pad(&text, 'x', 3000000);
    metrics_parse(&list, text.data, text.length);
    CHECK(list.truncated);
    CHECK_INT(list.count, 0);
    CHECK_INT(list.refused.line_count, 1);
    metrics_clear(&list);
    strbuf_clear(&text);
    for (int i = 0; i < 10000; i++)
        strbuf_printf(&text, "assay.metric m%d 1\n", i);
    metrics_parse(&list, text.data, text.length);
    CHECK_INT(list.count, METRICS_MAX);
    CHECK_INT(list.refused.line_count, 10000 - METRICS_MAX);
}

TEST(a_refused_name_is_kept_once)
{
    CLEANUP(metrics_done) struct metric_list list = {0};
    struct metric_refusals all = {0};
    parse(&list, "assay.metric a,b 1\nassay.metric a,b 2\nassay.metric c,d 3\nassay.metric e 4\n");
    CHECK_INT(list.count, 1);
    CHECK_INT(list.refused.count, 2);
    CHECK_INT(list.refused.line_count, 3);
    CHECK_INT(metric_refusals_add(&all, &list.refused), 2);
    CHECK_INT(metric_refusals_add(&all, &list.refused), 0);
    CHECK_INT(all.line_count, 6);
    CHECK_STR(all.items[1].line, "assay.metric c,d 3");
}

TEST(a_long_line_of_wide_characters_is_cut_between_them)
{
    CLEANUP(metrics_done) struct metric_list list = {0};
    CLEANUP(strbuf_done) struct strbuf text = {0};
    for (int i = 0; i < 100; i++)
        strbuf_puts(&text, "\xff\xf0\x9f\x98\x80");
    metrics_parse(&list, text.data, text.length);
    CHECK_INT(list.refused.line_count, 1);
    CLEANUP(strbuf_done) struct strbuf safe = {0};
    strbuf_put_safe(&safe, list.refused.items[0].line, strlen(list.refused.items[0].line),
                    SIZE_MAX);
    CHECK_STR(strbuf_text(&safe), list.refused.items[0].line);
}

TEST(name_and_unit_say_which_way_is_better)
{
    CHECK_INT(metric_facts_of("x", "op/s").better, METRIC_HIGHER);
    CHECK_INT(metric_facts_of("messages_per_second", "").better, METRIC_HIGHER);
    CHECK_INT(metric_facts_of("latency", "ns").better, METRIC_LOWER);
    CHECK_INT(metric_facts_of("heap", "bytes").better, METRIC_LOWER);
    CHECK_INT(metric_facts_of("x", "").better, METRIC_NEITHER);
    CHECK(metric_facts_of("x", "op/s").is_speed);
    CHECK(metric_facts_of("latency", "us").is_speed);
    CHECK(!metric_facts_of("heap", "bytes").is_speed);
}
