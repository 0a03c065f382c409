/* SPDX-License-Identifier: MIT */
/*
 * Equal functions that one side's compiler made one of.
 *
 * A change can make a function equal to another.  Then the compiler keeps the code once: the other
 * name becomes a jump to it, or vanishes, and a profile shows the time under the wrong name, on one
 * side only.  But callers still know: where a caller has the same instructions in both builds, what
 * it calls at one place in the one build is what it means at that place in the other.
 */
#include "base/memory.h"
#include "profile/code/fingerprint.h"
#include "profile/match.h"

#include <stdlib.h>

enum { JUMP_BYTES_MOST = 16, CODE_BYTES_MOST = 1 << 18, TELLING_INSTRUCTIONS = 8 };

/* A call of one side that means a function which has no code of its own there. */
struct folded_call {
    unsigned side;
    const struct module *module;
    uint64_t address;              /* of the call, as locations have it */
    const struct function *stands; /* has the code */
    uint32_t meant;                /* item */
};

/* A function that is gone from one side, where another one has its code. */
struct same_code {
    unsigned side;       /* that lacks it */
    uint32_t gone, kept; /* items */
};

/* A function that samples know, with its item. */
struct seen {
    const struct function *function;
    uint64_t address; /* as objdump counts */
    uint32_t item;
};

struct folder {
    struct match *match;
    const struct profile *const *const *profiles;
    struct fingerprinter *printer;
    struct module *modules[2]; /* the two builds that are looked at */
    struct seen *seen[2];
    size_t seen_counts[2], seen_capacities[2];
    struct folded_call *calls;
    size_t count, capacity;
    struct same_code *same;
    size_t same_count, same_capacity;
};

static void list_seen(struct folder *f, unsigned side)
{
    for (size_t run = 0; run < f->match->run_counts[side]; run++) {
        const struct calls *calls = &f->profiles[side][run]->calls;
        for (size_t i = 0; i < calls->symbol_count; i++) {
            const struct function *function = calls->symbols[i].function;
            uint32_t item = f->match->rows[side][run][i];
            if (!function || !function->size || calls->symbols[i].is_kernel || item == MATCH_NONE ||
                !match_is_one_build(function->module, f->modules[side]))
                continue;
            bool is_known = false;
            for (size_t k = 0; k < f->seen_counts[side]; k++)
                is_known |= f->seen[side][k].function->start == function->start;
            if (!is_known)
                ARRAY_PUSH(f->seen[side], f->seen_counts[side], f->seen_capacities[side]) =
                    (struct seen){function, module_elf_address(f->modules[side], function->start),
                                  item};
        }
    }
}

static const struct seen *seen_at(const struct folder *f, unsigned side, uint64_t address)
{
    for (size_t i = 0; i < f->seen_counts[side]; i++)
        if (f->seen[side][i].address == address)
            return &f->seen[side][i];
    return NULL;
}

static const struct function *function_at(const struct folder *f, unsigned side, uint64_t address)
{
    uint64_t start = module_address_of_elf(f->modules[side], address);
    const struct function *function;
    for (size_t i = 0; (function = module_function(f->modules[side], i)); i++)
        if (function->start == start)
            return function;
    return NULL;
}

/* Where a function that is nothing but a jump leads to; 0 for others. */
static uint64_t jump_of(const struct folder *f, unsigned side, const struct function *function)
{
    static const uint8_t mark[] = {0xf3, 0x0f, 0x1e, 0xfa}; /* endbr64 */
    uint8_t code[JUMP_BYTES_MOST] = {0};
    const char *arch = f->profiles[0][0]->arch;
    if (!function->size || function->size > sizeof(code) || (arch && strcmp(arch, "x86_64") != 0))
        return 0;
    module_read(f->modules[side], function->start, code, (size_t)function->size);
    size_t at = memcmp(code, mark, sizeof(mark)) == 0 ? sizeof(mark) : 0;
    uint64_t address = module_elf_address(f->modules[side], function->start) + at;
    int32_t distance;
    memcpy(&distance, code + at + 1, sizeof(distance));
    if (code[at] == 0xe9)
        return address + 5 + (uint64_t)(int64_t)distance;
    return code[at] == 0xeb ? address + 2 + (uint64_t)(int64_t)(int8_t)code[at + 1] : 0;
}

