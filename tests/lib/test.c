/* SPDX-License-Identifier: MIT */
/* The unit tests' runner: see test.h. */
#include "test.h"

#include <stdarg.h>
#include <stdio.h>

static struct test_case *first_test, **last_test = &first_test;
static unsigned failures;
static const char *skip_reason;

void test_register(struct test_case *test)
{
    *last_test = test;
    last_test = &test->next;
}

void test_fail(const char *file, int line, const char *format, ...)
{
    va_list args;
    printf("# %s:%d: ", file, line);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    failures++;
}

void test_skip(const char *reason)
{
    skip_reason = reason;
}

/* With a name: that test alone. */
int main(int argc, char **argv)
{
    unsigned number = 0, failed = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (struct test_case *test = first_test; test; test = test->next) {
        if (argc > 1 && strcmp(argv[1], test->name) != 0)
            continue;
        failures = 0;
        skip_reason = NULL;
        test->run();
        number++;
        if (failures)
            failed++;
        printf("%s %u %s", failures ? "not ok" : "ok", number, test->name);
        if (skip_reason && !failures)
            printf(" # SKIP %s", skip_reason);
        printf("\n");
    }
    printf("1..%u\n", number);
    return failed || (argc > 1 && number == 0) ? 1 : 0;
}
