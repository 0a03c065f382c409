/* SPDX-License-Identifier: MIT */
/* Lambdas of two builds whose numbers moved. */
#include "profile/numbered.h"
#include "test.h"

#include <stdio.h>

static void add(struct numbered *n, unsigned side, const uint64_t *codes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char name[80];
        snprintf(name, sizeof(name), "apply<steps()::{lambda(long)#%zu}>", i + 1);
        numbered_add(n, side, name, codes[i]);
    }
}

static struct numbered *builds(const uint64_t *a, size_t a_count, const uint64_t *b, size_t b_count)
{
    struct numbered *n = numbered_new();
    add(n, 0, a, a_count);
    add(n, 1, b, b_count);
    numbered_conclude(n);
    return n;
}

static const char *named(const struct numbered *n, unsigned side, const char *name)
{
    static struct strbuf out;
    strbuf_clear(&out);
    return numbered_name(n, side, name, &out) ? strbuf_text(&out) : "as it is";
}

#define NAME(number) "steps()::{lambda(long)#" number "}::operator()"

TEST(one_more_before_the_others_moves_their_numbers)
{
    struct numbered *n =
        builds((const uint64_t[]){10, 20, 30}, 3, (const uint64_t[]){7, 10, 20, 30}, 4);
    CHECK_STR(named(n, 1, NAME("3")), NAME("2"));
    CHECK_STR(named(n, 1, NAME("4")), NAME("3"));
    CHECK_STR(named(n, 0, NAME("2")), NAME("2"));
    CHECK_STR(named(n, 1, NAME("1")), NAME("1 of B"));
    CHECK_STR(named(n, 1, "other()::{lambda(long)#3}"), "as it is");
    CHECK_STR(named(n, 1, "apply<int, steps()::{lambda(long)#2}>"),
              "apply<int, steps()::{lambda(long)#1}>");
    numbered_free(n);
}

TEST(one_that_changed_between_two_that_moved_moved_with_them)
{
    struct numbered *n =
        builds((const uint64_t[]){10, 20, 30}, 3, (const uint64_t[]){7, 10, 21, 30}, 4);
    CHECK_STR(named(n, 1, NAME("3")), NAME("2"));
    numbered_free(n);
}

TEST(numbers_that_nothing_speaks_against_stay)
{
    struct numbered *n = builds((const uint64_t[]){10, 20}, 2, (const uint64_t[]){11, 20}, 2);
    CHECK_STR(named(n, 1, NAME("1")), "as it is");
    numbered_free(n);
    n = builds((const uint64_t[]){10, 10}, 2, (const uint64_t[]){10, 11}, 2);
    CHECK_STR(named(n, 1, NAME("2")), "as it is");
    numbered_free(n);
}

TEST(what_nothing_tells_apart_is_one)
{
    struct numbered *n = builds((const uint64_t[]){10, 10}, 2, (const uint64_t[]){10, 10, 10}, 3);
    CHECK_STR(named(n, 1, NAME("3")), NAME("?"));
    CHECK_STR(named(n, 0, NAME("1")), NAME("?"));
    numbered_free(n);
}

TEST(names_without_numbers_are_left_alone)
{
    struct numbered *n = builds((const uint64_t[]){1}, 1, (const uint64_t[]){2, 1}, 2);
    CHECK_STR(named(n, 1, "main"), "as it is");
    CHECK_STR(named(n, 1, "f(char#)"), "as it is");
    CHECK_STR(named(n, 1, "}#1}"), "as it is");
    CHECK_STR(named(n, 1, "g()::$_0"), "as it is");
    numbered_free(n);
}
