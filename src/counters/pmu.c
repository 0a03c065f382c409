/* SPDX-License-Identifier: MIT */
/* PMUs as sysfs describes them: see pmu.h. */
#include "counters/pmu.h"
#include "base/fd.h"
#include "base/memory.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>

static bool is_plain_name(const char *name)
{
    return *name && !strchr(name, '/') && name[0] != '.';
}

/* Reads one line of PMU_FOLDER/pmu/part/name. */
static bool read_attribute(const char *pmu, const char *part, const char *name, char *line,
                           size_t size)
{
    char path[512];
    if (!is_plain_name(pmu) || (name && !is_plain_name(name)))
        return false;
    snprintf(path, sizeof(path), "%s/%s/%s%s%s", PMU_FOLDER, pmu, part, name ? "/" : "",
             name ? name : "");
    return file_read_line(path, line, size);
}

struct names {
    const char **items;
    size_t count, capacity;
};

static void collect_pmu(const char *pmu, void *context)
{
    struct names *names = context;
    ARRAY_PUSH(names->items, names->count, names->capacity) = memory_strdup(pmu);
}

static int unknown_pmu(const char *pmu, struct error *err)
{
    struct names names = {0};
    CLEANUP(strbuf_done) struct strbuf list = {0};
    pmu_each(collect_pmu, &names);
    for (size_t i = 0; i < names.count; i++) {
        strbuf_printf(&list, "%s%s", i ? ", " : "", names.items[i]);
        free((void *)names.items[i]);
    }
    free(names.items);
    return error_set(err, -ENOENT, "there is no PMU '%s' on this machine; available: %s", pmu,
                     strbuf_text(&list));
}

int pmu_type(const char *pmu, uint32_t *ret_type, struct error *err)
{
    char line[64];
    uint64_t type;
    if (!read_attribute(pmu, "type", NULL, line, sizeof(line)))
        return unknown_pmu(pmu, err);
    int r = parse_u64(line, &type, err);
    if (r < 0)
        return error_wrap(err, r, PMU_FOLDER "/%s/type", pmu);
    *ret_type = (uint32_t)type;
    return 0;
}

int pmu_format_apply(const char *format, uint64_t value, struct perf_event_attr *attr,
                     struct error *err)
{
    __u64 *target;
    const char *at = strchr(format, ':');
    size_t word = at ? (size_t)(at - format) : strlen(format);
    if (word == 6 && strncmp(format, "config", 6) == 0)
        target = &attr->config;
    else if (word == 7 && strncmp(format, "config1", 7) == 0)
        target = &attr->config1;
    else if (word == 7 && strncmp(format, "config2", 7) == 0)
        target = &attr->config2;
    else
        return error_set(err, -EINVAL, "cannot parse the format '%s'", format);
    uint64_t left = value;
    while (at && *at) {
        char *end;
        at++;
        unsigned long low = strtoul(at, &end, 10), high = low;
        if (end == at)
            break;
        if (*end == '-') {
            at = end + 1;
            high = strtoul(at, &end, 10);
        }
        if (end == at || low > high || high > 63)
            return error_set(err, -EINVAL, "cannot parse the format '%s'", format);
        unsigned long bits = high - low + 1;
        uint64_t mask = bits == 64 ? UINT64_MAX : (1ULL << bits) - 1;
        *target |= (left & mask) << low;
        left = bits == 64 ? 0 : left >> bits;
        at = end;
    }
    if (left)
        return error_set(err, -ERANGE, "the value 0x%llx does not fit into the format '%s'",
                         (unsigned long long)value, format);
    return 0;
}

static int apply_terms(const char *pmu, const char *text, bool nested, struct perf_event_attr *attr,
                       struct pmu_terms *terms, struct error *err);

