/* SPDX-License-Identifier: MIT */
/* Which functions of two programs are the same one: see match.h. */
#include "profile/match.h"
#include "base/memory.h"
#include "profile/numbered.h"

#include <stdlib.h>

/* What code for one kind of processor is marked with behind the name of a function of libc. */
static const char *const processor_marks[] = {"_avx", "_sse",   "_ssse",    "_evex",     "_erms",
                                              "_sve", "_asimd", "_generic", "_unaligned"};

static bool word_in(const char *word, size_t length, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(list[i]) == length && strncmp(list[i], word, length) == 0)
            return true;
    return false;
}

/* "__memmove_avx_unaligned_erms" -> "memcpy": one code serves both in the C library. */
static bool put_string_function(const char *name, size_t length, struct strbuf *out)
{
    static const char *const known[] = {"memcpy",    "memmove", "mempcpy", "memset",  "memcmp",
                                        "memchr",    "memrchr", "strlen",  "strnlen", "strcpy",
                                        "strncpy",   "stpcpy",  "strcat",  "strcmp",  "strncmp",
                                        "strchr",    "strrchr", "strstr",  "strspn",  "strcspn",
                                        "rawmemchr", "wcslen",  "wmemset", "bcmp",    "strcasecmp"};
    if (length < 4 || strncmp(name, "__", 2) != 0)
        return false;
    size_t end = length;
    for (size_t at = 2; at < length && end == length; at++)
        for (size_t i = 0; i < ARRAY_COUNT(processor_marks); i++)
            if (strncmp(name + at, processor_marks[i], strlen(processor_marks[i])) == 0)
                end = at;
    if (end == length || !word_in(name + 2, end - 2, known, ARRAY_COUNT(known)))
        return false;
    bool is_copy = word_in(name + 2, end - 2, (const char *const[]){"memmove"}, 1);
    strbuf_append(out, is_copy ? "memcpy" : name + 2, is_copy ? 6 : end - 2);
    return true;
}

/* What allocators other than libc's call the functions that they stand in for. */
static bool put_allocator(const char *name, size_t length, struct strbuf *out)
{
    static const char *const prefixes[] = {"tc_", "je_", "mi_", "rpmalloc_", "__libc_"};
    static const char *const known[] = {"malloc",        "free",           "calloc",
                                        "realloc",       "memalign",       "valloc",
                                        "aligned_alloc", "posix_memalign", "cfree"};
    static const struct {
        const char *from, *to;
    } operators[] = {
        {"tc_new", "_Znwm"},
        {"tc_newarray", "_Znam"},
        {"mi_new", "_Znwm"},
        /* One code with tc_free, under whichever of its names the symbol table gives. */
        {"tc_delete", "free"},
        {"tc_deletearray", "free"},
        {"tc_delete_nothrow", "free"},
        {"tc_deletearray_nothrow", "free"},
        {"tc_delete_sized", "free"},
        {"tc_deletearray_sized", "free"}};
    for (size_t i = 0; i < ARRAY_COUNT(operators); i++)
        if (word_in(name, length, &operators[i].from, 1)) {
            strbuf_puts(out, operators[i].to);
            return true;
        }
    for (size_t i = 0; i < ARRAY_COUNT(prefixes); i++) {
        size_t cut = strlen(prefixes[i]);
        if (length > cut && strncmp(name, prefixes[i], cut) == 0 &&
            word_in(name + cut, length - cut, known, ARRAY_COUNT(known))) {
            strbuf_append(out, name + cut, length - cut);
            return true;
        }
    }
    return false;
}

/*
 * What a kernel calls one function in several places or from version to version: "__pi_memset" and
 * "__memset" are memset, and since 6.10 allocators that are counted end in "_noprof".
 */
static void put_kernel_function(const char *name, size_t length, struct strbuf *out,
                                bool *ret_is_alias)
{
    static const char *const known[] = {"memcpy", "memmove", "memset", "memcmp", "memchr",
                                        "strlen", "strnlen", "strcmp", "strncmp"};
    static const char mark[] = "_noprof";
    const size_t whole = length;
    if (length > 5 && strncmp(name, "__pi_", 5) == 0) {
        name += 5;
        length -= 5;
    }
    if (length > 2 && strncmp(name, "__", 2) == 0 &&
        word_in(name + 2, length - 2, known, ARRAY_COUNT(known))) {
        name += 2;
        length -= 2;
    }
    if (length > sizeof(mark) - 1 &&
        strncmp(name + length - (sizeof(mark) - 1), mark, sizeof(mark) - 1) == 0)
        length -= sizeof(mark) - 1;
    *ret_is_alias = length != whole;
    strbuf_append(out, name, length);
}

