/* SPDX-License-Identifier: MIT */
/* Which functions of two builds are the same one: see twins.h. */
#include "profile/code/twins.h"
#include "base/hash.h"
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CODE_BYTES_MAX (24u << 20) /* of both sides: a second or two */
#define FUNCTION_BYTES_MAX (1u << 20)
/* Code that is shorter is alike by chance. */
#define TELLING_INSTRUCTIONS 16
#define SHORT_INSTRUCTIONS 4
/* How alike two that stand at the same place have to be. */
#define ALIKE_ALONE 0.25
#define ALIKE_IN_ROW 0.5

enum { ROUNDS_MOST = 12, GAP_MOST = 8 };

static int by_address(const void *left, const void *right)
{
    const struct twin *a = left, *b = right;
    return a->address < b->address ? -1 : a->address > b->address;
}

static void list_functions(struct twins *t, unsigned side, struct module *module)
{
    const struct function *function;
    for (size_t i = 0; (function = module_function(module, i)); i++) {
        if (!function->size || function->size > FUNCTION_BYTES_MAX)
            continue;
        ARRAY_PUSH(t->items[side], t->counts[side], t->capacities[side]) =
            (struct twin){.function = function,
                          .address = module_elf_address(module, function->start),
                          .partner = TWINS_NONE};
    }
    if (t->counts[side])
        qsort(t->items[side], t->counts[side], sizeof(*t->items[side]), by_address);
}

static uint64_t code_bytes(const struct twins *t)
{
    uint64_t bytes = 0;
    for (unsigned side = 0; side < 2; side++)
        for (size_t i = 0; i < t->counts[side]; i++)
            bytes += t->items[side][i].function->size;
    return bytes;
}

static void take_fingerprints(struct twins *t, unsigned side, struct module *module,
                              struct fingerprinter *f)
{
    size_t count = t->counts[side];
    if (!count)
        return;
    /* What is not loaded at a place of the loader's choice has addresses among its numbers. */
    uint64_t low = t->items[side][0].address & ~0xfffffull;
    uint64_t high = t->items[side][count - 1].address + CODE_BYTES_MAX;
    fingerprinter_set_addresses(f, low ? low : 1, low ? high : 0);
    for (size_t i = 0; i < count; i++) {
        struct twin *twin = &t->items[side][i];
        size_t size = (size_t)twin->function->size;
        CLEANUP(memory_freep) uint8_t *code = memory_alloc(size);
        size = module_read(module, twin->function->start, code, size);
        fingerprint_take(f, code, size, twin->address, &twin->print);
    }
}

static void pair_up(struct twins *t, uint32_t a, uint32_t b)
{
    t->items[0][a].partner = b;
    t->items[1][b].partner = a;
    t->items[0][a].pair = t->items[1][b].pair = ++t->pair_count;
}

/* One function under the key by which it is looked for. */
struct keyed {
    uint64_t key;
    uint32_t index, side;
};

