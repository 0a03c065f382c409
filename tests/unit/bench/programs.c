/* SPDX-License-Identifier: MIT */
/* What programs of other harnesses print, as times of one iteration. */
#include "bench/programs.h"
#include "base/memory.h"
#include "base/strings.h"
#include "config.h"
#include "test.h"

#include <errno.h>

static double time_of(const struct program_results *r, const char *name)
{
    for (size_t i = 0; i < r->count; i++)
        if (str_eq(r->items[i].name, name))
            return r->items[i].count ? r->items[i].ns[0] : -1;
    return -2;
}

static int parse(const char *harness, const char *text, struct program_results *r)
{
    struct error err;
    *r = (struct program_results){0};
    return program_results_read(r, program_harness_find(harness), text, strlen(text), "program",
                                &err);
}

#if HAVE_JANSSON
TEST(google_has_names_units_and_aggregates)
{
    static const char text[] =
        "Running on a laptop\n{\"context\": {}, \"benchmarks\": ["
        "{\"name\": \"fib/10\", \"run_name\": \"fib/10\", \"run_type\": \"iteration\","
        " \"real_time\": 1.5, \"time_unit\": \"us\"},"
        "{\"name\": \"fib/10_mean\", \"run_name\": \"fib/10\", \"run_type\": \"aggregate\","
        " \"real_time\": 9, \"time_unit\": \"us\"},"
        "{\"name\": \"bad\", \"error_occurred\": true, \"error_message\": \"no disk\"}]}\nbye\n";
    struct program_results r;
    CHECK_INT(parse("google-benchmark", text, &r), 0);
    CHECK_INT(r.count, 2);
    CHECK_NEAR(time_of(&r, "fib/10"), 1500, 1e-9);
    CHECK_INT(r.items[0].count, 1);
    CHECK_STR(r.items[1].failed, "no disk");
    program_results_done(&r);
    CHECK_INT(parse("google-benchmark", "{\"context\": {}, \"benchmarks\": []}", &r), -EINVAL);
    CHECK_INT(parse("google-benchmark", "no JSON", &r), -EINVAL);
}

TEST(nanobench_and_pytest_have_seconds)
{
    struct program_results r;
    CHECK_INT(parse("nanobench",
                    "| ns/op |\n{\"results\": [{\"name\": \"sort\", \"epochs\": 2,"
                    "\"median(elapsed)\": 2e-6,"
                    "\"measurements\": [{\"iterations\": 5, \"elapsed\": 1e-6},"
                    "{\"elapsed\": 3e-6}]}]}",
                    &r),
              0);
    CHECK_NEAR(time_of(&r, "sort"), 1000, 1e-6);
    CHECK_INT(r.items[0].count, 2);
    program_results_done(&r);
    CHECK_INT(
        parse(
            "pytest-benchmark",
            "{\"machine_info\": {}, \"commit_info\": {}, \"benchmarks\": [{\"name\": \"test_sort\","
            "\"fullname\": \"test_old.py::test_sort\","
            "\"stats\": {\"median\": 1e-3}}]}",
            &r),
        0);
    CHECK_NEAR(time_of(&r, "test_sort"), 1e6, 1e-3);
    program_results_done(&r);
}
#endif

TEST(go_lines_lose_the_number_of_cpus)
{
    static const char text[] = "goos: linux\ngoarch: amd64\n"
                               "BenchmarkFib/n=10-8   \t 3000000\t       412.5 ns/op\n"
                               "BenchmarkAlloc \t 10\t 1e+03 ns/op\t 16 B/op\t 2 allocs/op\n"
                               "BenchmarkRate-2 \t 10\t 5.0 MB/s\t 7 ns/op\n"
                               "PASS\n";
    struct program_results r;
    CHECK_INT(parse("go", text, &r), 0);
    CHECK_INT(r.count, 3);
    CHECK_NEAR(time_of(&r, "Fib/n=10"), 412.5, 1e-9);
    CHECK_NEAR(time_of(&r, "Alloc"), 1000, 1e-9);
    CHECK_NEAR(time_of(&r, "Rate"), 7, 1e-9);
    program_results_done(&r);
    CHECK_INT(parse("go", "PASS\n", &r), -EINVAL);
}

