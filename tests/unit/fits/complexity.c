/* SPDX-License-Identifier: MIT */
#include "fits/complexity.h"
#include "test.h"

static struct complexity fit(const double *n, const double *time, size_t count, const char *law)
{
    struct complexity c;
    struct error err;
    CHECK(complexity_fit(n, time, count, law, &c, &err) == 0);
    return c;
}

TEST(a_law_that_holds_is_certain)
{
    const double n[] = {64, 512, 4096, 32768}, time[] = {6.5, 51, 411, 3270};
    struct complexity c = fit(n, time, 4, "n");
    CHECK(c.holds && c.is_certain);
    c = fit(n, time, 4, "n^2");
    CHECK(!c.holds && c.is_certain);
}

TEST(three_values_on_a_bend_are_not)
{
    const double n[] = {64, 512, 4096}, time[] = {1.4, 2, 40};
    struct complexity c = fit(n, time, 3, "n");
    CHECK(c.holds && !c.is_certain);
}
