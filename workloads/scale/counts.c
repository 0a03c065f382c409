/* SPDX-License-Identifier: MIT */
/* See counts.h. */
#include "counts.h"
#include "base/memory.h"
#include "base/strings.h"

#include <errno.h>
#include <math.h>

void counts_done(struct counts *c)
{
    free(c->items);
    *c = (struct counts){0};
}

static int parse_share_of_cpus(const char *text, unsigned cpu_count, unsigned *ret_count,
                               struct error *err)
{
    CLEANUP(memory_freep) char *number = memory_strndup(text, strlen(text) - 1);
    double share;
    int code = parse_double(number, &share, err);
    if (code < 0)
        return code;
    if (!(share > 0 && share <= 10000))
        return error_set(err, -EINVAL, "'%s': a percentage of the CPUs must be above 0, e.g. 100%%",
                         text);
    unsigned count = (unsigned)floor(cpu_count * share / 100 + 0.5);
    *ret_count = count ? count : 1;
    return 0;
}

static int parse_one(const char *text, unsigned cpu_count, unsigned *ret_count, struct error *err)
{
    uint64_t value = 0;
    if (str_eq(text, "N")) {
        *ret_count = cpu_count;
        return 0;
    }
    if (str_has_suffix(text, "%"))
        return parse_share_of_cpus(text, cpu_count, ret_count, err);
    if (parse_u64(text, &value, NULL) < 0)
        return error_set(
            err, -EINVAL,
            "'%s' is not a number of tasks: use 4, 50%%, N for all CPUs, 1..N, or 1,2,4", text);
    if (value == 0)
        return error_set(err, -EINVAL, "at least one task is needed");
    *ret_count = value > 1000000 ? 1000000 : (unsigned)value;
    return 0;
}

static void add(struct counts *c, unsigned value)
{
    size_t at = c->count;
    for (size_t i = 0; i < c->count; i++)
        if (c->items[i] == value)
            return;
    ARRAY_PUSH(c->items, c->count, c->capacity) = value;
    for (; at > 0 && c->items[at - 1] > value; at--)
        c->items[at] = c->items[at - 1];
    c->items[at] = value;
}

static int check_most(unsigned value, unsigned cpu_count, unsigned most, struct error *err)
{
    if (value <= most)
        return 0;
    if (most == cpu_count)
        return error_set(err, -EINVAL,
                         "%u tasks need as many CPUs, but only %u can be used; --oversubscribe "
                         "lets tasks share CPUs",
                         value, cpu_count);
    return error_set(err, -EINVAL, "%u tasks is more than the maximum of %u", value, most);
}

static int parse_part(char *part, unsigned cpu_count, unsigned most, struct counts *c,
                      struct error *err)
{
    char *dots = strstr(part, "..");
    unsigned first = 0, last = 0;
    if (dots)
        *dots = '\0';
    int code = parse_one(part, cpu_count, &first, err);
    last = first;
    if (code == 0 && dots)
        code = parse_one(dots + 2, cpu_count, &last, err);
    if (code == 0)
        code = check_most(last > first ? last : first, cpu_count, most, err);
    if (code < 0)
        return code;
    if (first > last)
        return error_set(err, -EINVAL, "the range %u..%u is empty: start with the smaller number",
                         first, last);
    for (unsigned value = first; value <= last; value++)
        add(c, value);
    return 0;
}

int counts_parse(const char *text, unsigned cpu_count, unsigned most, struct counts *ret_counts,
                 struct error *err)
{
    struct counts c = {0};
    CLEANUP(memory_freep) char *copy = memory_strdup(text);
    char *rest = copy, *part;
    int code = 0;
    while (code == 0 && (part = strsep(&rest, ",")))
        code = parse_part(part, cpu_count, most, &c, err);
    if (code < 0) {
        counts_done(&c);
        return error_wrap(err, code, "-t %s", text);
    }
    *ret_counts = c;
    return 0;
}