/* Whether a side has no code for an item, or only a jump to the code at that address. */
static bool is_gone(const struct folder *f, unsigned side, const struct seen *from,
                    uint64_t address)
{
    const struct matched *item = &f->match->items[from->item];
    const struct profile_symbol *symbol = item->symbols[side];
    const struct function *function;
    if (item->kind == MATCH_MIXED)
        return false;
    if (symbol)
        return symbol->function && jump_of(f, side, symbol->function) == address;
    for (size_t i = 0; (function = module_function(f->modules[side], i)); i++)
        if (!function_is_nameless(from->function) &&
            str_eq(function->linkage_name, from->function->linkage_name))
            return jump_of(f, side, function) == address;
    return true;
}

static bool is_named(const struct folder *f, unsigned side, const struct function *wanted)
{
    const struct function *function;
    for (size_t i = 0; (function = module_function(f->modules[side], i)); i++)
        if (str_eq(function->linkage_name, wanted->linkage_name))
            return true;
    return false;
}

/* Whether only this side has such a function.  Two of which each is in its own build only, and
 * which are called at the same place, were not made one: the one took the place of the other. */
static bool is_alone(const struct folder *f, unsigned side, const struct seen *s)
{
    return !f->match->items[s->item].symbols[1 - side] &&
           (function_is_nameless(s->function) || !is_named(f, 1 - side, s->function));
}

/* One place of a caller: what one side calls there, and what stands there on the other. */
static void look_at(struct folder *f, unsigned side, uint64_t here, uint64_t there, uint64_t site)
{
    unsigned other = 1 - side;
    const struct seen *meant = seen_at(f, other, there);
    const struct function *called = meant ? function_at(f, side, here) : NULL;
    if (!called || jump_of(f, other, meant->function))
        return;
    uint64_t jump = jump_of(f, side, called);
    const struct function *stands = jump ? function_at(f, side, jump) : called;
    const struct seen *seen = stands ? seen_at(f, side, jump ? jump : here) : NULL;
    if (!seen || seen->item == meant->item || (!jump && !is_gone(f, side, meant, here)) ||
        is_alone(f, side, seen))
        return;
    ARRAY_PUSH(f->calls, f->count, f->capacity) =
        (struct folded_call){.side = side,
                             .module = f->modules[side],
                             .address = module_address_of_elf(f->modules[side], site - 1),
                             .stands = seen->function,
                             .meant = meant->item};
}

static void take_print(const struct folder *f, unsigned side, const struct seen *s,
                       struct fingerprint *ret)
{
    size_t size = (size_t)s->function->size;
    CLEANUP(memory_freep) uint8_t *code = memory_alloc(size);
    size = module_read(f->modules[side], s->function->start, code, size);
    fingerprint_take(f->printer, code, size, s->address, ret);
}

/* A caller that both sides have. */
static void look_into(struct folder *f, const struct seen *const both[2])
{
    struct fingerprint prints[2];
    for (unsigned side = 0; side < 2; side++)
        take_print(f, side, both[side], &prints[side]);
    bool are_alike =
        prints[0].loose == prints[1].loose && prints[0].target_count == prints[1].target_count;
    for (size_t i = 0; i < prints[0].target_count && are_alike; i++)
        for (unsigned side = 0; side < 2; side++)
            look_at(f, side, prints[side].targets[i], prints[1 - side].targets[i],
                    prints[side].sites[i]);
    fingerprint_done(&prints[0]);
    fingerprint_done(&prints[1]);
}

static bool is_resolved(const struct folder *f, unsigned side, uint32_t item)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->calls[i].side == side && f->calls[i].meant == item)
            return true;
    return false;
}