static int by_key(const void *left, const void *right)
{
    const struct keyed *a = left, *b = right;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    if (a->side != b->side)
        return a->side < b->side ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

/* The key of a function, 0 where it has none. */
typedef uint64_t key_function(const struct twins *t, unsigned side, const struct twin *twin);

static uint64_t name_key(const struct twins *t, unsigned side, const struct twin *twin)
{
    (void)t, (void)side;
    return function_is_nameless(twin->function)
               ? 0
               : hash_text(HASH_START, twin->function->linkage_name);
}

/* The pair of the function at an address of a side; 0 when it has none. */
static uint64_t pair_at(const struct twins *t, unsigned side, uint64_t address)
{
    struct twin wanted = {.address = address};
    const struct twin *found = t->counts[side] ? bsearch(&wanted, t->items[side], t->counts[side],
                                                         sizeof(wanted), by_address)
                                               : NULL;
    return found ? found->pair : 0;
}

static uint64_t with_targets(const struct twins *t, unsigned side, const struct twin *twin,
                             uint64_t hash)
{
    for (size_t i = 0; i < twin->print.target_count; i++) {
        uint64_t pair = pair_at(t, side, twin->print.targets[i]);
        hash = hash_bytes(hash, &pair, sizeof(pair));
    }
    return hash;
}

static uint64_t telling_key(const struct twins *t, unsigned side, const struct twin *twin)
{
    (void)t, (void)side;
    return twin->print.instruction_count >= TELLING_INSTRUCTIONS ? twin->print.exact : 0;
}

static uint64_t exact_key(const struct twins *t, unsigned side, const struct twin *twin)
{
    return twin->print.instruction_count >= SHORT_INSTRUCTIONS
               ? with_targets(t, side, twin, twin->print.exact)
               : 0;
}

static uint64_t loose_key(const struct twins *t, unsigned side, const struct twin *twin)
{
    return twin->print.instruction_count >= TELLING_INSTRUCTIONS
               ? with_targets(t, side, twin, twin->print.loose)
               : 0;
}

/* Pairs those without a partner whose key each side has once, or (in order) equally often. */
static bool pair_by_key(struct twins *t, key_function *key_of, bool in_order)
{
    struct keyed *list = memory_zalloc(t->counts[0] + t->counts[1] + 1, sizeof(*list));
    size_t count = 0;
    bool any = false;
    for (uint32_t side = 0; side < 2; side++)
        for (uint32_t i = 0; i < t->counts[side]; i++) {
            const struct twin *twin = &t->items[side][i];
            uint64_t key = twin->partner == TWINS_NONE ? key_of(t, side, twin) : 0;
            if (key)
                list[count++] = (struct keyed){key, i, side};
        }
    qsort(list, count, sizeof(*list), by_key);
    for (size_t from = 0, to; from < count; from = to) {
        size_t counts[2] = {0};
        for (to = from; to < count && list[to].key == list[from].key; to++)
            counts[list[to].side]++;
        if (counts[0] != counts[1] || (counts[0] > 1 && !in_order))
            continue;
        for (size_t i = 0; i < counts[0]; i++)
            pair_up(t, list[from + i].index, list[from + counts[0] + i].index);
        any = true;
    }
    free(list);
    return any;
}

uint32_t twins_at(const struct twins *t, unsigned side, uint64_t start)
{
    for (uint32_t i = 0; i < t->counts[side]; i++)
        if (t->items[side][i].function->start == start)
            return i;
    return TWINS_NONE;
}

static uint32_t index_at(const struct twins *t, unsigned side, uint64_t address)
{
    struct twin wanted = {.address = address};
    const struct twin *found =
        bsearch(&wanted, t->items[side], t->counts[side], sizeof(wanted), by_address);
    return found && found->partner == TWINS_NONE ? (uint32_t)(found - t->items[side]) : TWINS_NONE;
}

/* What a function and its twin call at the same place. */
static bool pair_called(struct twins *t)
{
    bool any = false;
    for (size_t i = 0; i < t->counts[0]; i++) {
        const struct twin *a = &t->items[0][i];
        const struct twin *b = a->partner == TWINS_NONE ? NULL : &t->items[1][a->partner];
        if (!b || a->print.loose != b->print.loose ||
            a->print.target_count != b->print.target_count)
            continue;
        for (size_t k = 0; k < a->print.target_count; k++) {
            uint32_t called_a = index_at(t, 0, a->print.targets[k]);
            uint32_t called_b = index_at(t, 1, b->print.targets[k]);
            if (called_a == TWINS_NONE || called_b == TWINS_NONE)
                continue;
            pair_up(t, called_a, called_b);
            any = true;
        }
    }
    return any;
}

/* Pairs that stand in the same order on both sides: the longest row of such (by length of the
 * longest row that ends with each, Fredman 1975).  Returns how many; keep has room for all. */
static size_t find_row(const struct twins *t, uint32_t *keep)
{
    size_t count = t->counts[0], length = 0;
    uint32_t *ends = memory_zalloc(count + 1, sizeof(*ends));
    uint32_t *before = memory_zalloc(count + 1, sizeof(*before));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t partner = t->items[0][i].partner;
        if (partner == TWINS_NONE)
            continue;
        size_t low = 0, high = length;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (t->items[0][ends[middle]].partner < partner)
                low = middle + 1;
            else
                high = middle;
        }
        before[i] = low ? ends[low - 1] : TWINS_NONE;
        ends[low] = i;
        length = low == length ? length + 1 : length;
    }
    for (size_t i = length, at = length ? ends[length - 1] : 0; i-- > 0; at = before[at])
        keep[i] = (uint32_t)at;
    free(ends);
    free(before);
    return length;
}