void match_name(const char *name, bool is_kernel, struct strbuf *out, bool *ret_is_alias)
{
    size_t length = name_fold(name, strlen(name));
    *ret_is_alias = false;
    if (is_kernel) {
        put_kernel_function(name, length, out, ret_is_alias);
        return;
    }
    if (strncmp(name, "_Z", 2) == 0 || strncmp(name, "_R", 2) == 0) {
        strbuf_append(out, name, length);
        return;
    }
    const char *at = memchr(name, '@', length);
    size_t whole = length;
    const char *start = name;
    if (at && at > name)
        length = (size_t)(at - name);
    if (length > 5 && strncmp(name, "__GI_", 5) == 0) {
        name += 5;
        length -= 5;
    }
    *ret_is_alias = true;
    if (put_string_function(name, length, out) || put_allocator(name, length, out))
        return;
    if (length > 7 && strncmp(name, "__libc_", 7) == 0) {
        name += 7;
        length -= 7;
    } else if (name != start && length > 2 && strncmp(name, "__", 2) == 0) {
        name += 2; /* "__GI___read" */
        length -= 2;
    }
    *ret_is_alias = length != whole;
    strbuf_append(out, name, length);
}

/* All functions of one known name. */
struct name_group {
    const char *name;
    bool is_kernel, is_alias;
    struct qualifier {
        const char *text;
        unsigned sides; /* bits */
        uint32_t item;
    } * qualifiers;
    size_t count, capacity;
    bool is_split;
    uint32_t item; /* of those that no qualifier tells apart */
};

struct matcher {
    struct match *match;
    size_t capacity; /* of the items */
    struct name_group *groups;
    size_t group_count, group_capacity;
    struct idtable table;
    uint32_t **group_of[2];    /* [side][run][symbol] */
    struct numbered *numbered; /* NULL where names are right as they are */
};

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static const char *linkage_of(const struct profile_symbol *s)
{
    return s->function && s->function->linkage_name ? s->function->linkage_name : s->name;
}

static const char *qualifier_of(const struct calls *calls, const struct profile_symbol *s)
{
    if (s->function && s->function->declared_file)
        return base_name(s->function->declared_file);
    return calls->dsos.items[s->dso];
}

static uint64_t group_key(const char *name, bool is_kernel)
{
    return hash_mix(hash_string(name), is_kernel);
}

static uint64_t group_hash(const void *items, uint32_t id)
{
    const struct name_group *g = (const struct name_group *)items + id;
    return group_key(g->name, g->is_kernel);
}

/* What has no name but its place is known by that in this build. */
static void place_name(const struct function *function, struct strbuf *out)
{
    char text[BUILD_ID_TEXT];
    const struct build_id *id = module_build_id(function->module);
    strbuf_printf(out, "%s+0x%llx",
                  id->size ? build_id_format(id, text) : module_path(function->module),
                  (unsigned long long)function->start);
}

static uint32_t find_group(struct matcher *m, unsigned side, const struct profile_symbol *s)
{
    CLEANUP(strbuf_done) struct strbuf name = {0};
    bool is_alias = false, is_kernel = s->is_kernel;
    if (s->function && !is_kernel && function_is_nameless(s->function))
        place_name(s->function, &name);
    else if (is_kernel || !m->numbered || !numbered_name(m->numbered, side, s->name, &name)) {
        strbuf_clear(&name);
        match_name(linkage_of(s), is_kernel, &name, &is_alias);
    }
    const char *text = strbuf_text(&name);
    uint32_t slot, id;
    IDTABLE_EACH(&m->table, group_key(text, is_kernel), slot, id)
    if (m->groups[id].is_kernel == is_kernel && str_eq(m->groups[id].name, text)) {
        m->groups[id].is_alias |= is_alias;
        return id;
    }
    id = (uint32_t)m->group_count;
    ARRAY_PUSH(m->groups, m->group_count, m->group_capacity) =
        (struct name_group){.name = arena_strdup(&m->match->arena, text),
                            .is_kernel = is_kernel,
                            .is_alias = is_alias,
                            .item = MATCH_NONE};
    idtable_put(&m->table, slot, id);
    if (idtable_is_crowded(&m->table))
        idtable_grow(&m->table, group_hash, m->groups);
    return id;
}

