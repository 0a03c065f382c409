// SPDX-License-Identifier: MIT
// Sorting a vector, and finding a word in a map.
//
//   c++ -O2 -std=c++17 $(pkg-config --cflags assay) bench.cpp -o bench && assay bench ./bench
#include <algorithm>
#include <assay.h>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

static std::vector<int> shuffled(std::size_t n)
{
    std::vector<int> values(n);
    std::iota(values.begin(), values.end(), 0);
    std::uint64_t state = 1;
    for (std::size_t i = n; i > 1; i--) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        std::swap(values[i - 1], values[(state >> 33) % i]);
    }
    return values;
}

ASSAY_BENCH(sort, ASSAY_RANGE(n, 1000, 100000, 10))
{
    const auto data = shuffled(static_cast<std::size_t>(n));
    auto work = data;
    ASSAY_LOOP_WITH(work = data) { std::sort(work.begin(), work.end()); }
    ASSAY_CHECK(std::is_sorted(work.begin(), work.end()));
    ASSAY_ITEMS(n);
    ASSAY_COMPLEXITY(n, "n log n");
}

template <typename Map> static void find_in(assay_run *assay)
{
    Map map;
    for (int i = 0; i < 1000; i++)
        map["key " + std::to_string(i)] = i;
    const std::string key = "key 777";
    ASSAY_LOOP { ASSAY_KEEP(map.find(key)->second); }
}

ASSAY_BENCH(find_in_map) { find_in<std::map<std::string, int>>(assay); }
ASSAY_BENCH(find_in_unordered_map) { find_in<std::unordered_map<std::string, int>>(assay); }

ASSAY_MAIN
