/* SPDX-License-Identifier: MIT */
/*
 * What Criterion.rs prints: "fib 20   time:   [24.9 µs 25.0 µs 25.1 µs]", where a long name has a
 * line of its own before.  The value in the middle is the estimate.
 */
#include "bench/printed/printed.h"
#include "bench/printed/span.h"

#include <errno.h>

/* "[24.9 µs 25.0 µs 25.1 µs]": the middle one in ns; false when it is no such thing. */
static bool middle(struct span s, double *ret_ns)
{
    double ns[3];
    s = span_trim(s);
    if (!span_starts(s, "[") || s.at[s.length - 1] != ']')
        return false;
    s.at++;
    s.length -= 2;
    for (size_t i = 0; i < 3; i++) {
        struct span number, unit;
        double value;
        if (!span_word(&s, &number) || !span_word(&s, &unit) || !span_number(&number, &value) ||
            number.length)
            return false;
        ns[i] = value * printed_unit_ns(unit.at, unit.length);
        if (ns[i] <= 0)
            return false;
    }
    *ret_ns = ns[1];
    return true;
}

int printed_criterion_parse(struct printed_results *results, const char *text, size_t length,
                            struct error *err)
{
    struct span rest = {text, length}, line, before = {0};
    int r = 0;
    while (r == 0 && span_line(&rest, &line)) {
        const char *at = span_find(line, "time:");
        double ns;
        if (!at) {
            before = span_trim(line);
            continue;
        }
        struct span name = span_trim((struct span){line.at, (size_t)(at - line.at)});
        struct span value = {at + 5, line.length - (size_t)(at + 5 - line.at)};
        name = name.length ? name : before;
        if (name.length && middle(value, &ns))
            r = printed_add(printed_results_get(results, name.at, name.length), ns, err);
    }
    if (r == 0 && !results->count)
        return error_set(err, -ENODATA, "there is no line 'NAME time: [… … …]' in it");
    return r;
}
