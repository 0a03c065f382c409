/* SPDX-License-Identifier: MIT */
/*
 * A function that ends with a jump to another leaves no frame, and the stack names the one that
 * called it as the caller.  The code tells which functions end with such a jump, which of them the
 * caller calls, and, where it calls through a pointer, as virtual functions are, which of them
 * changed.
 */
#include "base/memory.h"
#include "profile/code/fingerprint.h"
#include "why/explain_internal.h"

#include <stdlib.h>

enum { JUMPERS_MOST = 64, NAMED_MOST = 3, CODE_BYTES_MOST = 1u << 20 };

struct jumpers {
    const struct function *items[JUMPERS_MOST];
    size_t count;
};

/* The functions that a part and its caller are on one side. */
struct jump_side {
    const struct function *callee, *caller;
    const char *arch;
};

static bool is_arm(const char *arch)
{
    return arch && str_eq(arch, "aarch64");
}

static bool knows_arch(const char *arch)
{
    return !arch || str_eq(arch, "x86_64") || is_arm(arch);
}

/* Whether there is a direct branch to a place within the code; calls: calls count as well. */
static bool branches_to(const uint8_t *code, size_t size, uint64_t address, uint64_t target,
                        const char *arch, bool calls)
{
    int32_t distance;
    if (is_arm(arch)) {
        for (size_t at = 0; at + 4 <= size; at += 4) {
            uint32_t word;
            memcpy(&word, code + at, sizeof(word));
            int64_t words = (int64_t)((uint64_t)word << 38) >> 38;
            uint32_t kind = word & 0xfc000000u;
            if ((kind == 0x14000000u || (calls && kind == 0x94000000u)) &&
                address + at + (uint64_t)(words * 4) == target)
                return true;
        }
        return false;
    }
    for (size_t at = 0; at + 5 <= size; at++) {
        bool conditional = at > 0 && code[at - 1] == 0x0f && (code[at] & 0xf0) == 0x80;
        if (code[at] != 0xe9 && !conditional && !(calls && code[at] == 0xe8))
            continue;
        memcpy(&distance, code + at + 1, sizeof(distance));
        if (address + at + 5 + (uint64_t)(int64_t)distance == target)
            return true;
    }
    /* A near one is short; two bytes alike within the code would mean nothing. */
    return size >= 2 && code[size - 2] == 0xeb &&
           address + size + (uint64_t)(int64_t)(int8_t)code[size - 1] == target;
}

static bool function_branches(const struct function *from, const struct function *to,
                              const char *arch, bool calls)
{
    if (!from->size || from->size > CODE_BYTES_MOST || from->module != to->module)
        return false;
    CLEANUP(memory_freep) uint8_t *code = memory_alloc((size_t)from->size);
    size_t size = module_read(from->module, from->start, code, (size_t)from->size);
    return branches_to(code, size, module_elf_address(from->module, from->start),
                       module_elf_address(to->module, to->start), arch, calls);
}

/* Whether there is a call through a pointer.  One that lies at a fixed distance is how compilers
 * call another module's function without a PLT. */
static bool calls_pointer(const struct function *f, const char *arch, bool is_elsewhere)
{
    if (!f->size || f->size > CODE_BYTES_MOST)
        return false;
    CLEANUP(memory_freep) uint8_t *code = memory_alloc((size_t)f->size);
    size_t size = module_read(f->module, f->start, code, (size_t)f->size);
    for (size_t at = 0; is_arm(arch) && at + 4 <= size; at += 4) {
        uint32_t word;
        memcpy(&word, code + at, sizeof(word));
        if ((word & 0xfffffc1fu) == 0xd63f0000u)
            return true;
    }
    for (size_t at = 0; !is_arm(arch) && at + 2 <= size; at++)
        if (code[at] == 0xff && (code[at + 1] & 0x38) == 0x10 &&
            !(is_elsewhere && code[at + 1] == 0x15))
            return true;
    return false;
}

/* Whether the caller calls the part's function, or what could be it, by its name. */
static bool calls_by_name(const struct jump_side *at)
{
    const struct function *f;
    bool is_elsewhere = at->caller->module != at->callee->module;
    if (function_branches(at->caller, at->callee, at->arch, true))
        return true;
    for (size_t i = 0; (f = module_function(at->caller->module, i)); i++) {
        if (!str_has_suffix(f->linkage_name, "@plt"))
            continue;
        /* A function of another module may have more names than the one that is known here. */
        size_t length = strlen(f->linkage_name) - strlen("@plt");
        bool could_be =
            is_elsewhere || (length == strlen(at->callee->linkage_name) &&
                             !memcmp(f->linkage_name, at->callee->linkage_name, length));
        if (could_be && function_branches(at->caller, f, at->arch, true))
            return true;
    }
    return false;
}

/* The kernel calls a handler of signals by its address, and this stands for the caller. */
static bool is_signal_return(const struct function *f)
{
    return str_eq(f->linkage_name, "__restore_rt") || str_eq(f->linkage_name, "__restore");
}

/* Those that end with a jump to the part's function; by_name: that the caller calls by name. */
static void find_jumpers(const struct jump_side *at, bool by_name, struct jumpers *found)
{
    const struct function *f;
    for (size_t i = 0; (f = module_function(at->callee->module, i)); i++) {
        bool is_either = f->start == at->callee->start || f->start == at->caller->start;
        if (!is_either && found->count < JUMPERS_MOST &&
            function_branches(f, at->callee, at->arch, false) &&
            (!by_name || function_branches(at->caller, f, at->arch, true)))
            found->items[found->count++] = f;
    }
}

