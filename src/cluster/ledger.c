/* SPDX-License-Identifier: MIT */
/* See ledger.h.  All is linear in the number of units, but for sorting the cells once. */
#include "cluster/ledger.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/strings.h"
#include "numbers/random.h"

#include <assert.h>

/* ---- blocks ---- */

struct keyed {
    uint64_t key; /* of the values that tell one block from another */
    uint32_t cell;
};

static bool stays_together(const struct ledger_spec *spec, size_t factor)
{
    const struct spec *s = spec->matrix->spec;
    if (spec->together && spec->together[factor])
        return true;
    if (!s->baseline.count)
        return true;
    for (size_t b = 0; b < s->baseline.count; b++)
        if (str_eq(s->baseline.items[b].name, s->factors[factor].name))
            return true;
    return false;
}

static int compare_keyed(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->cell > y->cell) - (x->cell < y->cell);
}

static int compare_first_cells(const void *a, const void *b)
{
    const struct keyed *x = *(struct keyed *const *)a, *y = *(struct keyed *const *)b;
    return (x->cell > y->cell) - (x->cell < y->cell);
}

static struct keyed *list_cells(const struct ledger_spec *spec, size_t *ret_count)
{
    const struct matrix *m = spec->matrix;
    bool apart[SPEC_FACTORS_MAX];
    for (size_t f = 0; f < m->spec->factor_count; f++)
        apart[f] = !stays_together(spec, f);
    struct keyed *items = memory_zalloc(m->count + 1, sizeof(*items));
    size_t count = 0;
    for (size_t c = 0; c < m->count; c++) {
        if (!spec->kept[c])
            continue;
        uint64_t key = HASH_START; /* two blocks that collide would only stay together */
        for (size_t f = 0; f < m->spec->factor_count; f++)
            if (apart[f])
                key = hash_bytes(key, m->cells[c].levels[f]->name,
                                 strlen(m->cells[c].levels[f]->name) + 1);
        items[count++] = (struct keyed){.key = key, .cell = (uint32_t)c};
    }
    qsort(items, count, sizeof(*items), compare_keyed);
    *ret_count = count;
    return items;
}

/* A block needs what any of its cells needs. */
static void find_needs(struct ledger *l, const struct ledger_spec *spec, size_t block)
{
    uint32_t needs = 0;
    for (size_t i = l->starts[block]; spec->needs_of && i < l->starts[block + 1]; i++)
        needs |= spec->needs_of(spec->context, l->cells[i]);
    l->needs[block] = needs;
    size_t k = 0;
    while (k < l->kind_count && l->kinds[k] != needs)
        k++;
    if (k == l->kind_count)
        ARRAY_PUSH(l->kinds, l->kind_count, l->kind_capacity) = needs;
}

void ledger_init(struct ledger *l, const struct ledger_spec *spec)
{
    *l = (struct ledger){0};
    CLEANUP(memory_freep) struct keyed *items = list_cells(spec, &l->cell_count);
    CLEANUP(memory_freep) struct keyed **firsts = memory_zalloc(l->cell_count + 1, sizeof(*firsts));
    for (size_t i = 0; i < l->cell_count; i++)
        if (i == 0 || items[i].key != items[i - 1].key)
            firsts[l->block_count++] = &items[i];
    qsort(firsts, l->block_count, sizeof(*firsts), compare_first_cells);
    l->cells = memory_zalloc(l->cell_count + 1, sizeof(*l->cells));
    l->starts = memory_zalloc(l->block_count + 1, sizeof(*l->starts));
    l->needs = memory_zalloc(l->block_count + 1, sizeof(*l->needs));
    l->block_of = memory_zalloc(spec->matrix->count + 1, sizeof(*l->block_of));
    for (size_t c = 0; c < spec->matrix->count; c++)
        l->block_of[c] = LEDGER_NONE;
    size_t at = 0;
    for (size_t b = 0; b < l->block_count; b++) {
        l->starts[b] = (uint32_t)at;
        for (const struct keyed *k = firsts[b];
             k < items + l->cell_count && k->key == firsts[b]->key; k++) {
            l->block_of[k->cell] = (uint32_t)b;
            l->cells[at++] = k->cell;
        }
        l->starts[b + 1] = (uint32_t)at;
        find_needs(l, spec, b);
    }
}

void ledger_done(struct ledger *l)
{
    free(l->cells);
    free(l->starts);
    free(l->block_of);
    free(l->needs);
    free(l->kinds);
    free(l->states);
    free(l->tries);
    *l = (struct ledger){0};
}

/* ---- units ---- */

static size_t place_of(const struct ledger *l, struct ledger_unit unit)
{
    assert(unit.block < l->block_count);
    return (size_t)unit.round * l->block_count + unit.block;
}

