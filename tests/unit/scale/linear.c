/* SPDX-License-Identifier: MIT */
/* More than linear is not printed without a word on why. */
#include "report.h"
#include "test.h"

#include <string.h>

static const struct scale_test test_of = {.name = "futex1"};

/* One task and two, with `share` of linear; what each had of its CPU, and how long that idled. */
static const char *words(double share, double cpu_one, double cpu_two, double idle_one)
{
    static char text[512];
    struct measure_result items[2] = {{.test = &test_of,
                                       .task_count = 1,
                                       .ops_per_second = 100,
                                       .ops_per_second_per_task = 100,
                                       .cpu_share = cpu_one,
                                       .idle_share = idle_one},
                                      {.test = &test_of,
                                       .task_count = 2,
                                       .ops_per_second = 200 * share,
                                       .ops_per_second_per_task = 100 * share,
                                       .cpu_share = cpu_two,
                                       .idle_share = 0}};
    struct results r = {.items = items, .count = 2};
    struct strbuf out = {0};
    CHECK(!results_explain_linear(&r, &items[0], &out));
    text[0] = '\0';
    if (results_explain_linear(&r, &items[1], &out))
        strncpy(text, strbuf_text(&out), sizeof(text) - 1);
    strbuf_done(&out);
    return text;
}

TEST(what_is_linear_or_less_needs_no_word)
{
    CHECK_STR(words(1, 1, 1, 0), "");
    CHECK_STR(words(0.4, 0.5, 1, 0), "");
    CHECK_STR(words(1.049, 0.5, 1, 0), "");
}

TEST(a_measure_that_was_disturbed_is_named)
{
    const char *text = words(1.852, 0.54, 0.99, 0);
    CHECK(strstr(text, "185.2 % of linear: the reference run with one task got 54 % of its CPU"));
    CHECK(strstr(text, "this one 99 %"));
}

TEST(idle_time_and_the_unknown_are_told_apart)
{
    CHECK(strstr(words(1.5, 1, 1, 0.3), "idled for 30 % of the time, here for 0 %"));
    CHECK(strstr(words(1.5, 1, 1, 0), "for no visible reason"));
}
