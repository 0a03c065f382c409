/* SPDX-License-Identifier: MIT */
/* What stress-ng --metrics --yaml writes.  Its YAML is flat and always laid out the same way, so it
 * is read by its lines; nothing else of YAML is understood. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/strings.h"
#include "harness/formats.h"
#include "harness/lines.h"

#include <errno.h>

bool stress_ng_is(const char *text)
{
    return strstr(text, "stress-ng-version:") && strstr(text, "\nmetrics:");
}

static const struct {
    const char *key, *name, *unit;
    struct metric_facts facts;
} figures[] = {
    {"bogo-ops-per-second-real-time",
     "bogo-ops.real",
     "ops/s",
     {.better = METRIC_HIGHER, .is_speed = true}},
    {"bogo-ops-per-second-usr-sys-time",
     "bogo-ops.cpu",
     "ops/s",
     {.better = METRIC_HIGHER, .is_speed = true}},
    {"wall-clock-time", "wall", "s", {.better = METRIC_NEITHER}},
    {"user-time", "user", "s", {.better = METRIC_NEITHER}},
    {"system-time", "sys", "s", {.better = METRIC_NEITHER}},
    {"cpu-usage-per-instance", "cpu-usage", "%", {.better = METRIC_NEITHER}},
    {"max-rss", "peak-rss", "KiB", {.better = METRIC_LOWER}},
};

/* A stressor's own figure, for example nanosecs-per-mutex or memory-ops-per-sec: its name says what
 * it counts. */
static void put_own(struct harness_benchmark *b, const char *key, double number)
{
    if (str_has_prefix(key, "nanosecs-per-"))
        harness_summary(b, key, "ns", HARNESS_TIME, number);
    else if (str_has_suffix(key, "-per-sec") || str_has_suffix(key, "-per-second"))
        harness_summary(b, key, "", HARNESS_RATE, number);
    else
        harness_summary(b, key, "", HARNESS_PLAIN, number);
}

static void put_figure(struct harness_benchmark *b, const char *key, const char *value)
{
    double number;
    if (!lines_number(value, &number, NULL) || str_eq(key, "bogo-ops"))
        return;
    for (size_t i = 0; i < ARRAY_COUNT(figures); i++)
        if (str_eq(key, figures[i].key)) {
            harness_summary(b, figures[i].name, figures[i].unit, figures[i].facts, number);
            return;
        }
    put_own(b, key, number);
}

static void read_system(struct harness_results *r, const char *key, const char *value)
{
    double number;
    if (str_eq(key, "stress-ng-version"))
        harness_set(&r->version, value);
    else if (str_eq(key, "hostname"))
        harness_set(&r->machine, value);
    else if (str_eq(key, "epoch-secs") && lines_number(value, &number, NULL) && number > 0 &&
             number < 1e10)
        r->measured_at_ns = (uint64_t)number * NS_PER_S;
}

/* "      key: value", without quotes. */
static bool split(char *line, char **ret_key, char **ret_value)
{
    char *key = line + strspn(line, " -"), *colon = strstr(key, ": ");
    if (!colon)
        return false;
    *colon = '\0';
    char *value = colon + 2 + strspn(colon + 2, " '");
    size_t length = strlen(value);
    if (length && value[length - 1] == '\'')
        value[length - 1] = '\0';
    *ret_key = key;
    *ret_value = value;
    return true;
}

int stress_ng_read(struct harness_results *r, const char *text, struct error *err)
{
    static const int known[] = {0, -1};
    struct lines l = {.at = text};
    struct harness_benchmark *b = NULL;
    bool in_metrics = false, is_whole = false;
    char *key, *value;
    while (lines_next(&l)) {
        if (*l.line && *l.line != ' ')
            in_metrics = str_eq(l.line, "metrics:");
        is_whole |= str_eq(l.line, "...");
        if (!split(l.line, &key, &value))
            continue;
        if (!in_metrics)
            read_system(r, key, value);
        else if (str_eq(key, "stressor"))
            b = harness_add(r, value);
        else if (b)
            put_figure(b, key, value);
    }
    int code = harness_check_version("stress-ng", r->version, known, err);
    if (code == 0 && !is_whole)
        return error_set(err, -EINVAL, "line %zu: the file ends before its last line, '...'",
                         l.number);
    return code;
}
