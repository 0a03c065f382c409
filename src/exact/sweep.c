/* SPDX-License-Identifier: MIT */
/* See sweep.h. */
#include "exact/sweep.h"
#include "base/memory.h"
#include "base/strings.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* "linux-image-6.1.0-56-cloud-amd64_6.1.192-2": cloud. */
static char *flavour_of(const char *name)
{
    static const char prefix[] = "linux-image-";
    if (strchr(name, '/'))
        return memory_strdup(SWEEP_OWN);
    CLEANUP(strbuf_done) struct strbuf flavour = {0};
    CLEANUP(memory_freep) char *copy = memory_strndup(name, strcspn(name, "_"));
    char *save = NULL, *from = copy + (str_has_prefix(copy, prefix) ? sizeof(prefix) - 1 : 0);
    for (char *word = strtok_r(from, "-", &save); word; word = strtok_r(NULL, "-", &save)) {
        bool is_arch = !save || !*save;
        if (!isdigit((unsigned char)*word) && !is_arch)
            strbuf_printf(&flavour, "%s%s", flavour.length ? "-" : "", word);
    }
    return memory_strdup(strbuf_text(&flavour));
}

bool sweep_add(struct sweep *s, const char *name)
{
    for (size_t i = 0; i < s->count; i++)
        if (str_eq(s->items[i].name, name))
            return false;
    ARRAY_PUSH(s->items, s->count, s->capacity) =
        (struct sweep_kernel){.name = memory_strdup(name), .flavour = flavour_of(name)};
    return true;
}

static bool is_own(const struct sweep_kernel *k)
{
    return str_eq(k->flavour, SWEEP_OWN);
}

static bool comes_after(const struct sweep_kernel *a, const struct sweep_kernel *b)
{
    if (is_own(a) || is_own(b))
        return is_own(a) && !is_own(b);
    int order = strcmp(a->flavour, b->flavour);
    return (order ? order : strverscmp(a->name, b->name)) > 0;
}

/* By insertion: what is the same stays in order, and there are few. */
void sweep_sort(struct sweep *s)
{
    for (size_t i = 1; i < s->count; i++) {
        struct sweep_kernel moved = s->items[i];
        size_t k = i;
        for (; k && comes_after(&s->items[k - 1], &moved); k--)
            s->items[k] = s->items[k - 1];
        s->items[k] = moved;
    }
}

static void widen(struct sweep_range *range, uint64_t value, bool is_first)
{
    range->least = is_first || value < range->least ? value : range->least;
    range->most = is_first || value > range->most ? value : range->most;
}

void sweep_take(struct sweep_kernel *k, const struct exact_counts *c)
{
    bool is_first = k->run_count == 0;
    widen(&k->user, c->user, is_first);
    widen(&k->kernel, c->kernel, is_first);
    k->run_count++;
    if (!is_first)
        return;
    k->ways = memory_zalloc(c->way_count + 1, sizeof(*k->ways));
    for (size_t i = 0; i < c->way_count; i++) {
        k->ways[i] = c->ways[i];
        k->ways[i].name = memory_strdup(c->ways[i].name);
    }
    k->way_count = c->way_count;
    struct exact_counts kernel = {.named = c->named, .named_count = c->named_count};
    exact_functions_find(&k->functions, &kernel);
}

const struct sweep_kernel *sweep_before(const struct sweep *s, size_t index)
{
    for (size_t i = index; i-- > 0;)
        if (!s->items[i].why && str_eq(s->items[i].flavour, s->items[index].flavour))
            return &s->items[i];
    return NULL;
}

static double middle(const struct sweep_range *range)
{
    return ((double)range->least + (double)range->most) / 2;
}

static double width(const struct sweep_range *range)
{
    return (double)(range->most - range->least);
}

bool sweep_step_find(const struct sweep *s, size_t index, double threshold,
                     struct sweep_step *ret_step)
{
    const struct sweep_kernel *to = &s->items[index], *from = sweep_before(s, index);
    if (to->why || !from || !from->kernel.least)
        return false;
    double change = middle(&to->kernel) - middle(&from->kernel), base = middle(&from->kernel);
    *ret_step = (struct sweep_step){.from = from, .to = to, .change = change / base};
    return fabs(change) > width(&from->kernel) + width(&to->kernel) &&
           fabs(change) > threshold * base;
}

static uint64_t size_of(const struct sweep_way *w)
{
    return w->new > w->base ? w->new - w->base : w->base - w->new;
}

static int by_change(const void *a, const void *b)
{
    const struct sweep_way *x = a, *y = b;
    return size_of(x) != size_of(y) ? (size_of(x) < size_of(y) ? 1 : -1) : strcmp(x->name, y->name);
}

size_t sweep_ways(const struct sweep_step *step, struct sweep_way **ret_ways)
{
    size_t count = 0, kept = 0, before = step->from->way_count;
    struct sweep_way *ways = memory_zalloc(before + step->to->way_count + 1, sizeof(*ways));
    for (; count < before; count++)
        ways[count] = (struct sweep_way){.name = step->from->ways[count].name,
                                         .base = step->from->ways[count].instructions};
    for (size_t i = 0; i < step->to->way_count; i++) {
        const struct exact_way *w = &step->to->ways[i];
        size_t at = 0;
        while (at < before && !str_eq(ways[at].name, w->name))
            at++;
        if (at == before)
            at = count++;
        ways[at].name = w->name;
        ways[at].new = w->instructions;
    }
    for (size_t i = 0; i < count; i++)
        if (ways[i].base != ways[i].new)
            ways[kept++] = ways[i];
    if (kept)
        qsort(ways, kept, sizeof(*ways), by_change);
    *ret_ways = ways;
    return kept;
}

void sweep_done(struct sweep *s)
{
    for (size_t i = 0; i < s->count; i++) {
        struct sweep_kernel *k = &s->items[i];
        for (size_t w = 0; w < k->way_count; w++)
            free(k->ways[w].name);
        free(k->ways);
        free(k->name);
        free(k->flavour);
        free(k->why);
        exact_functions_done(&k->functions);
    }
    free(s->items);
    *s = (struct sweep){0};
}
