/* SPDX-License-Identifier: MIT */
/* See growth.h. */
#include "bench/growth.h"
#include "base/memory.h"

#include <stdio.h>

/* The case without the parameter that is n: "sort threads=2". */
static char *label_without(const struct bench_case *c, double n)
{
    CLEANUP(strbuf_done) struct strbuf out = {0};
    char value[32];
    snprintf(value, sizeof(value), "%.0f", n);
    strbuf_puts(&out, c->name);
    for (const char *at = c->parameters; *at;) {
        size_t length = strcspn(at, ","), name = strcspn(at, "=") + 1;
        bool is_n = name < length && strlen(value) == length - name &&
                    strncmp(at + name, value, length - name) == 0;
        if (!is_n) {
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

static bool is_known(const struct bench_fits *f, const char *label, size_t side)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->items[i].side == side && str_eq(f->items[i].label, label))
            return true;
    return false;
}

void bench_fits_make(struct bench_fits *f, const struct bench_cases *cases,
                     const struct bench_results *results, const struct outcome *outcome)
{
    CLEANUP(memory_freep) double *room = memory_zalloc(2 * cases->count + 1, sizeof(*room));
    for (size_t i = 0; i < cases->count; i++)
        for (size_t side = 0; side < results->side_count; side++) {
            const struct bench_said *said = &results->items[i].sides[side].said;
            if (!said->law)
                continue;
            CLEANUP(memory_freep) char *label = label_without(&cases->items[i], said->n);
            if (is_known(f, label, side))
                continue;
            struct points p = {room, room + cases->count, 0};
            for (size_t k = i; k < cases->count; k++) {
                const struct bench_said *other = &results->items[k].sides[side].said;
                CLEANUP(memory_freep)
                char *name = other->law ? label_without(&cases->items[k], other->n) : NULL;
                const struct outcome_cell *cell = outcome_cell(
                    outcome, outcome->headline, bench_cell(k, side, results->side_count));
                if (!name || !str_eq(name, label) || !cell->summary.count)
                    continue;
                p.n[p.count] = other->n;
                p.time[p.count++] = cell->summary.median;
            }
            struct bench_fit new = {
                .label = memory_strdup(label), .law = memory_strdup(said->law), .side = side};
            fit(&new, &p);
            ARRAY_PUSH(f->items, f->count, f->capacity) = new;
        }
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
