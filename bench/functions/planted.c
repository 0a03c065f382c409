/* SPDX-License-Identifier: MIT */
/* A function of SIZE equal steps: 1000 and 1010 of them differ by 1 %. */
#include <assay.h>

static uint64_t steps(uint64_t x)
{
    for (int i = 0; i < SIZE; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(x));
    }
    return x;
}

ASSAY_BENCH(planted)
{
    uint64_t x = 1;
    ASSAY_LOOP
    {
        x = steps(x);
    }
    ASSAY_KEEP(x);
}
