// SPDX-License-Identifier: MIT
// C++ with templates, inlined functions within each other, lambdas, local classes and virtual
// calls.  inlines ROUNDS: sorts, hashes and walks a tree that often (default 200).
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace shapes {

template <typename T, int Shift> struct Mixer {
    static inline T step(T value) { return (value ^ (value >> Shift)) * T(0x9e3779b97f4a7c15ull); }
    static __attribute__((always_inline)) inline T twice(T value) { return step(step(value)); }
};

class Shape {
public:
    virtual ~Shape() = default;
    virtual double area(double scale) const = 0;
};

class Square final : public Shape {
public:
    explicit Square(double side) : side_(side) {}
    double area(double scale) const override { return side_ * side_ * scale; }

private:
    double side_;
};

namespace {
template <typename F> __attribute__((always_inline)) inline unsigned long apply(F function, int count)
{
    unsigned long sum = 0;
    for (int i = 0; i < count; i++)
        sum += function(i);
    return sum;
}
} // namespace

__attribute__((noinline)) unsigned long hash_words(const std::vector<std::string> &words)
{
    unsigned long sum = 0;
    for (const auto &word : words)
        for (char c : word)
            sum = Mixer<unsigned long, 29>::twice(sum + (unsigned char)c);
    return sum;
}

__attribute__((noinline)) unsigned long count_words(const std::vector<std::string> &words)
{
    std::map<std::string, int> counts;
    for (const auto &word : words)
        counts[word]++;
    return apply([&](int i) { return (unsigned long)counts.size() * i; }, 10);
}

__attribute__((noinline)) unsigned long sort_numbers(unsigned long seed)
{
    struct Descending {
        bool operator()(unsigned long a, unsigned long b) const { return a > b; }
    };
    std::vector<unsigned long> numbers(1000);
    for (auto &number : numbers)
        number = seed = Mixer<unsigned long, 31>::step(seed + 1);
    std::sort(numbers.begin(), numbers.end(), Descending());
    return numbers[numbers.size() / 2];
}

} // namespace shapes

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? std::atoi(argv[1]) : 200;
    std::vector<std::string> words;
    for (int i = 0; i < 500; i++)
        words.push_back("word" + std::to_string(i * 7919 % 101));
    unsigned long sum = 0;
    shapes::Square square(rounds);
    const shapes::Shape &shape = square;
    for (int i = 0; i < rounds; i++) {
        sum += shapes::hash_words(words) + shapes::count_words(words) + shapes::sort_numbers(sum);
        sum += (unsigned long)shape.area(i);
    }
    std::printf("%lu\n", sum);
    return 0;
}
