/* SPDX-License-Identifier: MIT */
/* What -t of assay-scale means. */
#include "counts.h"
#include "base/strings.h"
#include "test.h"

#include <errno.h>

enum { CPUS = 8, MOST = 8 };

static char text[256];

/* The counts with commas between, or the error. */
static const char *parsed(const char *spec, unsigned cpu_count, unsigned most)
{
    struct counts c = {0};
    struct error err = {0};
    struct strbuf out = {0};
    if (counts_parse(spec, cpu_count, most, &c, &err) < 0)
        strbuf_puts(&out, err.message);
    for (size_t i = 0; i < c.count; i++)
        strbuf_printf(&out, "%s%u", i ? "," : "", c.items[i]);
    strncpy(text, strbuf_text(&out), sizeof(text) - 1);
    strbuf_done(&out);
    counts_done(&c);
    return text;
}

TEST(numbers_ranges_shares_and_lists)
{
    CHECK_STR(parsed("3", CPUS, MOST), "3");
    CHECK_STR(parsed("1..4", CPUS, MOST), "1,2,3,4");
    CHECK_STR(parsed("N", CPUS, MOST), "8");
    CHECK_STR(parsed("6..N", CPUS, MOST), "6,7,8");
    CHECK_STR(parsed("100%", CPUS, MOST), "8");
    CHECK_STR(parsed("50%", CPUS, MOST), "4");
    CHECK_STR(parsed("50%..100%", CPUS, MOST), "4,5,6,7,8");
    CHECK_STR(parsed("8,1,4", CPUS, MOST), "1,4,8");
    CHECK_STR(parsed("1,2,2,1..3,N", CPUS, MOST), "1,2,3,8");
}

TEST(a_share_is_at_least_one_task_and_rounds)
{
    CHECK_STR(parsed("1%", CPUS, MOST), "1");
    CHECK_STR(parsed("50%", 3, 3), "2");
    CHECK_STR(parsed("0.5%", 104, 104), "1");
    CHECK_STR(parsed("200%", CPUS, 4096), "16");
}

TEST(what_is_wrong_is_named)
{
    CHECK_CONTAINS(parsed("9", CPUS, MOST),
                   "-t 9: 9 tasks need as many CPUs, but only 8 can be used");
    CHECK_CONTAINS(parsed("1..9", CPUS, MOST), "--oversubscribe");
    CHECK_CONTAINS(parsed("5000", CPUS, 4096), "5000 tasks is more than the maximum of 4096");
    CHECK_CONTAINS(parsed("99999999999999999999", CPUS, 4096), "not a number of tasks");
    CHECK_CONTAINS(parsed("9999999999", CPUS, 4096), "more than the maximum of 4096");
    CHECK_CONTAINS(parsed("0", CPUS, MOST), "at least one task");
    CHECK_CONTAINS(parsed("0%", CPUS, MOST), "above 0");
    CHECK_CONTAINS(parsed("-5%", CPUS, MOST), "above 0");
    CHECK_CONTAINS(parsed("nan%", CPUS, MOST), "%");
    CHECK_CONTAINS(parsed("4..2", CPUS, MOST), "4..2 is empty");
    CHECK_CONTAINS(parsed("", CPUS, MOST), "not a number of tasks");
    CHECK_CONTAINS(parsed("1,,2", CPUS, MOST), "not a number of tasks");
    CHECK_CONTAINS(parsed("1..", CPUS, MOST), "not a number of tasks");
    CHECK_CONTAINS(parsed("..2", CPUS, MOST), "not a number of tasks");
    CHECK_CONTAINS(parsed("n", CPUS, MOST), "not a number of tasks");
}
