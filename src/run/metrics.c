/* SPDX-License-Identifier: MIT */
/* Figures that a measured program reports itself: see metrics.h. */
#include "run/metrics.h"
#include "base/memory.h"
#include "base/strings.h"

#include <ctype.h>
#include <math.h>
#include <stdint.h>

#define PREFIX "assay.metric"
#define KERNEL_PREFIX "assay.kernel"
/* The longest line that can be right: prefix, name, number and unit with blanks between. */
#define LINE_MAX_BYTES 512

static bool name_is_allowed(const char *name)
{
    size_t length = strlen(name);
    if (!length || length >= METRIC_NAME_MAX)
        return false;
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("_-.:/%+", *c))
            return false;
    return true;
}

/* What strbuf_put_safe leaves as it is can be printed anywhere. */
static bool unit_is_allowed(const char *unit)
{
    size_t length = strlen(unit);
    if (length >= METRIC_UNIT_MAX || strpbrk(unit, " \"\\"))
        return false;
    CLEANUP(strbuf_done) struct strbuf safe = {0};
    strbuf_put_safe(&safe, unit, length, SIZE_MAX);
    return str_eq(strbuf_text(&safe), unit);
}

bool metrics_set(struct metric_list *list, const char *name, double value, const char *unit)
{
    if (!name_is_allowed(name) || !unit_is_allowed(unit) || !isfinite(value))
        return false;
    struct metric *m = NULL;
    for (size_t i = 0; i < list->count && !m; i++)
        if (str_eq(list->items[i].name, name))
            m = &list->items[i];
    if (!m && list->count >= METRICS_MAX)
        return false;
    if (!m) {
        m = &ARRAY_PUSH(list->items, list->count, list->capacity);
        *m = (struct metric){0};
        memcpy(m->name, name, strlen(name) + 1);
    }
    memcpy(m->unit, unit, strlen(unit) + 1);
    m->value = value;
    return true;
}

static bool refuse(struct metric_refusals *all, const struct metric_refusal *one)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->items[i].key == one->key && memcmp(all->items[i].line, one->line, one->key) == 0)
            return false;
    if (all->count == ARRAY_COUNT(all->items))
        return false;
    all->items[all->count++] = *one;
    return true;
}

static void bad_line(struct metric_list *list, const char *line, size_t length, const char *what)
{
    struct metric_refusal one = {.why = what};
    CLEANUP(strbuf_done) struct strbuf safe = {0};
    strbuf_put_safe(&safe, line, length, 40);
    size_t kept = safe.length < sizeof(one.line) ? safe.length : sizeof(one.line) - 1;
    /* Not in the middle of a character. */
    while (kept < safe.length && kept && utf8_continues(safe.data[kept]))
        kept--;
    memcpy(one.line, strbuf_text(&safe), kept);
    one.key = strcspn(one.line, " \t");
    one.key += strspn(one.line + one.key, " \t");
    one.key += strcspn(one.line + one.key, " \t");
    list->refused.line_count++;
    refuse(&list->refused, &one);
}

size_t metric_refusals_add(struct metric_refusals *all, const struct metric_refusals *more)
{
    size_t before = all->count;
    for (size_t i = 0; i < more->count; i++)
        refuse(all, &more->items[i]);
    all->line_count += more->line_count;
    return all->count - before;
}

static const char *take_kernel(struct metric_list *list, const char *release)
{
    size_t length = release ? strlen(release) : 0;
    CLEANUP(strbuf_done) struct strbuf safe = {0};
    if (length)
        strbuf_put_safe(&safe, release, length, SIZE_MAX);
    if (!length || length >= sizeof(list->kernel) || !str_eq(strbuf_text(&safe), release))
        return "the kernel release must be 1 to 127 printable bytes";
    memcpy(list->kernel, release, length + 1);
    return NULL;
}

