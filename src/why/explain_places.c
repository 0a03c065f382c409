/* SPDX-License-Identifier: MIT */
/*
 * Where a change sits.  A function may have many callers, or be inlined in many places; which of
 * them changed is told by what each of them had of it, run by run, with an interval of its own.  A
 * caller is named when its own change is certain, or when there is no other.
 */
#include "base/memory.h"
#include "base/strings.h"
#include "why/explain_parts.h"

#include <math.h>
#include <stdlib.h>

/* Many callers are looked at, so that each has to be more certain than one alone would. */
#define CERTAIN_TIMES 1.5
/* A caller with less than this of the largest change is not named beside it. */
#define SMALL_PART 0.15
#define NEARLY_ALL 0.97
#define NEARLY_THE_CHANGE 0.6

enum { NAMED_MOST = 3, CHILDREN_MOST = 64 };

static struct attributed cost_of(const struct callers *c, uint32_t node,
                                 const struct attribution *a)
{
    const struct caller *at = &c->items[node];
    return attribution_part(a, (const double *const[]){at->weights[0], at->weights[1]},
                            (const double *const[]){at->samples[0], at->samples[1]});
}

static bool is_certain(const struct attributed *cost)
{
    return attributed_is_told(cost) && !(fabs(cost->change) < CERTAIN_TIMES * cost->half_width);
}

/* The callers of a node, and those that certainly changed, the largest change first. */
struct listed {
    uint32_t node;
    double change;
};

struct children {
    struct listed changed[CHILDREN_MOST];
    size_t changed_count, count;
    uint32_t sole; /* the one that has nearly all; CALLERS_NONE */
};

static int compare_listed(const void *left, const void *right)
{
    const struct listed *a = left, *b = right;
    return fabs(a->change) < fabs(b->change) ? 1 : fabs(a->change) > fabs(b->change) ? -1 : 0;
}

static void find_children(const struct callers *c, uint32_t node, const struct attribution *a,
                          struct children *found)
{
    double all = callers_weight(c, node);
    *found = (struct children){.sole = CALLERS_NONE};
    uint32_t child = callers_child(c, node, node + 1);
    for (; child != CALLERS_NONE; child = callers_child(c, node, child + 1)) {
        double weight = callers_weight(c, child);
        struct attributed cost = cost_of(c, child, a);
        if (weight <= 0)
            continue;
        found->count++;
        if (weight >= NEARLY_ALL * all)
            found->sole = child;
        if (is_certain(&cost) && found->changed_count < CHILDREN_MOST)
            found->changed[found->changed_count++] = (struct listed){child, cost.change};
    }
    qsort(found->changed, found->changed_count, sizeof(*found->changed), compare_listed);
    while (found->changed_count > 1 && fabs(found->changed[found->changed_count - 1].change) <
                                           SMALL_PART * fabs(found->changed[0].change))
        found->changed_count--;
}

/* The places into which a part's code is inlined and where it changed. */
struct climb {
    struct part *part;
    const struct attribution *attribution;
    uint32_t anchors[CHILDREN_MOST];
    size_t count;
};

/* Whether a function is behind the part in other ways than through this node. */
static bool is_elsewhere(const struct callers *c, uint32_t node)
{
    double all = 0;
    for (uint32_t i = 1; i < c->count; i++)
        if (c->items[i].parent != CALLERS_NONE && str_eq(c->items[i].name, c->items[node].name))
            all += callers_weight(c, i);
    return NEARLY_ALL * all > callers_weight(c, node);
}

/* split: where the way parted and the part was not told apart from others since. */
static void climb_from(struct climb *climb, uint32_t node, uint32_t split)
{
    const struct callers *c = &climb->part->callers;
    struct children found;
    find_children(c, node, climb->attribution, &found);
    if (found.sole != CALLERS_NONE && c->items[found.sole].inlined) {
        if (split == node && !is_elsewhere(c, found.sole))
            split = found.sole;
        climb_from(climb, found.sole, split);
        return;
    }
    bool any = false;
    for (size_t i = 0; i < found.changed_count && found.sole == CALLERS_NONE; i++)
        if (c->items[found.changed[i].node].inlined) {
            climb_from(climb, found.changed[i].node, found.changed[i].node);
            any = true;
        }
    uint32_t anchor = split != CALLERS_NONE ? split : node;
    if (!any && anchor != 0 && climb->count < CHILDREN_MOST)
        climb->anchors[climb->count++] = anchor;
}

