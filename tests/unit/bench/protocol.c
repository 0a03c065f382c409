/* SPDX-License-Identifier: MIT */
/* What programs with assay.h say. */
#include "bench/protocol.h"
#include "base/memory.h"
#include "bench/cases.h"
#include "test.h"

#include <errno.h>

static int take(struct bench_entries *e, const char *line)
{
    struct error err;
    return bench_entries_take(e, line, &err);
}

TEST(benchmarks_keep_their_numbers_when_sorted)
{
    CLEANUP(bench_entries_done) struct bench_entries e = {0};
    CHECK_INT(take(&e, "b 30 last\ta.c"), 0);
    CHECK_INT(take(&e, "b 4 first\ta.c"), 0);
    CHECK_INT(take(&e, "p 1 n\t8 100 4"), 0);
    CHECK_INT(take(&e, "p 2 threads\t1 2"), 0);
    bench_entries_sort(&e);
    CHECK_STR(e.items[0].name, "first");
    CHECK_INT(e.items[0].index, 1);
    CHECK_INT(e.items[0].parameters[0].count, 3); /* 8, 32, 100 */
    CHECK_INT(e.items[0].parameters[0].values[2], 100);
    CHECK_INT(e.items[0].parameters[1].is_threads, 1);
    CHECK_INT(e.items[1].index, 0);
}

TEST(nonsense_is_refused)
{
    static const char *const lines[] = {"",         "b",     "b x name\tf",
                                        "b 1",      "b 1 ",  "b 1 a,b\tf",
                                        "p 0 n\t1", "q 1 2", "b 99999999999999999999999 n\tf"};
    CLEANUP(bench_entries_done) struct bench_entries e = {0};
    for (size_t i = 0; i < ARRAY_COUNT(lines); i++)
        CHECK(take(&e, lines[i]) < 0);
    CHECK_INT(take(&e, "b 1 n\tf"), 0);
    static const char *const parameters[] = {"p 0 n",          "p 0 n\tx",           "p 9 n\t1",
                                             "p 1 n\t8 4 2",   "p 1 n\t0 4 2",       "p 1 n\t1 4 1",
                                             "p 2 threads\t0", "p 2 threads\t100000"};
    for (size_t i = 0; i < ARRAY_COUNT(parameters); i++)
        CHECK(take(&e, parameters[i]) < 0);
    CHECK_INT(e.items[0].parameter_count, 0);
}

TEST(names_with_blanks_are_told)
{
    CLEANUP(bench_entries_done) struct bench_entries e = {0};
    struct error err;
    CHECK(bench_entries_take(&e, "b 1 push a string\tf.rs", &err) == -EINVAL);
    CHECK(strstr(err.message, "'push a string' cannot be the name of a benchmark"));
    CHECK_INT(bench_entries_take(&e, "b 1 grüße(\"x\")\ta file.rs", &err), 0);
    CHECK_STR(e.items[0].name, "grüße(\"x\")");
    CHECK_STR(e.items[0].file, "a file.rs");
    CHECK(bench_entries_take(&e, "p 0 a b\t1", &err) == -EINVAL);
    CHECK(bench_entries_take(&e, "p 0 n\t", &err) == -EINVAL);
    CHECK(strstr(err.message, "'n' has no values"));
}

TEST(samples_are_read)
{
    struct bench_sample s;
    struct error err;
    CHECK_INT(bench_sample_parse("s 1000 900 1 2 3 4 0 1 5 77", &s, &err), 0);
    CHECK_NEAR(s.wall_ns, 1000, 0);
    CHECK_NEAR(s.cpu_ns, 900, 0);
    CHECK_INT(s.involuntary, 4);
    CHECK(s.migrated);
    CHECK_INT(s.pauses, 5);
    CHECK_INT(s.counter_count, 1);
    CHECK_NEAR(s.counters[0], 77, 0);
    CHECK(bench_sample_parse("s 1 2", &s, &err) < 0);
    CHECK(bench_sample_parse("s 1 2 3 4 5 6 7 8 9 1 2 3 4 5", &s, &err) < 0);
    CHECK(bench_sample_parse("s -1 2 3 4 5 6 7 8 9", &s, &err) < 0);
}