/* A word without a value: an event of the PMU, or a one-bit format. */
static int apply_word(const char *pmu, const char *word, bool nested, struct perf_event_attr *attr,
                      struct pmu_terms *terms, struct error *err)
{
    char line[512], extra[80], number[64];
    if (!nested && read_attribute(pmu, "events", word, line, sizeof(line))) {
        int r = apply_terms(pmu, line, true, attr, terms, err);
        if (r < 0)
            return r;
        snprintf(extra, sizeof(extra), "%.60s.scale", word);
        if (read_attribute(pmu, "events", extra, number, sizeof(number)))
            parse_double(number, &terms->scale, NULL);
        snprintf(extra, sizeof(extra), "%.60s.unit", word);
        read_attribute(pmu, "events", extra, terms->unit, sizeof(terms->unit));
        return 0;
    }
    if (read_attribute(pmu, "format", word, line, sizeof(line)))
        return pmu_format_apply(line, 1, attr, err);
    return error_set(err, -ENOENT,
                     "the PMU %s has neither an event nor a format '%s'; see "
                     "'assay events %s'",
                     pmu, word, pmu);
}

static int apply_value(const char *pmu, const char *key, const char *text,
                       struct perf_event_attr *attr, struct pmu_terms *terms, struct error *err)
{
    if (str_eq(key, "name")) {
        snprintf(terms->name, sizeof(terms->name), "%s", text);
        return 0;
    }
    /* sysfs also writes "event=?" for terms that the user has to give. */
    uint64_t value;
    int r = parse_u64(text, &value, err);
    if (r < 0)
        return error_wrap(err, r, "%s", key);
    char line[512];
    if (str_eq(key, "config"))
        attr->config |= value;
    else if (str_eq(key, "config1"))
        attr->config1 |= value;
    else if (str_eq(key, "config2"))
        attr->config2 |= value;
    else if (read_attribute(pmu, "format", key, line, sizeof(line)))
        return pmu_format_apply(line, value, attr, err);
    else
        return error_set(err, -ENOENT, "the PMU %s has no format '%s'", pmu, key);
    return 0;
}

static int apply_terms(const char *pmu, const char *text, bool nested, struct perf_event_attr *attr,
                       struct pmu_terms *terms, struct error *err)
{
    CLEANUP(memory_freep) char *copy = memory_strdup(text);
    char *save = NULL;
    for (char *term = strtok_r(copy, ",", &save); term; term = strtok_r(NULL, ",", &save)) {
        char *value = strchr(term, '=');
        int r;
        if (value) {
            *value++ = '\0';
            r = apply_value(pmu, term, value, attr, terms, err);
        } else {
            r = apply_word(pmu, term, nested, attr, terms, err);
        }
        if (r < 0)
            return r;
    }
    return 0;
}

int pmu_parse(const char *pmu, const char *text, struct perf_event_attr *attr,
              struct pmu_terms *ret_terms, struct error *err)
{
    uint32_t type;
    int r = pmu_type(pmu, &type, err);
    if (r < 0)
        return r;
    struct pmu_terms terms = {.scale = 1};
    struct perf_event_attr filled = *attr;
    filled.type = type;
    r = apply_terms(pmu, text, false, &filled, &terms, err);
    if (r < 0)
        return error_wrap(err, r, "%s/%s/", pmu, text);
    *attr = filled;
    *ret_terms = terms;
    return 0;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

void pmu_each(void (*visit)(const char *pmu, void *context), void *context)
{
    struct dirent **list;
    int count = scandir(PMU_FOLDER, &list, is_visible, alphasort);
    for (int i = 0; i < count; i++) {
        visit(list[i]->d_name, context);
        free(list[i]);
    }
    if (count >= 0)
        free(list);
}

void pmu_each_event(const char *pmu,
                    void (*visit)(const char *pmu, const char *event, void *context), void *context)
{
    char path[512];
    struct dirent **list;
    snprintf(path, sizeof(path), "%s/%s/events", PMU_FOLDER, pmu);
    int count = scandir(path, &list, is_visible, alphasort);
    for (int i = 0; i < count; i++) {
        const char *name = list[i]->d_name;
        if (!str_has_suffix(name, ".scale") && !str_has_suffix(name, ".unit") &&
            !str_has_suffix(name, ".snapshot") && !str_has_suffix(name, ".per-pkg"))
            visit(pmu, name, context);
        free(list[i]);
    }
    if (count >= 0)
        free(list);
}

bool pmu_is_systemwide(const char *pmu)
{
    char line[256];
    return read_attribute(pmu, "cpumask", NULL, line, sizeof(line));
}
