/* SPDX-License-Identifier: MIT */
/* Numbers of lambdas in two builds: see numbered.h. */
#include "profile/numbered.h"
#include "base/arena.h"
#include "base/memory.h"
#include "profile/code/fingerprint.h"

#include <ctype.h>
#include <stdlib.h>

enum { CODE_BYTES_MOST = 1 << 18, TELLING_INSTRUCTIONS = 4, NUMBER_MOST = 100000 };

/* A number within a name. */
struct mark {
    size_t scope, start; /* where "steps()::" and "{lambda(long)#" begin */
    size_t digits, end;  /* where the number begins and ends */
    uint32_t number;
};

struct entry {
    const char *stem; /* the name without the number */
    const char *key;  /* whose number it is: "steps()::{lambda(long)#" */
    uint32_t number;
    unsigned side;
    uint64_t code;
};

/* What a number of side A is in side B; UINT32_MAX: nothing tells. */
struct pairing {
    const char *key;
    uint32_t a, b;
};

struct numbered {
    struct arena arena;
    struct entry *entries;
    size_t count, capacity;
    struct pairing *pairings; /* by key, then by a; all numbers that are not told apart: a is 0 */
    size_t pairing_count, pairing_capacity;
    struct fingerprinter *printer;
};

/* Where the scope of a local name begins: at the bracket or comma that it stands behind. */
static size_t scope_of(const char *name, size_t start)
{
    int depth = 0;
    size_t at = start;
    for (; at > 0; at--) {
        char c = name[at - 1];
        if (strchr(")>]}", c))
            depth++;
        else if (strchr("(<[{", c) && depth-- == 0)
            break;
        else if ((c == ',' || c == ' ') && depth == 0)
            break;
    }
    return at;
}

/* "{lambda(long)#2}": back from the # to the brace that it belongs to. */
static bool find_brace(const char *name, size_t hash, size_t *ret)
{
    int depth = 0;
    for (size_t at = hash; at > 0; at--) {
        if (name[at - 1] == '}')
            depth++;
        else if (name[at - 1] == '{' && depth-- == 0) {
            *ret = at - 1;
            return true;
        }
    }
    return false;
}

/* The next number in a name from a place on. */
static bool next_mark(const char *name, size_t from, struct mark *m)
{
    for (size_t at = from; name[at]; at++) {
        bool is_hash = name[at] == '#', is_dollar = strncmp(name + at, "$_", 2) == 0;
        m->digits = at + (is_hash ? 1 : 2);
        if ((!is_hash && !is_dollar) || !isdigit((unsigned char)name[m->digits]))
            continue;
        char *end;
        unsigned long number = strtoul(name + m->digits, &end, 10);
        m->end = (size_t)(end - name);
        m->start = at;
        if (number > NUMBER_MOST ||
            (is_hash && (name[m->end] != '}' || !find_brace(name, at, &m->start))))
            continue;
        m->number = (uint32_t)number;
        m->scope = scope_of(name, m->start);
        return true;
    }
    return false;
}

struct numbered *numbered_new(void)
{
    return memory_zalloc(1, sizeof(struct numbered));
}

void numbered_free(struct numbered *n)
{
    if (!n)
        return;
    arena_done(&n->arena);
    free(n->entries);
    free(n->pairings);
    free(n);
}

void numbered_add(struct numbered *n, unsigned side, const char *name, uint64_t code)
{
    struct mark m, other;
    if (!next_mark(name, 0, &m) || next_mark(name, m.end, &other))
        return; /* of two numbers in one name, the code could tell either */
    CLEANUP(memory_freep)
    char *stem = memory_printf("%.*s%s", (int)m.digits, name, name + m.end);
    ARRAY_PUSH(n->entries, n->count, n->capacity) = (struct entry){
        .stem = arena_strdup(&n->arena, stem),
        .key = arena_strndup(&n->arena, name + m.scope, m.digits - m.scope),
        .number = m.number,
        .side = side,
        .code = code,
    };
}