/* What one side has and the other has not, neither by name nor by its callers. */
static void look_for_same_code(struct folder *f, unsigned side, const struct seen *gone)
{
    const struct seen *kept = NULL;
    struct fingerprint print;
    size_t found = 0;
    const struct matched *item = &f->match->items[gone->item];
    if (item->symbols[side] || item->kind == MATCH_MIXED || function_is_nameless(gone->function) ||
        gone->function->size > CODE_BYTES_MOST || is_resolved(f, side, gone->item) ||
        is_named(f, side, gone->function))
        return;
    take_print(f, 1 - side, gone, &print);
    for (size_t i = 0; i < f->seen_counts[side]; i++) {
        struct fingerprint other;
        if (f->seen[side][i].function->size > CODE_BYTES_MOST)
            continue;
        take_print(f, side, &f->seen[side][i], &other);
        if (other.exact == print.exact && print.instruction_count >= TELLING_INSTRUCTIONS) {
            kept = &f->seen[side][i];
            found++;
        }
        fingerprint_done(&other);
    }
    fingerprint_done(&print);
    if (found == 1 && kept->item != gone->item)
        ARRAY_PUSH(f->same, f->same_count, f->same_capacity) =
            (struct same_code){side, gone->item, kept->item};
}

static void look_through(void *context, struct module *const modules[2])
{
    struct folder *f = context;
    for (unsigned side = 0; side < 2; side++) {
        f->modules[side] = modules[side];
        f->seen_counts[side] = 0;
        list_seen(f, side);
    }
    for (size_t i = 0; i < f->seen_counts[0]; i++)
        for (size_t k = 0; k < f->seen_counts[1]; k++) {
            const struct seen *both[2] = {&f->seen[0][i], &f->seen[1][k]};
            if (both[0]->item == both[1]->item && both[0]->function->size < CODE_BYTES_MOST &&
                both[1]->function->size < CODE_BYTES_MOST)
                look_into(f, both);
        }
    for (unsigned side = 0; side < 2; side++)
        for (size_t i = 0; i < f->seen_counts[1 - side]; i++)
            look_for_same_code(f, side, &f->seen[1 - side][i]);
}

/* One that only the other side knows has a new name.  One that both know stands for two: their
 * callers changed as well, so nothing tells whose time it is. */
static void join_same_code(struct folder *f)
{
    struct match *m = f->match;
    CLEANUP(memory_freep) uint32_t *target = memory_zalloc(m->count + 1, sizeof(*target));
    for (uint32_t i = 0; i < m->count; i++)
        target[i] = i;
    for (size_t i = 0; i < f->same_count; i++) {
        const struct same_code *s = &f->same[i];
        struct matched *gone = &m->items[s->gone], *kept = &m->items[s->kept];
        unsigned other = 1 - s->side;
        if (target[s->gone] != s->gone || target[s->kept] != s->kept)
            continue;
        target[s->gone] = s->kept;
        if (!kept->symbols[other]) {
            kept->symbols[other] = gone->symbols[other];
            kept->dsos[other] = gone->dsos[other];
            kept->kind = MATCH_RENAMED;
            continue;
        }
        CLEANUP(memory_freep) char *both = memory_printf("%s or %s", kept->name, gone->name);
        strbuf_printf(
            &m->notes,
            "in the %s one, the compiler made one of %s and %s, and their callers changed "
            "as well: they are told as one\n",
            s->side ? "second" : "first", gone->name, kept->name);
        kept->name = arena_strdup(&m->arena, both);
        kept->kind = MATCH_MIXED;
    }
    if (f->same_count)
        match_join(m, f->profiles, target);
}

