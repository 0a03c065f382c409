// SPDX-License-Identifier: MIT
// The same function under Google Benchmark.
#include <benchmark/benchmark.h>
#include <cstdint>

static std::uint64_t steps(std::uint64_t x)
{
    for (int i = 0; i < SIZE; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(x));
    }
    return x;
}

static void planted(benchmark::State &state)
{
    std::uint64_t x = 1;
    for (auto _ : state)
        benchmark::DoNotOptimize(x = steps(x));
}
BENCHMARK(planted);
BENCHMARK_MAIN();
