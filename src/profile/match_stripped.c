/* SPDX-License-Identifier: MIT */
/* Which functions of stripped code are one: see match.h. */
#include "base/memory.h"
#include "profile/code/twins.h"
#include "profile/match.h"

#include <stdlib.h>

/* A binary of one side, as its first run has it. */
struct binary {
    struct module *module;
    const char *name;
    bool has_nameless; /* functions with samples, here or further up in a stack */
    bool has_debug;    /* information on them */
};

struct binaries {
    struct binary *items;
    size_t count, capacity;
};

struct joiner {
    struct match *match;
    const struct profile *const *const *profiles;
    struct binaries sides[2];
    uint32_t *target; /* of each item */
};

bool match_is_one_build(const struct module *a, const struct module *b)
{
    const struct build_id *left = module_build_id(a), *right = module_build_id(b);
    return left->size || right->size ? build_id_equal(left, right)
                                     : str_eq(module_path(a), module_path(b));
}

/* The binary that has the code of a symbol; NULL for the kernel's, and for what was inlined. */
static struct module *home_of(const struct profile_symbol *s)
{
    const struct function *f = s->function;
    return f && f->size && !s->is_kernel && module_kind(f->module) == MODULE_FILE ? f->module
                                                                                  : NULL;
}

static void note_binary(struct binaries *list, const struct calls *calls,
                        const struct profile_symbol *s)
{
    struct module *home = home_of(s);
    if (!home)
        return;
    size_t i = 0;
    while (i < list->count && !match_is_one_build(list->items[i].module, home))
        i++;
    if (i == list->count)
        ARRAY_PUSH(list->items, list->count, list->capacity) =
            (struct binary){.module = home, .name = calls->dsos.items[s->dso]};
    list->items[i].has_nameless |= function_is_nameless(s->function);
    list->items[i].has_debug |= s->function->declared_file != NULL;
}

static void list_binaries(struct joiner *j)
{
    for (unsigned side = 0; side < 2; side++)
        for (size_t run = 0; run < j->match->run_counts[side]; run++) {
            const struct calls *calls = &j->profiles[side][run]->calls;
            for (size_t i = 0; i < calls->symbol_count; i++)
                note_binary(&j->sides[side], calls, &calls->symbols[i]);
        }
}

/* "libfoo.so.1" and "libfoo.so.2" are builds of one library. */
static bool is_called_alike(const char *a, const char *b)
{
    const char *end_a = strstr(a, ".so"), *end_b = strstr(b, ".so");
    if (!end_a || !end_b)
        return str_eq(a, b);
    return end_a - a == end_b - b && strncmp(a, b, (size_t)(end_a - a)) == 0;
}

/* The binary of a side that is called like one of the other; NULL. */
static struct binary *find_alike(const struct binaries *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (is_called_alike(list->items[i].name, name))
            return &list->items[i];
    return NULL;
}

/* The only program (no library) of a side that the other has none like; NULL for none or several.
 */
static struct binary *find_alone(struct joiner *j, unsigned side)
{
    struct binary *found = NULL;
    for (size_t i = 0; i < j->sides[side].count; i++) {
        struct binary *b = &j->sides[side].items[i];
        if (strstr(b->name, ".so") || find_alike(&j->sides[1 - side], b->name))
            continue;
        if (found)
            return NULL;
        found = b;
    }
    return found;
}

/* Its other build: the one of the same name, or where each side has one program of its own, that.
 */
static struct binary *find_other(struct joiner *j, const struct binary *a)
{
    struct binary *alike = find_alike(&j->sides[1], a->name);
    return alike ? alike : find_alone(j, 0) == a ? find_alone(j, 1) : NULL;
}

static uint32_t end_of(const uint32_t *target, uint32_t item)
{
    while (target[item] != item)
        item = target[item];
    return item;
}

static bool is_nameless(const struct matched *item)
{
    for (unsigned side = 0; side < 2; side++)
        if (item->symbols[side] && item->symbols[side]->function &&
            function_is_nameless(item->symbols[side]->function))
            return true;
    return false;
}

/* Makes b's functions a's. */
static void take_in(struct joiner *j, uint32_t a, uint32_t b, enum match_kind kind)
{
    struct matched *into = &j->match->items[a], *from = &j->match->items[b];
    for (unsigned side = 0; side < 2; side++)
        if (!into->symbols[side]) {
            into->symbols[side] = from->symbols[side];
            into->dsos[side] = from->dsos[side];
        }
    const struct profile_symbol *left = into->symbols[0], *right = into->symbols[1];
    into->kind = kind;
    if (kind == MATCH_RENAMED && left && right && str_eq(left->name, right->name))
        into->kind = MATCH_SAME;
    if (kind == MATCH_RENAMED && right && right->function && !function_is_nameless(right->function))
        into->name = from->name; /* of two, the one that says something */
    from->kind = kind;
    j->target[b] = a;
}

/* The items of the functions of both binaries, by their numbers among the twins. */
struct located {
    uint32_t *items[2];
};

