/* SPDX-License-Identifier: MIT */
/* What `go test -bench` prints: "BenchmarkFib/n=10-8   1000   1234 ns/op   16 B/op   2 allocs/op".
 * The number of CPUs behind the name's last dash is not part of the name. */
#include "bench/printed/printed.h"
#include "bench/printed/span.h"

#include <ctype.h>
#include <errno.h>

/* Without "-8". */
static size_t name_length(struct span name)
{
    size_t at = name.length;
    while (at && isdigit((unsigned char)name.at[at - 1]))
        at--;
    return at && at < name.length && name.at[at - 1] == '-' ? at - 1 : name.length;
}

static int take_line(struct printed_results *results, struct span line, struct error *err)
{
    struct span name, count, value, unit;
    if (!span_starts(line, "Benchmark") || !span_word(&line, &name) || !span_word(&line, &count))
        return 0;
    while (span_word(&line, &value) && span_word(&line, &unit)) {
        double ns;
        if (!span_is(unit, "ns/op") || !span_number(&value, &ns) || value.length)
            continue;
        struct printed_result *r = printed_results_get(results, name.at, name_length(name));
        return printed_add(r, ns, err);
    }
    return 0;
}

int printed_go_parse(struct printed_results *results, const char *text, size_t length,
                     struct error *err)
{
    struct span rest = {text, length}, line;
    int r = 0;
    while (r == 0 && span_line(&rest, &line))
        r = take_line(results, line, err);
    if (r == 0 && !results->count)
        return error_set(err, -ENODATA, "there is no line 'Benchmark… N … ns/op' in it");
    return r;
}