static void move_weights(const struct parts *p, double *const from[SIDE_COUNT],
                         double *const to[SIDE_COUNT], double times)
{
    for (unsigned s = 0; s < SIDE_COUNT; s++)
        for (size_t run = 0; run < p->run_counts[s]; run++)
            to[s][run] += times * from[s][run];
}

static void add_inlined(const struct parts *p, struct part *home, const char *name,
                        const struct caller *at)
{
    for (size_t i = 0; i < home->inlined_count; i++)
        if (str_eq(home->inlined[i].name, name)) { /* at another place in it */
            move_weights(p, at->weights, home->inlined[i].weights, 1);
            move_weights(p, at->samples, home->inlined[i].samples, 1);
            return;
        }
    struct part_inlined inlined = {.name = memory_strdup(name)};
    for (unsigned s = 0; s < SIDE_COUNT; s++) {
        inlined.weights[s] = memory_zalloc(p->run_counts[s] + 1, sizeof(double));
        inlined.samples[s] = memory_zalloc(p->run_counts[s] + 1, sizeof(double));
    }
    move_weights(p, at->weights, inlined.weights, 1);
    move_weights(p, at->samples, inlined.samples, 1);
    ARRAY_PUSH(home->inlined, home->inlined_count, home->inlined_capacity) = inlined;
}

static void place_at(struct parts *p, size_t index, uint32_t anchor)
{
    const char *name = p->items[index].callers.items[anchor].name;
    struct part *home = parts_find(p, PART_FUNCTION, name, false);
    struct part *part = &p->items[index];
    const struct caller *at = &part->callers.items[anchor];
    if (home == part)
        return;
    home->is_own |= part->is_own;
    move_weights(p, at->weights, home->weights, 1);
    move_weights(p, at->samples, home->samples, 1);
    move_weights(p, at->weights, part->weights, -1);
    move_weights(p, at->samples, part->samples, -1);
    for (unsigned s = 0; s < SIDE_COUNT; s++)
        for (size_t run = 0; run < p->run_counts[s]; run++)
            callers_add(&home->callers, 0, s, run, at->weights[s][run], at->samples[s][run]);
    add_inlined(p, home, part->name, at);
    callers_graft(&home->callers, 0, &part->callers, anchor);
    callers_cut(&part->callers, anchor);
}

void parts_place(struct parts *p, const struct attribution *cpu)
{
    size_t count = p->count;
    for (size_t i = 0; i < count; i++) {
        struct climb climb = {.part = &p->items[i], .attribution = cpu};
        if (p->items[i].kind != PART_FUNCTION || p->items[i].inlined_count)
            continue;
        climb_from(&climb, 0, CALLERS_NONE);
        for (size_t k = 0; k < climb.count; k++)
            place_at(p, i, climb.anchors[k]);
    }
}

static void put_change(struct strbuf *out, double change)
{
    char text[32];
    strbuf_printf(out, " (%s%s)", change < 0 ? "-" : "+",
                  format_duration(fabs(change), text, sizeof(text)));
}

static void put_several(struct strbuf *out, const struct callers *c, const struct children *found)
{
    size_t count = found->changed_count < NAMED_MOST ? found->changed_count : NAMED_MOST;
    for (size_t i = 0; i < count; i++) {
        strbuf_puts(out, i == 0 ? "" : i + 1 < count ? ", " : " and ");
        strbuf_puts(out, c->items[found->changed[i].node].name);
        put_change(out, found->changed[i].change);
    }
}

/*
 * Goes from caller to caller as long as one of them has the change; *ret_last is the last one that
 * was chosen among several.  What is found where the way ends is left in found.
 */
static uint32_t walk(const struct callers *c, const struct attribution *a, struct children *found,
                     uint32_t *ret_last)
{
    double whole = cost_of(c, 0, a).change;
    uint32_t node = 0;
    *ret_last = CALLERS_NONE;
    for (;;) {
        find_children(c, node, a, found);
        bool is_first = node == 0, chosen = false;
        if (found->sole == CALLERS_NONE) {
            if (found->changed_count != 1 || found->changed[0].change / whole < NEARLY_THE_CHANGE)
                return node;
            chosen = true;
        }
        node = chosen ? found->changed[0].node : found->sole;
        if (chosen || is_first)
            *ret_last = node;
    }
}

