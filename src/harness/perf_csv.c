/* SPDX-License-Identifier: MIT */
/*
 * What perf stat -x SEP writes: value, unit, event, perhaps the variance, and more that is not
 * needed; in front of it with -I the time and with -A, --per-core and so on where it was counted.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "base/strings.h"
#include "harness/formats.h"
#include "harness/lines.h"
#include "harness/perf_stat.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <time.h>

static const char separators[] = ",;|\t:";

static bool is_value(const char *field)
{
    double number;
    field += strspn(field, " ");
    return lines_number(field, &number, NULL) || str_has_prefix(field, "<not ");
}

/* The place of the event's name in a line of perf's, 0 when it is none: behind a value and a unit,
 * which is empty or a word. */
static size_t event_at(char **fields, size_t count)
{
    for (size_t at = 2; at < count && at <= 5; at++) {
        const char *unit = fields[at - 1], *event = fields[at];
        if (is_value(fields[at - 2]) && (!*unit || isalpha((unsigned char)*unit)) &&
            isalpha((unsigned char)*event) && count >= at + 3)
            return at;
    }
    return 0;
}

/* Which of the separators it is; 0 when the text is not perf's. */
static char separator_of(const char *text)
{
    for (const char *s = separators; *s; s++) {
        struct lines l = {.at = text};
        char *fields[LINES_WORDS_MAX];
        while (lines_next(&l)) {
            if (!*l.line || *l.line == '#')
                continue;
            if (event_at(fields, lines_fields(l.line, *s, fields)))
                return *s;
            break;
        }
    }
    return 0;
}

/* perf puts no quotes around "cpu/event=0xc5,umask=0x1/": what its commas cut belongs together. */
static size_t join_event(char **fields, size_t at, size_t count, char separator)
{
    const char *slash = strchr(fields[at], '/');
    size_t last = at + 1;
    if (!slash || strchr(slash + 1, '/'))
        return count;
    while (last < count && !strchr(fields[last], '/'))
        last++;
    if (last == count)
        return count;
    for (size_t i = at + 1; i <= last; i++)
        fields[i][-1] = separator;
    memmove(fields + at + 1, fields + last + 1, (count - last - 1) * sizeof(*fields));
    return count - (last - at);
}

bool perf_csv_is(const char *text)
{
    return separator_of(text) != 0;
}

void perf_stat_started(struct harness_results *r, const char *line)
{
    struct tm tm = {.tm_isdst = -1};
    static const char words[] = "# started on ";
    if (str_has_prefix(line, words) && strptime(line + strlen(words), "%a %b %d %T %Y", &tm)) {
        time_t at = mktime(&tm);
        r->measured_at_ns = at > 0 ? (uint64_t)at * NS_PER_S : 0;
    }
}

void perf_stat_put(struct harness_results *r, const char *where, const char *event,
                   const char *unit, const char *value)
{
    double number;
    value += strspn(value, " ");
    bool is_time = str_eq(unit, "msec") || str_eq(unit, "ns");
    struct harness_benchmark *b = harness_benchmark(r, where);
    if (!str_eq(where, "perf stat"))
        harness_param(b, "where", where);
    struct harness_metric *m =
        harness_metric(b, event, unit, is_time || *unit ? HARNESS_COST : HARNESS_COUNT);
    /* One that was not counted in this interval keeps its place. */
    harness_put(m, lines_number(value, &number, NULL) ? number : (double)NAN);
}

/* The processor, core … in front of the value, where perf counted each by itself: one or two
 * fields, a name and how many it has; the time of -I may stand there, too. */
static const char *place_of(char **fields, size_t event, size_t count)
{
    /* Behind the event stands a time or a variance, or the cgroup. */
    const char *behind = event + 1 < count ? fields[event + 1] : "";
    if (isalpha((unsigned char)*behind) || *behind == '/')
        return behind;
    for (size_t back = 3; back <= 4 && back <= event; back++)
        if (isalpha((unsigned char)*fields[event - back]))
            return fields[event - back];
    return "perf stat";
}

int perf_csv_read(struct harness_results *r, const char *text, struct error *err)
{
    struct lines l = {.at = text};
    char *fields[LINES_WORDS_MAX], separator = separator_of(text);
    while (lines_next(&l)) {
        perf_stat_started(r, l.line);
        if (!*l.line || *l.line == '#')
            continue;
        size_t count = lines_fields(l.line, separator, fields), at = event_at(fields, count);
        if (!at && count >= 2) /* a line with a metric only, or a note of perf's */
            continue;
        if (!at)
            return error_set(err, -EINVAL, "line %zu is not one of perf stat -x", l.number);
        count = join_event(fields, at, count, separator);
        perf_stat_put(r, place_of(fields, at, count), fields[at], fields[at - 1], fields[at - 2]);
    }
    return 0;
}