static struct qualifier *find_qualifier(struct name_group *g, const char *text)
{
    for (size_t i = 0; i < g->count; i++)
        if (str_eq(g->qualifiers[i].text, text))
            return &g->qualifiers[i];
    ARRAY_PUSH(g->qualifiers, g->count, g->capacity) =
        (struct qualifier){.text = text, .item = MATCH_NONE};
    return &g->qualifiers[g->count - 1];
}

static void group_profile(struct matcher *m, unsigned side, size_t run, const struct profile *p)
{
    const struct calls *calls = &p->calls;
    uint32_t *groups = memory_zalloc(calls->symbol_count + 1, sizeof(*groups));
    for (size_t i = 0; i < calls->symbol_count; i++) {
        const struct profile_symbol *s = &calls->symbols[i];
        groups[i] = MATCH_NONE;
        if (!s->name)
            continue;
        groups[i] = find_group(m, side, s);
        find_qualifier(&m->groups[groups[i]], qualifier_of(calls, s))->sides |= 1u << side;
    }
    m->group_of[side][run] = groups;
}

/* A name that one side has in several places is told apart by them. */
static void decide_splits(struct matcher *m)
{
    for (size_t g = 0; g < m->group_count; g++) {
        size_t counts[2] = {0};
        for (size_t i = 0; i < m->groups[g].count; i++)
            for (unsigned side = 0; side < 2; side++)
                counts[side] += m->groups[g].qualifiers[i].sides >> side & 1;
        m->groups[g].is_split = counts[0] > 1 || counts[1] > 1;
    }
}

static uint32_t *item_place(struct name_group *g, const struct calls *calls,
                            const struct profile_symbol *s)
{
    if (!g->is_split)
        return &g->item;
    struct qualifier *q = find_qualifier(g, qualifier_of(calls, s));
    /* Of a place that only one side has, nothing can be a partner but another such place. */
    return q->sides == 3 ? &q->item : &g->item;
}

static void fill_item(struct matcher *m, struct matched *item, const struct name_group *g,
                      unsigned side, const struct calls *calls, const struct profile_symbol *s)
{
    if (!item->symbols[side]) {
        item->symbols[side] = s;
        item->dsos[side] = calls->dsos.items[s->dso];
    }
    if (item->name)
        return;
    size_t length = name_fold(s->name, strlen(s->name));
    item->name = g->is_alias && strncmp(g->name, "_Z", 2) != 0
                     ? g->name
                     : arena_strndup(&m->match->arena, s->name, length);
    item->is_kernel = g->is_kernel;
}

static void number_profile(struct matcher *m, unsigned side, size_t run, const struct profile *p)
{
    const struct calls *calls = &p->calls;
    uint32_t *rows = m->group_of[side][run];
    for (size_t i = 0; i < calls->symbol_count; i++) {
        if (rows[i] == MATCH_NONE)
            continue;
        struct name_group *g = &m->groups[rows[i]];
        const struct profile_symbol *s = &calls->symbols[i];
        uint32_t *place = item_place(g, calls, s);
        if (*place == MATCH_NONE) {
            *place = (uint32_t)m->match->count;
            ARRAY_PUSH(m->match->items, m->match->count, m->capacity) = (struct matched){0};
        }
        rows[i] = *place;
        fill_item(m, &m->match->items[*place], g, side, calls, s);
    }
    m->match->rows[side][run] = rows;
}

static enum match_kind kind_of(const struct matched *item)
{
    const struct profile_symbol *a = item->symbols[0], *b = item->symbols[1];
    if (!a || !b)
        return a ? MATCH_ONLY_A : MATCH_ONLY_B;
    const char *left = linkage_of(a), *right = linkage_of(b);
    if (str_eq(left, right))
        return MATCH_SAME;
    size_t left_length = name_fold(left, strlen(left)),
           right_length = name_fold(right, strlen(right));
    if (left_length == right_length && strncmp(left, right, left_length) == 0)
        return MATCH_VARIANT;
    /* A lambda whose number is another. */
    bool has_number = strchr(a->name, '#') || strstr(a->name, "$_");
    return has_number && !str_eq(a->name, b->name) ? MATCH_RENAMED : MATCH_ALIAS;
}

void match_show(struct match *m, uint32_t item, unsigned side, const struct profile *profile,
                uint32_t symbol)
{
    struct matched *shown = &m->items[item];
    shown->symbols[side] = &profile->calls.symbols[symbol];
    shown->dsos[side] = profile->calls.dsos.items[shown->symbols[side]->dso];
    if (shown->kind != MATCH_RENAMED && shown->kind != MATCH_MIXED)
        shown->kind = kind_of(shown);
}