/* A symbol of a run that stands for an item, a new one where there is none. */
static uint32_t symbol_of(struct folder *f, unsigned side, size_t run, uint32_t item)
{
    struct match *m = f->match;
    struct calls *calls = (struct calls *)&f->profiles[side][run]->calls;
    uint32_t count = (uint32_t)calls->symbol_count;
    for (uint32_t i = 0; i < count; i++)
        if (m->rows[side][run][i] == item)
            return i;
    const struct profile_symbol *from = m->items[item].symbols[1 - side];
    const struct profile_symbol *before = calls->symbols;
    struct profile_symbol symbol = {.name = arena_strdup(&m->arena, from->name)};
    symbol.dso = names_add(&calls->dsos, &calls->arena, m->items[item].dsos[1 - side]);
    ARRAY_PUSH(calls->symbols, calls->symbol_count, calls->symbol_capacity) = symbol;
    m->rows[side][run] = memory_resize(m->rows[side][run], count + 2, sizeof(**m->rows[side]));
    m->rows[side][run][count] = item;
    for (size_t i = 0; i < m->count; i++) { /* the list may have moved */
        const struct profile_symbol **at = &m->items[i].symbols[side];
        if (*at >= before && *at < before + count)
            *at = calls->symbols + (*at - before);
    }
    if (!m->items[item].symbols[side]) {
        m->items[item].symbols[side] = &calls->symbols[count];
        m->items[item].dsos[side] = m->items[item].dsos[1 - side];
        m->items[item].kind = MATCH_SAME;
    }
    return count;
}

static bool is_stood_for(const struct folded_call *call, const struct profile_symbol *s)
{
    return s->function && !s->is_kernel && s->function->start == call->stands->start &&
           s->function->size == call->stands->size &&
           match_is_one_build(s->function->module, call->module);
}

static void give_back(struct folder *f, unsigned side, size_t run)
{
    struct profile *p = (struct profile *)f->profiles[side][run];
    size_t count = p->stacks.location_count;
    CLEANUP(memory_freep) uint32_t *meant = memory_alloc((count + 1) * sizeof(*meant));
    CLEANUP(memory_freep) uint32_t *instead = memory_zalloc(count + 1, sizeof(*instead));
    bool any = false;
    for (size_t l = 0; l < count; l++) {
        const struct stack_location *location = &p->stacks.locations[l];
        meant[l] = IDTABLE_NONE;
        for (size_t i = 0; i < f->count && location->module; i++) {
            const struct folded_call *call = &f->calls[i];
            if (call->side != side || call->address != location->address ||
                !(location->flags & STACK_CALLER) ||
                !match_is_one_build(location->module, call->module))
                continue;
            for (uint32_t s = 0; s < p->calls.symbol_count; s++)
                if (is_stood_for(call, &p->calls.symbols[s]))
                    instead[l] = s;
            uint32_t symbol = symbol_of(f, side, run, call->meant);
            meant[l] = calls_frame(&p->calls, symbol, 0, false);
            any = true;
        }
    }
    if (any)
        profile_make_calls(p, meant, instead);
}

void match_folded(struct match *m, const struct profile *const *const profiles[2])
{
    struct folder f = {.match = m, .profiles = profiles};
    struct error err;
    for (unsigned side = 0; side < 2; side++)
        if (!m->run_counts[side] || !profiles[side][0]->called)
            return;
    if (fingerprinter_new(&f.printer, profiles[0][0]->arch, &err) < 0)
        return;
    match_each_build(m, profiles, look_through, &f);
    join_same_code(&f);
    for (unsigned side = 0; side < 2 && f.count; side++)
        for (size_t run = 0; run < m->run_counts[side]; run++)
            give_back(&f, side, run);
    for (size_t i = 0; i < f.count; i++)
        strbuf_printf(
            &m->notes,
            "in the %s one, the compiler made one of %s and %s; their calls are told apart "
            "by where they are made\n",
            f.calls[i].side ? "second" : "first", m->items[f.calls[i].meant].name,
            f.calls[i].stands->name);
    fingerprinter_free(f.printer);
    free(f.calls);
    free(f.same);
    free(f.seen[0]);
    free(f.seen[1]);
}
