/* SPDX-License-Identifier: MIT */
/* The two checkers of histories, against known ones and against each other. */
#include "linear.h"
#include "test.h"

#include <stdlib.h>

#define PUSH(t, v, s, e)                                               \
    {                                                                  \
        .thread = t, .is_push = true, .value = v, .start = s, .end = e \
    }
#define POP(t, v, s, e)                                                               \
    {                                                                                 \
        .thread = t, .value = v, .failed = (v) == LINEAR_FAILED, .start = s, .end = e \
    }

/* Both must say the same. */
static bool is_queue(struct linear_operation *o, size_t count)
{
    unsigned counts[LINEAR_THREADS] = {0};
    struct linear_operation copy[64];
    for (size_t i = 0; i < count; i++)
        o[i].index = counts[o[i].thread]++;
    linear_order(o, count);
    memcpy(copy, o, count * sizeof(*o));
    bool exact = linear_check(o, count, 0);
    const char *problem = linear_check_long(copy, count);
    if (exact != !problem)
        test_fail(__FILE__, __LINE__, "exact says %s, the long check %s", exact ? "good" : "wrong",
                  problem ? problem : "good");
    return exact;
}

#define IS_QUEUE(...)                                  \
    is_queue((struct linear_operation[]){__VA_ARGS__}, \
             sizeof((struct linear_operation[]){__VA_ARGS__}) / sizeof(struct linear_operation))

TEST(known_histories)
{
    CHECK(IS_QUEUE(PUSH(0, 1, 0, 1), PUSH(0, 2, 2, 3), POP(1, 1, 4, 5), POP(1, 2, 6, 7)));
    CHECK(!IS_QUEUE(PUSH(0, 1, 0, 1), PUSH(0, 2, 2, 3), POP(1, 2, 4, 5), POP(1, 1, 6, 7)));
    CHECK(IS_QUEUE(PUSH(0, 1, 0, 3), PUSH(2, 2, 1, 2), POP(1, 2, 4, 5), POP(1, 1, 6, 7)));
    CHECK(!IS_QUEUE(PUSH(0, 1, 0, 1), POP(1, LINEAR_FAILED, 2, 3), POP(1, 1, 4, 5)));
    CHECK(IS_QUEUE(PUSH(0, 1, 0, 3), POP(1, LINEAR_FAILED, 2, 4), POP(1, 1, 5, 6)));
    CHECK(!IS_QUEUE(PUSH(0, 1, 0, 1), POP(1, 1, 2, 3), POP(2, 1, 2, 3)));
    CHECK(!IS_QUEUE(POP(1, 1, 0, 1), PUSH(0, 1, 2, 3)));
    CHECK(!IS_QUEUE(PUSH(0, 1, 0, 1), PUSH(0, 2, 2, 3), POP(1, 2, 4, 5)));
    /* Never empty, though no single item was there all the while. */
    CHECK(!IS_QUEUE(PUSH(0, 1, 0, 1), PUSH(0, 2, 4, 5), POP(1, 1, 6, 9),
                    POP(2, LINEAR_FAILED, 2, 8), POP(1, 2, 12, 13)));
}

static uint64_t state = 12345;
static unsigned dice(unsigned sides)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(state >> 33) % sides;
}

/* A true history with random overlaps, then with one value moved. */
TEST(both_checkers_agree_on_random_histories)
{
    unsigned good = 0, wrong = 0;
    for (unsigned round = 0; round < 4000; round++) {
        struct linear_operation o[24];
        uint64_t queue[24], next = 1, time[4] = {1, 1, 1, 1}, at = 1;
        size_t head = 0, tail = 0;
        for (unsigned i = 0; i < 16; i++) {
            unsigned t = dice(4);
            bool push = dice(2);
            at += 2;
            uint64_t earliest = time[t] > at - 8 || at < 8 ? time[t] : at - 8;
            uint64_t start = earliest + dice((unsigned)(at - earliest) + 1), end = at + dice(6);
            start = start < at ? start : at;
            time[t] = end + 1;
            at = at > end ? at : at;
            uint64_t value = push ? next++ : head < tail ? queue[head++] : LINEAR_FAILED;
            if (push)
                queue[tail++] = value;
            o[i] = (struct linear_operation){.thread = t,
                                             .is_push = push,
                                             .value = value,
                                             .failed = value == LINEAR_FAILED,
                                             .start = start,
                                             .end = end};
            if (time[t] > at)
                at = time[t];
        }
        if (round % 2) {
            /* Two pops change their results. */
            unsigned a = dice(16), b = dice(16);
            if (!o[a].is_push && !o[b].is_push) {
                struct linear_operation swap = o[a];
                o[a].value = o[b].value;
                o[a].failed = o[b].failed;
                o[b].value = swap.value;
                o[b].failed = swap.failed;
            }
        }
        *(is_queue(o, 16) ? &good : &wrong) += 1;
    }
    CHECK(good > 1000);
    CHECK(wrong > 50);
}
