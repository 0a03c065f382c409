/* SPDX-License-Identifier: MIT */
/* See cases.h. */
#include "bench/cases.h"
#include "base/memory.h"

#include <errno.h>
#include <fnmatch.h>

enum { CASES_MAX = 100000 };

static void put_parameters(struct strbuf *out, const struct bench_entry *e, const int64_t *values,
                           const char *separator)
{
    for (size_t p = 0; p < e->parameter_count; p++)
        strbuf_printf(out, "%s%s=%lld", out->length ? separator : "", e->parameters[p].name,
                      (long long)values[p]);
}

static struct bench_case make_case(const struct bench_entry *e, const int64_t *values)
{
    CLEANUP(strbuf_done) struct strbuf parameters = {0}, label = {0};
    put_parameters(&parameters, e, values, ", ");
    strbuf_puts(&label, e->name);
    put_parameters(&label, e, values, " ");
    struct bench_case c = {.name = memory_strdup(e->name),
                           .parameters = memory_strdup(strbuf_text(&parameters)),
                           .label = memory_strdup(strbuf_text(&label))};
    c.calls[0] = (struct bench_call){.index = e->index, .threads = 1};
    for (size_t p = 0; p < e->parameter_count; p++) {
        c.calls[0].values[p] = values[p];
        if (e->parameters[p].is_threads)
            c.calls[0].threads = (uint64_t)values[p];
    }
    return c;
}

static void case_done(struct bench_case *c)
{
    free(c->name);
    free(c->parameters);
    free(c->label);
}

/* Whether the filter is about the parameter, "n=64", and not about a name. */
static bool is_of_parameter(const char *filter)
{
    return strchr(filter, '=') && !strchr(filter, ' ');
}

static bool parameter_fits(const struct bench_case *c, const char *filter)
{
    size_t name = strcspn(filter, "=");
    for (const char *at = c->parameters; *at;) {
        size_t length = strcspn(at, ",");
        CLEANUP(memory_freep) char *word = memory_strndup(at, length);
        if (strncmp(word, filter, name + 1) == 0 && fnmatch(filter, word, 0) == 0)
            return true;
        at += length;
        at += strspn(at, ", ");
    }
    return false;
}

static bool is_wanted(const struct bench_case *c, const char *const *filters, size_t count)
{
    bool names = false, name_fits = false;
    for (size_t i = 0; i < count; i++) {
        if (!is_of_parameter(filters[i])) {
            names = true;
            name_fits |=
                fnmatch(filters[i], c->name, 0) == 0 || fnmatch(filters[i], c->label, 0) == 0;
            continue;
        }
        /* Any of the filters of the same parameter will do. */
        bool fits = false;
        size_t name = strcspn(filters[i], "=") + 1;
        for (size_t k = 0; k < count && !fits; k++)
            fits = is_of_parameter(filters[k]) && strncmp(filters[k], filters[i], name) == 0 &&
                   parameter_fits(c, filters[k]);
        if (!fits)
            return false;
    }
    return !names || name_fits;
}

/* All combinations of one benchmark's parameters. */
static void expand(const struct bench_entry *e, struct bench_case **items, size_t *count,
                   size_t *capacity)
{
    size_t at[BENCH_PARAMETERS_MAX] = {0};
    for (;;) {
        int64_t values[BENCH_PARAMETERS_MAX] = {0};
        for (size_t p = 0; p < e->parameter_count; p++)
            values[p] = e->parameters[p].values[at[p]];
        if (*count < CASES_MAX)
            ARRAY_PUSH(*items, *count, *capacity) = make_case(e, values);
        size_t p = e->parameter_count;
        while (p > 0 && ++at[p - 1] == e->parameters[p - 1].count)
            at[--p] = 0;
        if (p == 0)
            return;
    }
}

static void expand_all(const struct bench_entries *e, struct bench_case **items, size_t *count)
{
    size_t capacity = 0;
    for (size_t i = 0; i < e->count; i++)
        expand(&e->items[i], items, count, &capacity);
}

static struct bench_case *find(struct bench_case *items, size_t count, const char *label)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(items[i].label, label))
            return &items[i];
    return NULL;
}

static void note_only(struct bench_cases *c, size_t side, const char *label)
{
    ARRAY_PUSH(c->only[side], c->only_count[side], c->only_capacity[side]) = memory_strdup(label);
}

static int check_names(const struct bench_case *items, size_t count, struct error *err)
{
    for (size_t i = 1; i < count; i++)
        for (size_t k = 0; k < i; k++)
            if (str_eq(items[i].label, items[k].label))
                return error_set(err, -EEXIST, "two benchmarks are called %s; rename one of them",
                                 items[i].label);
    return 0;
}

int bench_cases_make(struct bench_cases *c, const struct bench_entries *base,
                     const struct bench_entries *new, const char *const *filters,
                     size_t filter_count, struct error *err)
{
    struct bench_case *all = NULL, *others = NULL;
    size_t all_count = 0, other_count = 0;
    expand_all(base, &all, &all_count);
    if (new)
        expand_all(new, &others, &other_count);
    int r = check_names(all, all_count, err);
    if (r == 0)
        r = check_names(others, other_count, err);
    c->all_count = all_count;
    for (size_t i = 0; i < all_count; i++) {
        struct bench_case *other = new ? find(others, other_count, all[i].label) : NULL;
        bool wanted = r == 0 && is_wanted(&all[i], filters, filter_count);
        if (wanted && new && !other)
            note_only(c, 0, all[i].label);
        if (!wanted || (new && !other)) {
            case_done(&all[i]);
            continue;
        }
        if (other)
            all[i].calls[1] = other->calls[0];
        ARRAY_PUSH(c->items, c->count, c->capacity) = all[i];
    }
    for (size_t i = 0; i < other_count; i++) {
        if (r == 0 && !find(c->items, c->count, others[i].label) &&
            is_wanted(&others[i], filters, filter_count))
            note_only(c, 1, others[i].label);
        case_done(&others[i]);
    }
    free(all);
    free(others);
    return r;
}

void bench_cases_done(struct bench_cases *c)
{
    for (size_t i = 0; i < c->count; i++)
        case_done(&c->items[i]);
    free(c->items);
    for (size_t side = 0; side < 2; side++) {
        for (size_t i = 0; i < c->only_count[side]; i++)
            free(c->only[side][i]);
        free(c->only[side]);
    }
    *c = (struct bench_cases){0};
}