static int by_key(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    int order = strcmp(a->key, b->key);
    if (!order)
        order = strcmp(a->stem, b->stem);
    return order ? order : a->number < b->number ? -1 : a->number > b->number;
}

/* The only function of a side with this code among those of one stem; NULL. */
static const struct entry *only_with(const struct entry *e, size_t count, const struct entry *like,
                                     unsigned side)
{
    const struct entry *found = NULL;
    for (size_t i = 0; i < count; i++) {
        if (e[i].side != side || e[i].code != like->code || !str_eq(e[i].stem, like->stem))
            continue;
        if (found)
            return NULL;
        found = &e[i];
    }
    return found;
}

static int by_a(const void *left, const void *right)
{
    const struct pairing *a = left, *b = right;
    return a->a < b->a ? -1 : a->a > b->a;
}

static bool has_number(const struct entry *e, size_t count, unsigned side, uint32_t number)
{
    for (size_t i = 0; i < count; i++)
        if (e[i].side == side && e[i].number == number)
            return true;
    return false;
}

/* How many different numbers a side has. */
static size_t numbers_of(const struct entry *e, size_t count, unsigned side)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += e[i].side == side && !has_number(e, i, side, e[i].number);
    return found;
}

static void add_pairing(struct numbered *n, const char *key, uint32_t a, uint32_t b)
{
    ARRAY_PUSH(n->pairings, n->pairing_count, n->pairing_capacity) = (struct pairing){key, a, b};
}

/* Those whose code is there once on each side.  False when they contradict each other. */
static bool pair_by_code(const struct entry *e, size_t count, struct pairing *out, size_t *ret)
{
    *ret = 0;
    for (size_t i = 0; i < count; i++) {
        if (e[i].side || only_with(e, count, &e[i], 0) != &e[i])
            continue;
        const struct entry *b = only_with(e, count, &e[i], 1);
        for (size_t k = 0; b && k < *ret; k++) {
            if ((out[k].a == e[i].number) != (out[k].b == b->number))
                return false;
            if (out[k].a == e[i].number)
                b = NULL; /* known from another stem */
        }
        if (b)
            out[(*ret)++] = (struct pairing){e[i].key, e[i].number, b->number};
    }
    if (*ret)
        qsort(out, *ret, sizeof(*out), by_a);
    for (size_t k = 1; k < *ret; k++)
        if (out[k].b < out[k - 1].b)
            return false; /* moved about: their order tells nothing of the others */
    return true;
}

/* A number of A that code does not tell: as its neighbours, when as many stand between them on both
 * sides. */
static uint32_t place_between(const struct pairing *known, size_t count, uint32_t number,
                              uint32_t least)
{
    struct pairing low = {NULL, least - 1, least - 1}, high = {NULL, UINT32_MAX, UINT32_MAX};
    for (size_t i = 0; i < count; i++) {
        if (known[i].a == number)
            return known[i].b;
        if (known[i].a < number)
            low = known[i];
        else if (high.a == UINT32_MAX)
            high = known[i];
    }
    if (high.a != UINT32_MAX && high.a - low.a != high.b - low.b)
        return UINT32_MAX;
    return low.b + (number - low.a);
}

/* All of one key. */
static void conclude_key(struct numbered *n, const struct entry *e, size_t count)
{
    CLEANUP(memory_freep) struct pairing *known = memory_zalloc(count + 1, sizeof(*known));
    size_t known_count, numbers[2] = {numbers_of(e, count, 0), numbers_of(e, count, 1)};
    if (!numbers[0] || !numbers[1])
        return;
    bool is_clear = pair_by_code(e, count, known, &known_count), moved = false;
    for (size_t i = 0; i < known_count; i++)
        moved |= known[i].a != known[i].b;
    if (!moved && numbers[0] == numbers[1])
        return; /* the numbers are right, or nothing speaks against them */
    if (!moved && known_count == numbers[0] && known_count == numbers[1])
        return;
    if (!is_clear || (!known_count && numbers[0] != numbers[1])) {
        add_pairing(n, e->key, 0, UINT32_MAX);
        return;
    }
    uint32_t least = UINT32_MAX;
    for (size_t i = 0; i < count; i++)
        least = e[i].number < least ? e[i].number : least;
    for (size_t i = 0; i < count; i++)
        if (!e[i].side && !has_number(e, i, 0, e[i].number))
            add_pairing(n, e->key, e[i].number,
                        place_between(known, known_count, e[i].number, least));
}

