// SPDX-License-Identifier: MIT
// More pairs of C++ programs that differ in one known way: see pair.c.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <map>
#include <string>
#include <vector>

#ifdef NEW
#define PICK(base, fresh) (fresh)
#else
#define PICK(base, fresh) (base)
#endif
#define NOINLINE __attribute__((noinline))

enum { INSERTED = 1, COMPARES, STRINGS, GENERICS, SAME_TREE, JUMPS, THROWS };
static const long ms = 240000;
static volatile uint64_t sink;
static double took_ms;

static double now_ms()
{
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return double(t.tv_sec) * 1e3 + double(t.tv_nsec) / 1e6;
}

template <class F> static inline void timed(F f)
{
    double from = now_ms();
    f();
    took_ms += now_ms() - from;
}

static inline uint64_t spin(long turns)
{
    uint64_t x = 88172645463325252ull + sink;
    for (long i = 0; i < turns; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    return x;
}

template <class F> NOINLINE void apply(F f, long turns)
{
    f(turns);
}

// A lambda more before the others: theirs numbers move by one.
NOINLINE void steps()
{
#ifdef NEW
    auto fresh = [](long turns) { sink = sink + spin(turns) + 100; };
    apply(fresh, ms);
#endif
    auto first = [](long turns) { sink = sink + spin(turns) + 1; };
    auto second = [](long turns) { sink = sink + spin(turns) * 3 + 2; };
    auto third = [](long turns) { sink = sink + (spin(turns) ^ 77); };
    apply(first, 10 * ms);
    timed([&] { apply(second, PICK(10, 25) * ms); });
    apply(third, 14 * ms);
}

struct record {
    std::string name;
    long number;
};

static bool by_name(const record &a, const record &b)
{
    return a.name < b.name;
}

static bool by_number(const record &a, const record &b)
{
    return a.number < b.number;
}

NOINLINE void sort_records(std::vector<record> v)
{
    std::sort(v.begin(), v.end(), PICK(by_number, by_name));
    sink = sink + uint64_t(v[0].number);
}

NOINLINE std::string join(const std::vector<record> &v, bool front)
{
    std::string all;
    for (const record &r : v)
        all = front ? r.name + all : all.append(r.name);
    return all;
}

template <class T, int N> struct filter {
    NOINLINE void run(long turns)
    {
        sink = sink + spin(turns) * N + sizeof(T);
    }
};

// Called through a pointer, and what they call leaves no trace of them on the stack.
NOINLINE void draw_line(long turns)
{
    sink = sink + spin(turns) * 5;
}

struct shape {
    virtual void draw(long turns) = 0;
    virtual ~shape()
    {
    }
};
struct square : shape {
    void draw(long turns) override;
};
struct circle : shape {
    void draw(long turns) override;
};
struct star : shape {
    void draw(long turns) override;
};

void square::draw(long turns)
{
    draw_line(turns * 2 + 1);
}

void circle::draw(long turns)
{
    draw_line(PICK(turns + 1, 4 * turns + 3));
}

void star::draw(long turns)
{
    draw_line(turns + 7);
}

NOINLINE void draw_all(shape *const *shapes, long turns)
{
    shapes[0]->draw(turns);
    timed([&] { shapes[1]->draw(turns); });
    shapes[2]->draw(turns);
}

static std::vector<record> records(long count)
{
    std::vector<record> v;
    for (long i = 0; i < count; i++)
        v.push_back(
            {"a rather long name of a record " + std::to_string(i * 7919 % count), i * 31 % count});
    return v;
}

NOINLINE void fill_tree(long count)
{
    std::map<long, std::string> tree;
    for (long i = 0; i < count; i++)
        tree[i * 7919 % count] = "value " + std::to_string(i);
    sink = sink + tree.size();
}

NOINLINE long parse_number(long i)
{
    if (i % 3 == 0 && PICK(false, true))
        throw i;
    return i % 3 == 0 ? -1 : i;
}

NOINLINE void parse_all(long count)
{
    for (long i = 0; i < count; i++) {
        try {
            sink = sink + uint64_t(parse_number(i));
        } catch (long) {
            sink = sink + 1;
        }
    }
}

int main(int argc, char **)
{
    if (CASE == INSERTED) {
        steps();
    } else if (CASE == COMPARES) {
        auto v = records(20000);
        fill_tree(20000);
        timed([&] { sort_records(v); });
    } else if (CASE == STRINGS) {
        auto v = records(4000);
        fill_tree(20000);
        timed([&] { sink = sink + join(v, PICK(false, true)).size(); });
    } else if (CASE == GENERICS) {
        filter<int, 3>().run(10 * ms);
        timed([] { filter<long, 3>().run(PICK(8, 20) * ms); });
        filter<char, 5>().run(12 * ms);
    } else if (CASE == JUMPS) {
        square one;
        circle two;
        star three;
        shape *const shapes[] = {&one, &two, &three};
        for (int i = 0; i < 10; i++)
            draw_all(shapes, ms);
    } else if (CASE == THROWS) {
        fill_tree(20000);
        timed([] { parse_all(60000); });
    } else {
        fill_tree(60000);
        sort_records(records(10000));
    }
    if (argc > 1)
        printf("%.3f\n", took_ms);
    return 0;
}