TEST(catch2_has_means_in_xml)
{
    static const char text[] =
        "<?xml version=\"1.0\"?>\n<Catch name=\"x\"><TestCase name=\"a\">\n"
        "<BenchmarkResults name=\"a &lt; &quot;b&quot;\" samples=\"10\" iterations=\"7\">\n"
        "<!-- All values in nano seconds -->\n"
        "<mean value=\"1234.5\" lowerBound=\"1\" upperBound=\"2\" ci=\"0.95\"/>\n"
        "<standardDeviation value=\"9\"/></BenchmarkResults></TestCase></Catch>";
    struct program_results r;
    CHECK_INT(parse("catch2", text, &r), 0);
    CHECK_NEAR(time_of(&r, "a: a < \"b\""), 1234.5, 1e-9);
    program_results_done(&r);
    CHECK_INT(parse("catch2", "<?xml?><Catch name=\"x\"></Catch>", &r), -EINVAL);
    CHECK_INT(parse("catch2", "<?xml?><Catch name=\"x\"><BenchmarkResults name=\"a\">", &r),
              -EINVAL);
    CHECK_INT(parse("catch2",
                    "<?xml?><Catch name=\"x\"><BenchmarkResults name=\"a\"><mean value=\"1\"/>"
                    "</BenchmarkResults>",
                    &r),
              -EINVAL);
}

TEST(criterion_has_the_estimate_in_the_middle)
{
    static const char text[] =
        "fib 20                  time:   [24.900 µs 25.012 µs 25.125 µs]\n"
        "                        change: [-0.5% +0.1% +0.7%] (p = 0.70 > 0.05)\n"
        "a name that is so long that it has a line of its own\n"
        "                        time:   [1.0 ms 2.0 ms 3.0 ms]\n"
        "                        thrpt:  [1 Kelem/s 2 Kelem/s 3 Kelem/s]\n"
        "broken                  time:   [1.0 ms 2.0 ms]\n";
    struct program_results r;
    CHECK_INT(parse("criterion", text, &r), 0);
    CHECK_INT(r.count, 2);
    CHECK_NEAR(time_of(&r, "fib 20"), 25012, 1e-6);
    CHECK_NEAR(time_of(&r, "a name that is so long that it has a line of its own"), 2e6, 1e-6);
    program_results_done(&r);
}

TEST(divan_has_a_tree)
{
    static const char text[] =
        "Timer precision: 20 ns\n"
        "sorting        fastest       │ slowest       │ median        │ mean          │ samples │ "
        "iters\n"
        "├─ merge       1.2 µs        │ 3.4 µs        │ 1.3 µs        │ 1.4 µs        │ 100     │ "
        "100\n"
        "╰─ quick                     │               │               │               │         │\n"
        "   ├─ 10       11.1 ns       │ 15 ns         │ 12.5 ns       │ 13 ns         │ 100     │ "
        "100\n"
        "   ╰─ 100      1.1 ms        │ 1.5 ms        │ 1.25 ms       │ 1.3 ms        │ 100     │ "
        "100\n";
    struct program_results r;
    CHECK_INT(parse("divan", text, &r), 0);
    CHECK_INT(r.count, 3);
    CHECK_NEAR(time_of(&r, "merge"), 1300, 1e-6);
    CHECK_NEAR(time_of(&r, "quick/10"), 12.5, 1e-6);
    CHECK_NEAR(time_of(&r, "quick/100"), 1.25e6, 1e-3);
    program_results_done(&r);
}

TEST(programs_are_recognised)
{
    CHECK(program_harness_of("x_ZN9benchmark3RunEv", 20) ==
          program_harness_find("google-benchmark"));
    CHECK(program_harness_of("nothing", 7) == NULL);
    CHECK(program_harness_find("nothing") == NULL);
}