/* One line in a buffer of its own; returns what is wrong with it, NULL for nothing. */
static const char *parse_line(struct metric_list *list, char *line)
{
    char *save = NULL;
    const char *blanks = " \t\r";
    char *prefix = strtok_r(line, blanks, &save);
    if (!prefix)
        return NULL;
    if (str_eq(prefix, KERNEL_PREFIX)) {
        const char *release = strtok_r(NULL, blanks, &save);
        return strtok_r(NULL, blanks, &save) ? "there is more text after the kernel release"
                                             : take_kernel(list, release);
    }
    if (!str_eq(prefix, PREFIX))
        return "it does not start with " PREFIX;
    char *name = strtok_r(NULL, blanks, &save);
    char *value = strtok_r(NULL, blanks, &save);
    char *unit = strtok_r(NULL, blanks, &save);
    double number;
    if (!name || !name_is_allowed(name))
        return "the name must be 1 to 63 letters, digits and _-.:/%+";
    if (!value || parse_double(value, &number, NULL) < 0 || !isfinite(number))
        return "the value is not a finite number";
    if (strtok_r(NULL, blanks, &save))
        return "there is text after the unit";
    if (unit && !unit_is_allowed(unit))
        return "the unit must be at most 15 printable bytes";
    if (!metrics_set(list, name, number, unit ? unit : ""))
        return "there are too many metrics";
    return NULL;
}

void metrics_parse(struct metric_list *list, const char *text, size_t length)
{
    if (length > METRICS_BYTES_MAX) {
        length = METRICS_BYTES_MAX;
        list->truncated = true;
    }
    for (size_t at = 0; at < length;) {
        const char *newline = memchr(text + at, '\n', length - at);
        size_t size = newline ? (size_t)(newline - text) - at : length - at;
        const char *wrong;
        char line[LINE_MAX_BYTES];
        if (size >= sizeof(line)) {
            wrong = "it is too long";
        } else if (memchr(text + at, '\0', size)) {
            wrong = "it contains a zero byte";
        } else {
            memcpy(line, text + at, size);
            line[size] = '\0';
            wrong = parse_line(list, line);
        }
        if (wrong)
            bad_line(list, text + at, size, wrong);
        at += size + 1;
    }
}

const struct metric *metrics_find(const struct metric_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (str_eq(list->items[i].name, name))
            return &list->items[i];
    return NULL;
}

void metrics_clear(struct metric_list *list)
{
    list->count = 0;
    list->kernel[0] = '\0';
    list->refused = (struct metric_refusals){0};
    list->truncated = false;
}

void metrics_done(struct metric_list *list)
{
    free(list->items);
    *list = (struct metric_list){0};
}

static bool is_rate(const char *name, const char *unit)
{
    static const char *const parts[] = {"per_second", "per_sec", "throughput", "bandwidth", "ops"};
    static const char *const units[] = {"ops", "op/s", "rps", "qps", "hz", "Hz", "fps", "IOPS"};
    if (str_has_suffix(unit, "/s"))
        return true;
    for (size_t i = 0; i < ARRAY_COUNT(units); i++)
        if (str_eq(unit, units[i]))
            return true;
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++)
        if (str_has_suffix(name, parts[i]) && !*unit)
            return true;
    return false;
}

double metric_unit_ns(const char *unit)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    for (size_t i = 0; i < ARRAY_COUNT(units); i++)
        if (str_eq(unit, units[i].name))
            return units[i].ns;
    return 0;
}

struct metric_facts metric_facts_of(const char *name, const char *unit)
{
    if (str_has_prefix(name, "exact:") || str_has_prefix(name, "sim:") ||
        str_has_prefix(name, METRICS_OF_MACHINE))
        return (struct metric_facts){.better = METRIC_LOWER, .is_count = true};
    bool rate = is_rate(name, unit), is_time = metric_unit_ns(unit) > 0;
    bool is_memory = str_eq(unit, "bytes") || str_eq(unit, "B");
    return (struct metric_facts){.better = rate                   ? METRIC_HIGHER
                                           : is_time || is_memory ? METRIC_LOWER
                                                                  : METRIC_NEITHER,
                                 .is_speed = rate || is_time};
}