TEST(figures_and_laws_are_read)
{
    CLEANUP(memory_freep) char *name = NULL, *unit = NULL, *law = NULL;
    double value;
    struct error err;
    CHECK_INT(bench_figure_parse("v 2.5 hits\tMB", &value, &name, &unit, &err), 0);
    CHECK_STR(name, "hits");
    CHECK_STR(unit, "MB");
    CHECK_INT(bench_law_parse("c 64 n log n", &value, &law, &err), 0);
    CHECK_STR(law, "n log n");
    CHECK(bench_law_parse("c nan n", &value, &law, &err) < 0);
    CHECK(bench_law_parse("c", &value, &law, &err) < 0);
    CHECK(bench_figure_parse("v inf hits\tMB", &value, &name, &unit, &err) == -EINVAL);
    CHECK(strstr(err.message, "with 'hits' is inf"));
}

TEST(cases_are_matched_by_name)
{
    CLEANUP(bench_entries_done) struct bench_entries old = {0}, new = {0};
    CLEANUP(bench_cases_done) struct bench_cases cases = {0};
    struct error err;
    take(&old, "b 1 a\tf");
    take(&old, "b 2 gone\tf");
    take(&new, "b 1 fresh\tf");
    take(&new, "b 2 a\tf");
    CHECK_INT(bench_cases_make(&cases, &old, &new, NULL, 0, &err), 0);
    CHECK_INT(cases.count, 1);
    CHECK_INT(cases.items[0].calls[0].index, 0);
    CHECK_INT(cases.items[0].calls[1].index, 1);
    CHECK_STR(cases.only[0][0], "gone");
    CHECK_STR(cases.only[1][0], "fresh");
    CLEANUP(bench_cases_done) struct bench_cases twice = {0};
    take(&old, "b 3 a\tf");
    CHECK_INT(bench_cases_make(&twice, &old, NULL, NULL, 0, &err), -EEXIST);
}

TEST(names_are_patterns_or_themselves)
{
    CLEANUP(bench_entries_done) struct bench_entries e = {0};
    static const char *const exact[] = {"a[b]*?"}, *const of_others[] = {"BM_x/n=3"},
                             *const pattern[] = {"a*"};
    struct error err;
    take(&e, "b 1 a[b]*?\tf");
    take(&e, "b 2 axx\tf");
    take(&e, "p 0 n\t1 2");
    const struct bench_entry other = {.name = memory_strdup("BM_x/n=3"), .file = memory_strdup("")};
    ARRAY_PUSH(e.items, e.count, e.capacity) = other;
    const char *const *filters[] = {exact, of_others, pattern};
    static const size_t counts[] = {1, 1, 3};
    for (size_t i = 0; i < ARRAY_COUNT(filters); i++) {
        CLEANUP(bench_cases_done) struct bench_cases cases = {0};
        CHECK_INT(bench_cases_make(&cases, &e, NULL, filters[i], 1, &err), 0);
        CHECK_INT(cases.count, counts[i]);
    }
}

TEST(too_many_combinations_are_refused)
{
    CLEANUP(bench_entries_done) struct bench_entries e = {0};
    CLEANUP(bench_cases_done) struct bench_cases cases = {0};
    struct error err;
    take(&e, "b 1 big\tf");
    for (int i = 0; i < 4; i++)
        CHECK_INT(take(&e, "p 1 n\t1 1000000000 2"), 0); /* 31 values */
    CHECK_INT(bench_cases_make(&cases, &e, NULL, NULL, 0, &err), -E2BIG);
    CHECK(strstr(err.message, "923521 combinations of the parameters of big"));
}
