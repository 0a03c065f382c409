/* SPDX-License-Identifier: MIT */
/* See tests.h. */
#include "tests.h"
#include "base/memory.h"
#include "base/strings.h"

#include <errno.h>

enum { TESTS_MAX = 256 };

/* The ends of what SCALE_TEST put into its section, from the linker. */
extern const struct scale_test *const __start_scale_tests[];
extern const struct scale_test *const __stop_scale_tests[];

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const struct scale_test *const *)a)->name,
                  (*(const struct scale_test *const *)b)->name);
}

size_t tests_list(const struct scale_test *const **ret_tests)
{
    static const struct scale_test *sorted[TESTS_MAX];
    size_t count = (size_t)(__stop_scale_tests - __start_scale_tests);
    count = count < TESTS_MAX ? count : TESTS_MAX;
    if (!sorted[0]) {
        memcpy(sorted, __start_scale_tests, count * sizeof(*sorted));
        qsort(sorted, count, sizeof(*sorted), by_name);
    }
    *ret_tests = sorted;
    return count;
}

const struct scale_test *tests_find(const char *name, struct error *err)
{
    const struct scale_test *const *tests;
    const char *names[TESTS_MAX];
    size_t count = tests_list(&tests);
    for (size_t i = 0; i < count; i++) {
        if (str_eq(tests[i]->name, name))
            return tests[i];
        names[i] = tests[i]->name;
    }
    CLEANUP(strbuf_done) struct strbuf near = {0}, safe = {0};
    strbuf_put_safe(&safe, name, strlen(name), 60);
    if (str_nearest(name, names, count, 3, &near))
        error_set(err, -EINVAL, "no test '%s'; did you mean %s? --list shows them all",
                  strbuf_text(&safe), strbuf_text(&near));
    else
        error_set(err, -EINVAL, "no test '%s'; --list shows them all", strbuf_text(&safe));
    return NULL;
}