void numbered_conclude(struct numbered *n)
{
    if (n->count)
        qsort(n->entries, n->count, sizeof(*n->entries), by_key);
    for (size_t i = 0, end; i < n->count; i = end) {
        for (end = i; end < n->count && str_eq(n->entries[end].key, n->entries[i].key);)
            end++;
        conclude_key(n, n->entries + i, end - i);
    }
}

/* "steps()::{lambda(long)#3}" of B as A has it. */
static bool put_number(const struct numbered *n, unsigned side, const char *name,
                       const struct mark *m, struct strbuf *out)
{
    bool is_moved = false;
    for (size_t i = 0; i < n->pairing_count; i++) {
        const struct pairing *p = &n->pairings[i];
        if (strlen(p->key) != m->digits - m->scope ||
            strncmp(p->key, name + m->scope, m->digits - m->scope) != 0)
            continue;
        is_moved = true;
        if (p->b == UINT32_MAX && !p->a) {
            strbuf_putc(out, '?');
            return true;
        }
        if ((side ? p->b : p->a) == m->number && p->b != UINT32_MAX) {
            strbuf_printf(out, "%u", p->a);
            return true;
        }
    }
    strbuf_printf(out, "%u%s", m->number, !is_moved ? "" : side ? " of B" : " of A");
    return is_moved;
}

bool numbered_name(const struct numbered *n, unsigned side, const char *name, struct strbuf *out)
{
    struct mark m;
    size_t from = 0;
    bool is_moved = false;
    while (next_mark(name, from, &m)) {
        strbuf_append(out, name + from, m.digits - from);
        is_moved |= put_number(n, side, name, &m, out);
        from = m.end;
    }
    strbuf_puts(out, name + from);
    return is_moved;
}

static void take_functions(struct numbered *n, unsigned side, struct module *module)
{
    const struct function *f;
    struct mark m;
    for (size_t i = 0; (f = module_function(module, i)); i++) {
        if (!f->size || f->size > CODE_BYTES_MOST || !f->name || !next_mark(f->name, 0, &m))
            continue;
        struct fingerprint print;
        size_t size = (size_t)f->size;
        CLEANUP(memory_freep) uint8_t *code = memory_alloc(size);
        size = module_read(module, f->start, code, size);
        fingerprint_take(n->printer, code, size, module_elf_address(module, f->start), &print);
        if (print.instruction_count >= TELLING_INSTRUCTIONS)
            numbered_add(n, side, f->name, print.exact);
        fingerprint_done(&print);
    }
}

static void take_builds(void *context, struct module *const modules[2])
{
    struct numbered *n = context;
    for (unsigned side = 0; side < 2; side++)
        take_functions(n, side, modules[side]);
}

struct numbered *numbered_find(struct match *m, const struct profile *const *const profiles[2])
{
    struct numbered *n = numbered_new();
    struct error ignored;
    if (m->run_counts[0] && m->run_counts[1] &&
        fingerprinter_new(&n->printer, profiles[0][0]->arch, &ignored) == 0) {
        match_each_build(m, profiles, take_builds, n);
        fingerprinter_free(n->printer);
        numbered_conclude(n);
    }
    for (size_t i = 0; i < n->pairing_count; i++) {
        const struct pairing *p = &n->pairings[i];
        if (p->b == UINT32_MAX && !p->a)
            strbuf_printf(&m->notes,
                          "the numbers of %s…} differ between the builds, and their code does not "
                          "tell which is which: they are told as one\n",
                          p->key);
    }
    if (n->pairing_count)
        return n;
    numbered_free(n);
    return NULL;
}