/* What a name of the reasons stands for on a side. */
static const struct function *function_named(const struct explain *e, const struct parts *parts,
                                             unsigned side, const char *name, const char **ret_arch)
{
    for (size_t run = 0; run < parts->run_counts[side]; run++) {
        const struct profile *p = e->loads.profiles[side][run];
        for (uint32_t i = 0; i < p->calls.symbol_count; i++) {
            const struct profile_symbol *s = &p->calls.symbols[i];
            const char *is = s->is_kernel || !s->function || !s->function->size
                                 ? NULL
                                 : explain_name(&parts->names, side, run, i);
            *ret_arch = p->arch;
            if (is && str_eq(is, name) && module_kind(s->function->module) == MODULE_FILE)
                return s->function;
        }
    }
    return NULL;
}

static void take_print(struct fingerprinter *printer, const struct function *f,
                       struct fingerprint *print)
{
    CLEANUP(memory_freep) uint8_t *code = memory_alloc((size_t)f->size);
    size_t size = module_read(f->module, f->start, code, (size_t)f->size);
    fingerprint_take(printer, code, size, module_elf_address(f->module, f->start), print);
}

static bool has_same_code(struct fingerprinter *printer, const struct function *a,
                          const struct function *b)
{
    struct fingerprint prints[2] = {0};
    take_print(printer, a, &prints[0]);
    take_print(printer, b, &prints[1]);
    bool same = prints[0].exact == prints[1].exact;
    fingerprint_done(&prints[0]);
    fingerprint_done(&prints[1]);
    return same;
}

static const struct function *of_name(const struct jumpers *list, const char *linkage_name)
{
    for (size_t i = 0; i < list->count; i++)
        if (str_eq(list->items[i]->linkage_name, linkage_name))
            return list->items[i];
    return NULL;
}

/* Those of a side that the other one does not have, or has with other code. */
static void find_changed(const struct jumpers *here, const struct jumpers *there, const char *arch,
                         struct jumpers *changed)
{
    struct fingerprinter *printer;
    struct error ignored;
    if (fingerprinter_new(&printer, arch, &ignored) < 0)
        return;
    for (size_t i = 0; i < here->count; i++) {
        const struct function *twin = of_name(there, here->items[i]->linkage_name);
        if (!twin || !has_same_code(printer, here->items[i], twin))
            changed->items[changed->count++] = here->items[i];
    }
    fingerprinter_free(printer);
}

static void put_names(struct strbuf *out, const struct jumpers *list)
{
    size_t count = list->count < NAMED_MOST ? list->count : NAMED_MOST;
    for (size_t i = 0; i < count; i++) {
        strbuf_puts(out, i == 0 ? "" : i + 1 < count || list->count > count ? ", " : " or ");
        strbuf_puts(out, list->items[i]->name);
    }
    if (list->count > count)
        strbuf_printf(out, " or %zu others", list->count - count);
}

static void find_side(const struct jump_side *at, bool *by_name, struct jumpers *found)
{
    if (!at->callee || !at->caller || !knows_arch(at->arch) || calls_by_name(at))
        return;
    *by_name = true;
    find_jumpers(at, true, found);
    bool is_elsewhere = at->caller->module != at->callee->module;
    if (found->count ||
        !(calls_pointer(at->caller, at->arch, is_elsewhere) || is_signal_return(at->caller)))
        return;
    *by_name = false;
    find_jumpers(at, false, found);
}

static void put_jumpers(struct strbuf *out, const struct jumpers *list, const char *caller,
                        bool by_name)
{
    bool one = list->count == 1;
    strbuf_puts(out, "called by ");
    if (!by_name)
        strbuf_printf(out, "%s through a pointer, or by ", caller);
    put_names(out, list);
    if (by_name)
        strbuf_printf(out, ", from %s", caller);
    strbuf_printf(out, "%s with a jump to it and %s no frame\n",
                  !by_name ? one ? ", which ends" : ", which end"
                  : one    ? "; that one ends"
                           : "; they end",
                  one ? "leaves" : "leave");
}

bool explain_put_jumps(struct strbuf *out, const struct explain *e, const struct parts *parts,
                       const struct part *part, const char *caller)
{
    struct jumpers jumpers[SIDE_COUNT] = {0}, changed = {0};
    struct jump_side sides[SIDE_COUNT] = {0};
    bool by_name[SIDE_COUNT] = {0};
    if (!caller)
        return false;
    for (unsigned s = 0; s < SIDE_COUNT; s++) {
        struct jump_side *at = &sides[s];
        at->callee = function_named(e, parts, s, part->name, &at->arch);
        at->caller = function_named(e, parts, s, caller, &at->arch);
        find_side(at, &by_name[s], &jumpers[s]);
    }
    unsigned side = jumpers[SIDE_B].count ? SIDE_B : SIDE_A;
    if (!jumpers[side].count)
        return false;
    if (jumpers[side].count > 1 && sides[SIDE_B - side].callee)
        find_changed(&jumpers[side], &jumpers[SIDE_B - side], sides[side].arch, &changed);
    if (changed.count != 1) {
        put_jumpers(out, &jumpers[side], caller, by_name[side]);
        return true;
    }
    strbuf_printf(out,
                  "called by %s, from %s%s; of %zu functions that end with a jump to it and leave "
                  "no frame, only this one has other code\n",
                  changed.items[0]->name, caller, by_name[side] ? "" : ", through a pointer",
                  jumpers[side].count);
    return true;
}
