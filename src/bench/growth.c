/* SPDX-License-Identifier: MIT */
/* See growth.h. */
#include "bench/growth.h"
#include "base/memory.h"

#include <math.h>

/* The parameters on which n depends, one bit each: where two cases of a benchmark differ in nothing
 * but this one, their n differs as well. */
static unsigned growing(const struct bench_cases *cases, const struct bench_results *results,
                        size_t index, size_t side)
{
    const struct bench_case *c = &cases->items[index];
    double n = results->items[index].sides[side].said.n;
    unsigned found = 0;
    for (size_t i = 0; i < cases->count; i++) {
        const struct bench_case *other = &cases->items[i];
        const struct bench_said *said = &results->items[i].sides[side].said;
        unsigned differ = 0;
        if (!said->law || said->n == n || !str_eq(c->name, other->name))
            continue;
        for (unsigned p = 0; p < BENCH_PARAMETERS_MAX; p++)
            differ |= (unsigned)(c->calls[0].values[p] != other->calls[0].values[p]) << p;
        if ((differ & (differ - 1)) == 0)
            found |= differ;
    }
    return found;
}

/* The case without the parameters that make n: "sort threads=2". */
static char *label_without(const struct bench_case *c, unsigned parameters)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    unsigned parameter = 1;
    strbuf_puts(&out, c->name);
    for (const char *at = c->parameters; *at; parameter <<= 1) {
        size_t length = strcspn(at, ",");
        if (!(parameters & parameter)) {
            strbuf_putc(&out, ' ');
            strbuf_append(&out, at, length);
        }
        at += length;
        at += strspn(at, ", ");
    }
    return memory_strdup(strbuf_text(&out));
}

struct points {
    double *n, *time;
    size_t count;
};

static void fit(struct bench_fit *f, const struct points *p)
{
    struct error err;
    int r = complexity_fit(p->n, p->time, p->count, f->law, &f->complexity, &err);
    if (r < 0)
        f->trouble = memory_strdup(err.message);
}

static double time_of(const struct outcome *outcome, const struct bench_results *results,
                      size_t index, size_t side)
{
    const struct outcome_cell *cell =
        outcome_cell(outcome, outcome->headline, bench_cell(index, side, results->side_count));
    return cell->summary.count ? cell->summary.median : NAN;
}

/* The fits of one version. */
static void fit_side(struct bench_fits *f, const struct bench_cases *cases,
                     const struct bench_results *results, const struct outcome *outcome,
                     size_t side)
{
    size_t count = cases->count;
    CLEANUP(memory_freep) double *room = memory_zalloc(2 * count + 1, sizeof(*room));
    char **labels = memory_zalloc(count + 1, sizeof(*labels)); /* of those that are to be fitted */
    for (size_t i = 0; i < count; i++)
        if (results->items[i].sides[side].said.law)
            labels[i] = label_without(&cases->items[i], growing(cases, results, i, side));
    for (size_t i = 0; i < count; i++) {
        struct points p = {room, room + count, 0};
        if (!labels[i])
            continue;
        struct bench_fit new = {.first = i,
                                .label = labels[i],
                                .law = memory_strdup(results->items[i].sides[side].said.law),
                                .side = side};
        for (size_t k = i; k < count; k++) {
            if (!labels[k] || (k > i && !str_eq(labels[k], new.label)))
                continue;
            double time = time_of(outcome, results, k, side);
            if (isfinite(time)) {
                p.n[p.count] = results->items[k].sides[side].said.n;
                p.time[p.count++] = time;
            }
            if (k > i)
                free(labels[k]);
            labels[k] = NULL;
        }
        fit(&new, &p);
        ARRAY_PUSH(f->items, f->count, f->capacity) = new;
    }
    free(labels);
}

static int by_case(const void *a, const void *b)
{
    const struct bench_fit *x = a, *y = b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x->side < y->side ? -1 : x->side > y->side;
}

void bench_fits_make(struct bench_fits *f, const struct bench_cases *cases,
                     const struct bench_results *results, const struct outcome *outcome)
{
    for (size_t side = 0; side < results->side_count; side++)
        fit_side(f, cases, results, outcome, side);
    if (f->count)
        qsort(f->items, f->count, sizeof(*f->items), by_case);
}

void bench_fits_done(struct bench_fits *f)
{
    for (size_t i = 0; i < f->count; i++) {
        free(f->items[i].label);
        free(f->items[i].law);
        free(f->items[i].trouble);
    }
    free(f->items);
    *f = (struct bench_fits){0};
}
