// SPDX-License-Identifier: MIT
// A C++ program with deep, varied call paths and much inlined code: it parses expressions into
// trees, evaluates them, keeps the results in maps, sorts them, matches them with regular
// expressions and prints them, for so many seconds of CPU time.  bench/report-speed records it.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

namespace calc
{

struct node {
    virtual ~node() = default;
    virtual double value(double x) const = 0;
    virtual size_t depth() const = 0;
};

using tree = std::unique_ptr<node>;

struct number final : node {
    explicit number(double v) : v(v)
    {
    }
    double value(double) const override
    {
        return v;
    }
    size_t depth() const override
    {
        return 1;
    }
    double v;
};

struct variable final : node {
    double value(double x) const override
    {
        return x;
    }
    size_t depth() const override
    {
        return 1;
    }
};

template <typename Operation> struct binary final : node {
    binary(tree l, tree r) : left(std::move(l)), right(std::move(r))
    {
    }
    double value(double x) const override
    {
        return Operation()(left->value(x), right->value(x));
    }
    size_t depth() const override
    {
        return 1 + std::max(left->depth(), right->depth());
    }
    tree left, right;
};

struct parser {
    const char *at;

    tree sum()
    {
        tree left = product();
        while (*at == '+' || *at == '-') {
            char c = *at++;
            tree right = product();
            left = c == '+' ? make<std::plus<double>>(std::move(left), std::move(right))
                            : make<std::minus<double>>(std::move(left), std::move(right));
        }
        return left;
    }

    tree product()
    {
        tree left = factor();
        while (*at == '*') {
            at++;
            left = make<std::multiplies<double>>(std::move(left), factor());
        }
        return left;
    }

    tree factor()
    {
        if (*at == '(') {
            at++;
            tree inner = sum();
            at++;
            return inner;
        }
        if (*at == 'x') {
            at++;
            return std::make_unique<variable>();
        }
        double v = 0;
        while (*at >= '0' && *at <= '9')
            v = v * 10 + (*at++ - '0');
        return std::make_unique<number>(v);
    }

    template <typename Operation> static tree make(tree l, tree r)
    {
        return std::make_unique<binary<Operation>>(std::move(l), std::move(r));
    }
};

} // namespace calc

static uint64_t state = 88172645463325252ULL;

static unsigned draw(unsigned below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<unsigned>(state % below);
}

static void write_expression(std::string &out, int depth)
{
    if (depth == 0 || draw(6) == 0) {
        out += draw(2) ? "x" : std::to_string(draw(1000));
        return;
    }
    out += '(';
    write_expression(out, depth - 1);
    out += "+-*"[draw(3)];
    write_expression(out, depth - 1);
    out += ')';
}

struct entry {
    std::string text;
    double value;
    size_t depth;
};

static void keep(std::map<std::string, entry> &ordered, std::unordered_map<size_t, int> &depths,
                 entry e)
{
    depths[e.depth]++;
    ordered.insert_or_assign(e.text.substr(0, 12), std::move(e));
    if (ordered.size() > 2000)
        ordered.erase(ordered.begin());
}

static double rank(const std::map<std::string, entry> &ordered)
{
    std::vector<const entry *> list;
    list.reserve(ordered.size());
    for (const auto &pair : ordered)
        list.push_back(&pair.second);
    std::sort(list.begin(), list.end(), [](const entry *a, const entry *b) {
        return a->depth != b->depth ? a->depth < b->depth : a->value < b->value;
    });
    std::stable_sort(list.begin(), list.end(), [](const entry *a, const entry *b) {
        return a->text.size() < b->text.size();
    });
    return list.empty() ? 0 : list[list.size() / 2]->value;
}

static size_t describe(const std::map<std::string, entry> &ordered, const std::regex &pattern)
{
    std::ostringstream out;
    std::function<bool(const entry &)> wanted = [&](const entry &e) {
        return std::regex_search(e.text.begin(), e.text.begin() + std::min<long>(40, e.text.size()),
                                 pattern);
    };
    for (const auto &[key, e] : ordered)
        if (e.depth % 16 == 3 && wanted(e))
            out << key << '=' << e.value << ' ';
    return out.str().size();
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 1, result = 0;
    std::map<std::string, entry> ordered;
    std::unordered_map<size_t, int> depths;
    const std::regex pattern("[(]([0-9]+|x)[-+]([0-9]+)[)][*]");
    clock_t end = static_cast<clock_t>(seconds * CLOCKS_PER_SEC);
    for (unsigned round = 0; round % 16 != 0 || std::clock() < end; round++) {
        std::string text;
        write_expression(text, 3 + static_cast<int>(draw(6)));
        calc::parser p{text.c_str()};
        calc::tree t = p.sum();
        double value = 0;
        for (int x = 0; x < 20; x++)
            value += t->value(x);
        keep(ordered, depths, {std::move(text), value, t->depth()});
        if (round % 64 == 0)
            result += rank(ordered);
        if (round % 256 == 0)
            result += static_cast<double>(describe(ordered, pattern));
    }
    printf("%g %zu\n", result, depths.size());
    return 0;
}
