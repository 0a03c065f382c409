/* SPDX-License-Identifier: MIT */
/* A profile's life, and the small things that belong to none of its parts: see profile.h. */
#include "profile/profile.h"
#include "base/memory.h"
#include "profile/fields.h"
#include "profile/load.h"

#include <errno.h>
#include <stdlib.h>

void profile_free(struct profile *p)
{
    if (!p)
        return;
    calls_done(&p->calls);
    stacks_done(&p->stacks);
    tasks_done(&p->tasks);
    symbols_free(p->symbols);
    profile_given_free(p->given);
    profile_fields_free(p->fields);
    free(p->names);
    arena_done(&p->arena);
    free(p->location_lists);
    free(p->location_frames);
    free(p->called);
    free(p->call_nodes);
    free(p->samples);
    free(p->wakers);
    free(p->events);
    free(p->path);
    free(p);
}

double profile_effective_samples(const struct profile_event *event)
{
    double total = (double)event->weight;
    return event->weight_squares > 0 ? total * total / event->weight_squares : 0;
}

/* A moment in seconds, "+" before one since the first sample; "" is the open end. */
static int parse_moment(const char *text, size_t length, uint64_t open_ns, bool *relative,
                        uint64_t *ret_ns, struct error *err)
{
    char word[64];
    if (length >= sizeof(word))
        return error_set(err, -EINVAL, "'%.20s…' is not a time in seconds", text);
    memcpy(word, text, length);
    word[length] = '\0';
    if (!length) {
        *ret_ns = open_ns;
        return 0;
    }
    *relative = word[0] == '+';
    double seconds;
    if (parse_double(word + *relative, &seconds, err) < 0 || seconds < 0 || seconds > 1e10)
        return error_set(err, -EINVAL, "'%s' is not a time in seconds", word);
    /* Digit by digit: a double would round the nanoseconds of a clock that runs for weeks. */
    char *point = strchr(word, '.');
    uint64_t whole = strtoull(word + *relative, NULL, 10), fraction = 0, unit = 1000000000;
    for (const char *c = point ? point + 1 : ""; *c >= '0' && *c <= '9' && unit > 1; c++) {
        unit /= 10;
        fraction += (uint64_t)(*c - '0') * unit;
    }
    *ret_ns = strpbrk(word, "eE") ? (uint64_t)(seconds * 1e9) : whole * 1000000000 + fraction;
    return 0;
}

static int parse_parts(const char *text, struct profile_filter *filter, struct error *err)
{
    char *end;
    double from = strtod(text, &end), to = from;
    if (*end == '%' && end[1] == '-') {
        const char *rest = end + 2;
        to = strtod(rest, &end);
        if (end == rest)
            *end = '?';
    }
    if (end[0] != '%' || end[1] || !(from >= 0) || !(to <= 100) || !(from < to))
        return error_set(err, -EINVAL, "'%s' is not a part of the recording such as 10%%-20%%",
                         text);
    filter->has_time = filter->time_is_part = true;
    filter->part_from = from / 100;
    filter->part_to = to / 100;
    return 0;
}

int profile_parse_time(const char *text, struct profile_filter *filter, struct error *err)
{
    if (strchr(text, '%')) {
        CLEANUP(memory_freep) char *copy = memory_strdup(text);
        return parse_parts(copy, filter, err);
    }
    const char *comma = strchr(text, ',');
    if (!comma)
        return error_set(err, -EINVAL,
                         "'%s' is not a time range: write START,END in seconds (either may be "
                         "omitted), +START,+END from the first sample, or 10%%-20%%",
                         text);
    bool from_relative = false, to_relative = false;
    uint64_t from, to;
    int r = parse_moment(text, (size_t)(comma - text), 0, &from_relative, &from, err);
    if (r == 0)
        r = parse_moment(comma + 1, strlen(comma + 1), UINT64_MAX, &to_relative, &to, err);
    if (r < 0)
        return r;
    if (from && to != UINT64_MAX && from_relative != to_relative)
        return error_set(err, -EINVAL,
                         "'%s' mixes a time since the first sample with a clock time: put '+' "
                         "before both or neither",
                         text);
    if (from > to)
        return error_set(err, -EINVAL, "'%s' ends before it starts", text);
    filter->has_time = true;
    filter->time_is_relative = from_relative || to_relative;
    filter->time_from_ns = from;
    filter->time_to_ns = to;
    return 0;
}