static void locate_items(const struct joiner *j, const struct twins *t,
                         const struct binary *const pair[2], struct located *ret)
{
    for (unsigned side = 0; side < 2; side++) {
        ret->items[side] = memory_alloc((t->counts[side] + 1) * sizeof(*ret->items[side]));
        for (size_t i = 0; i < t->counts[side]; i++)
            ret->items[side][i] = MATCH_NONE;
        for (size_t run = 0; run < j->match->run_counts[side]; run++) {
            const struct calls *calls = &j->profiles[side][run]->calls;
            for (size_t i = 0; i < calls->symbol_count; i++) {
                const struct module *home = home_of(&calls->symbols[i]);
                if (!home || !match_is_one_build(home, pair[side]->module))
                    continue;
                uint32_t at = twins_at(t, side, calls->symbols[i].function->start);
                if (at != TWINS_NONE)
                    ret->items[side][at] = j->match->rows[side][run][i];
            }
        }
    }
}

static void join_partners(struct joiner *j, const struct twins *t, const struct located *found)
{
    const struct matched *items = j->match->items;
    for (size_t i = 0; i < t->counts[0]; i++) {
        uint32_t partner = t->items[0][i].partner;
        if (partner == TWINS_NONE || found->items[0][i] == MATCH_NONE ||
            found->items[1][partner] == MATCH_NONE)
            continue;
        uint32_t a = end_of(j->target, found->items[0][i]);
        uint32_t b = end_of(j->target, found->items[1][partner]);
        if (a != b && (is_nameless(&items[a]) || is_nameless(&items[b])))
            take_in(j, a, b, MATCH_RENAMED);
    }
}

/* Those of a side that have no name and no partner; into the item `into` unless it is MATCH_NONE.
 */
static size_t gather_rest(struct joiner *j, const struct twins *t, const struct located *found,
                          unsigned side, uint32_t *into)
{
    size_t count = 0;
    for (size_t i = 0; i < t->counts[side]; i++) {
        if (t->items[side][i].partner != TWINS_NONE || found->items[side][i] == MATCH_NONE)
            continue;
        uint32_t item = end_of(j->target, found->items[side][i]);
        if (!is_nameless(&j->match->items[item]))
            continue;
        count++;
        if (into && *into == MATCH_NONE)
            *into = item;
        else if (into && item != *into)
            take_in(j, *into, item, MATCH_MIXED);
    }
    return count;
}

/* Of what is left on both sides, nobody knows what became of what. */
static void join_rest(struct joiner *j, const struct twins *t, const struct located *found,
                      const struct binary *const pair[2], const char *why)
{
    size_t counts[2];
    for (unsigned side = 0; side < 2; side++)
        counts[side] = gather_rest(j, t, found, side, NULL);
    if (!counts[0] || !counts[1])
        return;
    uint32_t into = MATCH_NONE;
    for (unsigned side = 0; side < 2; side++)
        gather_rest(j, t, found, side, &into);
    struct matched *mixed = &j->match->items[into];
    CLEANUP(memory_freep) char *name = memory_printf("stripped code of %s", pair[1]->name);
    mixed->kind = MATCH_MIXED;
    mixed->name = arena_strdup(&j->match->arena, name);
    strbuf_printf(&j->match->notes,
                  "%s and %s are stripped: %zu and %zu functions cannot be matched between the "
                  "builds%s%s and are told as one; keep the symbols, or install the debug "
                  "packages\n",
                  pair[0]->name, pair[1]->name, counts[0], counts[1], why[0] ? ", as " : "", why);
}

static void join_binaries(struct joiner *j, const struct binary *const pair[2])
{
    struct twins twins;
    struct located found;
    struct error err = {0};
    twins_find(&twins, (struct module *const[]){pair[0]->module, pair[1]->module},
               j->profiles[0][0]->arch, &err);
    locate_items(j, &twins, pair, &found);
    join_partners(j, &twins, &found);
    join_rest(j, &twins, &found, pair, err.code < 0 ? err.message : "");
    free(found.items[0]);
    free(found.items[1]);
    twins_done(&twins);
}

void match_each_build(const struct match *m, const struct profile *const *const profiles[2],
                      match_builds *found, void *context)
{
    struct joiner j = {.match = (struct match *)m, .profiles = profiles};
    list_binaries(&j);
    for (size_t i = 0; i < j.sides[0].count; i++) {
        const struct binary *a = &j.sides[0].items[i], *b = find_other(&j, a);
        if (b && !match_is_one_build(a->module, b->module))
            found(context, (struct module *const[]){a->module, b->module});
    }
    for (unsigned side = 0; side < 2; side++)
        free(j.sides[side].items);
}

void match_stripped(struct match *m, const struct profile *const *const profiles[2])
{
    struct joiner j = {.match = m, .profiles = profiles};
    j.target = memory_alloc((m->count + 1) * sizeof(*j.target));
    for (uint32_t i = 0; i < m->count; i++)
        j.target[i] = i;
    list_binaries(&j);
    for (size_t i = 0; i < j.sides[0].count; i++) {
        const struct binary *a = &j.sides[0].items[i], *b = find_other(&j, a);
        if (b && a->has_debug != b->has_debug && !match_is_one_build(a->module, b->module))
            m->lacks_debug = a->has_debug ? b->name : a->name;
        if (b && (a->has_nameless || b->has_nameless) && !match_is_one_build(a->module, b->module))
            join_binaries(&j, (const struct binary *const[]){a, b});
    }
    for (uint32_t i = 0; i < m->count; i++)
        j.target[i] = end_of(j.target, i);
    match_join(m, profiles, j.target);
    for (unsigned side = 0; side < 2; side++)
        free(j.sides[side].items);
    free(j.target);
}