/* Those without a partner between two of a side; false when there are too many. */
static bool list_gap(const struct twins *t, unsigned side, size_t from, size_t to,
                     uint32_t gap[GAP_MOST], size_t *ret_count)
{
    *ret_count = 0;
    for (size_t i = from; i < to; i++) {
        if (t->items[side][i].partner != TWINS_NONE)
            continue;
        if (*ret_count == GAP_MOST)
            return false;
        gap[(*ret_count)++] = (uint32_t)i;
    }
    return true;
}

static bool pair_gap(struct twins *t, const size_t from[2], const size_t to[2])
{
    uint32_t gap[2][GAP_MOST];
    size_t counts[2];
    bool any = false;
    for (unsigned side = 0; side < 2; side++)
        if (!list_gap(t, side, from[side], to[side], gap[side], &counts[side]))
            return false;
    if (counts[0] != counts[1])
        return false;
    for (size_t i = 0; i < counts[0]; i++) {
        double likeness =
            fingerprint_likeness(&t->items[0][gap[0][i]].print, &t->items[1][gap[1][i]].print);
        if (likeness < (counts[0] == 1 ? ALIKE_ALONE : ALIKE_IN_ROW))
            continue;
        pair_up(t, gap[0][i], gap[1][i]);
        any = true;
    }
    return any;
}

/* Those that stand between the same neighbours. */
static bool pair_gaps(struct twins *t)
{
    uint32_t *row = memory_zalloc(t->counts[0] + 1, sizeof(*row));
    size_t count = find_row(t, row), from[2] = {0, 0};
    bool any = false;
    for (size_t i = 0; i <= count; i++) {
        size_t to[2] = {i < count ? row[i] : t->counts[0],
                        i < count ? t->items[0][row[i]].partner : t->counts[1]};
        any |= pair_gap(t, from, to);
        from[0] = to[0] + 1;
        from[1] = to[1] + 1;
    }
    free(row);
    return any;
}

static void pair_all(struct twins *t)
{
    pair_by_key(t, name_key, false);
    pair_by_key(t, telling_key, false);
    bool any = true;
    for (int round = 0; round < ROUNDS_MOST && any; round++) {
        any = pair_by_key(t, exact_key, false);
        any |= pair_called(t);
    }
    pair_by_key(t, exact_key, true);
    any = true;
    for (int round = 0; round < ROUNDS_MOST && any; round++) {
        any = pair_gaps(t);
        any |= pair_by_key(t, exact_key, false);
        any |= pair_by_key(t, loose_key, false);
        any |= pair_called(t);
    }
}

int twins_find(struct twins *t, struct module *const modules[2], const char *arch,
               struct error *err)
{
    struct fingerprinter *f = NULL;
    *t = (struct twins){0};
    for (unsigned side = 0; side < 2; side++)
        list_functions(t, side, modules[side]);
    int r = code_bytes(t) > CODE_BYTES_MAX
                ? error_set(err, -E2BIG, "there is too much code to compare")
                : fingerprinter_new(&f, arch, err);
    for (unsigned side = 0; side < 2 && r == 0; side++)
        take_fingerprints(t, side, modules[side], f);
    if (r == 0)
        pair_all(t);
    fingerprinter_free(f);
    return r;
}

void twins_done(struct twins *t)
{
    for (unsigned side = 0; side < 2; side++) {
        for (size_t i = 0; i < t->counts[side]; i++)
            fingerprint_done(&t->items[side][i].print);
        free(t->items[side]);
    }
    *t = (struct twins){0};
}
