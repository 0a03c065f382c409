/* SPDX-License-Identifier: MIT */
/*
 * What criterion prints: "fib 20   time:   [24.9 µs 25.0 µs 25.1 µs]", where a long name has a
 * line of its own before.  The value in the middle is its estimate, the others the bounds of its
 * interval.  They are kept in nanoseconds, because criterion chooses a unit for each.  The single
 * samples are in its directory only (criterion.c).
 */
#include "base/memory.h"
#include "base/strings.h"
#include "harness/formats.h"
#include "harness/lines.h"

static const char mark[] = "time:";

/* "   [24.9 µs 25.0 µs 25.1 µs]". */
static bool estimates_of(const char *text, double *ret_ns)
{
    text += strspn(text, " ");
    if (*text++ != '[')
        return false;
    for (size_t i = 0; i < 3; i++)
        if (!lines_duration(text, &ret_ns[i], &text) || *text != (i == 2 ? ']' : ' '))
            return false;
    return true;
}

/* The name in front of the mark, or else the line before; the caller frees it. */
static char *name_of(const char *line, const char *time, const char *before)
{
    size_t length = (size_t)(time - line);
    while (length && line[length - 1] == ' ')
        length--;
    return length ? memory_strndup(line, length) : memory_strdup(before);
}

/* Calls harness_summary for each line with a time; with NULL it only says whether there is one. */
static bool read_lines(struct harness_results *r, const char *text)
{
    CLEANUP(memory_freep) char *before = memory_strdup("");
    struct lines l = {.at = text};
    while (lines_next(&l)) {
        const char *time = strstr(l.line, mark);
        double ns[3];
        if (!time) {
            harness_set(&before, l.line);
            continue;
        }
        CLEANUP(memory_freep) char *name = name_of(l.line, time, before);
        if (!*name || !estimates_of(time + strlen(mark), ns))
            continue;
        if (!r)
            return true;
        struct harness_benchmark *b = harness_benchmark(r, name);
        harness_summary(b, "estimate", "ns", HARNESS_TIME, ns[1]);
        harness_summary(b, "estimate.low", "ns", HARNESS_TIME, ns[0]);
        harness_summary(b, "estimate.high", "ns", HARNESS_TIME, ns[2]);
    }
    return false;
}

bool criterion_text_is(const char *text)
{
    return read_lines(NULL, text);
}

int criterion_text_read(struct harness_results *r, const char *text, struct error *err)
{
    (void)err;
    read_lines(r, text);
    return 0;
}
