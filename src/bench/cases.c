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

static struct bench_case make_copy(const struct bench_case *c)
{
    struct bench_case copy = *c;
    copy.name = memory_strdup(c->name);
    copy.parameters = memory_strdup(c->parameters);
    copy.label = memory_strdup(c->label);
    return copy;
}

static void case_done(struct bench_case *c)
{
    free(c->name);
    free(c->parameters);
    free(c->label);
}

static void cases_free(struct bench_case *items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        case_done(&items[i]);
    free(items);
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

/* As a pattern, or as it stands: names may have brackets and stars in them. */
static bool fits(const char *filter, const char *name)
{
    return fnmatch(filter, name, 0) == 0 || str_eq(filter, name);
}

static bool is_wanted(const struct bench_case *c, const char *const *filters, size_t count)
{
    bool names = false, name_fits = false;
    for (size_t i = 0; i < count; i++) {
        if (is_of_parameter(filters[i]) && str_eq(filters[i], c->name))
            return true; /* other harnesses allow any name */
        if (!is_of_parameter(filters[i])) {
            names = true;
            name_fits |= fits(filters[i], c->name) || fits(filters[i], c->label);
            continue;
        }
        /* Any of the filters of the same parameter will do. */
        bool right = false;
        size_t name = strcspn(filters[i], "=") + 1;
        for (size_t k = 0; k < count && !right; k++)
            right = is_of_parameter(filters[k]) && strncmp(filters[k], filters[i], name) == 0 &&
                    parameter_fits(c, filters[k]);
        if (!right)
            return false;
    }
    return !names || name_fits;
}

/* All combinations of one benchmark's parameters. */
static int expand(const struct bench_entry *e, struct bench_case **items, size_t *count,
                  size_t *capacity, struct error *err)
{
    size_t at[BENCH_PARAMETERS_MAX] = {0}, combinations = 1;
    for (size_t p = 0; p < e->parameter_count; p++) /* 64 to the fourth at most */
        combinations *= e->parameters[p].count;
    if (*count + combinations > CASES_MAX)
        return error_set(err, -E2BIG,
                         "with the %zu combinations of the parameters of %s there are more than "
                         "%d benchmarks; give it fewer values",
                         combinations, e->name, CASES_MAX);
    for (;;) {
        int64_t values[BENCH_PARAMETERS_MAX] = {0};
        for (size_t p = 0; p < e->parameter_count; p++)
            values[p] = e->parameters[p].values[at[p]];
        ARRAY_PUSH(*items, *count, *capacity) = make_case(e, values);
        size_t p = e->parameter_count;
        while (p > 0 && ++at[p - 1] == e->parameters[p - 1].count)
            at[--p] = 0;
        if (p == 0)
            return 0;
    }
}

static int expand_all(const struct bench_entries *e, struct bench_case **items, size_t *count,
                      struct error *err)
{
    size_t capacity = 0;
    int r = 0;
    for (size_t i = 0; i < e->count && r == 0; i++)
        r = expand(&e->items[i], items, count, &capacity, err);
    return r;
}

/* ---- cases by their labels ---- */

struct case_index {
    const struct bench_case **items; /* sorted; they point into a list */
    size_t count;
};

static int by_label(const void *a, const void *b)
{
    const struct bench_case *const *x = a, *const *y = b;
    return strcmp((*x)->label, (*y)->label);
}

static void index_make(struct case_index *x, const struct bench_case *items, size_t count)
{
    x->items = memory_zalloc(count + 1, sizeof(*x->items));
    x->count = count;
    for (size_t i = 0; i < count; i++)
        x->items[i] = &items[i];
    if (count)
        qsort(x->items, count, sizeof(*x->items), by_label);
}

static void index_done(struct case_index *x)
{
    free(x->items);
}

static const struct bench_case *find(const struct case_index *x, char *label)
{
    const struct bench_case wanted = {.label = label}, *key = &wanted;
    const struct bench_case **found =
        x->count ? bsearch(&key, x->items, x->count, sizeof(*x->items), by_label) : NULL;
    return found ? *found : NULL;
}

static void note_only(struct bench_cases *c, size_t side, const char *label)
{
    ARRAY_PUSH(c->only[side], c->only_count[side], c->only_capacity[side]) = memory_strdup(label);
}

static int check_names(const struct bench_case *items, size_t count, struct error *err)
{
    CLEANUP(index_done) struct case_index x;
    index_make(&x, items, count);
    for (size_t i = 1; i < count; i++)
        if (str_eq(x.items[i - 1]->label, x.items[i]->label))
            return error_set(err, -EEXIST, "two benchmarks are called %s; rename one of them",
                             x.items[i]->label);
    return 0;
}

/* Moves those that are wanted, and that both versions have, and notes what only one has. */
static void choose(struct bench_cases *c, struct bench_case *all, size_t all_count,
                   struct bench_case *others, size_t other_count, bool two,
                   const char *const *filters, size_t filter_count)
{
    CLEANUP(index_done) struct case_index base = {0}, new = {0};
    index_make(&base, all, all_count);
    index_make(&new, others, other_count);
    for (size_t i = 0; i < other_count; i++)
        if (!find(&base, others[i].label) && is_wanted(&others[i], filters, filter_count))
            note_only(c, 1, others[i].label);
    for (size_t i = 0; i < all_count; i++) {
        const struct bench_case *other = two ? find(&new, all[i].label) : NULL;
        if (!is_wanted(&all[i], filters, filter_count))
            continue;
        if (two && !other) {
            note_only(c, 0, all[i].label);
            continue;
        }
        struct bench_case taken = make_copy(&all[i]);
        if (other)
            taken.calls[1] = other->calls[0];
        ARRAY_PUSH(c->items, c->count, c->capacity) = taken;
    }
}

int bench_cases_make(struct bench_cases *c, const struct bench_entries *base,
                     const struct bench_entries *new, const char *const *filters,
                     size_t filter_count, struct error *err)
{
    struct bench_case *all = NULL, *others = NULL;
    size_t all_count = 0, other_count = 0;
    int r = expand_all(base, &all, &all_count, err);
    if (r == 0 && new)
        r = expand_all(new, &others, &other_count, err);
    if (r == 0)
        r = check_names(all, all_count, err);
    if (r == 0)
        r = check_names(others, other_count, err);
    c->all_count = all_count;
    if (r == 0)
        choose(c, all, all_count, others, other_count, new != NULL, filters, filter_count);
    cases_free(all, all_count);
    cases_free(others, other_count);
    return r;
}

void bench_cases_done(struct bench_cases *c)
{
    cases_free(c->items, c->count);
    for (size_t side = 0; side < 2; side++) {
        for (size_t i = 0; i < c->only_count[side]; i++)
            free(c->only[side][i]);
        free(c->only[side]);
    }
    *c = (struct bench_cases){0};
}
