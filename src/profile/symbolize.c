/* SPDX-License-Identifier: MIT */
/*
 * Names for every address of a profile, in one batch, and the stacks of functions made from them.
 *
 * Which addresses are the same function?  Those with the same linkage name in the same module, if
 * they also agree on where the source declares it (known with DWARF) or where the code begins
 * (known without): two static functions of one name stay apart, while a function and its inlined
 * copies come together.  With fold_variants the name alone decides.
 */
#include "base/memory.h"
#include "profile/load.h"

#include <stdio.h>
#include <string.h>

struct identity {
    const struct module *module;
    const char *name; /* linkage name, perhaps folded; NULL for an address without a name */
    size_t name_length;
    const char *declared_file;
    uint64_t place; /* declared line, start of the code, or the address */
    bool is_kernel;
};

struct namer {
    struct profile *profile;
    struct identity *identities; /* by number of symbol */
    size_t count, capacity;
    struct idtable table;
    const struct function **functions; /* a cache by pointer: most frames repeat a function */
    uint32_t *function_symbols;
};

#define FUNCTION_CACHE 4096u

static uint64_t identity_key(const struct identity *i)
{
    uint64_t h = hash_mix((uint64_t)(uintptr_t)i->module, i->place * 2 + i->is_kernel);
    h = hash_bytes(h, i->name, i->name_length);
    return hash_mix(h, i->declared_file ? hash_string(i->declared_file) : 0);
}