/* The program's first function on the way to a caller; CALLERS_NONE where the part is the program's
 * own, or the program is not known to be behind it. */
static uint32_t first_of_program(const struct callers *c, uint32_t end)
{
    for (uint32_t at = end; at != 0 && at != CALLERS_NONE; at = c->items[at].parent)
        if (c->items[at].is_program)
            return at;
    return CALLERS_NONE;
}

bool part_callers(const struct part *part, const struct attribution *a, struct strbuf *out)
{
    const struct callers *c = &part->callers;
    struct children found;
    uint32_t last, end = walk(c, a, &found, &last);
    bool several = end == 0 && found.changed_count > 0;
    if (several)
        put_several(out, c, &found);
    if (several || last == CALLERS_NONE)
        return several;
    /* Functions of a library are told with the program's one that they work for. */
    uint32_t program = first_of_program(c, end);
    if (program != CALLERS_NONE && first_of_program(c, last) == CALLERS_NONE)
        last = program;
    /* From the nearest to the last one that tells something. */
    uint32_t path[64];
    size_t count = 0;
    for (uint32_t at = last; at != 0 && count < ARRAY_COUNT(path); at = c->items[at].parent)
        path[count++] = at;
    strbuf_puts(out, c->items[path[count - 1]].name);
    if (count > 1)
        strbuf_printf(out, ", from %s", c->items[path[0]].name);
    return true;
}

const char *part_caller(const struct part *part, const struct attribution *a)
{
    struct children found;
    uint32_t last;
    walk(&part->callers, a, &found, &last);
    while (last != CALLERS_NONE && part->callers.items[last].parent != 0)
        last = part->callers.items[last].parent;
    return last == CALLERS_NONE ? NULL : part->callers.items[last].name;
}

const char *part_code_caller(const struct part *part, const struct attribution *a)
{
    const struct callers *c = &part->callers;
    struct children found;
    uint32_t last;
    walk(c, a, &found, &last);
    while (last != CALLERS_NONE && c->items[last].parent != 0)
        last = c->items[last].parent;
    /* Of those into which it is inlined, the one with the most of it: they are of one function. */
    for (uint32_t at = last; at != CALLERS_NONE; at = last) {
        double most = 0;
        uint32_t child = callers_child(c, at, at + 1), outer = CALLERS_NONE;
        for (; child != CALLERS_NONE; child = callers_child(c, at, child + 1))
            if (c->items[child].inlined && callers_weight(c, child) > most) {
                most = callers_weight(c, child);
                outer = child;
            }
        if (outer == CALLERS_NONE)
            break;
        last = outer;
    }
    return last == CALLERS_NONE ? NULL : c->items[last].name;
}

const char *part_site(const struct part *part, const struct attribution *a)
{
    struct children found;
    if (part->inlined_count) /* not known of what came here from elsewhere */
        return NULL;
    find_children(&part->sites, 0, a, &found);
    double whole = cost_of(&part->sites, 0, a).change;
    bool is_one = found.count > 1 && found.changed_count == 1 &&
                  found.changed[0].change / whole >= NEARLY_THE_CHANGE;
    return is_one ? part->sites.items[found.changed[0].node].name : NULL;
}

bool part_inlined_words(const struct part *part, const struct attribution *a, struct strbuf *out)
{
    struct listed list[CHILDREN_MOST];
    size_t count = 0;
    for (size_t i = 0; i < part->inlined_count && count < CHILDREN_MOST; i++) {
        const struct part_inlined *in = &part->inlined[i];
        struct attributed cost =
            attribution_part(a, (const double *const[]){in->weights[0], in->weights[1]},
                             (const double *const[]){in->samples[0], in->samples[1]});
        list[count++] = (struct listed){(uint32_t)i, cost.change};
    }
    if (!count)
        return false;
    qsort(list, count, sizeof(*list), compare_listed);
    while (count > 1 && fabs(list[count - 1].change) < SMALL_PART * fabs(list[0].change))
        count--;
    count = count < NAMED_MOST ? count : NAMED_MOST;
    strbuf_puts(out, "in ");
    for (size_t i = 0; i < count; i++) {
        strbuf_puts(out, i == 0 ? "" : i + 1 < count ? ", " : " and ");
        strbuf_puts(out, part->inlined[list[i].node].name);
        if (count > 1)
            put_change(out, list[i].change);
    }
    strbuf_puts(out, " inlined there");
    return true;
}
