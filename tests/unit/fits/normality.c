/* SPDX-License-Identifier: MIT */
#include "fits/normality.h"
#include "numbers/random.h"
#include "test.h"

#include <math.h>

enum { COUNT = 400, TRIALS = 100 };

/* Of how many samples it says so: normal ones, or with one more property. */
static size_t passing(int kind, size_t count)
{
    struct rng rng;
    size_t passed = 0;
    rng_seed(&rng, 31);
    for (int trial = 0; trial < TRIALS; trial++) {
        double values[COUNT];
        for (size_t i = 0; i < count; i++) {
            double z = rng_normal(&rng), a = rng_normal(&rng), b = rng_normal(&rng);
            values[i] = kind == 0   ? 1e6 + 1e-3 * z
                        : kind == 1 ? z / sqrt(a * a + b * b + rng_exponential(&rng))
                        : kind == 2 ? rng_exponential(&rng)
                                    : (i < count / 5 ? 3 * z : z);
        }
        passed += look_normal(values, count);
    }
    return passed;
}

TEST(normal_noise_passes_and_others_do_not)
{
    CHECK(passing(0, COUNT) >= 95);
    for (int kind = 1; kind <= 3; kind++)
        CHECK_INT(passing(kind, COUNT), 0);
}

TEST(few_and_equal_values_do_not_pass)
{
    static double values[COUNT];
    CHECK_INT(passing(0, NORMALITY_VALUES_MIN - 1), 0);
    CHECK(!look_normal(values, COUNT));
    CHECK(!look_normal(values, 0));
}
