// SPDX-License-Identifier: MIT
// shaped ROUNDS: work in helpers that a compiler inlines, clones or leaves alone, so that one
// source gives differently shaped programs: built with and without optimization, and with RENAMED a
// function under another name at the same line.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

static inline uint64_t stir(uint64_t x)
{
    x ^= x >> 31;
    x *= 0x9e3779b97f4a7c15ULL;
    return x ^ (x >> 29);
}

template <typename T> static T fold_all(const std::vector<T> &values, T start)
{
    for (const T &value : values)
        start = stir(start + value);
    return start;
}

#ifdef RENAMED
#define SPIN_NAME turn_around
#else
#define SPIN_NAME spin_around
#endif
__attribute__((noinline)) uint64_t SPIN_NAME(uint64_t x);
uint64_t SPIN_NAME(uint64_t x)
{
    for (int i = 0; i < 4000; i++)
        x = x * 6364136223846793005ULL + 1442695040888963407ULL + (x >> 40);
    return x;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 1000;
    std::vector<uint64_t> values(2000, 7);
    uint64_t x = 1;
    for (long i = 0; i < rounds; i++)
        x = SPIN_NAME(fold_all(values, x));
    printf("%d\n", x == 0);
    return 0;
}
