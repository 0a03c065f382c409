/* SPDX-License-Identifier: MIT */
/*
 * The unit tests' runner: TEST(name) { … } registers a test, CHECK macros report and go on, and
 * the program prints TAP.  One executable per file, so that tests of different files cannot
 * disturb each other.  Link tests/lib/test.c.
 */
#ifndef ASSAY_TESTS_LIB_TEST_H
#define ASSAY_TESTS_LIB_TEST_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct test_case {
    const char *name;
    void (*run)(void);
    struct test_case *next;
};

void test_register(struct test_case *test);
void test_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Marks the running test as skipped; the test must return by itself. */
void test_skip(const char *reason);

#define TEST(test_name)                                                 \
    static void test_name(void);                                        \
    __attribute__((constructor)) static void register_##test_name(void) \
    {                                                                   \
        static struct test_case test = {#test_name, test_name, NULL};   \
        test_register(&test);                                           \
    }                                                                   \
    static void test_name(void)

#define CHECK(condition)                                     \
    do {                                                     \
        if (!(condition))                                    \
            test_fail(__FILE__, __LINE__, "%s", #condition); \
    } while (0)

#define CHECK_INT(actual, expected)                                                 \
    do {                                                                            \
        long long a_ = (long long)(actual), e_ = (long long)(expected);             \
        if (a_ != e_)                                                               \
            test_fail(__FILE__, __LINE__, "%s is %lld, not %lld", #actual, a_, e_); \
    } while (0)

#define CHECK_STR(actual, expected)                                                     \
    do {                                                                                \
        const char *a_ = (actual), *e_ = (expected);                                    \
        if (strcmp(a_, e_) != 0)                                                        \
            test_fail(__FILE__, __LINE__, "%s is \"%s\", not \"%s\"", #actual, a_, e_); \
    } while (0)

#define CHECK_NEAR(actual, expected, tolerance)                                       \
    do {                                                                              \
        double a_ = (actual), e_ = (expected);                                        \
        if (!(fabs(a_ - e_) <= (tolerance)))                                          \
            test_fail(__FILE__, __LINE__, "%s is %.12g, not %.12g", #actual, a_, e_); \
    } while (0)

#define CHECK_CONTAINS(text, part)                                        \
    do {                                                                  \
        const char *t_ = (text), *p_ = (part);                            \
        if (!strstr(t_, p_))                                              \
            test_fail(__FILE__, __LINE__, "\"%s\" lacks \"%s\"", t_, p_); \
    } while (0)

#endif
