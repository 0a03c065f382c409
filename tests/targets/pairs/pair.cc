// SPDX-License-Identifier: MIT
// Pairs of C++ programs that differ in one known way: see pair.c.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <memory>
#include <vector>

#ifdef NEW
#define PICK(base, fresh) (fresh)
#else
#define PICK(base, fresh) (base)
#endif
#define NOINLINE __attribute__((noinline))

enum { TEMPLATES = 1, LAMBDAS, VIRTUALS };
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

template <int SHIFT, class T> static inline T work(T turns)
{
    uint64_t x = 88172645463325252ull + sink;
    for (T i = 0; i < turns; i++) {
        x ^= x << SHIFT;
        x ^= x >> 7;
        x ^= x << 17;
    }
    return T(x);
}

template <class T> NOINLINE void parse(T turns)
{
    sink = sink + uint64_t(work<13>(turns));
}

template <class T> NOINLINE void render(T turns)
{
    sink = sink + uint64_t(work<13>(turns)) + 1;
}

template <class F> static inline void each(const std::vector<long> &v, F f)
{
    for (long x : v)
        f(x);
}

NOINLINE void gather(const std::vector<long> &v)
{
    each(v, [](long x) { sink = sink + uint64_t(work<13>(x)); });
}

NOINLINE void reduce(const std::vector<long> &v)
{
    each(v, [](long x) { sink = sink + uint64_t(work<13>(x)) + 1; });
}

struct shape {
    virtual ~shape() = default;
    virtual void draw(long turns) = 0;
};

struct square : shape {
    NOINLINE void draw(long turns) override
    {
        sink = sink + uint64_t(work<13>(turns));
    }
};

struct circle : shape {
    NOINLINE void draw(long turns) override
    {
        sink = sink + uint64_t(work<11>(turns));
    }
};

int main(int argc, char **)
{
    if (CASE == TEMPLATES) {
        parse<long>(20 * ms);
        parse<int>(10 * int(ms));
        timed([] { render<long>(PICK(8, 28) * ms); });
    } else if (CASE == LAMBDAS) {
        gather(std::vector<long>(10, 2 * ms));
        timed([] { reduce(std::vector<long>(PICK(5, 16), 2 * ms)); });
    } else {
        std::unique_ptr<shape> a(new square), b(new circle);
        a->draw(20 * ms);
        timed([&] { b->draw(PICK(30, 10) * ms); });
    }
    if (argc > 1)
        printf("%.3f\n", took_ms);
    return 0;
}
