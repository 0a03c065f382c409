/* SPDX-License-Identifier: MIT */
/* What perf stat -j writes: an object a line. */
#include "base/memory.h"
#include "base/strings.h"
#include "harness/formats.h"
#include "harness/json.h"
#include "harness/lines.h"
#include "harness/perf_stat.h"

#include <errno.h>

bool perf_json_is(const char *text)
{
    struct lines l = {.at = text};
    while (lines_next(&l))
        if (*l.line && *l.line != '#')
            return l.line[strspn(l.line, " ")] == '{' && strstr(l.line, "\"counter-value\"");
    return false;
}

static const char *place_of(const struct json_t *object)
{
    static const char *const keys[] = {"cpu",    "core", "cache",  "cluster", "die",
                                       "socket", "node", "thread", "cgroup"};
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
        const char *text = harness_text(object, keys[i]);
        if (text)
            return text;
    }
    return "perf stat";
}

int perf_json_read(struct harness_results *r, const char *text, struct error *err)
{
    struct lines l = {.at = text};
    while (lines_next(&l)) {
        perf_stat_started(r, l.line);
        if (!*l.line || *l.line == '#')
            continue;
        CLEANUP(harness_json_freep) struct json_t *object = NULL;
        int code = harness_json_load(l.line, strlen(l.line), &object, err);
        if (code < 0)
            return error_wrap(err, code, "line %zu", l.number);
        const char *value = harness_text(object, "counter-value");
        const char *event = harness_text(object, "event"), *unit = harness_text(object, "unit");
        if (!value || !event) /* a line with a metric only */
            continue;
        perf_stat_put(r, place_of(object), event, unit ? unit : "", value);
    }
    return 0;
}