static void make_room(struct ledger *l, uint64_t round)
{
    if (round < l->round_count)
        return;
    size_t rounds = round + 1 > l->round_count * 2 ? round + 1 : l->round_count * 2;
    size_t before = l->round_count * l->block_count, after = rounds * l->block_count;
    l->states = memory_resize(l->states, after, sizeof(*l->states));
    l->tries = memory_resize(l->tries, after, sizeof(*l->tries));
    memset(l->states + before, UNIT_UNWANTED, after - before);
    memset(l->tries + before, 0, after - before);
    l->round_count = rounds;
}

enum unit_state ledger_state(const struct ledger *l, struct ledger_unit unit)
{
    return unit.round < l->round_count ? (enum unit_state)l->states[place_of(l, unit)]
                                       : UNIT_UNWANTED;
}

static void set_state(struct ledger *l, struct ledger_unit unit, enum unit_state state)
{
    size_t *const counts[] = {[UNIT_MISSING] = &l->missing,
                              [UNIT_QUEUED] = &l->queued,
                              [UNIT_DONE] = &l->done,
                              [UNIT_GIVEN_UP] = &l->given_up};
    uint8_t *now = &l->states[place_of(l, unit)];
    size_t runs = ledger_block_size(l, unit.block);
    if (*now != UNIT_UNWANTED)
        --*counts[*now];
    else
        l->runs_wanted += runs;
    if (*now == UNIT_DONE)
        l->runs_done -= runs;
    *now = (uint8_t)state;
    ++*counts[state];
    if (state == UNIT_DONE)
        l->runs_done += runs;
}

void ledger_want(struct ledger *l, uint32_t block, uint64_t round)
{
    struct ledger_unit unit = {.block = block, .round = (uint32_t)round};
    make_room(l, round);
    if (ledger_state(l, unit) == UNIT_UNWANTED)
        set_state(l, unit, UNIT_MISSING);
}

void ledger_finish(struct ledger *l, struct ledger_unit unit)
{
    make_room(l, unit.round);
    set_state(l, unit, UNIT_DONE);
}

bool ledger_give_back(struct ledger *l, struct ledger_unit unit, bool failed, unsigned tries_most)
{
    if (ledger_state(l, unit) != UNIT_QUEUED)
        return true; /* measured elsewhere meanwhile */
    uint8_t *tries = &l->tries[place_of(l, unit)];
    *tries = (uint8_t)(*tries + (failed && *tries < UINT8_MAX));
    bool again = !failed || *tries < tries_most;
    set_state(l, unit, again ? UNIT_MISSING : UNIT_GIVEN_UP);
    return again;
}

void ledger_give_up(struct ledger *l, struct ledger_unit unit)
{
    if (ledger_state(l, unit) == UNIT_MISSING || ledger_state(l, unit) == UNIT_QUEUED)
        set_state(l, unit, UNIT_GIVEN_UP);
}

/* ---- tasks ---- */

/* The missing units with those needs, round by round. */
static void take_kind(struct ledger *l, uint32_t needs, uint64_t seed, size_t *order,
                      struct ledger_batch *batch)
{
    for (uint64_t round = 0; round < l->round_count; round++) {
        size_t count = 0;
        for (size_t b = 0; b < l->block_count; b++)
            if (l->needs[b] == needs && l->states[round * l->block_count + b] == UNIT_MISSING)
                order[count++] = b;
        struct rng rng;
        rng_seed(&rng, seed + round * 0x9e3779b97f4a7c15ULL);
        rng_shuffle(&rng, order, count);
        for (size_t i = 0; i < count; i++) {
            struct ledger_unit unit = {.block = (uint32_t)order[i], .round = (uint32_t)round};
            ARRAY_PUSH(batch->units, batch->unit_count, batch->unit_capacity) = unit;
            set_state(l, unit, UNIT_QUEUED);
        }
    }
}

static size_t units_in_task(const struct ledger_limits *limits, size_t units)
{
    size_t nodes = limits->node_count ? limits->node_count : 1;
    size_t each = limits->tasks_per_node ? limits->tasks_per_node : LEDGER_TASKS_PER_NODE;
    size_t tasks = nodes * each;
    if (limits->tasks_most && tasks > limits->tasks_most)
        tasks = limits->tasks_most;
    return (units + tasks - 1) / tasks;
}

void ledger_take(struct ledger *l, const struct ledger_limits *limits, struct ledger_batch *batch)
{
    *batch = (struct ledger_batch){0};
    size_t each = units_in_task(limits, l->missing);
    CLEANUP(memory_freep) size_t *order = memory_zalloc(l->block_count + 1, sizeof(*order));
    for (size_t kind = 0; kind < l->kind_count; kind++) {
        size_t first = batch->unit_count;
        take_kind(l, l->kinds[kind], limits->seed, order, batch);
        for (; first < batch->unit_count; first += each) {
            size_t left = batch->unit_count - first;
            ARRAY_PUSH(batch->tasks, batch->task_count, batch->task_capacity) =
                (struct ledger_task){
                    .first = first, .count = left < each ? left : each, .needs = l->kinds[kind]};
        }
    }
}

void ledger_batch_done(struct ledger_batch *batch)
{
    free(batch->units);
    free(batch->tasks);
    *batch = (struct ledger_batch){0};
}
