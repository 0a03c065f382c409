/* SPDX-License-Identifier: MIT */
/*
 * Functions that were divided.
 *
 * Somebody moves half of parse() into parse_body(), or the compiler no longer inlines it: parse is
 * 20 ms faster, parse_body 20 ms slower, and nothing is slower.  So what only one side has, called
 * by a function that both have and whose own time changed the other way, counts as part of that
 * one.
 */
#include "base/memory.h"
#include "why/explain_internal.h"

#include <math.h>
#include <stdlib.h>

/* Of the time of its parts, what the function's own has changed by the other way. */
#define OWN_LEAST 0.3
/* Of a function's time, what comes by one caller, to be that one's. */
#define NEARLY_ALL 0.97

enum { DEPTH_MOST = 8, NAMED_MOST = 3 };

/* A function of one side only, and the part of the one that it was divided from. */
struct split {
    size_t part, home;
    double change;
};

struct splits {
    struct parts *parts;
    struct split *items;
    size_t count, capacity;
};

static double sum_of(const struct parts *p, double *const weights[SIDE_COUNT], unsigned side)
{
    double sum = 0;
    for (size_t run = 0; run < p->run_counts[side]; run++)
        sum += weights[side][run] / (double)p->run_counts[side];
    return sum;
}

/* The side that alone has it; SIDE_COUNT where both have. */
static unsigned side_of(const struct parts *p, const struct part *part)
{
    bool has[SIDE_COUNT];
    for (unsigned s = 0; s < SIDE_COUNT; s++)
        has[s] = sum_of(p, part->weights, s) > 0;
    return has[SIDE_A] == has[SIDE_B] ? SIDE_COUNT : has[SIDE_A] ? SIDE_A : SIDE_B;
}

/* The function of that name that a side's stacks show; NULL for none. */
static const struct function *item_of(const struct parts *p, const char *name, unsigned side)
{
    const struct match *m = &p->names.diff->match;
    for (size_t i = 0; i < m->count; i++)
        if (str_eq(p->names.labels[p->names.places[i]], name) && m->items[i].symbols[side])
            return m->items[i].symbols[side]->function;
    return NULL;
}

/* Whether a side's build has the function as well, without any time.  Stripped ones may. */
static bool is_there(const struct parts *p, const struct part *part, const struct part *home,
                     unsigned side)
{
    const struct function *function = item_of(p, part->name, SIDE_B - side);
    const struct function *beside = item_of(p, home->name, side), *other;
    if (!function || !beside || function_is_nameless(function) || item_of(p, part->name, side))
        return true;
    for (size_t i = 0; (other = module_function(beside->module, i)); i++)
        if (str_eq(other->linkage_name, function->linkage_name))
            return true;
    return false;
}

static const struct part *find_function(const struct parts *p, const char *name)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->items[i].kind == PART_FUNCTION && str_eq(p->items[i].name, name))
            return &p->items[i];
    return NULL;
}

/* The caller that nearly all of a node's time comes by; CALLERS_NONE for several, or inlined ones.
 */
static uint32_t sole_caller(const struct callers *c, uint32_t node)
{
    uint32_t child = callers_child(c, node, node + 1);
    for (; child != CALLERS_NONE; child = callers_child(c, node, child + 1))
        if (callers_weight(c, child) >= NEARLY_ALL * callers_weight(c, node))
            return c->items[child].inlined ? CALLERS_NONE : child;
    return CALLERS_NONE;
}

/* The function of both sides that it is called by, perhaps through others of its side only. */
static const struct part *find_home(const struct parts *p, const struct part *part, unsigned side)
{
    uint32_t node = 0;
    for (unsigned depth = 0; depth < DEPTH_MOST; depth++) {
        node = sole_caller(&part->callers, node);
        if (node == CALLERS_NONE)
            return NULL;
        const char *name = part->callers.items[node].name;
        const struct part *home = find_function(p, name);
        if (home && home->is_own && sum_of(p, home->weights, SIDE_B - side) > 0)
            return home;
        if (item_of(p, name, SIDE_B - side))
            return NULL;
    }
    return NULL;
}