static uint64_t identity_hash(const void *items, uint32_t id)
{
    return identity_key((const struct identity *)items + id);
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_identity(const struct identity *a, const struct identity *b)
{
    return a->module == b->module && a->place == b->place && a->is_kernel == b->is_kernel &&
           a->name_length == b->name_length && !a->name == !b->name &&
           (!a->name || memcmp(a->name, b->name, a->name_length) == 0) &&
           same_text(a->declared_file, b->declared_file);
}

static struct identity identify(const struct namer *n, const struct function *f, bool is_kernel)
{
    struct identity id = {.module = f->module, .is_kernel = is_kernel};
    id.name = f->linkage_name ? f->linkage_name : f->name;
    id.name_length = strlen(id.name);
    if (n->profile->options.fold_variants) {
        id.name_length = name_fold(id.name, id.name_length);
        return id;
    }
    id.declared_file = f->declared_file;
    id.place = f->declared_file ? f->declared_line : f->start;
    return id;
}

/* The number of the symbol with this identity; *ret_is_new when it must be filled in. */
static uint32_t find_symbol(struct namer *n, const struct identity *wanted, bool *ret_is_new)
{
    struct calls *calls = &n->profile->calls;
    uint32_t slot, id;
    *ret_is_new = false;
    IDTABLE_EACH(&n->table, identity_key(wanted), slot, id)
    if (same_identity(&n->identities[id], wanted))
        return id;
    *ret_is_new = true;
    id = (uint32_t)n->count;
    ARRAY_PUSH(n->identities, n->count, n->capacity) = *wanted;
    idtable_put(&n->table, slot, id);
    if (idtable_is_crowded(&n->table))
        idtable_grow(&n->table, identity_hash, n->identities);
    ARRAY_PUSH(calls->symbols, calls->symbol_count, calls->symbol_capacity) =
        (struct profile_symbol){.is_kernel = wanted->is_kernel};
    return id;
}

static uint32_t dso_number(struct calls *calls, const struct module *module)
{
    unsigned pid;
    char name[64];
    if (!module)
        return names_add(&calls->dsos, &calls->arena, "[unknown]");
    if (module_kind(module) != MODULE_PERFMAP ||
        sscanf(module_name(module), "perf-%u.map", &pid) != 1)
        return names_add(&calls->dsos, &calls->arena, module_name(module));
    snprintf(name, sizeof(name), "[JIT] tid %u", pid); /* as perf calls it */
    return names_add(&calls->dsos, &calls->arena, name);
}

static uint32_t function_symbol(struct namer *n, const struct function *f, bool is_kernel)
{
    size_t place = ((uintptr_t)f / 16 * 2 + is_kernel) % FUNCTION_CACHE;
    if (n->functions[place] == f &&
        n->profile->calls.symbols[n->function_symbols[place]].is_kernel == is_kernel)
        return n->function_symbols[place];
    struct calls *calls = &n->profile->calls;
    struct identity wanted = identify(n, f, is_kernel);
    bool is_new;
    uint32_t id = find_symbol(n, &wanted, &is_new);
    if (is_new) {
        struct profile_symbol *s = &calls->symbols[id];
        s->function = f;
        s->address = f->start;
        s->name = f->name;
        if (n->profile->options.fold_variants) {
            size_t length = strlen(f->name);
            s->name = arena_strndup(&calls->arena, f->name, name_fold(f->name, length));
        }
        s->dso = dso_number(calls, f->module);
    }
    n->functions[place] = f;
    n->function_symbols[place] = id;
    return id;
}

static uint32_t address_symbol(struct namer *n, const struct stack_location *l)
{
    struct calls *calls = &n->profile->calls;
    /* Return addresses are shown as they stood on the stack. */
    uint64_t address = l->address + (l->flags & STACK_CALLER ? 1 : 0);
    struct identity wanted = {
        .module = l->module, .place = address, .is_kernel = l->flags & STACK_KERNEL};
    bool is_new;
    uint32_t id = find_symbol(n, &wanted, &is_new);
    if (is_new) {
        calls->symbols[id].address = address;
        calls->symbols[id].dso = l->flags & STACK_GUEST
                                     ? names_add(&calls->dsos, &calls->arena, "[guest]")
                                     : dso_number(calls, l->module);
    }
    return id;
}

static uint32_t frame_number(struct namer *n, const struct stack_location *l,
                             const struct symbols_frame *f)
{
    struct calls *calls = &n->profile->calls;
    uint32_t symbol = f->function ? function_symbol(n, f->function, l->flags & STACK_KERNEL)
                                  : address_symbol(n, l);
    uint32_t srcline = n->profile->options.with_lines ? calls_srcline(calls, f->file, f->line) : 0;
    return calls_frame(calls, symbol, srcline, f->inlined);
}

static void name_locations(struct namer *n, const struct symbols_request *requests)
{
    struct profile *p = n->profile;
    size_t count = p->stacks.location_count, total = 0;
    p->location_lists = memory_zalloc(count + 1, sizeof(*p->location_lists));
    for (size_t i = 0; i < count; i++)
        total += requests[i].frame_count ? requests[i].frame_count : 1;
    p->location_frames = memory_zalloc(total + 1, sizeof(*p->location_frames));
    uint32_t at = 0;
    for (size_t i = 0; i < count; i++) {
        const struct stack_location *l = &p->stacks.locations[i];
        static const struct symbols_frame unknown = {0};
        for (uint32_t k = 0; k < requests[i].frame_count; k++)
            p->location_frames[at++] = frame_number(n, l, &requests[i].frames[k]);
        if (!requests[i].frame_count)
            p->location_frames[at++] = frame_number(n, l, &unknown);
        p->location_lists[i + 1] = at;
    }
}

/* The address that the call instruction at a location calls, in the same module; false where there
 * is none, or it goes through a pointer. */
static bool find_target(const struct profile *p, const struct stack_location *l,
                        struct location *ret_target)
{
    uint8_t code[5];
    int32_t distance;
    if (!(l->flags & STACK_CALLER) || l->flags & (STACK_KERNEL | STACK_GUEST) || !l->module ||
        module_kind(l->module) != MODULE_FILE)
        return false;
    uint64_t back = l->address + 1, target;
    if (p->arch && strcmp(p->arch, "aarch64") == 0) {
        if (module_read(l->module, back - 4, &distance, 4) != 4 ||
            ((uint32_t)distance & 0xfc000000u) != 0x94000000u) /* bl */
            return false;
        int64_t words = (int64_t)((uint64_t)distance << 38) >> 38;
        target = module_elf_address(l->module, back - 4) + (uint64_t)(words * 4);
    } else {
        if (module_read(l->module, back - 5, code, 5) != 5 || code[0] != 0xe8) /* call */
            return false;
        memcpy(&distance, code + 1, sizeof(distance));
        target = module_elf_address(l->module, back - 1) + 1 + (uint64_t)(int64_t)distance;
    }
    *ret_target = (struct location){l->module, module_address_of_elf(l->module, target)};
    return true;
}

static bool is_plt(const char *name)
{
    size_t length = strlen(name);
    return length > 4 && strcmp(name + length - 4, "@plt") == 0;
}

/* For each location the frame of the function that is called there, or IDTABLE_NONE. */
static uint32_t *find_called(struct namer *n)
{
    struct profile *p = n->profile;
    size_t count = p->stacks.location_count;
    uint32_t *called = memory_alloc((count + 1) * sizeof(*called));
    struct symbols_request *requests = memory_zalloc(count + 1, sizeof(*requests));
    for (size_t i = 0; i < count; i++)
        if (!find_target(p, &p->stacks.locations[i], &requests[i].location))
            requests[i].location = (struct location){NULL, 0};
    symbols_resolve(p->symbols, requests, count, p->options.want);
    for (size_t i = 0; i < count; i++) {
        const struct symbols_request *r = &requests[i];
        const struct function *f =
            r->location.module && r->frame_count ? r->frames[r->frame_count - 1].function : NULL;
        called[i] = f && f->start == r->location.address && !is_plt(f->linkage_name)
                        ? calls_frame(&p->calls, function_symbol(n, f, false), 0, false)
                        : IDTABLE_NONE;
    }
    free(requests);
    return called;
}

void profile_make_calls(struct profile *p, const uint32_t *meant, const uint32_t *instead)
{
    struct calls_known known = {.called = p->called, .meant = meant, .instead = instead};
    calls_from_stacks(&p->calls, &p->stacks, p->location_lists, p->location_frames, &known,
                      p->call_nodes);
}

void profile_symbolize(struct profile *p)
{
    if (p->given) {
        profile_name_given(p);
        return;
    }
    size_t count = p->stacks.location_count;
    struct symbols_request *requests = memory_zalloc(count + 1, sizeof(*requests));
    for (size_t i = 0; i < count; i++)
        requests[i].location =
            (struct location){p->stacks.locations[i].module, p->stacks.locations[i].address};
    symbols_resolve(p->symbols, requests, count, p->options.want);
    struct namer n = {.profile = p};
    idtable_init(&n.table, 10);
    n.functions = memory_zalloc(FUNCTION_CACHE, sizeof(*n.functions));
    n.function_symbols = memory_zalloc(FUNCTION_CACHE, sizeof(*n.function_symbols));
    name_locations(&n, requests);
    free(requests);
    p->called = p->options.tail_calls ? find_called(&n) : NULL;
    free(n.functions);
    free(n.function_symbols);
    free(n.identities);
    idtable_done(&n.table);
    p->call_nodes = memory_zalloc(p->stacks.node_count, sizeof(*p->call_nodes));
    profile_make_calls(p, NULL, NULL);
    chain_judge(p);
}
