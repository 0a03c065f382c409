/* SPDX-License-Identifier: MIT */
#include "base/measured.h"
#include "base/memory.h"
#include "test.h"

#include <math.h>

static void shows(double value, const char *unit, const char *expected)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    strbuf_put_measured(&out, value, unit);
    CHECK_STR(strbuf_text(&out), expected);
}

TEST(units_suit_the_value)
{
    shows(12345678, "ns", "12.35 ms");
    shows(20651993, "bit/s", "20.65 Mbit/s");
    shows(0.02034, "Gbit/s", "20.34 Mbit/s");
    shows(1.5e13, "bit/s", "15,000 Gbit/s");
    shows(12345, "B/s", "12.35 kB/s");
    shows(20480, "KiB/s", "20 MiB/s");
    shows(0.0042, "s", "4.200 ms");
    shows(0.00004, "ms", "40.00 ns");
    shows(0.05, "us", "50.00 ns");
    shows(12345, "us", "12.35 ms");
    shows(-12345, "us", "-12.35 ms");
    shows(0, "bit/s", "0 bit/s");
    shows(123456, "s", "123,456 s");
    shows(2e7, "items/s", "20,000,000 items/s");
    shows(0.01234, "ms/op", "0.0123 ms/op");
    shows(-0.0012345, "", "-0.00123");
    shows(0.1006, "", "0.101");
    shows(NAN, "bit/s", "-");
}

TEST(of_one_the_unit_is_singular)
{
    shows(1, "calls", "1 call");
    shows(2, "calls", "2 calls");
    shows(1, "calls/message", "1 call/message");
    shows(1, "ms", "1 ms");
    shows(1, "x/s", "1 x/s");
    shows(1, "misses", "1 miss");
}

TEST(which_units_scale)
{
    CHECK(measured_scales("ns") && measured_scales("bit/s") && measured_scales("GiB/s"));
    CHECK(!measured_scales("") && !measured_scales("%") && !measured_scales("ops/s"));
}