static void find_splits(struct splits *s)
{
    const struct parts *p = s->parts;
    for (size_t i = 0; i < p->count; i++) {
        const struct part *part = &p->items[i];
        unsigned side = part->kind == PART_FUNCTION && part->is_own ? side_of(p, part) : SIDE_COUNT;
        const struct part *home = side == SIDE_COUNT ? NULL : find_home(p, part, side);
        if (home && !is_there(p, part, home, SIDE_B - side))
            ARRAY_PUSH(s->items, s->count, s->capacity) =
                (struct split){i, (size_t)(home - p->items),
                               sum_of(p, part->weights, SIDE_B) - sum_of(p, part->weights, SIDE_A)};
    }
}

static bool is_divided(const struct splits *s, size_t home, const struct attribution *cpu)
{
    const struct part *part = &s->parts->items[home];
    double change =
               sum_of(s->parts, part->weights, SIDE_B) - sum_of(s->parts, part->weights, SIDE_A),
           parts = 0;
    struct attributed cost =
        attribution_part(cpu, (const double *const[]){part->weights[0], part->weights[1]},
                         (const double *const[]){part->samples[0], part->samples[1]});
    for (size_t i = 0; i < s->count; i++)
        parts += s->items[i].home == home ? s->items[i].change : 0;
    return attributed_is_told(&cost) && change * parts < 0 &&
           fabs(change) >= OWN_LEAST * fabs(parts);
}

static int by_size(const void *left, const void *right)
{
    const struct split *a = left, *b = right;
    double x = fabs(a->change), y = fabs(b->change);
    return x < y ? 1 : x > y ? -1 : 0;
}

static void move_weights(const struct parts *p, double *const from[SIDE_COUNT],
                         double *const to[SIDE_COUNT])
{
    for (unsigned s = 0; s < SIDE_COUNT; s++)
        for (size_t run = 0; run < p->run_counts[s]; run++) {
            to[s][run] += from[s][run];
            from[s][run] = 0;
        }
}

/* What it wants of libraries and the kernel goes along. */
static void move_owner(struct parts *p, const char *from, const char *to)
{
    uint32_t a = callers_find(&p->owners, 0, from, false);
    uint32_t b = callers_find(&p->owners, 0, to, false);
    if (a == CALLERS_NONE || b == CALLERS_NONE || a == b)
        return;
    move_weights(p, p->owners.items[a].weights, p->owners.items[b].weights);
    move_weights(p, p->owners.items[a].samples, p->owners.items[b].samples);
}

static void join(struct splits *s, size_t home)
{
    struct part *to = &s->parts->items[home];
    struct strbuf words = {0};
    size_t count = 0, named = 0;
    unsigned side = SIDE_B;
    for (size_t i = 0; i < s->count; i++)
        count += s->items[i].home == home;
    for (size_t i = 0; i < s->count; i++) {
        if (s->items[i].home != home)
            continue;
        struct part *from = &s->parts->items[s->items[i].part];
        side = side_of(s->parts, from);
        if (named < NAMED_MOST)
            strbuf_printf(&words, "%s%s",
                          !named                                                   ? "with "
                          : named + 1 == (count < NAMED_MOST ? count : NAMED_MOST) ? " and "
                                                                                   : ", ",
                          from->name);
        named++;
        move_weights(s->parts, from->weights, to->weights);
        move_weights(s->parts, from->samples, to->samples);
        move_owner(s->parts, from->name, to->name);
    }
    strbuf_printf(&words, ", which only the %s has", side == SIDE_A ? "base" : "new one");
    to->with = words.data;
}

void parts_join_splits(struct parts *p, const struct attribution *cpu)
{
    struct splits s = {.parts = p};
    CLEANUP(memory_freep) bool *divided = memory_zalloc(p->count + 1, sizeof(*divided));
    find_splits(&s);
    if (s.count)
        qsort(s.items, s.count, sizeof(*s.items), by_size);
    for (size_t i = 0; i < s.count; i++) /* before any of them has got more */
        divided[s.items[i].home] = is_divided(&s, s.items[i].home, cpu);
    for (size_t i = 0; i < p->count; i++)
        if (divided[i])
            join(&s, i);
    free(s.items);
}