/* Two functions, one on each side, that look like one with a new name. */
static bool looks_renamed(const struct matched *a, const struct matched *b)
{
    const struct function *left = a->symbols[0]->function, *right = b->symbols[1]->function;
    if (a->is_kernel != b->is_kernel || (left && function_is_nameless(left)) ||
        (right && function_is_nameless(right)))
        return false;
    if (str_eq(a->name, b->name))
        return true;
    return left && right && left->declared_file && right->declared_file &&
           left->declared_line == right->declared_line && left->declared_line &&
           str_eq(base_name(left->declared_file), base_name(right->declared_file));
}

/* The one on side B that looks like this one of side A; none when there are two. */
static uint32_t find_renamed(const struct match *m, uint32_t a, const uint32_t *target)
{
    uint32_t found = MATCH_NONE;
    for (uint32_t b = 0; b < m->count; b++) {
        if (m->items[b].kind != MATCH_ONLY_B || target[b] != b ||
            !looks_renamed(&m->items[a], &m->items[b]))
            continue;
        if (found != MATCH_NONE)
            return MATCH_NONE;
        found = b;
    }
    return found;
}

void match_join(struct match *m, const struct profile *const *const profiles[2],
                const uint32_t *target)
{
    for (unsigned side = 0; side < 2; side++)
        for (size_t run = 0; run < m->run_counts[side]; run++)
            for (size_t i = 0; i < profiles[side][run]->calls.symbol_count; i++)
                if (m->rows[side][run][i] != MATCH_NONE)
                    m->rows[side][run][i] = target[m->rows[side][run][i]];
}

static void join_renamed(struct match *m, const struct profile *const *const profiles[2])
{
    CLEANUP(memory_freep) uint32_t *target = memory_zalloc(m->count + 1, sizeof(*target));
    bool any = false;
    for (uint32_t i = 0; i < m->count; i++)
        target[i] = i;
    for (uint32_t a = 0; a < m->count; a++) {
        uint32_t b = m->items[a].kind == MATCH_ONLY_A ? find_renamed(m, a, target) : MATCH_NONE;
        if (b == MATCH_NONE)
            continue;
        m->items[a].kind = MATCH_RENAMED;
        m->items[a].symbols[1] = m->items[b].symbols[1];
        m->items[a].dsos[1] = m->items[b].dsos[1];
        target[b] = a;
        any = true;
    }
    if (any)
        match_join(m, profiles, target);
}

void match_build(struct match *m, const struct profile *const *const profiles[2],
                 const size_t run_counts[2])
{
    *m = (struct match){0};
    struct matcher matcher = {.match = m};
    idtable_init(&matcher.table, 10);
    m->run_counts[0] = run_counts[0];
    m->run_counts[1] = run_counts[1];
    matcher.numbered = numbered_find(m, profiles);
    for (unsigned side = 0; side < 2; side++) {
        m->rows[side] = memory_zalloc(run_counts[side] + 1, sizeof(*m->rows[side]));
        matcher.group_of[side] =
            memory_zalloc(run_counts[side] + 1, sizeof(*matcher.group_of[side]));
        for (size_t run = 0; run < run_counts[side]; run++)
            group_profile(&matcher, side, run, profiles[side][run]);
    }
    decide_splits(&matcher);
    for (unsigned side = 0; side < 2; side++) {
        for (size_t run = 0; run < run_counts[side]; run++)
            number_profile(&matcher, side, run, profiles[side][run]);
        free(matcher.group_of[side]);
    }
    for (uint32_t i = 0; i < m->count; i++) {
        m->items[i].kind = kind_of(&m->items[i]);
        m->items[i].item = i;
    }
    match_stripped(m, profiles);
    join_renamed(m, profiles);
    match_folded(m, profiles);
    for (size_t g = 0; g < matcher.group_count; g++)
        free(matcher.groups[g].qualifiers);
    free(matcher.groups);
    numbered_free(matcher.numbered);
    idtable_done(&matcher.table);
}

void match_done(struct match *m)
{
    for (unsigned side = 0; side < 2; side++) {
        for (size_t run = 0; m->rows[side] && run < m->run_counts[side]; run++)
            free(m->rows[side][run]);
        free(m->rows[side]);
    }
    free(m->items);
    strbuf_done(&m->notes);
    arena_done(&m->arena);
    *m = (struct match){0};
}
