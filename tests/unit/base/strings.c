/* SPDX-License-Identifier: MIT */
#include "base/strings.h"
#include "base/clock.h"
#include "base/memory.h"
#include "test.h"

#include <errno.h>

TEST(numbers_are_parsed_whole)
{
    struct error err;
    uint64_t v = 7;
    CHECK_INT(parse_u64("42", &v, &err), 0);
    CHECK_INT(v, 42);
    CHECK_INT(parse_u64("0xff", &v, &err), 0);
    CHECK_INT(v, 255);
    const char *bad[] = {"", "-1", "+1", " 1", "1 ", "12x", "0x", "1e3"};
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        v = 7;
        CHECK_INT(parse_u64(bad[i], &v, &err), -EINVAL);
        CHECK_INT(v, 7);
    }
    CHECK_INT(parse_u64("18446744073709551615", &v, &err), 0);
    CHECK_INT(parse_u64("18446744073709551616", &v, &err), -ERANGE);
    CHECK_CONTAINS(err.message, "18446744073709551616");
}

TEST(durations_take_units)
{
    struct error err;
    uint64_t ns;
    CHECK_INT(parse_duration_ns("1.5s", NS_PER_MS, &ns, &err), 0);
    CHECK_INT(ns, 1500000000);
    CHECK_INT(parse_duration_ns("250", NS_PER_MS, &ns, &err), 0);
    CHECK_INT(ns, 250000000);
    CHECK_INT(parse_duration_ns("2m", NS_PER_MS, &ns, &err), 0);
    CHECK_INT(ns, 120000000000LL);
    CHECK_INT(parse_duration_ns("-1s", NS_PER_MS, &ns, &err), -EINVAL);
    CHECK_INT(parse_duration_ns("5 parsecs", NS_PER_MS, &ns, &err), -EINVAL);
    CHECK_INT(parse_duration_ns("nan", NS_PER_MS, &ns, &err), -EINVAL);
    CHECK_INT(parse_duration_ns("1e300h", NS_PER_MS, &ns, &err), -EINVAL);
}

TEST(sizes_take_units)
{
    struct error err;
    uint64_t bytes;
    CHECK_INT(parse_size_bytes("64k", &bytes, &err), 0);
    CHECK_INT(bytes, 65536);
    CHECK_INT(parse_size_bytes("1M", &bytes, &err), 0);
    CHECK_INT(bytes, 1 << 20);
    CHECK_INT(parse_size_bytes("1X", &bytes, &err), -EINVAL);
}

TEST(cpu_lists)
{
    struct error err;
    int *list;
    size_t count;
    CHECK_INT(parse_cpu_list("0-2,5", &list, &count, &err), 0);
    CHECK_INT(count, 4);
    CHECK_INT(list[2], 2);
    CHECK_INT(list[3], 5);
    free(list);
    const char *bad[] = {"", "a", "3-1", "1,", "1-", "1;2", ",1", "0-99999999999"};
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
        CHECK_INT(parse_cpu_list(bad[i], &list, &count, &err), -EINVAL);
}

TEST(near_names_are_found)
{
    const char *names[] = {"cycles", "instructions", "branches", "branch-misses"};
    CLEANUP(strbuf_done) struct strbuf out = {0};
    CHECK_INT(str_distance("kitten", "sitting"), 3);
    CHECK_INT(str_nearest("cylces", names, 4, 2, &out), 1);
    CHECK_STR(strbuf_text(&out), "cycles");
    strbuf_clear(&out);
    CHECK_INT(str_nearest("branch", names, 4, 3, &out), 2);
    CHECK_STR(strbuf_text(&out), "branches, branch-misses");
    strbuf_clear(&out);
    CHECK_INT(str_nearest("zzzzzz", names, 4, 3, &out), 0);
}

TEST(formats)
{
    char b[40];
    CHECK_STR(format_thousands(0, b, sizeof(b)), "0");
    CHECK_STR(format_thousands(999, b, sizeof(b)), "999");
    CHECK_STR(format_thousands(1660888, b, sizeof(b)), "1,660,888");
    CHECK_STR(format_thousands(UINT64_MAX, b, sizeof(b)), "18,446,744,073,709,551,615");
    CHECK_STR(format_duration(1234, b, sizeof(b)), "1.23 µs");
    CHECK_STR(format_duration(999.9, b, sizeof(b)), "1.00 µs");
    CHECK_STR(format_duration(45.6e6, b, sizeof(b)), "45.6 ms");
    CHECK_STR(format_bytes(512, b, sizeof(b)), "512 B");
    CHECK_STR(format_bytes(1536, b, sizeof(b)), "1.50 KiB");
}

TEST(hostile_text_is_made_safe)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    const char text[] = "a\033[2Jb\xff\xc3\xa9\xc2\x9b\xe2\x80\xae.";
    strbuf_put_safe(&out, text, sizeof(text) - 1, 100);
    CHECK_STR(strbuf_text(&out), "a\\x1b[2Jb\\xffé\\xc2\\x9b\\xe2\\x80\\xae.");
    strbuf_clear(&out);
    strbuf_put_safe(&out, "abcdef", 6, 3);
    CHECK_STR(strbuf_text(&out), "abc…");
}

TEST(commands_are_quoted)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    char *argv[] = {"sh", "-c", "echo 'x' $y", "", "plain=1", NULL};
    strbuf_put_command(&out, argv);
    CHECK_STR(strbuf_text(&out), "sh -c 'echo '\\''x'\\'' $y' '' plain=1");
}
