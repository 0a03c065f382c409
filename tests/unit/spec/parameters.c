/* SPDX-License-Identifier: MIT */
/* Parameters: lists, ranges, combinations, substitution. */
#include "spec/parameters.h"
#include "base/memory.h"
#include "test.h"

static void check_text(const struct parameter_list *list, size_t combination, const char *text,
                       const char *expected)
{
    CLEANUP(memory_freep) char *got = parameters_substitute(list, combination, text);
    CHECK_STR(got, expected);
}

TEST(no_parameters_are_one_combination)
{
    struct parameter_list list = {0};
    CHECK_INT(parameters_combinations(&list), 1);
    check_text(&list, 0, "a {b} {}", "a {b} {}");
}

TEST(every_combination_comes_once_the_first_slowest)
{
    CLEANUP(parameters_done) struct parameter_list list = {0};
    CHECK_INT(parameters_add_list(&list, "a", "x,y", NULL), 0);
    CHECK_INT(parameters_add_range(&list, "n", "1", "3", NULL, NULL), 0);
    CHECK_INT(parameters_combinations(&list), 6);
    check_text(&list, 0, "{a}{n}", "x1");
    check_text(&list, 2, "{a}{n}", "x3");
    check_text(&list, 3, "{a} {n} {a} {b} {{n}}", "y 1 y {b} {1}");
    check_text(&list, 5, "{a}{n}", "y3");
    CLEANUP(strbuf_done) struct strbuf words = {0};
    parameters_describe(&list, 4, &words);
    CHECK_STR(strbuf_text(&words), "a=y, n=2");
    CHECK(parameters_used(&list, 1, "x{n}"));
    CHECK(!parameters_used(&list, 0, "x{n} {a"));
}

TEST(commas_can_be_kept)
{
    CLEANUP(parameters_done) struct parameter_list list = {0};
    CHECK_INT(parameters_add_list(&list, "a", "x\\,y,,z\\\\", NULL), 0);
    CHECK_INT(parameters_combinations(&list), 3);
    CHECK_STR(parameters_value(&list, 0, 0), "x,y");
    CHECK_STR(parameters_value(&list, 0, 1), "");
    CHECK_STR(parameters_value(&list, 0, 2), "z\\");
}

TEST(ranges_of_decimals_do_not_lose_their_last)
{
    CLEANUP(parameters_done) struct parameter_list list = {0};
    CHECK_INT(parameters_add_range(&list, "a", "0", "0.3", "0.1", NULL), 0);
    CHECK_INT(parameters_combinations(&list), 4);
    CHECK_STR(parameters_value(&list, 0, 0), "0.0");
    CHECK_STR(parameters_value(&list, 0, 3), "0.3");
}

TEST(nonsense_is_refused_with_words)
{
    CLEANUP(parameters_done) struct parameter_list list = {0};
    struct error err = {0};
    CHECK(parameters_add_list(&list, "", "1", &err) < 0);
    CHECK(parameters_add_list(&list, "a b", "1", &err) < 0);
    CHECK(parameters_add_range(&list, "a", "3", "1", NULL, &err) < 0);
    CHECK(parameters_add_range(&list, "a", "1", "2", "0", &err) < 0);
    CHECK(parameters_add_range(&list, "a", "1", "x", NULL, &err) < 0);
    CHECK_CONTAINS(err.message, "'x'");
    CHECK(parameters_add_range(&list, "a", "1", "1e9", NULL, &err) < 0);
    CHECK(parameters_add_range(&list, "a", "1", "1000000", NULL, &err) < 0);
    CHECK_INT(parameters_add_list(&list, "a", "1", &err), 0);
    CHECK(parameters_add_list(&list, "a", "2", &err) < 0);
    CHECK_CONTAINS(err.message, "twice");
}
