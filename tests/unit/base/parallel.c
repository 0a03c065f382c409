/* SPDX-License-Identifier: MIT */
/* Jobs divided among threads: each is done once, by one of as many as were asked for. */
#include "base/parallel.h"
#include "test.h"

#include <stdatomic.h>

enum { COUNT = 10000 };

struct tally {
    atomic_uint done[COUNT];
    atomic_size_t largest_who;
};

static void note(void *context, size_t index, size_t who)
{
    struct tally *t = context;
    atomic_fetch_add(&t->done[index], 1);
    size_t largest = atomic_load(&t->largest_who);
    while (who > largest && !atomic_compare_exchange_weak(&t->largest_who, &largest, who))
        ;
}

TEST(every_job_is_done_once)
{
    static const size_t widths[] = {0, 1, 2, 7, 1000}, counts[] = {0, 1, 2, COUNT};
    for (size_t w = 0; w < sizeof(widths) / sizeof(widths[0]); w++)
        for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
            static struct tally t;
            for (size_t i = 0; i < COUNT; i++)
                atomic_store(&t.done[i], 0);
            atomic_store(&t.largest_who, 0);
            parallel_each(counts[c], widths[w], note, &t);
            size_t most = widths[w] < PARALLEL_WIDTH_MAX ? widths[w] : PARALLEL_WIDTH_MAX;
            for (size_t i = 0; i < COUNT; i++)
                if (atomic_load(&t.done[i]) != (i < counts[c]))
                    test_fail(__FILE__, __LINE__, "job %zu of %zu: done %u times", i, counts[c],
                              atomic_load(&t.done[i]));
            CHECK(atomic_load(&t.largest_who) < (most ? most : 1));
        }
}

TEST(there_is_at_least_one_thread)
{
    CHECK(parallel_width() >= 1 && parallel_width() <= PARALLEL_WIDTH_MAX);
}
